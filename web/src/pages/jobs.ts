// All jobs of a window by what they lost, most first.
import { h, keep } from "../base/dom";
import type { Child } from "../base/dom";
import { count, hours, percent, shortTime, usd } from "../base/format";
import { reasonText } from "../base/reasons";
import * as api from "../api/client";
import type { Jobs } from "../api/answers";
import { costExplanation, hoursExplanation, ofuExplanation, reportedExplanation } from "./explanations";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { accountBar, asked, nothing, section, table, unknown } from "./parts";
import type { Column } from "./parts";

const PAGE = 100;
const FILTERS: [string, string][] = [["user", "user"], ["team", "team"], ["namespace", "namespace"], ["model", "GPU model"]];
const TYPING_MILLISECONDS = 250;

type Row = Jobs["jobs"][number];

// A verdict that says that something is wrong; the others are on the job's page.
function verdictMark(verdict: string | null): Child {
  if (verdict === null || verdict === "consistent" || verdict === "undecided") return null;
  return [h("span", { class: `verdict ${verdict}` }, verdict.replaceAll("_", " ")), " "];
}

export class JobsPage implements Page {
  private readonly jobs: Asked<Jobs>;
  private readonly find: HTMLElement;
  private timer = 0;

  constructor(private readonly context: Context) {
    this.jobs = new Asked(context.changed);
    this.find = keep(h("label", { class: "find" }, h("span", { class: "unseen" }, "Find among all jobs"),
      h("input", { type: "search", placeholder: "Find by name, user or team", value: context.address.parameters.q ?? "", maxlength: "200", spellcheck: "false", on: { input: (event) => this.typed((event.target as HTMLInputElement).value) } })));
  }

  title(): string {
    return "Jobs";
  }

  // Of the API, which filters over all jobs.
  private filters(): [string, string, string][] {
    return FILTERS.flatMap(([key, label]): [string, string, string][] => {
      const value = this.context.address.parameters[key];
      return value ? [[key, label, value]] : [];
    });
  }

  private cursor(): number {
    const cursor = Number(this.context.address.parameters.cursor ?? "0");
    return Number.isInteger(cursor) && cursor > 0 ? cursor : 0;
  }

  private query(): Record<string, string> {
    const cursor = this.cursor();
    const { q } = this.context.address.parameters;
    return {
      ...this.context.query(),
      limit: String(PAGE),
      ...Object.fromEntries(this.filters().map(([key, , value]) => [key, value])),
      ...(q ? { q } : {}),
      ...(cursor > 0 ? { cursor: String(cursor) } : {}),
    };
  }

  async load(): Promise<void> {
    await this.jobs.ask(api.jobs(this.query()));
  }

  render(): Child {
    const filters = this.filters();
    const first = filters[0];
    const input = this.find.querySelector("input");
    if (input && input !== document.activeElement) input.value = this.context.address.parameters.q ?? "";
    return section(
      first ? `Jobs of ${first[1]} ${first[2]}` : "Jobs",
      h("div", { class: "controls" }, this.find, filters.map(([key, label, value]) =>
        h("span", { class: "chip", "data-key": key }, `${label}: ${value} `,
          h("button", { type: "button", class: "quiet", "aria-label": `Without ${label} ${value}`, on: { click: () => this.context.set({ [key]: "", cursor: "" }, true) } }, "\u00d7")))),
      asked(this.jobs, (value) => {
        if (value.jobs.length === 0) return nothing(filters.length > 0 || this.context.address.parameters.q ? "No job in this time is like that." : "No job in this time.");
        return [table(this.columns(value), value.jobs, (row) => row.id, "Jobs by what they lost, most first"), this.paging(value)];
      }),
    );
  }

  private typed(text: string): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.context.set({ q: text.trim(), cursor: "" }), TYPING_MILLISECONDS);
  }

  private paging(value: Jobs): Child {
    const cursor = this.cursor();
    if (cursor === 0 && value.next_cursor === null) return null;
    const to = (cursor_text: string): string => this.context.href("jobs", { ...this.context.address.parameters, cursor: cursor_text });
    return h("p", { class: "paging" },
      cursor > 0 ? h("a", { href: to(cursor > PAGE ? String(cursor - PAGE) : "") }, "\u2190 Before") : null,
      h("span", { class: "muted" }, ` ${count(cursor + 1)} to ${count(cursor + value.jobs.length)} `),
      value.next_cursor !== null ? h("a", { href: to(value.next_cursor) }, "Next \u2192") : null);
  }

  private columns(value: Jobs): Column<Row>[] {
    const source = api.address("jobs", this.query());
    const first = value.jobs[0];
    const columns: Column<Row>[] = [
      { title: "Job", cell: (row) => [h("a", { class: "name", href: this.context.href("job", { id: row.id }) }, row.job ?? row.id), h("span", { class: "muted owner" }, [row.user, row.namespace].filter((text) => text).join(" \u00b7 "))] },
      { title: "GPUs", number: true, cell: (row) => count(row.gpu_count) },
      { title: "Model", cell: (row) => row.models.join(", ") || unknown("no GPU of it was seen") },
      { title: "OFU", number: true, ...(first ? { why: () => ofuExplanation(first, source) } : {}), cell: (row) => (row.ofu_ratio === null ? unknown(reasonText(row.absent_reason)) : percent(row.ofu_ratio)) },
      ...(value.jobs.some((row) => row.reported?.mfu_ratio != null)
        ? [{ title: "Reported MFU", number: true, why: () => reportedExplanation(source), cell: (row: Row) => (row.reported?.mfu_ratio == null ? h("span", { class: "muted" }, "none") : [verdictMark(row.audit_verdict), percent(row.reported.mfu_ratio)]) }]
        : []),
      { title: "Delivered, lost, unmeasured", cell: (row) => accountBar(row) },
      { title: "Lost, GPU-h", number: true, ...(first ? { why: () => hoursExplanation(first, source) } : {}), cell: (row) => hours(row.gpu_hours_lost) },
    ];
    if (first && value.jobs.some((row) => row.cost_lost_usd !== null)) {
      columns.push({ title: "Lost, $", number: true, why: () => costExplanation(first, source), cell: (row) => (row.cost_lost_usd === null ? unknown("no price is configured") : usd(row.cost_lost_usd)) });
    }
    columns.push({ title: "Unmeasured", number: true, cell: (row) => hours(row.gpu_hours_unmeasured) });
    columns.push({ title: `Last seen, ${this.context.zone === "utc" ? "UTC" : "local"}`, cell: (row) => h("span", { class: "time" }, shortTime(row.last, this.context.zone)) });
    return columns;
  }

  simulated(): boolean {
    return this.jobs.value?.simulated ?? false;
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
