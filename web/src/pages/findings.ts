// What was found: open, acknowledged, resolved; and the silences.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, shortTime, time } from "../base/format";
import * as api from "../api/client";
import type { FindingRow, Findings } from "../api/answers";
import { about, costText, KINDS, kindText, lasted, refusal, severityMark, stateText, subject } from "./finding_parts";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { asked, choice, nothing, section, table, tabs, unknown } from "./parts";
import type { Column } from "./parts";
import { SilenceForm, SilenceList } from "./silences";

const PAGE = 50;
const STATES: [string, string][] = [["", "Open and acknowledged"], ["open", "Open"], ["resolved", "Resolved"], ["all", "All"]];
const SEVERITIES: [string, string][] = [["", "any"], ["critical", "critical"], ["warning,critical", "warning and above"], ["info", "info"]];
const OWN = ["job", "host", "gpu", "user", "team"];

export class FindingsPage implements Page {
  private readonly list: Asked<Findings>;
  private readonly silences: SilenceList;
  private readonly form: SilenceForm;
  private said = "";

  constructor(private readonly context: Context) {
    this.list = new Asked(context.changed);
    this.silences = new SilenceList(context);
    this.form = new SilenceForm([["job", ""]], () => void this.load());
  }

  title(): string {
    return "Findings";
  }

  private of(name: string): string {
    return this.context.address.parameters[name] ?? "";
  }

  // What is open is shown whenever it began; what is over belongs to a time.
  private query(): Record<string, string> {
    const state = this.of("state");
    const window: Record<string, string> = state === "resolved" || state === "all" ? this.context.query() : {};
    const named = ["state", "kind", "severity", ...OWN, "cursor"].map((name): [string, string] => [name, this.of(name)]).filter(([, value]) => value !== "");
    return { ...window, ...Object.fromEntries(named), limit: String(PAGE) };
  }

  async load(): Promise<void> {
    await Promise.all([this.list.ask(api.findings(this.query())), this.silences.load()]);
  }

  render(): Child {
    const set = (name: string) => (value: string): void => this.context.set({ [name]: value, cursor: "" });
    const narrowed = OWN.filter((name) => this.of(name) !== "");
    const known = this.of("kind");
    const kinds = Object.entries(KINDS);
    return [
      section("Findings",
        tabs("State", STATES, this.of("state"), set("state")),
        h("div", { class: "controls" },
          choice("Kind", [["", "any"], ...(known !== "" && !(known in KINDS) ? [[known, known] as [string, string]] : []), ...kinds], known, set("kind")),
          choice("Severity", SEVERITIES, this.of("severity"), set("severity")),
          narrowed.map((name) => h("span", { class: "chip", "data-key": name }, `${name}: ${this.of(name)} `, h("button", { type: "button", class: "quiet", "aria-label": `Without ${name} ${this.of(name)}`, on: { click: () => set(name)("") } }, "\u00d7")))),
        this.said ? h("p", { class: "notice error", role: "alert" }, this.said) : null,
        asked(this.list, (value) => this.rows(value))),
      section("Silences", this.silences.render(), h("h3", null, "Add one"), this.form.element),
    ];
  }

  private rows(value: Findings): Child {
    const looked = value.looked_until === null ? h("p", { class: "muted small" }, `Nothing was looked at yet: ${value.absent_reason ?? "the service has just started"}.`)
      : h("p", { class: "muted small" }, `${count(value.findings_total)} ${value.findings_total === 1 ? "finding" : "findings"}; looked at up to ${time(value.looked_until, this.context.zone)}.`);
    if (value.findings.length === 0) return [looked, nothing(this.of("state") === "" && this.of("kind") === "" && this.of("severity") === "" ? "Nothing is open." : "No finding is like that.")];
    return [looked, table(this.columns(), value.findings, (row) => row.id, "Findings"), this.paging(value)];
  }

  private columns(): Column<FindingRow>[] {
    return [
      { title: "What", cell: (row) => [severityMark(row.severity), " ", h("a", { href: this.context.href("finding", { id: row.id }) }, kindText(row.kind)), h("span", { class: "wrap small under-name" }, row.text)] },
      { title: "Of", cell: (row) => h("span", { class: "wrap" }, about(this.context, row)) },
      { title: `Since, ${this.context.zone === "utc" ? "UTC" : "local"}`, cell: (row) => [h("span", { class: "time" }, shortTime(row.first, this.context.zone)), h("span", { class: "muted" }, ` for ${lasted(row)}`)] },
      { title: "Cost", number: true, cell: (row) => costText(row) ?? (row.data_quality ? h("span", { class: "muted", title: row.cost_absent_reason ?? "" }, "none: unmeasured") : unknown(row.cost_absent_reason ?? "cannot be told")) },
      { title: "State", cell: (row) => stateText(row) },
      { title: "Answer", cell: (row) => (row.state === "open" ? h("button", { type: "button", "aria-label": `Acknowledge: ${kindText(row.kind)} of ${subject(row)}`, on: { click: () => void this.acknowledge(row.id) } }, "Acknowledge") : null) },
    ];
  }

  private async acknowledge(id: string): Promise<void> {
    try {
      await api.act("acknowledge", id, { note: "", author: "" });
      this.said = "";
    } catch (error) {
      this.said = refusal(error);
    }
    await this.load();
    this.context.changed();
  }

  private paging(value: Findings): Child {
    const cursor = Number(this.of("cursor") || "0");
    if (cursor === 0 && value.next_cursor === null) return null;
    const to = (text: string): string => this.context.href("findings", { ...this.context.address.parameters, cursor: text });
    return h("p", { class: "paging" },
      cursor > 0 ? h("a", { href: to(cursor > PAGE ? String(cursor - PAGE) : "") }, "\u2190 Before") : null,
      h("span", { class: "muted" }, ` ${count(cursor + 1)} to ${count(cursor + value.findings.length)} of ${count(value.findings_total)} `),
      value.next_cursor !== null ? h("a", { href: to(value.next_cursor) }, "Next \u2192") : null);
  }

  simulated(): boolean {
    return this.list.value?.simulated ?? false;
  }
}
