// One job: is it efficient, and if not, why?
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { band, count, duration, flopsPerSecond, gpuHours, joules, percent, plain, seconds, time, usd } from "../base/format";
import { jobName } from "../base/job_id";
import { reasonText } from "../base/reasons";
import * as api from "../api/client";
import type { Advice, Audit, Findings, GpuSeries, Job, Phases, Series } from "../api/answers";
import { waterfall } from "../charts/bars";
import { waterfallParts } from "./account";
import { adviceElements } from "./advice";
import { CourseCharts } from "./courses";
import { costExplanation, coverageExplanation, hoursExplanation, jobOfuExplanation, reportedExplanation, waterfallExplanation } from "./explanations";
import { HeatMap } from "./heat";
import { findingMarks, markedList } from "./finding_parts";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { phaseElements, phaseSpans } from "./phases";
import { asked, assumptionList, explain, figure, nothing, qualityList, section, shareOf, table } from "./parts";

const VERDICTS: Record<string, string> = {
  consistent: "Consistent",
  over_reported: "Over-reported",
  under_reported: "Under-reported",
  wrong_peak: "Wrong peak",
  undecided: "Undecided",
};

export class JobPage implements Page {
  private readonly job: Asked<Job>;
  private readonly series: Asked<Series>;
  private readonly gpus: Asked<GpuSeries>;
  private readonly phases: Asked<Phases>;
  private readonly advice: Asked<Advice>;
  private readonly findings: Asked<Findings>;
  private readonly charts: CourseCharts;
  private readonly heat: HeatMap;

  constructor(private readonly context: Context) {
    this.job = new Asked(context.changed);
    this.series = new Asked(context.changed);
    this.gpus = new Asked(context.changed);
    this.phases = new Asked(context.changed);
    this.advice = new Asked(context.changed);
    this.findings = new Asked(context.changed);
    this.charts = new CourseCharts("job", context.zoom);
    this.heat = new HeatMap(context);
  }

  private id(): string {
    return this.context.address.parameters.id ?? "";
  }

  title(): string {
    return `Job ${this.job.value?.job ?? jobName(this.id())}`;
  }

  // Where the job has shorter a life than the time span, the charts are of its life and not of empty space around it.
  private query(job: Job | null): Record<string, string> {
    const { start, end } = job?.window ?? { start: null, end: null };
    if (!job || start === null || end === null) return this.context.query();
    const from = Math.max(start, job.first);
    const to = Math.min(end, job.last);
    const open = this.context.address.span.since !== null;
    if (from <= start && (open || to >= end)) return this.context.query();
    return to > from ? { start: new Date(from).toISOString(), end: new Date(to).toISOString() } : this.context.query();
  }

  async load(): Promise<void> {
    const id = this.id();
    const job = await this.job.ask(api.job(id, this.context.query()));
    if (!job) return;
    const query = this.query(job);
    await Promise.all([this.loadSeries(id, query), this.loadGpus(id, query), this.loadPhases(id), this.advice.ask(api.advice(id, this.context.query()))]);
  }

  // Phases, and findings that are of it. Phases of the whole window: what is usual for the job is the median of all that is asked for.
  private async loadPhases(id: string): Promise<void> {
    const [phases, findings] = await Promise.all([
      this.phases.ask(api.phases(id, this.context.query())),
      this.findings.ask(api.findings({ ...this.context.query(), job: id, state: "all", limit: "100" })),
    ]);
    this.charts.behind(phases ? phaseSpans(phases) : [], findingMarks(findings?.findings ?? []));
  }

  private async loadSeries(id: string, query: Record<string, string>): Promise<void> {
    const series = await this.series.ask(api.series(id, query));
    if (series) this.charts.update(series);
  }

  private async loadGpus(id: string, query: Record<string, string>): Promise<void> {
    const gpus = await this.gpus.ask(api.gpuSeries({ ...query, job: id, columns: "ofu_ratio,absent_reason" }));
    if (gpus) this.heat.update(gpus);
  }

  render(): Child {
    if (this.job.error?.status === 404 && !this.job.value) {
      return section("Job", h("p", { class: "notice error", role: "alert" }, this.job.error.message), nothing("It may have run at another time: choose a longer time span, or look for it in the search box."));
    }
    return [
      h("section", { class: "panel", "data-key": "head", "aria-label": "Job" },
        h("h2", null, this.job.value?.job ?? jobName(this.id())),
        asked(this.job, (job) => [this.facts(job), this.figures(job)])),
      section("Over time", asked(this.series, () => [markedList(this.context, this.findings.value?.findings ?? []), this.charts.elements()])),
      section("Phases and goodput", asked(this.phases, (phases) => phaseElements(phases, this.context.zone, api.address(`jobs/${encodeURIComponent(this.id())}/phases`, this.context.query())))),
      h("div", { class: "columns", "data-key": "columns" },
        section("Where the capacity went", asked(this.job, (job) => this.waterfall(job))),
        section("What the job says of itself", asked(this.job, (job) => this.reported(job)))),
      section("What to change next", asked(this.advice, adviceElements)),
      section("Its GPUs", asked(this.gpus, () => [this.heat.element(), h("h3", null, "Slower than the rest"), this.heat.slowTable()])),
      section("What these numbers rest on", asked(this.job, (job) => qualityList(job.quality, { unmeasured_ratio: shareOf(job.gpu_hours_unmeasured, job.gpu_hours_allocated), data_findings: this.findings.value?.findings.filter((one) => one.data_quality) ?? null }))),
    ];
  }

  private facts(job: Job): Child {
    const zone = this.context.zone;
    const facts: [string, Child][] = [
      ["User", job.user ? h("a", { href: this.context.href("jobs", { user: job.user }) }, job.user) : "not said"],
      ["Team", job.team ? h("a", { href: this.context.href("jobs", { team: job.team }) }, job.team) : "not said"],
      ["Namespace", job.namespace ?? "none"],
      ["GPUs", `${count(job.gpu_count)}${job.models.length > 0 ? ` \u00d7 ${job.models.join(", ")}` : ""}`],
      ["Seen", `${time(job.first, zone)} to ${time(job.last, zone)} (${duration((job.last - job.first) / 1000)})`],
      ["Attributed by", job.attributed_by ?? "nothing"],
    ];
    if (job.members.length > 0) facts.push(["Made of", `${count(job.members.length)} pods`]);
    if (job.gpu_count_told !== null) facts.push(["By its scheduler", `${count(job.gpu_count_told)} GPUs`]);
    return h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value))));
  }

  private figures(job: Job): Child {
    const source = api.address(`jobs/${encodeURIComponent(job.id)}`, this.context.query());
    const reported = job.reported?.mfu_ratio ?? null;
    const sure = job.ofu_ratio_low === null ? reasonText(job.absent_reason) : band(job.ofu_ratio_low, job.ofu_ratio_high);
    return h(
      "div",
      { class: "figures" },
      figure({ label: "OFU", value: percent(job.ofu_ratio), unknown: job.ofu_ratio === null, below: h("span", { class: "muted", title: "error band" }, sure), why: () => jobOfuExplanation(job, source) }),
      figure({
        label: "Reported MFU",
        value: reported === null ? "none" : percent(reported),
        unknown: reported === null,
        below: job.audit ? h("span", { class: `verdict ${job.audit.verdict}` }, VERDICTS[job.audit.verdict] ?? job.audit.verdict) : null,
        why: () => reportedExplanation(source),
      }),
      figure({ label: "Lost", value: gpuHours(job.gpu_hours_lost), unknown: job.gpu_hours_lost === null, below: job.cost_lost_usd === null ? null : usd(job.cost_lost_usd), why: () => (job.cost_lost_usd === null ? hoursExplanation(job, source) : costExplanation(job, source)) }),
      figure({ label: "Unmeasured", value: gpuHours(job.gpu_hours_unmeasured), unknown: job.gpu_hours_unmeasured === null, below: h("span", { class: "muted" }, `coverage ${percent(job.coverage_ratio)}`), why: () => coverageExplanation(job, source) }),
      figure({
        label: "Spread over GPU-minutes",
        value: job.ofu_ratio_p5 === null ? "unknown" : `${percent(job.ofu_ratio_p5, 0)} to ${percent(job.ofu_ratio_p95, 0)}`,
        unknown: job.ofu_ratio_p5 === null,
        below: h("span", { class: "muted" }, `median ${percent(job.ofu_ratio_p50)}`),
        why: () => ({ title: "Spread", says: ["Over time and over GPUs: of all minutes of all its GPUs, 5 % are below the first and 5 % above the second figure. Read from bins of half a percent."], numbers: [["5 %", percent(job.ofu_ratio_p5)], ["Median", percent(job.ofu_ratio_p50)], ["95 %", percent(job.ofu_ratio_p95)], ["Lowest single scrape", percent(job.ofu_ratio_min)], ["Highest single scrape", percent(job.ofu_ratio_max)]], source }),
      }),
      job.energy_joules === null ? null : figure({
        label: "Energy",
        value: joules(job.energy_joules),
        below: h("span", { class: "muted" }, `of ${percent(job.energy_coverage_ratio)} of the time`),
        why: () => ({ title: "Energy", says: ["From the energy counter of the GPUs where it can be believed, else from their power; only of the time in which one of the two is known."], numbers: [["Energy", joules(job.energy_joules)], ["Known for", percent(job.energy_coverage_ratio)]], source }),
      }),
    );
  }

  private waterfall(job: Job): Child {
    const source = api.address(`jobs/${encodeURIComponent(job.id)}`, this.context.query());
    const reported = job.reported?.mfu_ratio ?? null;
    return [
      waterfall({
        title: "From 100 % down to OFU",
        file_columns: ["gpu_hours"],
        parts: waterfallParts(job, job.waterfall, job),
        extra: h("button", { type: "button", class: "quiet", on: { click: () => explain(waterfallExplanation(source)) } }, "How it is made"),
      }),
      reported === null ? null : h("p", { class: "muted" }, `Beside it, the framework reports an MFU of ${percent(reported)}. It counts the model\u2019s own FLOPs, which OFU cannot see.`),
    ];
  }

  private reported(job: Job): Child {
    const said = job.reported;
    if (!said) {
      return nothing("It reported no MFU in this time. Logs of training frameworks, exported metrics and ", h("code", null, `POST /api/v1/jobs/${job.id}/mfu`), " are read.");
    }
    const rows: [string, string][] = [
      ["MFU, median of its steps", percent(said.mfu_ratio)],
      ["FLOP rate of a GPU", said.flops_per_second_per_gpu === null ? "not reported" : flopsPerSecond(said.flops_per_second_per_gpu)],
      ["Tokens of a GPU", said.tokens_per_second_per_gpu === null ? "not reported" : `${plain(said.tokens_per_second_per_gpu, 0)} /s`],
      ["Step", said.step_seconds === null ? "not reported" : seconds(said.step_seconds)],
      ["Peak that it divides by", said.peak_flops_per_second_implied === null ? "not reported" : flopsPerSecond(said.peak_flops_per_second_implied)],
      ["Steps used and left out", `${count(said.steps_used)} and ${count(said.steps_excluded)}`],
      ["Source", [said.source, said.format].filter((text) => text).join(", ") || "not said"],
    ];
    return [
      h("table", { class: "numbers" }, h("tbody", null, rows.map(([name, value]) => h("tr", { "data-key": name }, h("th", { scope: "row" }, name), h("td", null, value))))),
      h("h3", null, "Audit"),
      job.audit ? this.audit(job.audit) : nothing("Not audited: tell the model that it trains, with ", h("code", null, `POST /api/v1/jobs/${job.id}/model`), "."),
    ];
  }

  private audit(audit: Audit): Child {
    return [
      h("p", null, h("span", { class: `verdict ${audit.verdict}` }, VERDICTS[audit.verdict] ?? audit.verdict), " ", audit.summary),
      audit.hypotheses.length > 0
        ? table(
            [
              { title: "Likely mistake", cell: (one) => h("span", { class: "wrap" }, one.id.replaceAll("_", " "), h("span", { class: "small under-name" }, one.explanation)) },
              { title: "Predicted", number: true, cell: (one) => plain(one.predicted_ratio) },
              { title: "Observed", number: true, cell: (one) => plain(one.observed_ratio) },
              { title: "MFU if so", number: true, cell: (one) => percent(one.corrected_mfu_ratio) },
            ],
            audit.hypotheses,
            (one) => one.id,
            "Hypotheses of the audit",
          )
        : null,
      audit.missing.length > 0 ? h("p", { class: "muted" }, `It would say more with: ${audit.missing.join("; ")}.`) : null,
      h("details", null, h("summary", null, "Assumptions of the audit"), assumptionList([...audit.notes, ...audit.assumptions])),
    ];
  }

  simulated(): boolean {
    return this.job.value?.simulated ?? false;
  }

  redraw(): void {
    this.charts.redraw();
    this.heat.redraw();
  }

  dispose(): void {
    this.charts.dispose();
  }
}
