// What runs over time on the pages of a job and of a GPU: OFU, and below it on the same axis what can explain it.
import type { Child } from "../base/dom";
import { bytesPerSecond, bytesPerSecondTick, megahertz, percent, percentTick, plain, tick, watts } from "../base/format";
import type { Mark, Span } from "../charts/bands";
import { TimeChart } from "../charts/time_chart";
import type { Line } from "../charts/time_chart";

type Column = (number | null)[];

export interface Course {
  time: number[];
  step_seconds: number;
  absent_reason: (string | null)[];
  ofu_ratio: Column;
  tensor_active_ratio: Column;
  sm_active_ratio: Column;
  dram_active_ratio: Column;
  sm_clock_hertz: Column;
  coverage_ratio: Column;
  power_watts: Column;
  gpu_count: Column;
  nvlink_bytes_per_second: Column;
  pcie_bytes_per_second: Column;
  ofu_ratio_p5?: Column;
  ofu_ratio_p95?: Column;
  reported_mfu_ratio?: Column;
}

const known = (column: Column | undefined): boolean => column?.some((value) => value !== null) ?? false;

export class CourseCharts {
  private readonly ofu: TimeChart;
  private readonly activity: TimeChart;
  private readonly clock: TimeChart;
  private readonly power: TimeChart;
  private readonly links: TimeChart;
  private readonly gpus: TimeChart;
  private course: Course | null = null;
  private spans: Span[] = [];
  private marks: Mark[] = [];

  constructor(key: string, zoom: (start: number, end: number) => void) {
    const ratio = { key, format: (value: number | null) => percent(value), axis: percentTick, zoom };
    this.ofu = new TimeChart({ ...ratio, title: "OFU", height: 220 });
    this.activity = new TimeChart({ ...ratio, title: "Activity of the pipes and the memory", height: 130 });
    this.clock = new TimeChart({ title: "SM clock, MHz", key, format: (value) => megahertz(value), axis: (value, step) => tick(value / 1e6, step / 1e6), height: 110, from_zero: false, zoom });
    this.power = new TimeChart({ title: "Power of one GPU", key, format: (value) => watts(value), axis: (value, step) => `${tick(value, step)} W`, height: 110, zoom });
    this.links = new TimeChart({ title: "Links of one GPU, sent and received", key, format: (value) => bytesPerSecond(value), axis: bytesPerSecondTick, height: 110, zoom });
    this.gpus = new TimeChart({ title: "GPUs and how many of them were measured", key, format: (value) => plain(value, 1), axis: tick, height: 110, zoom });
  }

  private all(): TimeChart[] {
    return [this.ofu, this.activity, this.clock, this.power, this.links, this.gpus];
  }

  // Named parts of time and moments behind the lines of OFU; the next update draws them.
  behind(spans: Span[], marks: Mark[]): void {
    this.spans = spans;
    this.marks = marks;
    if (this.course) this.update(this.course);
  }

  update(course: Course): void {
    this.course = course;
    const { time, step_seconds } = course;
    const axis = { time, step_seconds, reasons: course.absent_reason };
    const lines: Line[] = [];
    const spread = known(course.ofu_ratio_p5) && known(course.ofu_ratio_p95);
    if (spread && course.ofu_ratio_p5 && course.ofu_ratio_p95) {
      lines.push({ name: "ofu_ratio_p5", label: "5 % of the GPU time is below", values: course.ofu_ratio_p5, colour: "--line-spread", hidden: true });
      lines.push({ name: "ofu_ratio_p95", label: "95 % of the GPU time is below", values: course.ofu_ratio_p95, colour: "--line-spread", hidden: true });
    }
    lines.push({ name: "ofu_ratio", label: "OFU", values: course.ofu_ratio, colour: "--delivered" });
    if (known(course.reported_mfu_ratio) && course.reported_mfu_ratio) {
      lines.push({ name: "reported_mfu_ratio", label: "Reported MFU", values: course.reported_mfu_ratio, colour: "--line-mfu", dots: true });
    }
    this.ofu.update({ ...axis, lines, spans: this.spans, marks: this.marks, ...(spread ? { band: [0, 1] as [number, number] } : {}) });
    const activity: Line[] = [
      { name: "tensor_active_ratio", label: "Tensor pipe", values: course.tensor_active_ratio, colour: "--line-tensor" },
      { name: "sm_active_ratio", label: "SMs", values: course.sm_active_ratio, colour: "--line-sm" },
      { name: "dram_active_ratio", label: "DRAM", values: course.dram_active_ratio, colour: "--line-dram" },
    ];
    this.activity.update({ ...axis, lines: activity.filter((line) => known(line.values) || line.name === "tensor_active_ratio") });
    this.clock.update({ ...axis, lines: [{ name: "sm_clock_hertz", label: "SM clock", values: course.sm_clock_hertz, colour: "--line-clock" }] });
    this.power.update({ ...axis, lines: [{ name: "power_watts", label: "Power", values: course.power_watts, colour: "--line-power" }] });
    const links: Line[] = [
      { name: "nvlink_bytes_per_second", label: "NVLink", values: course.nvlink_bytes_per_second, colour: "--line-tensor" },
      { name: "pcie_bytes_per_second", label: "PCIe", values: course.pcie_bytes_per_second, colour: "--line-dram" },
    ];
    this.links.update({ ...axis, lines: links.filter((line) => known(line.values)) });
    const measured = course.gpu_count.map((value, i) => {
      const coverage = course.coverage_ratio[i] ?? null;
      return value === null || coverage === null ? null : value * coverage;
    });
    this.gpus.update({
      ...axis,
      lines: [
        { name: "gpu_count", label: "GPUs held", values: course.gpu_count, colour: "--line-spread", dashed: true },
        { name: "gpu_count_measured", label: "measured", values: measured, colour: "--delivered" },
      ],
    });
  }

  // Those that have anything; OFU and clock also say that they are unknown. How many GPUs there were is no question of one.
  elements(of_one = false): Child {
    const course = this.course;
    if (!course) return null;
    return [
      this.ofu.element,
      this.activity.element,
      this.clock.element,
      known(course.power_watts) ? this.power.element : null,
      known(course.nvlink_bytes_per_second) || known(course.pcie_bytes_per_second) ? this.links.element : null,
      of_one ? null : this.gpus.element,
    ];
  }

  redraw(): void {
    for (const chart of this.all()) chart.rebuild();
  }

  dispose(): void {
    for (const chart of this.all()) chart.dispose();
  }
}
