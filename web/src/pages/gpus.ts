// One host with its GPUs, and one GPU.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, megahertz, percent, UNKNOWN, watts } from "../base/format";
import { jobName } from "../base/job_id";
import * as api from "../api/client";
import type { GpuSeries } from "../api/answers";
import { CourseCharts } from "./courses";
import type { Course } from "./courses";
import { gpuName, HeatMap, meanOf } from "./heat";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { asked, nothing, section, table, unknown } from "./parts";

type Gpu = GpuSeries["gpus"][number];

function jobLinks(context: Context, jobs: string[]): Child {
  if (jobs.length === 0) return h("span", { class: "muted" }, "no job");
  return jobs.map((id, i) => [i > 0 ? ", " : null, h("a", { class: "name", href: context.href("job", { id }) }, jobName(id))]);
}

function gone(message: string): Child {
  return [h("p", { class: "notice error", role: "alert" }, message), nothing("It may have been seen at another time: choose a longer time span.")];
}

export class HostPage implements Page {
  private readonly gpus: Asked<GpuSeries>;
  private readonly heat: HeatMap;

  constructor(private readonly context: Context) {
    this.gpus = new Asked(context.changed);
    this.heat = new HeatMap(context);
  }

  private name(): string {
    return this.context.address.parameters.name ?? "";
  }

  title(): string {
    return `Host ${this.name()}`;
  }

  async load(): Promise<void> {
    const columns = "ofu_ratio,tensor_active_ratio,sm_clock_hertz,power_watts,coverage_ratio,absent_reason";
    const gpus = await this.gpus.ask(api.gpuSeries({ ...this.context.query(), host: this.name(), columns }));
    if (gpus) this.heat.update(gpus);
  }

  render(): Child {
    if (this.gpus.error && this.gpus.error.status !== 0 && !this.gpus.value) return section(this.title(), gone(this.gpus.error.message));
    return [
      section(this.title(), asked(this.gpus, (value) => this.table(value))),
      section("Its GPUs over time", asked(this.gpus, () => [this.heat.element(), h("h3", null, "Slower than the rest"), this.heat.slowTable()])),
    ];
  }

  private table(value: GpuSeries): Child {
    const mean = (column: (number | null)[] | null, format: (one: number | null) => string): Child => {
      const one = meanOf(column);
      return one === null ? unknown("nothing was measured") : format(one);
    };
    return table<Gpu>(
      [
        { title: "GPU", cell: (gpu) => (gpu.uuid ? h("a", { class: "name", href: this.context.href("gpu", { uuid: gpu.uuid }) }, gpuName(gpu)) : gpuName(gpu)) },
        { title: "Model", cell: (gpu) => gpu.model ?? unknown(`not in the catalogue: ${gpu.model_raw ?? "no name"}`) },
        { title: "OFU, mean of the steps", number: true, cell: (gpu) => mean(gpu.ofu_ratio, (one) => percent(one)) },
        { title: "Tensor pipe", number: true, cell: (gpu) => mean(gpu.tensor_active_ratio, (one) => percent(one)) },
        { title: "SM clock", number: true, cell: (gpu) => mean(gpu.sm_clock_hertz, megahertz) },
        { title: "Power", number: true, cell: (gpu) => mean(gpu.power_watts, watts) },
        { title: "Coverage", number: true, cell: (gpu) => mean(gpu.coverage_ratio, (one) => percent(one)) },
        { title: "Jobs", cell: (gpu) => h("span", { class: "wrap" }, jobLinks(this.context, gpu.jobs)) },
      ],
      value.gpus,
      (gpu) => gpuName(gpu),
      "GPUs of the host",
    );
  }

  simulated(): boolean {
    return this.gpus.value?.simulated ?? false;
  }

  redraw(): void {
    this.heat.redraw();
  }
}

export class GpuPage implements Page {
  private readonly gpus: Asked<GpuSeries>;
  private readonly charts = new Map<string, CourseCharts>(); // by MIG instance

  constructor(private readonly context: Context) {
    this.gpus = new Asked(context.changed);
  }

  private uuid(): string {
    return this.context.address.parameters.uuid ?? "";
  }

  title(): string {
    const gpu = this.gpus.value?.gpus[0];
    return `GPU ${gpu ? gpuName({ ...gpu, mig_instance: null }) : this.uuid()}`;
  }

  async load(): Promise<void> {
    const gpus = await this.gpus.ask(api.gpuSeries({ ...this.context.query(), uuid: this.uuid() }));
    for (const gpu of gpus?.gpus ?? []) {
      const key = gpu.mig_instance ?? "";
      const charts = this.charts.get(key) ?? new CourseCharts(`gpu ${key}`, this.context.zoom);
      this.charts.set(key, charts);
      charts.update(this.courseOf(gpu));
    }
  }

  private courseOf(gpu: Gpu): Course {
    const value = this.gpus.value;
    const empty = (value?.time ?? []).map(() => null);
    return {
      time: value?.time ?? [],
      step_seconds: value?.step_seconds ?? 60,
      absent_reason: gpu.absent_reason ?? empty,
      ofu_ratio: gpu.ofu_ratio ?? empty,
      tensor_active_ratio: gpu.tensor_active_ratio ?? empty,
      sm_active_ratio: gpu.sm_active_ratio ?? empty,
      dram_active_ratio: gpu.dram_active_ratio ?? empty,
      sm_clock_hertz: gpu.sm_clock_hertz ?? empty,
      coverage_ratio: gpu.coverage_ratio ?? empty,
      power_watts: gpu.power_watts ?? empty,
      gpu_count: gpu.gpu_count ?? empty,
      nvlink_bytes_per_second: gpu.nvlink_bytes_per_second ?? empty,
      pcie_bytes_per_second: gpu.pcie_bytes_per_second ?? empty,
    };
  }

  render(): Child {
    if (this.gpus.error && this.gpus.error.status !== 0 && !this.gpus.value) return section(this.title(), gone(this.gpus.error.message));
    return [
      section(this.title(), asked(this.gpus, (value) => this.facts(value))),
      asked(this.gpus, (value) =>
        value.gpus.map((gpu) =>
          section(gpu.mig_instance ? `MIG instance ${gpu.mig_instance}${gpu.mig_profile ? ` (${gpu.mig_profile})` : ""}` : "Over time", this.charts.get(gpu.mig_instance ?? "")?.elements(true) ?? null))),
    ];
  }

  private facts(value: GpuSeries): Child {
    const gpu = value.gpus[0];
    if (!gpu) return null;
    const jobs = [...new Set(value.gpus.flatMap((one) => one.jobs))];
    const facts: [string, Child][] = [
      ["UUID", gpu.uuid ?? UNKNOWN],
      ["Host", gpu.host ? h("a", { href: this.context.href("host", { name: gpu.host }) }, gpu.host) : UNKNOWN],
      ["Index", gpu.index ?? UNKNOWN],
      ["Model", gpu.model ?? `not in the catalogue: ${gpu.model_raw ?? "no name"}`],
      ["Driver", gpu.driver_version ?? UNKNOWN],
      [`Jobs (${count(jobs.length)})`, jobLinks(this.context, jobs)],
    ];
    return h("dl", { class: "facts" }, facts.map(([name, fact]) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, fact))));
  }

  simulated(): boolean {
    return this.gpus.value?.simulated ?? false;
  }

  redraw(): void {
    for (const charts of this.charts.values()) charts.redraw();
  }

  dispose(): void {
    for (const charts of this.charts.values()) charts.dispose();
  }
}
