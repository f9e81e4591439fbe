// The study of a whole fleet: does what jobs report agree with what their GPUs did?
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, percent, plain, points } from "../base/format";
import { jobId } from "../base/job_id";
import { reasonText } from "../base/reasons";
import * as api from "../api/client";
import type { Mfu } from "../api/answers";
import { Scatter } from "../charts/scatter";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { asked, figure, nothing, section, table, unknown } from "./parts";

const OUTLIER_POINTS = 0.1; // the study counts jobs within 5 and within 10 points
const OUTLIERS_SHOWN = 20;

export class StudyPage implements Page {
  private readonly mfu: Asked<Mfu>;
  private readonly scatter: Scatter;

  constructor(private readonly context: Context) {
    this.mfu = new Asked(context.changed);
    this.scatter = new Scatter({
      title: "OFU and reported MFU of each job",
      x_label: "reported MFU",
      y_label: "OFU",
      x_name: "reported_mfu_ratio",
      y_name: "ofu_ratio",
      open: (id) => context.go("job", { id }),
    });
  }

  title(): string {
    return "OFU and MFU";
  }

  async load(): Promise<void> {
    const mfu = await this.mfu.ask(api.mfu(this.context.query()));
    if (!mfu) return;
    const most = mfu.points.reduce((most_gpus, point) => Math.max(most_gpus, point.gpu_count), 1);
    this.scatter.update(
      mfu.points.map((point) => ({
        id: jobId(point.job, point.namespace),
        label: point.namespace ? `${point.job} (${point.namespace})` : point.job,
        x: point.reported_mfu_ratio,
        y: point.ofu_ratio,
        size: Math.sqrt(point.gpu_count / most),
        colour: point.formula_known_wrong ? "--warn" : "--delivered",
        ring: Math.abs(point.reported_mfu_ratio - point.ofu_ratio) > OUTLIER_POINTS,
      })),
    );
  }

  render(): Child {
    return asked(this.mfu, (value) => {
      const left_out = `Left out: jobs without a reported MFU (${count(value.jobs_without_mfu)}) and those without an OFU (${count(value.jobs_without_ofu)}).`;
      if (value.points.length === 0) {
        return section("OFU and reported MFU", nothing("No job has both an OFU and a reported MFU in this time. ", left_out, " MFU comes from training logs, exported metrics, or ", h("code", null, "POST /api/v1/jobs/{id}/mfu"), "."));
      }
      return [
        section("OFU and reported MFU", this.figures(value), h("p", { class: "muted small" }, left_out)),
        h("div", { class: "columns", "data-key": "columns" },
          section("Job by job", this.scatter.element,
            h("p", { class: "muted small" }, "On the line, what the framework says is what the hardware did. A ring marks more than 10 points between the two.")),
          h("div", { "data-key": "right" },
            section("Furthest apart", this.outliers(value)),
            value.by_size.length > 1 ? section("By size", this.bySize(value)) : null)),
      ];
    });
  }

  private figures(value: Mfu): Child {
    const source = api.address("mfu", this.context.query());
    const one = (label: string, number: (of: Mfu["all"]) => string, says: string): HTMLElement => {
      const with_wrong = number(value.all);
      const without = number(value.without_known_wrong);
      const marked = value.all.job_count !== value.without_known_wrong.job_count;
      return figure({
        label,
        value: with_wrong,
        below: marked ? h("span", { class: "muted" }, `${without} without those known wrong`) : null,
        why: () => ({ title: label, says: [says, "Jobs whose formula is known to be wrong are named by the key mfu.known-wrong of the configuration."], numbers: [["Jobs", count(value.all.job_count)], ["Without those known wrong", count(value.without_known_wrong.job_count)], [label, with_wrong], ["Without those known wrong", without]], source }),
      });
    };
    const missing = value.all.correlation_absent_reason ? ` Not known here: ${reasonText(value.all.correlation_absent_reason)}.` : "";
    return h("div", { class: "figures" },
      one("Jobs with both", (of) => count(of.job_count), "Jobs that reported an MFU and whose OFU is known over the time from their first reported step to their last."),
      one("Correlation r", (of) => plain(of.pearson_ratio), "Pearson\u2019s correlation of reported MFU and OFU over jobs. Known for three jobs and more that differ in both: two points always lie on a line." + missing),
      one("Mean error", (of) => (of.error_mean_ratio === null ? "unknown" : points(of.error_mean_ratio).replace("+", "")), "Mean of |MFU \u2212 OFU| over jobs, in points of percent."),
      one("Within 10 points", (of) => percent(of.within_10_points_ratio, 0), "The share of jobs of which MFU and OFU are at most ten points apart."));
  }

  private outliers(value: Mfu): Child {
    const rows = value.points
      .map((point) => ({ ...point, difference: point.reported_mfu_ratio - point.ofu_ratio }))
      .filter((point) => Math.abs(point.difference) > OUTLIER_POINTS)
      .sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference));
    if (rows.length === 0) return nothing("All jobs are within 10 points.");
    return [
      table(
        [
          { title: "Job", cell: (row) => [h("a", { class: "name", href: this.context.href("job", { id: jobId(row.job, row.namespace) }) }, row.job), row.namespace ? h("span", { class: "muted owner", title: row.namespace }, row.namespace) : null] },
          { title: "GPUs", number: true, cell: (row) => count(row.gpu_count) },
          { title: "MFU", number: true, cell: (row) => percent(row.reported_mfu_ratio) },
          { title: "OFU", number: true, cell: (row) => percent(row.ofu_ratio) },
          { title: "MFU \u2212 OFU", number: true, cell: (row) => points(row.difference) },
          { title: "Formula", cell: (row) => (row.formula_known_wrong ? "known wrong" : h("a", { href: this.context.href("job", { id: jobId(row.job, row.namespace) }) }, "audit")) },
        ],
        rows.slice(0, OUTLIERS_SHOWN),
        (row) => jobId(row.job, row.namespace),
        "Jobs furthest apart",
      ),
      rows.length > OUTLIERS_SHOWN ? h("p", { class: "muted" }, `and ${count(rows.length - OUTLIERS_SHOWN)} more`) : null,
    ];
  }

  private bySize(value: Mfu): Child {
    return table(
      [
        { title: "GPUs of a job", cell: (row) => (row.gpu_count_max === null ? `${count(row.gpu_count_min)} and more` : row.gpu_count_max === row.gpu_count_min ? count(row.gpu_count_min) : `${count(row.gpu_count_min)} to ${count(row.gpu_count_max)}`) },
        { title: "Jobs", number: true, cell: (row) => count(row.job_count) },
        { title: "r", number: true, cell: (row) => (row.pearson_ratio === null ? unknown(reasonText(row.correlation_absent_reason)) : plain(row.pearson_ratio)) },
        { title: "Mean error", number: true, cell: (row) => (row.error_mean_ratio === null ? "unknown" : points(row.error_mean_ratio).replace("+", "")) },
        { title: "Within 10 points", number: true, cell: (row) => percent(row.within_10_points_ratio, 0) },
      ],
      value.by_size,
      (row) => String(row.gpu_count_min),
      "Agreement by size of the job",
    );
  }

  simulated(): boolean {
    return this.mfu.value?.simulated ?? false;
  }

  redraw(): void {
    this.scatter.redraw();
  }
}
