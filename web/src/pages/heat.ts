// GPUs over time as a grid, and which of them are slower than the rest: for a job and for a host.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { percent, points, shortTime, time } from "../base/format";
import { reasonText } from "../base/reasons";
import type { GpuSeries } from "../api/answers";
import { GridMap } from "../charts/grid_map";
import { nothing, table, unknown } from "./parts";
import type { Context } from "./page";

export type Course = GpuSeries["gpus"][number];

const SLOW_SHOWN = 8;
const SLOW_POINTS = 0.02; // below the median by two points: smaller differences are made by the chips themselves
const HEIGHT_MAX = 420;

export function gpuName(gpu: Pick<Course, "host" | "index" | "uuid" | "mig_instance">): string {
  const place = gpu.host ? `${gpu.host}${gpu.index ? ` / ${gpu.index}` : ""}` : (gpu.uuid ?? "GPU without a name");
  return gpu.mig_instance ? `${place} MIG ${gpu.mig_instance}` : place;
}

export function meanOf(column: (number | null)[] | null): number | null {
  const known = (column ?? []).filter((value): value is number => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function medianOf(values: number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? null : (sorted[Math.floor(sorted.length / 2)] ?? null);
}

export class HeatMap {
  private readonly grid: GridMap;
  private value: GpuSeries | null = null;

  constructor(private readonly context: Context) {
    this.grid = new GridMap({
      title: "OFU of each GPU over time",
      open: (index) => {
        const gpu = this.value?.gpus[Math.floor(index / (this.value.time.length || 1))];
        if (gpu?.uuid) context.go("gpu", { uuid: gpu.uuid });
      },
    });
  }

  update(value: GpuSeries): void {
    this.value = value;
    const columns = value.time.length;
    const values = new Float32Array(columns * value.gpus.length);
    let high = 0.1;
    value.gpus.forEach((gpu, row) => {
      for (let i = 0; i < columns; i += 1) {
        const one = gpu.ofu_ratio?.[i] ?? null;
        values[row * columns + i] = one ?? NaN;
        high = Math.max(high, one ?? 0);
      }
    });
    const zone = this.context.zone;
    const ticks = [0, 0.25, 0.5, 0.75].map((share) => Math.floor(share * columns));
    const slow = new Set(this.slow().map(({ gpu }) => gpu));
    this.grid.update({
      columns,
      rows: value.gpus.length,
      values,
      domain: { low: 0, high: Math.ceil(high * 10) / 10 },
      format: (one) => percent(one, 0),
      row_labels: (row) => gpuName(value.gpus[row] ?? { host: null, index: null, uuid: null, mig_instance: null }),
      column_labels: (column) => shortTime(value.time[column] ?? null, zone),
      column_ticks: ticks,
      name: (index) => this.name(index),
      why_unknown: (index) => {
        const gpu = value.gpus[Math.floor(index / columns)];
        return reasonText(gpu?.absent_reason?.[index % columns] ?? null);
      },
      file_rows: () => [
        ["uuid", "mig_instance", "host", "index", ...value.time.map((t) => new Date(t).toISOString())],
        ...value.gpus.map((gpu) => [gpu.uuid, gpu.mig_instance, gpu.host, gpu.index, ...(gpu.ofu_ratio ?? [])]),
      ],
      cell_height: Math.max(1, Math.min(20, Math.floor(HEIGHT_MAX / Math.max(1, value.gpus.length)))),
      marks: value.gpus.flatMap((gpu, row) => (slow.has(gpu) ? [row] : [])),
    });
  }

  private name(index: number): Child {
    const value = this.value;
    if (!value) return "";
    const gpu = value.gpus[Math.floor(index / value.time.length)];
    return gpu ? `${gpuName(gpu)}, ${time(value.time[index % value.time.length] ?? null, this.context.zone)}: ` : "";
  }

  // Those whose mean is clearly below the median of all, slowest first.
  private slow(): { gpu: Course; mean: number; difference: number }[] {
    const means = (this.value?.gpus ?? []).map((gpu) => ({ gpu, mean: meanOf(gpu.ofu_ratio) }));
    const median = medianOf(means.flatMap(({ mean }) => (mean === null ? [] : [mean])));
    if (median === null) return [];
    return means
      .flatMap(({ gpu, mean }) => (mean !== null && mean < median - SLOW_POINTS ? [{ gpu, mean, difference: mean - median }] : []))
      .sort((a, b) => a.mean - b.mean);
  }

  element(): Child {
    return this.grid.element;
  }

  slowTable(): Child {
    const value = this.value;
    if (!value) return null;
    const slow = this.slow();
    const unmeasured = value.gpus.filter((gpu) => meanOf(gpu.ofu_ratio) === null);
    return [
      slow.length === 0
        ? nothing("No GPU is more than two points of OFU below the median of these.")
        : [
            table(
              [
                { title: "GPU", cell: ({ gpu }) => (gpu.uuid ? h("a", { class: "name", href: this.context.href("gpu", { uuid: gpu.uuid }) }, gpuName(gpu)) : gpuName(gpu)) },
                { title: "Mean OFU", number: true, cell: ({ mean }) => percent(mean) },
                { title: "To the median", number: true, cell: ({ difference }) => points(difference) },
                { title: "Model", cell: ({ gpu }) => gpu.model ?? unknown("not in the catalogue") },
              ],
              slow.slice(0, SLOW_SHOWN),
              ({ gpu }) => gpuName(gpu),
              "GPUs below the median",
            ),
            slow.length > SLOW_SHOWN ? h("p", { class: "muted" }, `and ${slow.length - SLOW_SHOWN} more`) : null,
          ],
      unmeasured.length > 0 ? h("p", { class: "muted" }, `Unmeasured throughout: ${unmeasured.slice(0, SLOW_SHOWN).map(gpuName).join(", ")}${unmeasured.length > SLOW_SHOWN ? ", \u2026" : ""}.`) : null,
    ];
  }

  redraw(): void {
    this.grid.redraw();
  }
}
