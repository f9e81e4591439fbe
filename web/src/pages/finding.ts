// One finding: what was seen, since when, what it cost, what may be behind it, and what somebody says of it.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { gpuHours, percent, percentTick, plain, tick, time, usd } from "../base/format";
import * as api from "../api/client";
import type { Finding } from "../api/answers";
import { TimeChart } from "../charts/time_chart";
import { about, AnswerForm, findingMarks, kindText, lasted, severityMark, stateText, subject } from "./finding_parts";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { asked, figure, nothing, section, table } from "./parts";
import { SilenceForm } from "./silences";

// By the unit at the end of a name.
function valueText(name: string, value: number | null): string {
  if (value === null) return "unknown";
  return name.endsWith("_ratio") ? percent(value) : plain(value, Math.abs(value) >= 100 ? 0 : 2);
}

const MINUTE = 60_000;

export class FindingPage implements Page {
  private readonly finding: Asked<Finding>;
  private readonly chart: TimeChart;
  private readonly answer: AnswerForm;
  private silence: SilenceForm | null = null;
  private series_name = "";

  constructor(private readonly context: Context) {
    this.finding = new Asked(context.changed);
    this.chart = new TimeChart({ title: "What it was found in", key: "finding", format: (value) => valueText(this.series_name, value), axis: (value, step) => (this.series_name.endsWith("_ratio") ? percentTick : tick)(value, step), height: 200, zoom: () => {} });
    this.answer = new AnswerForm(() => void this.load());
  }

  title(): string {
    const found = this.finding.value;
    return found ? `${kindText(found.kind)} of ${subject(found)}` : "Finding";
  }

  async load(): Promise<void> {
    const found = await this.finding.ask(api.finding(this.context.address.parameters.id ?? ""));
    if (!found) return;
    this.answer.show(found);
    this.silence ??= new SilenceForm(found.job ? [["job", found.job], ["kind", found.kind]] : found.gpu ? [["gpu", found.gpu]] : found.host ? [["host", found.host]] : [["kind", found.kind]], () => void this.load());
    if (found.series && found.series.time.length > 0) {
      const { name, time: times, value } = found.series;
      this.series_name = name;
      const steps = times.slice(1).map((t, i) => t - (times[i] ?? t)).filter((step) => step > 0);
      const step = steps.length > 0 ? Math.min(...steps) : MINUTE;
      this.chart.update({ time: times, step_seconds: step / 1000, lines: [{ name, label: name.replaceAll("_", " "), values: value, colour: "--delivered" }], marks: findingMarks([found]) });
    }
  }

  render(): Child {
    if (this.finding.error?.status === 404 && !this.finding.value) {
      return section("Finding", h("p", { class: "notice error", role: "alert" }, this.finding.error.message), nothing("It may have been of a job that you may not see, or is older than what is kept."));
    }
    return [
      h("section", { class: "panel", "data-key": "head", "aria-label": "Finding" }, h("h2", null, this.title()), asked(this.finding, (found) => [
        h("p", { class: "summary" }, severityMark(found.severity), " ", found.text),
        found.action ? h("p", null, h("b", null, "What to do: "), found.action) : null,
        this.figures(found),
        this.facts(found),
      ])),
      this.finding.value ? section("Answer", this.answer.element, h("details", { "data-key": "silence" }, h("summary", null, "Silence it"), h("p", { class: "muted" }, "It stays here and is not delivered until the silence ends."), this.silence?.element ?? null)) : null,
      this.finding.value?.series ? section("Over time", this.chart.element) : null,
      section("Evidence", asked(this.finding, (found) => this.evidence(found))),
    ];
  }

  private figures(found: Finding): Child {
    const { zone } = this.context;
    const source = api.address(`findings/${found.id}`);
    const why = (title: string, ...says: string[]) => () => ({ title, says, source });
    const cost = found.cost_gpu_hours;
    return h("div", { class: "figures" },
      figure({
        label: "Cost so far",
        value: cost === null ? (found.data_quality ? "none" : "unknown") : found.cost_usd === null ? gpuHours(cost) : usd(found.cost_usd),
        unknown: cost === null,
        below: cost === null ? h("span", { class: "muted" }, found.cost_absent_reason) : found.cost_usd === null ? h("span", { class: "muted" }, found.cost_usd_absent_reason) : h("span", { class: "muted" }, gpuHours(cost)),
        why: why("Cost", "GPU-hours that would not have been lost without this, since it began, times the price of the GPU model where one is configured. Time that nobody measured never costs anything here."),
      }),
      figure({ label: "Lasts", value: lasted(found), below: h("span", { class: "muted" }, `since ${time(found.first, zone)}`), why: why("How long", "From the first minute in which it showed to the last one.", found.flap_count > 0 ? `It went and came back ${found.flap_count} times.` : "") }),
      figure({ label: "State", value: found.state, below: h("span", { class: "muted" }, stateText(found)), why: why("State", "Open until somebody acknowledges it, resolved when it has not shown for a while or somebody says so.", found.note ? `Note: ${found.note}` : "") }));
  }

  private facts(found: Finding): Child {
    const { zone } = this.context;
    const facts: [string, Child][] = [
      ["Of", about(this.context, found)],
      ["User", found.user ? h("a", { href: this.context.href("findings", { user: found.user }) }, found.user) : null],
      ["Team", found.team ? h("a", { href: this.context.href("findings", { team: found.team }) }, found.team) : null],
      ["GPU model", found.gpu_model],
      ["Found", time(found.opened, zone)],
      ["Acknowledged", found.acknowledged === null ? null : `${time(found.acknowledged, zone)} by ${found.acknowledged_by ?? "somebody"}`],
      ["Resolved", found.resolved === null ? null : `${time(found.resolved, zone)}${found.resolved_by ? ` by ${found.resolved_by}` : ", as it went"}`],
      ["Note", found.note],
    ];
    return h("dl", { class: "facts" }, facts.filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0)).map(([name, value]) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value))));
  }

  private evidence(found: Finding): Child {
    return [
      found.evidence.length === 0 ? nothing("No numbers beside what is said above.") : table(
        [
          { title: "Number", cell: (one) => one.name.replaceAll("_", " ") },
          { title: "Value", number: true, cell: (one) => valueText(one.name, one.value) },
        ],
        found.evidence,
        (one) => one.name,
        "Evidence",
      ),
      found.suspects.length === 0 ? null : [
        h("h3", null, "What may be behind it"),
        table(
          [
            { title: "Suspect", cell: (one) => one.kind.replaceAll("_", " ") },
            { title: "Explains", number: true, cell: (one) => (one.explained_ratio === null ? h("span", { class: "muted" }, "came at the same time") : percent(one.explained_ratio, 0)) },
            { title: "How", cell: (one) => h("span", { class: "wrap" }, one.text) },
          ],
          found.suspects,
          (one) => one.kind + one.text,
          "Suspects, most likely first",
        ),
      ],
    ];
  }

  simulated(): boolean {
    return this.finding.value?.simulated ?? false;
  }

  redraw(): void {
    this.chart.rebuild();
  }

  dispose(): void {
    this.chart.dispose();
  }
}
