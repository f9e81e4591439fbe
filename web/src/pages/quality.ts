// Can the data be trusted? Exporters and their health, what was wrong with counters, how time was attributed, GPUs that nobody knows.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, duration, hours, percent, time } from "../base/format";
import { reasonText } from "../base/reasons";
import * as api from "../api/client";
import type { Findings, Fleet, Jobs, Targets } from "../api/answers";
import { about, kindText, lasted, severityMark } from "./finding_parts";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { asked, assumptionList, nothing, qualityList, section, shareOf, table, unknown } from "./parts";

const TARGETS_SHOWN = 200;
const GROUPS = 200;
const OF_THE_MEASUREMENT = "counter_dead,counter_frozen,profiler_pause,unseen,unmeasurable";
const RULES: Record<string, string> = { pod: "labels of a pod", hpc_job: "the label of an HPC job", scheduler: "what its scheduler says" };

export class QualityPage implements Page {
  private readonly fleet: Asked<Fleet>;
  private readonly targets: Asked<Targets>;
  private readonly by_job: Asked<Fleet>;
  private readonly jobs: Asked<Jobs>;
  private readonly findings: Asked<Findings>;

  constructor(private readonly context: Context) {
    this.fleet = new Asked(context.changed);
    this.targets = new Asked(context.changed);
    this.by_job = new Asked(context.changed);
    this.jobs = new Asked(context.changed);
    this.findings = new Asked(context.changed);
  }

  title(): string {
    return "Data quality";
  }

  async load(): Promise<void> {
    await Promise.all([
      this.fleet.ask(api.fleet({ ...this.context.query(), by: "model" })),
      this.targets.ask(api.targets()),
      this.by_job.ask(api.fleet({ ...this.context.query(), by: "job", top: String(GROUPS) })),
      this.jobs.ask(api.jobs({ ...this.context.query(), limit: String(GROUPS) })),
      this.findings.ask(api.findings({ kind: OF_THE_MEASUREMENT, limit: "50" })),
    ]);
  }

  render(): Child {
    return [
      section("Coverage", asked(this.fleet, (value) => this.coverage(value))),
      section("What is wrong with the measurement now", asked(this.findings, (value) => this.open(value))),
      section("Attribution", asked(this.by_job, (value) => this.attribution(value))),
      section("Counters, and what was put right", asked(this.fleet, (value) => qualityList(value.quality, { unmeasured_ratio: shareOf(value.fleet.gpu_hours_unmeasured, value.fleet.gpu_hours_allocated), absent_ratios: value.fleet.absent_ratios, data_findings: this.findings.value?.findings ?? null }))),
      section("GPU models", asked(this.fleet, (value) => this.models(value))),
      section("Exporters that are scraped", this.targets.error?.status === 403 ? nothing("Only administrators see the targets.") : asked(this.targets, (value) => this.exporters(value))),
      section("Assumptions", asked(this.fleet, (value) => assumptionList(value.assumptions))),
    ];
  }

  private coverage(value: Fleet): Child {
    const reasons = Object.entries(value.fleet.absent_ratios).filter(([, ratio]) => ratio > 0).sort((a, b) => b[1] - a[1]);
    return [
      h("p", null, "OFU is known for ", h("b", null, percent(value.fleet.coverage_ratio)), " of the allocated time."),
      reasons.length === 0
        ? null
        : table(
            [
              { title: "Why the rest is not known", cell: ([reason]) => reasonText(reason) },
              { title: "Of the allocated time", number: true, cell: ([, ratio]) => percent(ratio, 2) },
            ],
            reasons,
            ([reason]) => reason,
            "Reasons of unmeasured time",
          ),
    ];
  }

  private open(value: Findings): Child {
    if (value.looked_until === null) return nothing(`Nothing was looked at yet: ${value.absent_reason ?? "the service has just started"}.`);
    if (value.findings.length === 0) return nothing("No counter is dead or frozen, and nothing that was seen is silent.");
    return [
      table(
        [
          { title: "What", cell: (row) => [severityMark(row.severity), " ", h("a", { href: this.context.href("finding", { id: row.id }) }, kindText(row.kind))] },
          { title: "Of", cell: (row) => about(this.context, row) },
          { title: "For", cell: (row) => lasted(row) },
          { title: "Says", cell: (row) => h("span", { class: "wrap" }, row.text) },
        ],
        value.findings,
        (row) => row.id,
        "Open findings about the measurement",
      ),
      value.next_cursor === null ? null : h("p", { class: "muted" }, h("a", { href: this.context.href("findings", { kind: OF_THE_MEASUREMENT }) }, `All ${count(value.findings_total)}`)),
    ];
  }

  // Which part of the time nobody held, and by what it is known who held the rest.
  private attribution(value: Fleet): Child {
    const allocated = value.fleet.gpu_hours_allocated ?? 0;
    if (allocated <= 0) return nothing("No GPU in this time.");
    const nobody = value.groups.find(({ key }) => !key.job);
    const share = nobody ? (nobody.gpu_hours_allocated ?? 0) / allocated : value.groups_omitted_count > 0 ? null : 0;
    const jobs = this.jobs.value?.jobs ?? [];
    const rules = new Map<string, { jobs: number; hours: number }>();
    for (const job of jobs) {
      const rule = rules.get(job.attributed_by ?? "") ?? { jobs: 0, hours: 0 };
      rules.set(job.attributed_by ?? "", { jobs: rule.jobs + 1, hours: rule.hours + (job.gpu_hours_allocated ?? 0) });
    }
    return [
      h("p", null, share === null ? `No row of time without a job is among the first ${count(GROUPS)}.` : ["A job is known for ", h("b", null, percent(1 - share)), " of the time that was seen. The rest had no label of a job: idle GPUs, or exporters that do not say whose they are."]),
      rules.size === 0 ? null : table(
        [
          { title: "Known by", cell: ([rule]) => RULES[rule] ?? (rule === "" ? "nothing that was kept" : rule.replaceAll("_", " ")) },
          { title: "Jobs", number: true, cell: ([, sum]) => count(sum.jobs) },
          { title: "GPU-h", number: true, cell: ([, sum]) => hours(sum.hours) },
        ],
        [...rules].sort((a, b) => b[1].hours - a[1].hours),
        ([rule]) => rule,
        "How jobs are known",
      ),
      this.jobs.value?.next_cursor ? h("p", { class: "muted small" }, `Of the ${count(jobs.length)} jobs that lost most.`) : null,
    ];
  }

  private models(value: Fleet): Child {
    if (value.groups.length === 0) return nothing("No GPU in this time.");
    return table(
      [
        { title: "Model", cell: (group) => group.key.model ?? h("span", { class: "unknown" }, `unknown: ${group.key.model_raw ?? "no name"}`) },
        { title: "GPUs", number: true, cell: (group) => count(group.gpu_count) },
        { title: "Coverage", number: true, cell: (group) => percent(group.coverage_ratio) },
        { title: "OFU", number: true, cell: (group) => (group.ofu_ratio === null ? unknown(reasonText(group.absent_reason)) : percent(group.ofu_ratio)) },
        { title: "If not known, why", cell: (group) => h("span", { class: "wrap" }, group.key.model ? (group.absent_reason ? reasonText(group.absent_reason) : "") : "Not in the catalogue: it has no peak and no percentage until a row is added.") },
      ],
      value.groups,
      (group) => JSON.stringify(group.key),
      "GPU models",
    );
  }

  private exporters(value: Targets): Child {
    if (value.targets.length === 0) return nothing("Nothing is scraped: samples come by remote write, or from a fleet that is simulated.");
    const down = value.targets.filter((target) => target.up === false);
    const rows = [...down, ...value.targets.filter((target) => target.up !== false)];
    return [
      h("p", null, `${count(value.targets.length)} targets, `, h("b", null, `${count(down.length)} down`), "."),
      value.problems.length > 0 ? h("ul", { class: "assumptions" }, value.problems.map((problem) => h("li", { class: "warn" }, problem))) : null,
      table(
        [
          { title: "Target", cell: (target) => h("span", { class: "name" }, target.url) },
          { title: "State", cell: (target) => (target.up === null ? h("span", { class: "muted" }, "not asked yet") : target.up ? "up" : h("span", { class: "warn" }, "down")) },
          { title: "Last asked", cell: (target) => h("span", { class: "time" }, target.last_scrape === null ? "never" : time(target.last_scrape, this.context.zone, true)) },
          { title: "Took", number: true, cell: (target) => duration(target.duration_seconds) },
          { title: "Samples", number: true, cell: (target) => count(target.samples) },
          { title: "What was wrong", cell: (target) => h("span", { class: "wrap" }, target.error ?? "") },
        ],
        rows.slice(0, TARGETS_SHOWN),
        (target) => target.url,
        "Scrape targets, those that are down first",
      ),
      rows.length > TARGETS_SHOWN ? h("p", { class: "muted" }, `and ${count(rows.length - TARGETS_SHOWN)} more`) : null,
    ];
  }

  simulated(): boolean {
    return this.fleet.value?.quality.some((entry) => entry.code === "simulated") ?? false;
  }
}
