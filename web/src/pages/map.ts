// Every host and GPU at once, coloured by what the reader chooses.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, megahertz, percent, UNKNOWN } from "../base/format";
import { mapLayout, naturalKey } from "../base/layout";
import type { MapLayout } from "../base/layout";
import { reasonText } from "../base/reasons";
import * as api from "../api/client";
import type { GpuMap } from "../api/answers";
import { GridMap } from "../charts/grid_map";
import { Asked } from "./page";
import type { Context, Page } from "./page";
import { asked, choice, nothing, qualityList, section, table, tabs, unknown } from "./parts";

type Metric = "ofu_ratio" | "tensor_active_ratio" | "sm_clock_hertz" | "coverage_ratio";
const METRICS: [string, string][] = [["ofu_ratio", "OFU"], ["tensor_active_ratio", "Tensor activity"], ["sm_clock_hertz", "SM clock"], ["coverage_ratio", "Coverage"]];
const FRESH_MILLISECONDS = 20_000;
const INDEX_MAX = 1024; // GPUs of a host
const HOSTS_SHOWN = 15;
// A map is of now: of a whole day the mean of every GPU would have to be read, and would say less.
const SPANS: [string, string][] = [["5m", "Last 5 minutes"], ["15m", "Last 15 minutes"], ["1h", "Last hour"], ["span", "The time span above"]];

export class MapPage implements Page {
  private readonly gpus: Asked<GpuMap>;
  private readonly grid: GridMap;
  private asked = "";
  private asked_at = 0;
  private rank = new Int32Array(0); // of each host by name
  private order: number[] = []; // GPUs in the order of the map, as places in the columns of the answer
  private layout: MapLayout = mapLayout([], 0);
  private cells = new Map<number, number>(); // cell to place in `order`
  private timer = 0;
  private readonly resized = (): void => {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.fill(), 150);
  };

  constructor(private readonly context: Context) {
    this.gpus = new Asked(context.changed);
    this.grid = new GridMap({ title: "Map of all GPUs", open: (cell) => this.open(cell) });
    addEventListener("resize", this.resized);
  }

  title(): string {
    return "Map";
  }

  private metric(): Metric {
    const metric = this.context.address.parameters.metric;
    return (METRICS.find(([name]) => name === metric)?.[0] ?? "ofu_ratio") as Metric;
  }

  private span(): string {
    const span = this.context.address.parameters.of;
    return SPANS.find(([name]) => name === span)?.[0] ?? "15m";
  }

  private query(): Record<string, string> {
    const span = this.span();
    const { since } = this.context.address.span;
    return span === "span" || since === null ? this.context.query() : { since: span };
  }

  // Another colour is of the same answer, which is large.
  async load(): Promise<void> {
    const query = this.query();
    const asked = JSON.stringify(query);
    if (asked === this.asked && Date.now() - this.asked_at < FRESH_MILLISECONDS && this.gpus.error === null) return;
    if (!(await this.gpus.ask(api.gpuMap(query)))) return;
    this.asked = asked;
    this.asked_at = Date.now();
    this.fill();
  }

  private model(): string {
    return this.context.address.parameters.model ?? "";
  }

  private fill(): void {
    const value = this.gpus.value;
    if (!value) return;
    const { host, index, model } = value.gpus;
    const wanted = value.models.indexOf(this.model());
    const keys = value.hosts.map(naturalKey);
    const names = keys.map((_, i) => i).sort((a, b) => ((keys[a] ?? "") < (keys[b] ?? "") ? -1 : 1));
    this.rank = new Int32Array(value.hosts.length);
    names.forEach((i, place) => {
      this.rank[i] = place;
    });
    // One number for each GPU, so that sorting compares no names.
    const place_of = Float64Array.from({ length: value.gpu_count }, (_, gpu) => (this.rank[host[gpu] ?? -1] ?? value.hosts.length) * INDEX_MAX + Math.min(INDEX_MAX - 1, Number(index[gpu] ?? 0) || 0));
    this.order = Array.from({ length: value.gpu_count }, (_, i) => i).filter((i) => wanted < 0 || model[i] === wanted);
    this.order.sort((a, b) => (place_of[a] ?? 0) - (place_of[b] ?? 0));
    this.layout = mapLayout(this.order.map((gpu) => host[gpu] ?? null), this.grid.element.clientWidth || Math.min(1240, window.innerWidth - 48));
    this.draw(value);
    this.context.changed();
  }

  private draw(value: GpuMap): void {
    const { columns, rows, cell, group, place } = this.layout;
    const metric = this.metric();
    const column = value.gpus[metric];
    const values = new Float32Array(columns * rows).fill(Infinity);
    this.cells = new Map();
    let low = Infinity;
    let high = -Infinity;
    this.order.forEach((gpu, i) => {
      const at = place[i] ?? 0;
      const one = column[gpu] ?? null;
      values[at] = one ?? NaN;
      this.cells.set(at, gpu);
      if (one === null) return;
      low = Math.min(low, one);
      high = Math.max(high, one);
    });
    const is_clock = metric === "sm_clock_hertz";
    const domain = metric === "coverage_ratio" || !Number.isFinite(low)
      ? { low: 0, high: 1 }
      : is_clock
        ? { low, high: Math.max(high, low + 1e6) }
        : { low: 0, high: Math.max(0.1, Math.ceil(high * 10) / 10) };
    this.grid.update({
      columns,
      rows,
      values,
      domain,
      format: (one) => (is_clock ? megahertz(one) : percent(one, 0)),
      name: (at) => this.name(value, this.cells.get(at)),
      why_unknown: (at) => this.why(value, this.cells.get(at)),
      file_rows: () => this.fileRows(value),
      cell_height: cell,
      cell_width: cell,
      group,
    });
  }

  private name(value: GpuMap, gpu: number | undefined): Child {
    if (gpu === undefined) return "";
    const { host, index, uuid, mig_instance, job, job_count, model } = value.gpus;
    const place = host[gpu] == null ? (uuid[gpu] ?? "GPU without a name") : `${value.hosts[host[gpu] ?? 0] ?? ""} / ${index[gpu] ?? "?"}`;
    const first = job[gpu] == null ? "no job" : (value.jobs[job[gpu] ?? 0] ?? "");
    const more = (job_count[gpu] ?? 0) > 1 ? ` and ${(job_count[gpu] ?? 0) - 1} more` : "";
    return [h("b", null, place), mig_instance[gpu] ? ` MIG ${mig_instance[gpu] ?? ""}` : "", `, ${model[gpu] == null ? "unknown model" : (value.models[model[gpu] ?? 0] ?? "")}, ${first}${more}: `];
  }

  private why(value: GpuMap, gpu: number | undefined): string {
    const reason = gpu === undefined ? null : (value.gpus.absent_reason[gpu] ?? null);
    return reasonText(reason === null ? null : (value.absent_reasons[reason] ?? null));
  }

  private open(cell: number): void {
    const value = this.gpus.value;
    const gpu = this.cells.get(cell);
    if (!value || gpu === undefined) return;
    const host = value.gpus.host[gpu] ?? null;
    if (host !== null) this.context.go("host", { name: value.hosts[host] ?? "" });
    else if (value.gpus.uuid[gpu]) this.context.go("gpu", { uuid: value.gpus.uuid[gpu] ?? "" });
  }

  private fileRows(value: GpuMap): (string | number | null)[][] {
    const { gpus } = value;
    const name = (list: string[], at: number | null | undefined): string | null => (at == null ? null : (list[at] ?? null));
    return [
      ["host", "index", "mig_instance", "uuid", "model", "job", "ofu_ratio", "tensor_active_ratio", "sm_clock_hertz", "coverage_ratio", "absent_reason"],
      ...this.order.map((i) => [
        name(value.hosts, gpus.host[i]), gpus.index[i] ?? null, gpus.mig_instance[i] ?? null, gpus.uuid[i] ?? null, name(value.models, gpus.model[i]),
        name(value.jobs, gpus.job[i]), gpus.ofu_ratio[i] ?? null, gpus.tensor_active_ratio[i] ?? null, gpus.sm_clock_hertz[i] ?? null,
        gpus.coverage_ratio[i] ?? null, name(value.absent_reasons, gpus.absent_reason[i]),
      ]),
    ];
  }

  render(): Child {
    const metric = this.metric();
    const set = (name: string, fallback: string) => (chosen: string) => {
      this.context.set({ [name]: chosen === fallback ? "" : chosen });
      if (name === "model") this.fill();
      else if (name === "metric" && this.gpus.value) this.draw(this.gpus.value);
    };
    return [
      section("Map",
        h("div", { class: "controls" },
          tabs("Coloured by", METRICS, metric, set("metric", "ofu_ratio")),
          choice("Of", SPANS, this.span(), set("of", "15m")),
          (this.gpus.value?.models.length ?? 0) > 1 ? choice("Model", [["", "all"], ...(this.gpus.value?.models ?? []).map((name): [string, string] => [name, name])], this.model(), set("model", "")) : null),
        asked(this.gpus, (value) => (value.gpu_count === 0
          ? nothing("No GPU was seen in this time. Choose a longer one.")
          : [h("p", { class: "muted" }, `${count(this.order.length)} GPUs of ${count(value.hosts.length)} hosts, a cell each, host by host. ${this.unknownText(value)}`), this.grid.element]))),
      asked(this.gpus, (value) => (value.gpu_count === 0 ? null : section("Hosts with the least", this.hosts(value)))),
      asked(this.gpus, (value) => (value.quality.length === 0 ? null : section("What these numbers rest on", qualityList(value.quality, { unmeasured_ratio: null, data_findings: null })))),
    ];
  }

  private unknownText(value: GpuMap): string {
    const column = value.gpus[this.metric()];
    const missing = this.order.filter((gpu) => column[gpu] == null).length;
    return missing === 0 ? "" : `${count(missing)} of them unknown.`;
  }

  private hosts(value: GpuMap): Child {
    const metric = this.metric();
    const hosts = value.hosts.length;
    const [sum, known, gpus] = [new Float64Array(hosts), new Float64Array(hosts), new Float64Array(hosts)];
    const column = value.gpus[metric];
    for (const gpu of this.order) {
      const host = value.gpus.host[gpu];
      if (host == null) continue;
      const one = column[gpu] ?? null;
      gpus[host] = (gpus[host] ?? 0) + 1;
      if (one === null) continue;
      sum[host] = (sum[host] ?? 0) + one;
      known[host] = (known[host] ?? 0) + 1;
    }
    const mean = Float64Array.from(sum, (of, host) => (known[host] ? of / (known[host] ?? 1) : -1));
    const least = Array.from({ length: hosts }, (_, host) => host).filter((host) => (gpus[host] ?? 0) > 0)
      .sort((a, b) => (mean[a] ?? 0) - (mean[b] ?? 0) || (this.rank[a] ?? 0) - (this.rank[b] ?? 0));
    const rows = least.slice(0, HOSTS_SHOWN).map((host) => ({ name: value.hosts[host] ?? "", mean: known[host] ? (mean[host] ?? null) : null, known: known[host] ?? 0, gpus: gpus[host] ?? 0 }));
    const format = metric === "sm_clock_hertz" ? megahertz : (one: number | null) => percent(one);
    return table(
      [
        { title: "Host", cell: (row) => h("a", { class: "name", href: this.context.href("host", { name: row.name }) }, row.name) },
        { title: "GPUs", number: true, cell: (row) => count(row.gpus) },
        { title: METRICS.find(([name]) => name === metric)?.[1] ?? UNKNOWN, number: true, cell: (row) => (row.mean === null ? unknown("of none of its GPUs") : format(row.mean)) },
        { title: "Unknown GPUs", number: true, cell: (row) => count(row.gpus - row.known) },
      ],
      rows,
      (row) => row.name,
      "Hosts with the least",
    );
  }

  simulated(): boolean {
    return this.gpus.value?.simulated ?? false;
  }

  redraw(): void {
    this.grid.redraw();
  }

  dispose(): void {
    removeEventListener("resize", this.resized);
    clearTimeout(this.timer);
  }
}
