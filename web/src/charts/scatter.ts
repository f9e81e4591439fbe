// Points in a square of two ratios with the line on which they agree. Points can be reached with the mouse and with the arrow keys.
import { h, keep, morph } from "../base/dom";
import { percent } from "../base/format";
import { chartHead, pointable, Surface } from "./frame";
import type { Exports } from "./frame";
import { colour } from "./palette";
import type { Colour } from "./palette";

export interface Point {
  id: string;
  label: string;
  x: number;
  y: number;
  size: number; // 0 to 1
  colour: Colour;
  ring: boolean; // one to look at
}

export interface ScatterOptions {
  title: string;
  x_label: string;
  y_label: string;
  x_name: string;
  y_name: string;
  open: (id: string) => void;
}

const LEFT = 52;
const BOTTOM = 40;
const TOP = 10;
const RIGHT = 26;

export class Scatter {
  readonly element: HTMLElement;
  private readonly surface: Surface;
  private readonly said: HTMLElement;
  private points: Point[] = [];
  private high = 1;
  private at: number | null = null;

  constructor(private readonly options: ScatterOptions) {
    this.surface = new Surface((context, width, height) => this.draw(context, width, height), options.title);
    this.said = h("p", { class: "legend", "aria-live": "polite" });
    const exports: Exports = {
      title: options.title,
      rows: () => [["job", options.x_name, options.y_name], ...this.points.map((point) => [point.label, point.x, point.y])],
      size: () => ({ width: this.surface.width, height: this.surface.height }),
      draw: (context, width, height) => this.draw(context, width, height),
    };
    const canvas = this.surface.canvas;
    pointable(canvas, { find: (x, y) => this.nearest(x, y), choose: (at) => this.choose(at), open: (at) => this.open(at), key: (event) => this.key(event) });
    this.element = keep(h("figure", { class: "chart scatter" }, chartHead(options.title, exports), this.said, canvas));
  }

  update(points: Point[]): void {
    this.points = [...points].sort((a, b) => a.x - b.x);
    const highest = this.points.reduce((high, point) => Math.max(high, point.x, point.y), 0.1);
    this.high = Math.ceil(highest * 10 + 0.01) / 10;
    if (this.at !== null && this.at >= this.points.length) this.at = null;
    const label = `${this.options.title}: ${this.points.length} jobs, ${this.options.y_label} over ${this.options.x_label}. Arrow keys go from job to job, Enter opens one.`;
    this.surface.canvas.setAttribute("aria-label", label);
    this.say();
    this.surface.redraw();
  }

  redraw(): void {
    this.surface.redraw();
  }

  private place(point: Point, width: number, height: number): [number, number] {
    return [LEFT + (point.x / this.high) * (width - LEFT - RIGHT), height - BOTTOM - (point.y / this.high) * (height - BOTTOM - TOP)];
  }

  private nearest(x: number, y: number): number | null {
    let best: number | null = null;
    let distance = 18 * 18;
    this.points.forEach((point, i) => {
      const [px, py] = this.place(point, this.surface.width, this.surface.height);
      const d = (px - x) ** 2 + (py - y) ** 2;
      if (d < distance) {
        distance = d;
        best = i;
      }
    });
    return best;
  }

  private choose(at: number | null): void {
    if (at === this.at) return;
    this.at = at;
    this.surface.canvas.classList.toggle("pointing", at !== null);
    this.say();
    this.surface.redraw();
  }

  private open(at: number | null): void {
    const point = at === null ? undefined : this.points[at];
    if (point) this.options.open(point.id);
  }

  private key(event: KeyboardEvent): void {
    if (this.points.length === 0) return;
    const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const now = this.at ?? (step > 0 ? -1 : this.points.length);
      this.choose(Math.max(0, Math.min(this.points.length - 1, now + step)));
    } else if (event.key === "Enter") {
      this.open(this.at);
    }
  }

  private say(): void {
    const point = this.at === null ? undefined : this.points[this.at];
    const { x_label, y_label } = this.options;
    morph(this.said, point
      ? [h("b", null, point.label), h("span", null, ` ${x_label} ${percent(point.x)}, ${y_label} ${percent(point.y)}`)]
      : [h("span", { class: "muted" }, "Point at a job to read it, click to open it.")]);
  }

  private draw(context: CanvasRenderingContext2D, width: number, height: number): void {
    const right = width - RIGHT;
    const bottom = height - BOTTOM;
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    const step = this.high > 0.6 ? 0.2 : 0.1;
    for (let at = 0; at <= this.high + 1e-9; at += step) {
      const x = LEFT + (at / this.high) * (right - LEFT);
      const y = bottom - (at / this.high) * (bottom - TOP);
      context.strokeStyle = colour("--grid");
      context.beginPath();
      context.moveTo(x, TOP);
      context.lineTo(x, bottom);
      context.moveTo(LEFT, y);
      context.lineTo(right, y);
      context.stroke();
      context.fillStyle = colour("--muted");
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillText(percent(at, 0), x, bottom + 5);
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(percent(at, 0), LEFT - 6, y);
    }
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.fillText(this.options.x_label, (LEFT + right) / 2, height - 2);
    context.save();
    context.translate(10, (TOP + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText(this.options.y_label, 0, 0);
    context.restore();
    context.textAlign = "left";
    context.strokeStyle = colour("--muted");
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(LEFT, bottom);
    context.lineTo(right, TOP);
    context.stroke();
    context.setLineDash([]);
    this.points.forEach((point, i) => {
      const [x, y] = this.place(point, width, height);
      context.globalAlpha = 0.75;
      context.fillStyle = colour(point.colour);
      context.beginPath();
      context.arc(x, y, 3 + 6 * point.size, 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
      if (!point.ring && i !== this.at) return;
      context.strokeStyle = colour(i === this.at ? "--text" : "--warn");
      context.lineWidth = i === this.at ? 2 : 1.5;
      context.beginPath();
      context.arc(x, y, 5 + 6 * point.size, 0, 2 * Math.PI);
      context.stroke();
      context.lineWidth = 1;
    });
  }
}
