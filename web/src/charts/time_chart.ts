// Quantities over time, by uPlot. Charts of one page have one time axis: a cursor in one is a cursor in all. A value holds for its whole step, so
// lines are steps; where nothing is known there is no line, and the ground is hatched.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { h, keep, morph } from "../base/dom";
import type { Zone } from "../base/format";
import { time as timeText, UNKNOWN } from "../base/format";
import { reasonText } from "../base/reasons";
import { chartHead } from "./frame";
import type { Exports, Rows } from "./frame";
import { drawMarks, drawSpans, hatch, namesAt } from "./bands";
import type { Mark, Span } from "./bands";
import { colour } from "./palette";
import type { Colour } from "./palette";

export interface Line {
  name: string; // with its unit, for the file: "ofu_ratio"
  label: string;
  values: (number | null)[];
  colour: Colour;
  dashed?: boolean;
  // Points that are not joined: what was reported now and then.
  dots?: boolean;
  hidden?: boolean; // only an edge of a band
}

export interface TimeData {
  time: number[]; // start of each step, milliseconds since 1970
  step_seconds: number;
  lines: Line[];
  reasons?: (string | null)[];
  // Between two lines, by their places.
  band?: [number, number];
  // Behind the lines, with names that the legend and the cursor say.
  spans?: Span[];
  marks?: Mark[];
}

export interface TimeChartOptions {
  title: string;
  key: string; // of the group of charts with one cursor
  format: (value: number | null) => string;
  axis: (value: number, step: number) => string; // a label, and how far apart labels are
  height?: number;
  stacked?: boolean;
  from_zero?: boolean;
  zoom: (start: number, end: number) => void;
}

const ALMOST = 0.999; // of a step

let zone: Zone = "utc";
const charts = new Set<TimeChart>();

export function drawAllAgain(new_zone: Zone): void {
  zone = new_zone;
  for (const chart of charts) chart.rebuild();
}

function cumulated(lines: Line[]): (number | null)[][] {
  const out: (number | null)[][] = [];
  for (const line of lines) {
    const below = out.at(-1);
    out.push(line.values.map((value, i) => (value === null ? null : value + (below?.[i] ?? 0))));
  }
  return out;
}

export class TimeChart {
  readonly element: HTMLElement;
  private readonly place: HTMLElement;
  private readonly legend: HTMLElement;
  private plot: uPlot | null = null;
  private data: TimeData = { time: [], step_seconds: 60, lines: [] };
  private form = "";

  constructor(private readonly options: TimeChartOptions) {
    this.place = h("div", { class: "plot", tabindex: "0", role: "img", on: { keydown: (event) => this.key(event as KeyboardEvent) } });
    this.legend = h("div", { class: "legend" });
    const exports: Exports = {
      title: options.title,
      rows: () => this.rows(),
      size: () => ({ width: this.place.clientWidth, height: this.height() + 24 }),
      draw: (context, width) => this.picture(context, width),
    };
    this.element = keep(h("figure", { class: "chart" }, chartHead(options.title, exports), this.legend, this.place));
    new ResizeObserver(() => this.resize()).observe(this.place);
    charts.add(this);
  }

  update(data: TimeData): void {
    this.data = data;
    const form = JSON.stringify([data.lines.map((line) => [line.label, line.colour, line.hidden, line.dots]), data.band, data.step_seconds]);
    if (form !== this.form || !this.plot) {
      this.form = form;
      this.rebuild();
    } else {
      this.plot.setData(this.columns());
    }
    this.describe();
    this.showValues(null);
  }

  dispose(): void {
    charts.delete(this);
    this.plot?.destroy();
    this.plot = null;
  }

  rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    if (this.data.time.length > 0 && this.place.clientWidth > 0) this.plot = new uPlot(this.plotOptions(), this.columns(), this.place);
    this.showValues(null);
  }

  private height(): number {
    return this.options.height ?? 170;
  }

  private resize(): void {
    if (this.plot) this.plot.setSize({ width: this.place.clientWidth, height: this.height() });
    else if (this.data.time.length > 0) this.rebuild();
  }

  // Two points a step, at its start and just before its end, so that each value is drawn for its whole step and not beyond.
  private columns(): uPlot.AlignedData {
    const { time, step_seconds, lines } = this.data;
    const values = this.options.stacked ? cumulated(lines) : lines.map((line) => line.values);
    const seconds = time.flatMap((t) => [t / 1000, t / 1000 + step_seconds * ALMOST]);
    const twice = (column: (number | null)[], dots: boolean): (number | null)[] => column.flatMap((value) => (dots ? [null, value] : [value, value]));
    return [seconds, ...values.map((column, i) => twice(column, lines[i]?.dots ?? false))] as uPlot.AlignedData;
  }

  private plotOptions(): uPlot.Options {
    const { lines, band } = this.data;
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const linear = uPlot.paths.linear?.();
    const bands: uPlot.Band[] = this.options.stacked
      ? lines.slice(1).map((line, i) => ({ series: [i + 2, i + 1], fill: colour(line.colour) }))
      : band
        ? [{ series: [band[1] + 1, band[0] + 1], fill: colour("--band") }]
        : [];
    return {
      width: this.place.clientWidth,
      height: this.height(),
      legend: { show: false },
      padding: [8, 22, 0, 0],
      tzDate: (t) => (zone === "utc" ? uPlot.tzDate(new Date(t * 1000), "Etc/UTC") : new Date(t * 1000)),
      cursor: {
        sync: { key: this.options.key, setSeries: false },
        points: { show: !this.options.stacked, size: 5 },
        drag: { x: true, y: false, setScale: false },
      },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      scales: { y: { range: (_, low, high) => this.range(low, high) } },
      axes: [
        { ...axis, values: zoneAxis, size: 34, space: 70 },
        { ...axis, size: 58, space: 24, values: (_u, ticks, _at, _space, step) => ticks.map((tick) => this.options.axis(tick, step)) },
      ],
      bands,
      series: [
        {},
        ...lines.map((line): uPlot.Series => {
          const series: uPlot.Series = {
            label: line.label,
            stroke: line.hidden ? "transparent" : colour(line.colour),
            width: this.options.stacked ? 0.5 : 1.5,
            spanGaps: false,
            points: line.dots ? { show: true, size: 5, fill: colour(line.colour) } : { show: false },
          };
          if (line.dashed) series.dash = [5, 4];
          if (line.dots) series.paths = () => null;
          else if (linear) series.paths = linear;
          if (this.options.stacked && line === lines[0]) series.fill = colour(line.colour);
          return series;
        }),
      ],
      hooks: {
        drawClear: [(u) => this.hatch(u), (u) => drawSpans(u, this.data.spans ?? [])],
        draw: [(u) => drawMarks(u, this.data.marks ?? [])],
        setCursor: [(u) => this.showValues(stepOf(u))],
        setSelect: [(u) => this.select(u)],
      },
    };
  }

  private range(low: number | null, high: number | null): [number, number] {
    if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
    if (this.options.from_zero !== false) return [Math.min(0, low), high > 0 ? high * 1.06 : 1];
    const room = Math.max((high - low) * 0.1, Math.abs(high) * 0.01, 1e-9);
    return [low - room, high + room];
  }

  private select(u: uPlot): void {
    if (u.select.width < 8) return;
    const start = u.posToVal(u.select.left, "x") * 1000;
    const end = u.posToVal(u.select.left + u.select.width, "x") * 1000;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    const step = this.data.step_seconds * 1000;
    this.options.zoom(Math.floor(start / step) * step, Math.ceil(end / step) * step);
  }

  // Where no line has a value.
  private hatch(u: uPlot): void {
    const { time, step_seconds, lines } = this.data;
    const unknown = (at: number): boolean => lines.every((line) => line.dots || (line.values[at] ?? null) === null);
    let i = 0;
    while (i < time.length) {
      if (!unknown(i)) {
        i += 1;
        continue;
      }
      const first = i;
      while (i < time.length && unknown(i)) i += 1;
      hatch(u, time[first] ?? 0, (time[i - 1] ?? 0) + step_seconds * 1000);
    }
  }

  private describe(): void {
    const { lines } = this.data;
    const said = lines
      .filter((line) => !line.hidden)
      .map((line) => {
        const known = line.values.filter((value): value is number => value !== null);
        if (known.length === 0) return `${line.label}: ${UNKNOWN} throughout`;
        const low = known.reduce((a, b) => Math.min(a, b));
        const high = known.reduce((a, b) => Math.max(a, b));
        return `${line.label}: ${this.options.format(low)} to ${this.options.format(high)}, last ${this.options.format(known.at(-1) ?? null)}`;
      });
    const behind = [...new Set([...(this.data.spans ?? []), ...(this.data.marks ?? [])].map(({ label }) => label))];
    if (behind.length > 0) said.push(`With ${behind.join(", ")}`);
    this.place.setAttribute("aria-label", `${this.options.title}. ${said.join(". ")}. Arrow keys read single values.`);
  }

  // Of the step under the cursor; the last known ones without it.
  private showValues(at: number | null): void {
    const { time, lines, reasons } = this.data;
    const last = time.length - 1;
    const i = at === null ? null : Math.min(at, last);
    const items = lines
      .filter((line) => !line.hidden)
      .map((line) => {
        const value = i === null ? (line.values.findLast((one) => one !== null) ?? null) : (line.values[i] ?? null);
        const text = value === null && line.dots ? "none" : this.options.format(value);
        return h("span", { class: "legend-item" }, h("i", { class: line.dots ? "dot" : "swatch", vars: { "--c": `var(${line.colour})` } }), line.label, " ", h("b", null, text));
      });
    const t = i === null ? null : (time[i] ?? null);
    const unknown = i !== null && lines.every((line) => line.dots || (line.values[i] ?? null) === null);
    const note = t === null ? "latest" : timeText(t, zone);
    const why = unknown && reasons ? `: ${reasonText(reasons[i ?? 0] ?? null)}` : "";
    morph(this.legend, [...items, ...this.spanNames(t), h("span", { class: "legend-time" }, note + why)]);
  }

  // Those of the step under the cursor; all that there are without it.
  private spanNames(t: number | null): HTMLElement[] {
    const parts = [...(this.data.spans ?? []), ...(this.data.marks ?? [])];
    const names = t === null ? new Set((this.data.spans ?? []).map(({ label }) => label)) : new Set(namesAt(parts, t, t + this.data.step_seconds * 1000));
    return [...names].map((name) => {
      const of = parts.find(({ label }) => label === name);
      return h("span", { class: "legend-item" }, h("i", { class: "strip", vars: { "--c": `var(${of?.colour ?? "--muted"})` } }), name);
    });
  }

  private key(event: KeyboardEvent): void {
    const u = this.plot;
    if (!u) return;
    const last = this.data.time.length - 1;
    const now = stepOf(u) ?? last;
    const moves: Record<string, number> = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const i = Math.max(0, Math.min(last, to));
    // The third argument, which uPlot's types leave out, moves the cursors of the other charts as well.
    const set = u.setCursor as (at: { left: number; top: number }, fire: boolean, publish: boolean) => void;
    set({ left: u.valToPos((this.data.time[i] ?? 0) / 1000 + this.data.step_seconds / 4, "x"), top: u.over.clientHeight / 2 }, true, true);
    this.legend.setAttribute("aria-live", "polite");
  }

  private rows(): Rows {
    const { time, lines, reasons } = this.data;
    const names: Rows = [["time", ...lines.map((line) => line.name), ...(reasons ? ["absent_reason"] : [])]];
    return names.concat(
      time.map((t, i) => [new Date(t).toISOString(), ...lines.map((line) => line.values[i] ?? null), ...(reasons ? [reasons[i] ?? null] : [])]),
    );
  }

  private picture(context: CanvasRenderingContext2D, width: number): void {
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "top";
    let x = 0;
    for (const line of this.data.lines) {
      if (line.hidden) continue;
      context.fillStyle = colour(line.colour);
      context.fillRect(x, 4, 10, 8);
      context.fillStyle = colour("--text");
      context.fillText(line.label, x + 14, 2);
      x += 28 + context.measureText(line.label).width;
    }
    if (this.plot) context.drawImage(this.plot.ctx.canvas, 0, 24, width, this.height());
  }
}

function stepOf(u: uPlot): number | null {
  return u.cursor.idx == null ? null : Math.floor(u.cursor.idx / 2);
}

// Day under the clock where the day changes, as uPlot does it, in the zone that is chosen.
function zoneAxis(_u: uPlot, ticks: number[], _at: number, _space: number, step: number): string[] {
  const with_seconds = step % 60 !== 0;
  let day = "";
  return ticks.map((tick) => {
    const [date = "", rest = ""] = timeText(tick * 1000, zone, with_seconds).split(" ");
    const clock = rest.split("\u00a0")[0] ?? "";
    const shown = date === day ? clock : `${clock}\n${date}`;
    day = date;
    return shown;
  });
}
