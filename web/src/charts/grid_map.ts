// A grid of coloured cells on a canvas: GPUs over time (a heat map), or all GPUs of a fleet by host (a map). Up to some hundred thousand cells
// are painted as pixels of one image and then enlarged, so that drawing costs the same for one and for all of them.
//
// One cell is read at a time: under the mouse, or with the arrow keys; Enter opens it.
import { h, keep, morph } from "../base/dom";
import type { Child } from "../base/dom";
import { visible } from "../base/visible";
import { chartHead, pointable, Surface } from "./frame";
import type { Exports, Rows } from "./frame";
import { colour, rgbOf, scaleColour, shareOf } from "./palette";
import type { Rgb } from "./palette";
import type { Domain } from "./palette";

export interface Grid {
  columns: number;
  rows: number;
  // Row by row; NaN: not known, Infinity: no cell at all.
  values: Float32Array;
  domain: Domain;
  format: (value: number) => string;
  row_labels?: (row: number) => string;
  column_labels?: (column: number) => string;
  // Some columns under which a label stands.
  column_ticks?: number[];
  // What a cell is, for the line above the grid.
  name: (index: number) => Child;
  why_unknown?: (index: number) => string;
  file_rows: () => Rows;
  // CSS pixels: smallest and largest edge of a cell.
  cell_height: number;
  cell_width?: number; // otherwise as wide as there is room
  marks?: number[]; // rows to point at
  group?: number; // so many columns belong together
}

export interface GridMapOptions {
  title: string;
  open: (index: number) => void;
}

const LABELS = 116;
const TICKS = 20;

export class GridMap {
  readonly element: HTMLElement;
  private readonly surface: Surface;
  private readonly said: HTMLElement;
  private readonly legend: HTMLElement;
  private grid: Grid | null = null;
  private image: HTMLCanvasElement | null = null;
  private at: number | null = null;

  constructor(private readonly options: GridMapOptions) {
    this.surface = new Surface((context, width, height) => this.draw(context, width, height), options.title);
    this.said = h("p", { class: "cell-text", "aria-live": "polite" });
    this.legend = h("div", { class: "scale" });
    const exports: Exports = {
      title: options.title,
      rows: () => this.grid?.file_rows() ?? [],
      size: () => ({ width: this.surface.width, height: this.surface.height }),
      draw: (context, width, height) => this.draw(context, width, height),
    };
    const canvas = this.surface.canvas;
    pointable(canvas, { find: (x, y) => this.cellAt(x, y), choose: (at) => this.choose(at), open: (at) => this.options.open(at), key: (event) => this.key(event) });
    this.element = keep(h("figure", { class: "chart grid-map" }, chartHead(options.title, exports, this.legend), this.said, canvas));
  }

  update(grid: Grid): void {
    this.grid = grid;
    this.image = null;
    const height = grid.rows * grid.cell_height + (grid.column_ticks ? TICKS : 0);
    this.surface.canvas.style.setProperty("--height", `${height}px`);
    this.surface.canvas.style.setProperty("--width", grid.cell_width ? `${grid.columns * grid.cell_width}px` : "100%");
    let known = 0;
    let cells = 0;
    for (const value of grid.values) {
      if (value === Infinity) continue;
      cells += 1;
      if (!Number.isNaN(value)) known += 1;
    }
    this.surface.canvas.setAttribute("aria-label", `${this.options.title}: ${cells} cells, ${known} known. Arrow keys go from cell to cell, Enter opens one.`);
    morph(this.legend, [
      h("span", null, grid.format(grid.domain.low)),
      h("span", { class: "ramp", "aria-hidden": "true" }),
      h("span", null, grid.format(grid.domain.high)),
      h("span", { class: "swatch-label" }, h("i", { class: "swatch", vars: { "--c": "var(--unknown)" } }), "unknown"),
    ]);
    this.say();
    this.surface.redraw();
  }

  redraw(): void {
    this.image = null;
    this.surface.redraw();
  }

  private left(): number {
    return this.grid?.row_labels ? LABELS : 0;
  }

  private cellAt(x: number, y: number): number | null {
    const grid = this.grid;
    if (!grid) return null;
    const column = Math.floor(((x - this.left()) / (this.surface.width - this.left())) * grid.columns);
    const row = Math.floor(y / grid.cell_height);
    if (column < 0 || column >= grid.columns || row < 0 || row >= grid.rows) return null;
    const index = row * grid.columns + column;
    return grid.values[index] === Infinity ? null : index;
  }

  private choose(at: number | null): void {
    if (at === this.at) return;
    this.at = at;
    this.surface.canvas.classList.toggle("pointing", at !== null);
    this.say();
    this.surface.redraw();
  }

  private key(event: KeyboardEvent): void {
    const grid = this.grid;
    if (!grid) return;
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: grid.columns, ArrowUp: -grid.columns };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      let to = this.at === null ? 0 : this.at + step;
      while (grid.values[to] === Infinity) to += step;
      if (to >= 0 && to < grid.values.length) this.choose(to);
    } else if (event.key === "Enter" && this.at !== null) {
      this.options.open(this.at);
    } else if (event.key === "Escape") {
      this.choose(null);
    }
  }

  private say(): void {
    const { grid, at } = this;
    if (!grid || at === null) {
      morph(this.said, [h("span", { class: "muted" }, "Point at a cell to read it, click to open it.")]);
      return;
    }
    const value = grid.values[at] ?? NaN;
    const text = Number.isNaN(value) ? `unknown: ${grid.why_unknown?.(at) ?? "nothing was measured"}` : grid.format(value);
    morph(this.said, [h("span", null, grid.name(at), " ", h("b", null, text))]);
  }

  // One pixel a cell.
  private paint(grid: Grid): HTMLCanvasElement {
    const canvas = h("canvas", { width: Math.max(1, grid.columns), height: Math.max(1, grid.rows) });
    const context = canvas.getContext("2d");
    if (!context) return canvas;
    const image = context.createImageData(canvas.width, canvas.height);
    // Whole pixels at a time, in the order of bytes that all machines with a browser have: 100,000 cells within a frame.
    const pixels = new Uint32Array(image.data.buffer);
    const pixel = ([red, green, blue]: Rgb): number => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    const unknown = pixel(rgbOf(colour("--unknown")));
    const ramp = Uint32Array.from({ length: 256 }, (_, i) => pixel(scaleColour(i / 255)));
    const { values, domain } = grid;
    for (let i = 0; i < values.length; i += 1) {
      const value = values[i] ?? NaN;
      if (value === Infinity) continue;
      pixels[i] = Number.isNaN(value) ? unknown : (ramp[Math.round(Math.min(1, Math.max(0, shareOf(value, domain))) * 255)] ?? unknown);
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  private draw(context: CanvasRenderingContext2D, width: number, height: number): void {
    const grid = this.grid;
    context.clearRect(0, 0, width, height);
    if (!grid || grid.columns === 0 || grid.rows === 0) return;
    this.image ??= this.paint(grid);
    const left = this.left();
    const cell = (width - left) / grid.columns;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image, left, 0, width - left, grid.rows * grid.cell_height);
    this.drawLines(context, left, width, cell, grid);
    this.drawLabels(context, left, cell, grid);
    if (this.at === null) return;
    context.strokeStyle = colour("--text");
    context.lineWidth = 2;
    const row = Math.floor(this.at / grid.columns);
    context.strokeRect(left + (this.at % grid.columns) * cell, row * grid.cell_height, cell, grid.cell_height);
  }

  // Between cells that are large enough to have room for lines.
  private drawLines(context: CanvasRenderingContext2D, left: number, width: number, cell: number, grid: Grid): void {
    context.fillStyle = colour("--panel");
    if (grid.cell_height >= 7) for (let row = 1; row < grid.rows; row += 1) context.fillRect(left, row * grid.cell_height - 0.5, width - left, 1);
    if (grid.group && cell * grid.group >= 12) {
      const gap = cell >= 7 ? 3 : 1;
      for (let column = grid.group; column < grid.columns; column += grid.group) context.fillRect(left + column * cell - gap / 2, 0, gap, grid.rows * grid.cell_height);
    }
    if (cell >= 7) for (let column = 1; column < grid.columns; column += 1) context.fillRect(left + column * cell - 0.5, 0, 1, grid.rows * grid.cell_height);
  }

  private drawLabels(context: CanvasRenderingContext2D, left: number, cell: number, grid: Grid): void {
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colour("--muted");
    context.textBaseline = "middle";
    if (grid.row_labels) {
      const every = Math.max(1, Math.ceil(12 / grid.cell_height));
      for (let row = 0; row < grid.rows; row += every) {
        const marked = grid.marks?.includes(row) ?? false;
        context.fillStyle = colour(marked ? "--text" : "--muted");
        context.fillText(shortened(context, visible(grid.row_labels(row)), left - 8), 0, (row + 0.5) * grid.cell_height);
      }
    }
    context.textBaseline = "top";
    context.fillStyle = colour("--muted");
    let free = 0;
    for (const column of grid.column_ticks ?? []) {
      const text = grid.column_labels?.(column) ?? "";
      const x = left + column * cell;
      if (x < free) continue;
      context.fillText(text, x, grid.rows * grid.cell_height + 5);
      free = x + context.measureText(text).width + 12;
    }
  }
}

// The end of a name tells more than its beginning: of hosts the number, of GPUs the index.
function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  let out = text;
  while (out.length > 3 && context.measureText(out).width > width) out = `\u2026${out.slice(out.startsWith("\u2026") ? 2 : 1)}`;
  return out;
}
