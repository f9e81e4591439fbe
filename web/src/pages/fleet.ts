// The fleet: how much of what is paid for is used now and over time, where the rest went, and whose it was.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { band, count, gpuHours, hours, percent, percentTick, plain, points, signed, tick, usd } from "../base/format";
import { jobId } from "../base/job_id";
import { previousQuery } from "../base/url_state";
import * as api from "../api/client";
import type { Findings, Fleet, FleetSeries, Mention, Summary, Waste } from "../api/answers";
import { stackedBar } from "../charts/bars";
import { TimeChart } from "../charts/time_chart";
import { ACCOUNT_COLUMNS, accountParts, costsOf } from "./account";
import { connectGuide } from "./connect";
import { costExplanation, coverageExplanation, hoursExplanation, ofuExplanation, reportedExplanation, waterfallExplanation } from "./explanations";
import { costText, findingMarks, kindText, markedList, severityMark } from "./finding_parts";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { accountBar, asked, assumptionList, explain, figure, nothing, qualityList, section, shareOf, table, tabs, unknown } from "./parts";
import type { Column } from "./parts";
import { reasonText } from "../base/reasons";

const ROWS = 25;
const MARKED = 50;
const TOP = 5;
const BY: [string, string][] = [["job", "Jobs"], ["team", "Teams"], ["user", "Users"], ["namespace", "Namespaces"], ["model", "GPU models"]];

type Group = Fleet["groups"][number];

export class FleetPage implements Page {
  private readonly fleet: Asked<Fleet>;
  private readonly series: Asked<FleetSeries>;
  private readonly before: Asked<Fleet>;
  private readonly ever: Asked<Fleet>;
  private readonly waste: Asked<Waste>;
  private readonly findings: Asked<Findings>;
  private readonly ofu: TimeChart;
  private readonly account: TimeChart;

  constructor(private readonly context: Context) {
    this.fleet = new Asked(context.changed);
    this.series = new Asked(context.changed);
    this.before = new Asked(context.changed);
    this.ever = new Asked(context.changed);
    this.waste = new Asked(context.changed);
    this.findings = new Asked(context.changed);
    this.ofu = new TimeChart({ title: "OFU over time", key: "fleet", format: (value) => percent(value), axis: percentTick, height: 200, zoom: context.zoom });
    this.account = new TimeChart({
      title: "GPUs by what became of their time",
      key: "fleet",
      format: (value) => plain(value, 1),
      axis: tick,
      height: 160,
      stacked: true,
      zoom: context.zoom,
    });
  }

  title(): string {
    return "Fleet";
  }

  private by(): string {
    const by = this.context.address.parameters.by ?? "job";
    return BY.some(([name]) => name === by) ? by : "job";
  }

  private query(): Record<string, string> {
    return { ...this.context.query(), by: this.by(), top: String(ROWS) };
  }

  async load(): Promise<void> {
    // The course is a sum that the service keeps, the rest is added up: asked first, it need not wait for it.
    const series = this.loadSeries();
    const [fleet] = await Promise.all([this.fleet.ask(api.fleet(this.query())), series]);
    if (!fleet) return;
    if (fleet.fleet.gpu_count === 0) {
      await this.ever.ask(api.fleet({ since: "90d", by: "model", top: "1" }));
    } else if (fleet.window.start !== null && fleet.window.end !== null) {
      const window = { start: fleet.window.start, end: fleet.window.end };
      await this.before.ask(api.fleet({ ...previousQuery(window), by: "model", top: "1" }));
      if (fleet.fleet.cost_usd !== null) await this.waste.ask(api.waste({ ...this.context.query(), by: "model", top: "1" }));
    }
  }

  private async loadSeries(): Promise<void> {
    const [series] = await Promise.all([
      this.series.ask(api.fleetSeries(this.context.query())),
      this.findings.ask(api.findings({ ...this.context.query(), state: "all", severity: "warning,critical", limit: String(MARKED) })),
    ]);
    if (!series) return;
    const share = (i: number, of: (ofu: number, coverage: number) => number): number | null => {
      const gpus = series.gpu_count[i] ?? null;
      const coverage = series.coverage_ratio[i] ?? null;
      if (gpus === null || coverage === null) return null;
      return gpus * of(series.ofu_ratio[i] ?? 0, coverage);
    };
    const each = (of: (ofu: number, coverage: number) => number): (number | null)[] => series.time.map((_, i) => share(i, of));
    const axis = { time: series.time, step_seconds: series.step_seconds, reasons: series.absent_reason };
    this.ofu.update({
      ...axis,
      marks: findingMarks(this.findings.value?.findings ?? []),
      lines: [
        { name: "ofu_ratio", label: "OFU", values: series.ofu_ratio, colour: "--delivered" },
        { name: "tensor_active_ratio", label: "Tensor pipe active", values: series.tensor_active_ratio, colour: "--line-tensor", dashed: true },
      ],
    });
    this.account.update({
      ...axis,
      lines: [
        { name: "gpus_delivered", label: "Delivered", values: each((ofu, coverage) => ofu * coverage), colour: "--delivered" },
        { name: "gpus_lost", label: "Lost", values: each((ofu, coverage) => (1 - ofu) * coverage), colour: "--lost" },
        { name: "gpus_unmeasured", label: "Unmeasured", values: each((_, coverage) => 1 - coverage), colour: "--unmeasured" },
      ],
    });
  }

  render(): Child {
    const fleet = this.fleet.value;
    if (fleet && fleet.fleet.gpu_count === 0) {
      if (this.ever.waiting) return asked(this.ever, () => null);
      if (this.ever.value?.fleet.gpu_count === 0) return connectGuide();
      return nothing("No GPU was seen in this time. Choose a longer or a later one; there is data within the last 90 days.");
    }
    return [
      section("Fleet", asked(this.fleet, (value) => [this.figures(value), this.nothingBefore(), this.accountOf(value)])),
      this.topFindings(),
      section("Over time", asked(this.series, () => [this.ofu.element, markedList(this.context, this.findings.value?.findings ?? []), this.account.element])),
      section("Whose time it was", this.groups()),
      section("What these numbers rest on", asked(this.fleet, (value) => [qualityList(value.quality, { unmeasured_ratio: shareOf(value.fleet.gpu_hours_unmeasured, value.fleet.gpu_hours_allocated), absent_ratios: value.fleet.absent_ratios, data_findings: this.findings.value?.findings.filter((one) => one.data_quality) ?? null }), h("details", null, h("summary", null, "Assumptions"), assumptionList(value.assumptions))])),
    ];
  }

  // Those that are open and cost most. Nothing where findings are not kept.
  private topFindings(): Child {
    const value = this.fleet.value;
    const top = value?.findings ?? null;
    if (!value || top === null) return null;
    const all = h("a", { href: this.context.href("findings") }, `all ${count(value.finding_count)}`);
    return section("Top findings",
      top.length === 0 ? nothing("Nothing is open.") : table(
        [
          { title: "What", cell: (one: Mention) => [severityMark(one.severity), " ", h("a", { href: this.context.href("finding", { id: one.id }) }, kindText(one.kind)), h("span", { class: "wrap small under-name" }, one.text)] },
          { title: "Cost so far", number: true, cell: (one: Mention) => costText(one) ?? unknown("it cannot be told for this") },
          { title: "State", cell: (one: Mention) => one.state },
        ],
        top.slice(0, TOP),
        (one) => one.id,
        "Open findings by what they cost, most first",
      ),
      (value.finding_count ?? 0) > Math.min(TOP, top.length) ? h("p", { class: "muted" }, "See ", all, ".") : null);
  }

  // What is different from the same length of time before it.
  private change(now: number | null, of: (before: Summary) => number | null, format: (difference: number | null) => string): Child {
    const before = this.before.value?.fleet;
    if (!before) return this.before.error ? h("span", { class: "muted" }, "change unknown") : null;
    const then = of(before);
    if (before.gpu_count === 0 || then === null || now === null) return null;
    return h("span", { class: "muted", title: "against the same length of time before" }, `${format(now - then)} vs. before`);
  }

  private nothingBefore(): Child {
    const before = this.before.value;
    return before?.fleet.gpu_count === 0 ? h("p", { class: "muted small" }, "No change is shown: nothing was seen in the same length of time before.") : null;
  }

  private figures(value: Fleet): Child {
    const row = value.fleet;
    const source = api.address("fleet", this.query());
    const hoursWhy = () => hoursExplanation(row, source);
    const hoursChange = (difference: number | null): string => signed(difference, gpuHours);
    return h(
      "div",
      { class: "figures" },
      figure({
        label: "OFU",
        value: percent(row.ofu_ratio),
        unknown: row.ofu_ratio === null,
        below: [row.ofu_ratio_low === null ? null : h("span", { class: "muted", title: "error band" }, band(row.ofu_ratio_low, row.ofu_ratio_high)), this.change(row.ofu_ratio, (before) => before.ofu_ratio, points)],
        why: () => ofuExplanation(row, source),
      }),
      figure({ label: "Delivered", value: gpuHours(row.gpu_hours_delivered), unknown: row.gpu_hours_delivered === null, below: this.change(row.gpu_hours_delivered, (before) => before.gpu_hours_delivered, hoursChange), why: hoursWhy }),
      figure({
        label: "Lost",
        value: gpuHours(row.gpu_hours_lost),
        unknown: row.gpu_hours_lost === null,
        below: [row.cost_lost_usd === null ? null : h("span", null, usd(row.cost_lost_usd)), this.change(row.gpu_hours_lost, (before) => before.gpu_hours_lost, hoursChange)],
        why: hoursWhy,
      }),
      figure({
        label: "Unmeasured",
        value: gpuHours(row.gpu_hours_unmeasured),
        unknown: row.gpu_hours_unmeasured === null,
        below: [row.cost_unmeasured_usd ? h("span", null, usd(row.cost_unmeasured_usd)) : null, h("span", { class: "muted" }, `coverage ${percent(row.coverage_ratio)}`)],
        why: () => coverageExplanation(row, source),
      }),
      figure({
        label: "Cost",
        value: row.cost_usd === null ? "no price" : usd(row.cost_usd),
        unknown: row.cost_usd === null,
        below: h("span", { class: "muted" }, `${gpuHours(row.gpu_hours_allocated)} allocated`),
        why: () => costExplanation(row, source),
      }),
      figure({
        label: "GPUs",
        value: count(row.gpu_count),
        below: h("a", { href: this.context.href("map") }, "map of all"),
        why: () => ({ title: "GPUs", says: ["Distinct GPUs with time in this window; a MIG instance counts with its GPU."], source }),
      }),
    );
  }

  private accountOf(value: Fleet): Child {
    const source = api.address("fleet", this.query());
    return stackedBar({
      title: "Where the allocated time went",
      file_columns: ACCOUNT_COLUMNS,
      parts: accountParts(value.fleet, value.fleet.waterfall, value.fleet.absent_ratios, this.waste.value ? costsOf(this.waste.value.total) : {}),
      extra: h("button", { type: "button", class: "quiet", on: { click: () => explain(waterfallExplanation(source)) } }, "How it is made"),
    });
  }

  private groups(): Child {
    const by = this.by();
    return [
      tabs("Grouped by", BY, by, (name) => this.context.set({ by: name === "job" ? "" : name })),
      asked(this.fleet, (value) => {
        if (value.by !== by) return h("p", { class: "waiting", role: "status" }, "Loading\u2026");
        const omitted = value.groups_omitted_count;
        return [
          h("p", { class: "muted small" }, "By what they lost against the tensor peak, most first. ", h("a", { href: this.context.href("waste", { by: by === "team" ? "" : by }) }, "The waste account"), " has causes, what could be reached, and what changed."),
          table(this.columns(by, value), value.groups, (group) => JSON.stringify(group.key), "Groups by what they lost, most first"),
          omitted > 0 ? h("p", { class: "muted" }, `and ${count(omitted)} more`, by === "job" ? [": ", h("a", { href: this.context.href("jobs") }, "all jobs")] : null) : null,
        ];
      }),
    ];
  }

  private columns(by: string, value: Fleet): Column<Group>[] {
    const source = api.address("fleet", this.query());
    const columns: Column<Group>[] = [
      { title: BY.find(([name]) => name === by)?.[1].replace(/s$/, "") ?? by, cell: (group) => this.name(by, group) },
      { title: "GPUs", number: true, cell: (group) => count(group.gpu_count) },
      { title: "OFU", number: true, why: () => ofuExplanation(value.fleet, source), cell: (group) => (group.ofu_ratio === null ? unknown(reasonText(group.absent_reason)) : percent(group.ofu_ratio)) },
      { title: "Delivered, lost, unmeasured", cell: (group) => accountBar(group) },
      { title: "Lost, GPU-h", number: true, why: () => hoursExplanation(value.fleet, source), cell: (group) => hours(group.gpu_hours_lost) },
    ];
    if (value.fleet.cost_usd !== null || value.groups.some((group) => group.cost_lost_usd !== null)) {
      columns.push({ title: "Lost, $", number: true, why: () => costExplanation(value.fleet, source), cell: (group) => (group.cost_lost_usd === null ? unknown("no price is configured") : usd(group.cost_lost_usd)) });
    }
    columns.push({ title: "Unmeasured", number: true, cell: (group) => hours(group.gpu_hours_unmeasured) });
    if (value.groups.some((group) => group.reported_mfu_ratio !== null)) {
      columns.push({ title: "Reported MFU", number: true, why: () => reportedExplanation(source), cell: (group) => (group.reported_mfu_ratio === null ? h("span", { class: "muted" }, "none") : percent(group.reported_mfu_ratio)) });
    }
    return columns;
  }

  private name(by: string, group: Group): Child {
    const name = group.key[by] ?? null;
    if (name === null || name === "") return h("span", { class: "muted" }, by === "job" ? "no job" : by === "model" ? `unknown GPU: ${group.key.model_raw ?? "no name"}` : `no ${by}`);
    if (by !== "job") return h("span", { class: "name" }, name);
    const owner = [group.key.user, group.key.namespace].filter((text) => text).join(" \u00b7 ");
    return [h("a", { class: "name", href: this.context.href("job", { id: jobId(name, group.key.namespace ?? null) }) }, name), owner ? h("span", { class: "muted owner", title: owner }, owner) : null];
  }

  simulated(): boolean {
    return this.series.value?.simulated ?? this.fleet.value?.quality.some((entry) => entry.code === "simulated") ?? false;
  }

  newest(): number | null {
    const series = this.series.value;
    if (!series) return null;
    const last = series.gpu_count.findLastIndex((value) => value !== null);
    return last < 0 ? null : (series.time[last] ?? 0) + series.step_seconds * 1000;
  }

  redraw(): void {
    this.ofu.rebuild();
    this.account.rebuild();
  }

  dispose(): void {
    this.ofu.dispose();
    this.account.dispose();
  }
}
