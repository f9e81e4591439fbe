// Can the data be trusted? Exporters and their health, what was wrong with counters, how time was attributed, GPUs that nobody knows.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, duration, percent, time } from "../base/format";
import { reasonText } from "../base/reasons";
import * as api from "../api/client";
import type { Fleet, Targets } from "../api/answers";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { asked, assumptionList, nothing, qualityList, section, table, unknown } from "./parts";

const TARGETS_SHOWN = 200;

export class QualityPage implements Page {
  private readonly fleet: Asked<Fleet>;
  private readonly targets: Asked<Targets>;

  constructor(private readonly context: Context) {
    this.fleet = new Asked(context.changed);
    this.targets = new Asked(context.changed);
  }

  title(): string {
    return "Data quality";
  }

  async load(): Promise<void> {
    await Promise.all([this.fleet.ask(api.fleet({ ...this.context.query(), by: "model" })), this.targets.ask(api.targets())]);
  }

  render(): Child {
    return [
      section("Coverage", asked(this.fleet, (value) => this.coverage(value))),
      section("Counters and attribution", asked(this.fleet, (value) => qualityList(value.quality))),
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

  newest(): number | null {
    return null;
  }

  redraw(): void {}

  dispose(): void {}
}
