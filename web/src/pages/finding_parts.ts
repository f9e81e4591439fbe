// What findings look like wherever they are: in lists, behind charts, with the buttons by which somebody answers them.
import { h, keep } from "../base/dom";
import type { Child } from "../base/dom";
import { duration, gpuHours, usd } from "../base/format";
import { keepFor, kept } from "../base/kept";
import { visible } from "../base/visible";
import * as api from "../api/client";
import type { FindingRow, Mention } from "../api/answers";
import type { Mark } from "../charts/bands";
import type { Colour } from "../charts/palette";
import type { Context } from "./page";

export const KINDS: Record<string, string> = {
  regression: "Regression",
  below_family: "Below its family",
  hang: "Hang",
  stall: "Stall",
  straggler: "Straggler",
  slow_clock: "Slow clock",
  low_power: "Low power",
  thermal: "Heat",
  power_brake: "Power brake",
  stuck_clock: "Stuck clock",
  power_capped: "Power cap",
  counter_dead: "Dead counter",
  counter_frozen: "Frozen counter",
  profiler_pause: "Profiler pause",
  unseen: "Not seen",
  unmeasurable: "Cannot be measured",
  audit: "Audit",
  waste: "Waste",
};
const COLOURS: Record<string, Colour> = { critical: "--error", warning: "--warn", info: "--muted" };
const MINUTE = 60_000;

export const kindText = (kind: string): string => KINDS[kind] ?? kind.replaceAll("_", " ");

export function severityMark(severity: string): HTMLElement {
  return h("span", { class: `severity ${COLOURS[severity] ? severity : "info"}` }, severity);
}

export function stateText(row: FindingRow): Child {
  const said = row.state === "acknowledged" && row.acknowledged_by ? `acknowledged by ${row.acknowledged_by}` : row.state === "resolved" && row.resolved_by ? `resolved by ${row.resolved_by}` : row.state;
  return [said, row.silenced ? h("span", { class: "muted" }, ", silenced") : null];
}

export function costText(row: Pick<Mention, "cost_gpu_hours" | "cost_usd">): string | null {
  if (row.cost_gpu_hours === null) return null;
  return [row.cost_usd === null ? "" : usd(row.cost_usd), gpuHours(row.cost_gpu_hours)].filter((text) => text !== "").join(" \u00b7 ");
}

// Of whom or what it is, as links.
export function about(context: Context, row: FindingRow): Child {
  const parts: Child[] = [];
  if (row.job) parts.push(h("a", { class: "name", href: context.href("job", { id: row.job }) }, row.job_name ?? row.job));
  if (row.host) parts.push(h("a", { class: "name", href: context.href("host", { name: row.host }) }, row.host));
  // A GPU has its page by its UUID; "host/index" has none.
  if (row.gpu) parts.push(/^(GPU|MIG)-/.test(row.gpu) ? h("a", { class: "name", href: context.href("gpu", { uuid: row.gpu }) }, row.gpu) : h("span", { class: "name" }, row.gpu));
  return parts.flatMap((part, i) => (i === 0 ? [part] : [" \u00b7 ", part]));
}

// What the text of a finding is about; the texts leave it out.
export const subject = (row: FindingRow): string => row.job_name ?? row.gpu ?? row.host ?? "the fleet";

export function lasted(row: FindingRow): string {
  return duration(Math.max(MINUTE, row.last - row.first + MINUTE) / 1000);
}

export function findingMarks(rows: FindingRow[]): Mark[] {
  return rows.map((row) => ({ start: row.first, end: row.last + MINUTE, label: `${kindText(row.kind)} (${row.severity})`, colour: COLOURS[row.severity] ?? "--muted" }));
}

const LISTED = 8;

// Under a chart: those that it marks, as links.
export function markedList(context: Context, rows: FindingRow[]): Child {
  if (rows.length === 0) return null;
  return h("ul", { class: "marked", "data-key": "marked", "aria-label": "Findings that are marked" },
    rows.slice(0, LISTED).map((row) => h("li", { "data-key": row.id }, severityMark(row.severity), " ", h("a", { href: context.href("finding", { id: row.id }) }, `${subject(row)}: ${row.text}`))),
    rows.length > LISTED ? h("li", null, h("a", { href: context.href("findings", { state: "all" }) }, `and ${rows.length - LISTED} more`)) : null);
}

export function refusal(error: unknown): string {
  if (error instanceof api.ApiError && error.status === 403) return `Only administrators may do that: ${error.message}.`;
  return error instanceof Error ? error.message : String(error);
}

// A note, a name, and what can be done now. Kept by its page, so that an update takes nothing away that is being written.
export class AnswerForm {
  readonly element: HTMLElement;
  private readonly note = h("input", { type: "text", "aria-label": "Note", placeholder: "Note, for those who come after", maxlength: "900" });
  private readonly author = h("input", { type: "text", "aria-label": "Your name", placeholder: "Your name", maxlength: "90", value: kept("flopsight-author", "") });
  private readonly buttons = h("span", { class: "actions-inline" });
  private readonly said = h("p", { class: "small", role: "status" });

  constructor(private readonly done: () => void) {
    this.element = keep(h("div", { class: "answer" }, this.note, this.author, this.buttons, this.said));
  }

  show(row: FindingRow): void {
    const wanted: [api.Act, string][] = row.state === "resolved" ? [] : row.state === "acknowledged" ? [["unacknowledge", "Take back"], ["resolve", "Resolve"]] : [["acknowledge", "Acknowledge"], ["resolve", "Resolve"]];
    this.element.hidden = wanted.length === 0;
    this.buttons.replaceChildren(...wanted.map(([what, label]) => h("button", { type: "button", on: { click: () => void this.act(what, row.id) } }, label)));
  }

  private async act(what: api.Act, id: string): Promise<void> {
    const author = this.author.value.trim();
    keepFor("flopsight-author", author);
    try {
      await api.act(what, id, { note: this.note.value.trim(), author });
      this.note.value = "";
      this.said.textContent = "";
      this.done();
    } catch (error) {
      this.said.textContent = visible(refusal(error));
    }
  }
}
