// The waste account of a period, to read, to print and to hand on: what was paid for, where it went, whose it was, and what changed.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, duration, gpuHours, hours, percent, points, signed, time, usd } from "../base/format";
import { jobId } from "../base/job_id";
import { wholeMonth, wholeWeek } from "../base/periods";
import { previousQuery, spanSeconds } from "../base/url_state";
import type { Span } from "../base/url_state";
import * as api from "../api/client";
import type { Waste, WasteRow } from "../api/answers";
import { stackedBar } from "../charts/bars";
import { fileName } from "../charts/frame";
import { ACCOUNT_COLUMNS } from "./account";
import { copyable } from "./connect";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { accountBar, answerLink, asked, assumptionList, explain, figure, nothing, qualityList, section, shareOf, table, tabs, unknown } from "./parts";
import type { Column, Explanation } from "./parts";
import { causeText, causeWithin, keyText, mainCause, movers, rowBefore, wasteParts } from "./waste_parts";

const ROWS = 50;
const ROWS_BEFORE = 1000;
const MOVERS = 8;
const BY: [string, string][] = [["team", "Teams"], ["user", "Users"], ["namespace", "Namespaces"], ["job", "Jobs"], ["family", "Families of jobs"], ["model", "GPU models"]];
const PERIODS: [string, string][] = [["7d", "Last 7 days"], ["week", "Last week"], ["before", "Week before"], ["30d", "Last 30 days"], ["month", "Last month"]];
const PRICES = "model,team,usd_per_gpu_hour\nH100-SXM5-80GB,,2.50\n*,,1.20\n";
const TARGETS = "model,attainable_ofu_ratio\nH100-SXM5-80GB,0.50\n";

export class WastePage implements Page {
  private readonly now: Asked<Waste>;
  private readonly before: Asked<Waste>;

  constructor(private readonly context: Context) {
    this.now = new Asked(context.changed);
    this.before = new Asked(context.changed);
  }

  title(): string {
    return "Waste";
  }

  private by(): string {
    const by = this.context.address.parameters.by ?? "team";
    return BY.some(([name]) => name === by) ? by : "team";
  }

  private query(): Record<string, string> {
    return { ...this.context.query(), by: this.by(), top: String(ROWS) };
  }

  async load(): Promise<void> {
    const now = await this.now.ask(api.waste(this.query()));
    if (!now || now.window.start === null || now.window.end === null) return;
    await this.before.ask(api.waste({ ...previousQuery({ start: now.window.start, end: now.window.end }), by: this.by(), top: String(ROWS_BEFORE) }));
  }

  render(): Child {
    return [
      section("Waste account", this.head(), asked(this.now, (value) => (value.total.gpu_hours.allocated > 0 ? [this.summary(value), this.figures(value.total), this.account(value.total)] : nothing("No GPU time was allocated in this period.")))),
      // Without an account nothing was asked about the time before.
      section("What changed", asked(this.now.value ? this.before : this.now, () => (this.now.value && this.before.value ? this.changes(this.now.value, this.before.value) : null))),
      section("Whose it was", tabs("Grouped by", BY, this.by(), (name) => this.context.set({ by: name === "team" ? "" : name })), asked(this.now, (value) => this.rows(value))),
      section("Prices and attainable references", asked(this.now, (value) => this.grounds(value.total))),
      section("What these numbers rest on", asked(this.now, (value) => [qualityList(value.quality, { unmeasured_ratio: shareOf(value.total.gpu_hours.unmeasured, value.total.gpu_hours.allocated), data_findings: null }), assumptionList(value.assumptions)])),
    ];
  }

  private period(name: string): Span {
    const { zone } = this.context;
    if (name === "week" || name === "before") return { since: null, ...wholeWeek(Date.now(), zone, name === "before" ? 1 : 0) };
    if (name === "month") return { since: null, ...wholeMonth(Date.now(), zone) };
    return { since: name, start: null, end: null };
  }

  private chosen(): string {
    const { since, start, end } = this.context.address.span;
    return PERIODS.map(([name]) => name).find((name) => {
      const period = this.period(name);
      return period.since === since && period.start === start && period.end === end;
    }) ?? "";
  }

  private head(): Child {
    const files = ([["csv", "CSV", "csv"], ["markdown", "Markdown", "md"], ["html", "HTML to mail", "html"]] as const).map(([format, text, extension]) =>
      answerLink(text, api.address("waste", { ...this.query(), format }), fileName("waste", extension)));
    return [
      h("div", { class: "controls" },
        tabs("Period", PERIODS, this.chosen(), (name) => this.context.during(this.period(name))),
        h("span", { class: "actions" }, h("button", { type: "button", on: { click: () => print() } }, "Print"), files)),
      asked(this.now, (value) => h("p", { class: "muted small", "data-key": "period" }, h("span", { class: "only-print" }, `Flopsight at ${location.host}, `), this.periodText(value), value.simulated ? h("b", { class: "only-print" }, " SIMULATED: some of this fleet does not exist.") : null)),
    ];
  }

  private periodText(value: Waste): string {
    const { zone } = this.context;
    const { start, end } = value.window;
    return start === null || end === null ? "" : `${time(start, zone)} to ${time(end, zone)} (${duration((end - start) / 1000)})`;
  }

  // The account in a few sentences, as one would say it to somebody.
  private summary(value: Waste): Child {
    const { total } = value;
    const { allocated, delivered, lost, unmeasured } = total.gpu_hours;
    const most = value.rows.find((row) => row.key?.[this.by()]);
    const nobody = value.rows.find((row) => row.job_count === 0);
    const cause = mainCause(total);
    const before = this.before.value?.total;
    const money = (row: WasteRow, of: "allocated" | "lost"): string => (row.usd ? ` (${usd(row.usd[of])})` : "");
    const says = [
      `${gpuHours(allocated)}${money(total, "allocated")} were allocated to ${count(total.job_count)} jobs. ${percent(delivered / allocated)} were delivered, ${percent(lost / allocated)} lost against the tensor peak, ${percent(unmeasured / allocated)} not measured.`,
      total.attainable ? `Against what could be reached, ${gpuHours(total.attainable.gpu_hours_lost)}${total.attainable.usd_lost === null ? "" : ` (${usd(total.attainable.usd_lost)})`} were lost.` : "",
      total.usd === null && total.usd_absent_reason ? `It is not in dollars: ${total.usd_absent_reason}.` : "",
      cause ? `Most was lost to: ${causeWithin(cause[0])} (${gpuHours(cause[1])}).` : "",
      nobody && nobody.gpu_hours.lost > 0 ? `GPUs that no job held: ${gpuHours(nobody.gpu_hours.lost)}${money(nobody, "lost")}.` : "",
      most && value.rows.length > 1 ? `Most was lost by ${this.plainName(most)}: ${gpuHours(most.gpu_hours.lost)}${money(most, "lost")}.` : "",
      before && before.ofu_ratio !== null && total.ofu_ratio !== null ? `OFU ${points(total.ofu_ratio - before.ofu_ratio)} against the same length of time before.` : "",
    ];
    return h("p", { class: "summary" }, says.filter((text) => text !== "").join(" "));
  }

  private why(title: string, says: string[]): () => Explanation {
    return () => ({ title, says, source: api.address("waste", this.query()) });
  }

  private change(now: number | null, of: (before: WasteRow) => number | null, format: (difference: number) => string): Child {
    const before = this.before.value?.total;
    if (!before || before.gpu_hours.allocated === 0) return null;
    const then = of(before);
    return now === null || then === null ? null : h("span", { class: "muted" }, `${format(now - then)} vs. before`);
  }

  private figures(total: WasteRow): Child {
    const { gpu_hours, attainable } = total;
    const change = (difference: number): string => signed(difference, gpuHours);
    const dollars = (value: number | undefined | null): Child => (value == null ? null : h("span", null, usd(value)));
    const sum = "An hour of a GPU is allocated once, whoever shares it: allocated = delivered + lost by cause + unmeasured, in hours and in dollars, for every row and for the total.";
    return h("div", { class: "figures" },
      figure({ label: "Allocated", value: gpuHours(gpu_hours.allocated), below: [dollars(total.usd?.allocated), this.change(gpu_hours.allocated, (row) => row.gpu_hours.allocated, change)], why: this.why("Allocated", [sum]) }),
      figure({ label: "OFU", value: percent(total.ofu_ratio), unknown: total.ofu_ratio === null, below: this.change(total.ofu_ratio, (row) => row.ofu_ratio, points), why: this.why("OFU", ["Delivered over measured time: the share of the tensor peak, of the time in which both counters were seen."]) }),
      figure({ label: "Lost against the peak", value: gpuHours(gpu_hours.lost), below: [dollars(total.usd?.lost), this.change(gpu_hours.lost, (row) => row.gpu_hours.lost, change)], why: this.why("Lost against the tensor peak", [sum, "No program reaches the peak: the best matrix products get about 80 % of an H100's, good trainings 38 to 46 %. So this is not what could be saved."]) }),
      figure({
        label: "Lost against the attainable",
        value: attainable ? gpuHours(attainable.gpu_hours_lost) : "unknown",
        unknown: attainable === null,
        below: attainable ? [dollars(attainable.usd_lost), h("span", { class: "muted" }, `of ${gpuHours(attainable.gpu_hours_measured)} with a reference`)] : h("span", { class: "muted" }, total.attainable_absent_reason),
        why: this.why("Lost against the attainable", ["Against a reference that can be reached: the target that is set for the GPU model, else the best run of the job's family in the period. A job above its reference has lost nothing against it; where there is no reference, nothing is counted.", attainable ? `Reference: ${attainable.reference}.` : `There is none: ${total.attainable_absent_reason ?? ""}.`]),
      }),
      figure({ label: "Unmeasured", value: gpuHours(gpu_hours.unmeasured), below: [dollars(total.usd?.unmeasured), this.change(gpu_hours.unmeasured, (row) => row.gpu_hours.unmeasured, change)], why: this.why("Unmeasured", ["Time in which OFU is not known. It costs like all other time, and is not called waste: nobody knows what it was."]) }));
  }

  private account(total: WasteRow): Child {
    return stackedBar({
      title: total.usd ? "Where the allocated time and the money went" : "Where the allocated time went",
      file_columns: ACCOUNT_COLUMNS,
      parts: wasteParts(total),
      extra: h("button", { type: "button", class: "quiet", on: { click: () => explain(this.why("By cause", ["The causes are those of the waterfall. Each GPU-hour is in one part only, and the parts add up to what was allocated. A clock above the peak's is a gain, and stands as a negative loss."])()) } }, "How it is made"),
    });
  }

  private changes(now: Waste, before: Waste): Child {
    if (before.total.gpu_hours.allocated === 0) return nothing("Nothing was seen in the same length of time before, so there is no change to tell.");
    const moved = movers(now, before, MOVERS);
    const line = (title: string, of: (row: WasteRow) => number | null, format: (value: number | null) => string, change: (difference: number) => string): [string, string, string, string] => {
      const [a, b] = [of(before.total), of(now.total)];
      return [title, format(a), format(b), a === null || b === null ? "unknown" : change(b - a)];
    };
    const hoursChange = (difference: number): string => signed(difference, gpuHours);
    const dollarChange = (difference: number): string => signed(difference, usd);
    const lines = [
      line("OFU", (row) => row.ofu_ratio, percent, points),
      line("Allocated", (row) => row.gpu_hours.allocated, gpuHours, hoursChange),
      line("Delivered", (row) => row.gpu_hours.delivered, gpuHours, hoursChange),
      line("Lost", (row) => row.gpu_hours.lost, gpuHours, hoursChange),
      line("Unmeasured", (row) => row.gpu_hours.unmeasured, gpuHours, hoursChange),
      ...(now.total.usd && before.total.usd ? [line("Lost, dollars", (row) => row.usd?.lost ?? null, usd, dollarChange)] : []),
    ];
    return [
      table([
        { title: `Against the ${duration(spanSeconds(this.context.address.span))} before`, cell: ([title]) => title },
        { title: "Before", number: true, cell: (row) => row[1] },
        { title: "This period", number: true, cell: (row) => row[2] },
        { title: "Change", number: true, cell: (row) => row[3] },
      ], lines, ([title]) => title, "This period and the one before"),
      moved.length === 0 ? null : h("h3", null, "What moved most"),
      moved.length === 0 ? null : table([
        { title: this.rowTitle(), cell: (mover) => this.name(mover.row) },
        { title: "Lost, change", number: true, cell: (mover) => signed(mover.hours, gpuHours) },
        { title: "Note", cell: (mover) => (mover.gone ? "only before" : rowBefore(mover.row, before) === null ? "new" : null) },
      ], moved, (mover) => keyText(mover.row), "Rows whose loss changed most"),
    ];
  }

  private rowTitle(): string {
    return { team: "Team", user: "User", namespace: "Namespace", job: "Job", family: "Family", model: "GPU model" }[this.by()] ?? "";
  }

  private plainName(row: WasteRow): string {
    const value = row.key?.[this.by()] ?? null;
    if (value !== null && value !== "") return value;
    return this.by() === "model" ? `unknown GPU: ${row.key?.model_raw ?? "no name"}` : this.by() === "job" ? "time of no job" : `no ${this.by()}`;
  }

  private name(row: WasteRow): Child {
    const text = this.plainName(row);
    const known = row.key?.[this.by()];
    const muted = row.user ? h("span", { class: "muted owner", title: row.user }, row.user) : null;
    if (!known) return h("span", { class: "muted" }, text);
    if (this.by() === "job") return [h("a", { class: "name", href: this.context.href("job", { id: jobId(known, row.key?.namespace ?? null) }) }, text), muted];
    if (["team", "user", "model", "namespace"].includes(this.by())) return h("a", { class: "name", href: this.context.href("jobs", { [this.by()]: known }) }, text);
    return [h("span", { class: "name" }, text), muted];
  }

  private rows(value: Waste): Child {
    if (value.by !== this.by()) return h("p", { class: "waiting", role: "status" }, "Loading\u2026");
    if (value.rows.length === 0) return nothing("No GPU time was allocated in this period.");
    const before = this.before.value?.by === value.by ? this.before.value : null;
    return [
      table(this.columns(value, before), value.rows, keyText, "Rows by what they lost, most first"),
      value.rows_omitted_count > 0 ? h("p", { class: "muted" }, `and ${count(value.rows_omitted_count)} more, which are in the total; the files above have the first ${count(ROWS)}.`) : null,
    ];
  }

  private columns(value: Waste, before: Waste | null): Column<WasteRow>[] {
    const share = (row: WasteRow): Child => accountBar({ gpu_hours_allocated: row.gpu_hours.allocated, gpu_hours_delivered: row.gpu_hours.delivered, gpu_hours_lost: row.gpu_hours.lost, gpu_hours_unmeasured: row.gpu_hours.unmeasured });
    const priced = value.rows.some((row) => row.usd);
    const columns: Column<WasteRow>[] = [{ title: this.rowTitle(), cell: (row) => this.name(row) }];
    if (this.by() !== "job") columns.push({ title: "Jobs", number: true, cell: (row) => count(row.job_count) });
    columns.push(
      { title: "OFU", number: true, cell: (row) => (row.ofu_ratio === null ? unknown("nothing was measured") : percent(row.ofu_ratio)) },
      { title: "Delivered, lost, unmeasured", cell: share },
      { title: "Lost, GPU-h", number: true, cell: (row) => hours(row.gpu_hours.lost) },
    );
    if (priced) columns.push({ title: "Lost, $", number: true, cell: (row) => (row.usd ? usd(row.usd.lost) : unknown("a GPU of it has no price")) });
    columns.push({ title: "Against the attainable", number: true, cell: (row) => (row.attainable ? h("span", { title: row.attainable.reference }, row.attainable.usd_lost === null ? gpuHours(row.attainable.gpu_hours_lost) : usd(row.attainable.usd_lost)) : unknown(row.attainable_absent_reason ?? "no reference")) });
    columns.push({ title: "Mostly", cell: (row) => { const cause = mainCause(row); return cause ? h("span", { class: "wrap" }, causeText(cause[0])) : null; } });
    if (before && before.total.gpu_hours.allocated > 0) {
      columns.push({ title: "Lost, vs. before", number: true, cell: (row) => {
        const then = rowBefore(row, before);
        return then === undefined ? unknown("not among the first rows of the time before") : then === null ? h("span", { class: "muted" }, "new") : signed(row.gpu_hours.lost - then.gpu_hours.lost, hours);
      } });
    }
    return columns;
  }

  private grounds(total: WasteRow): Child {
    return [
      h("p", null, total.usd ? "Dollars are GPU-hours times the price that is configured for the GPU model, and for the team where it has another; nothing is assumed." : "There are no dollars: no prices are configured for all of these GPUs. Prices are a file, CSV or JSON, that the service is told with the key prices of its configuration; * is any other model."),
      total.usd ? null : copyable("prices.csv", PRICES),
      total.usd ? null : copyable("the option", "flopsight serve --prices prices.csv"),
      total.attainable
        ? h("p", null, `What could be reached is taken from: ${total.attainable.reference}. It covers ${gpuHours(total.attainable.gpu_hours_measured)} of ${gpuHours(total.gpu_hours.allocated)}.`)
        : [
            h("p", null, `Nothing is said of what could be saved: ${total.attainable_absent_reason ?? "there is no reference"}. A target for each GPU model is a file as well:`),
            copyable("attainable.csv", TARGETS),
            copyable("the option for targets", "flopsight serve --attainable attainable.csv"),
          ],
    ];
  }

  simulated(): boolean {
    return this.now.value?.simulated ?? false;
  }
}
