// What every chart has around it: a title, what it says in words, its data as CSV, its picture as PNG.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { csv } from "../base/format";
import { visible } from "../base/visible";
import { colour } from "./palette";

export type Rows = (number | string | null)[][];

export interface Exports {
  title: string;
  // First row: names of the columns with their units.
  rows: () => Rows;
  // Draws the chart into a picture of that size; lengths in CSS pixels.
  draw: (context: CanvasRenderingContext2D, width: number, height: number) => void;
  size: () => { width: number; height: number };
}

// Set by the application for what is true of all charts on the screen: of what, over which time, and whether it exists.
let caption = "";
let is_simulated = false;
export function describePictures(text: string, simulated: boolean): void {
  caption = visible(text);
  is_simulated = simulated;
}

export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function fileName(title: string, extension: string): string {
  return `flopsight-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "")}.${extension}`;
}

const PICTURE_SCALE = 2;
const MARGIN = 16;
const HEAD = 46;

function savePicture(exports: Exports): void {
  const { width, height } = exports.size();
  const canvas = h("canvas", { width: (width + 2 * MARGIN) * PICTURE_SCALE, height: (height + 2 * MARGIN + HEAD) * PICTURE_SCALE });
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(PICTURE_SCALE, PICTURE_SCALE);
  context.fillStyle = colour("--panel");
  context.fillRect(0, 0, width + 2 * MARGIN, height + 2 * MARGIN + HEAD);
  context.textBaseline = "top";
  context.fillStyle = colour("--text");
  context.font = "600 15px system-ui, sans-serif";
  context.fillText(exports.title, MARGIN, MARGIN);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = colour("--muted");
  context.fillText(`${is_simulated ? "SIMULATED \u2013 " : ""}${caption}`, MARGIN, MARGIN + 21);
  context.translate(MARGIN, MARGIN + HEAD);
  exports.draw(context, width, height);
  canvas.toBlob((blob) => {
    if (blob) save(blob, fileName(exports.title, "png"));
  }, "image/png");
}

export function exportButtons(exports: Exports): HTMLElement {
  const asFile = (): void => save(new Blob([csv(exports.rows())], { type: "text/csv" }), fileName(exports.title, "csv"));
  return h(
    "span",
    { class: "exports" },
    h("button", { type: "button", class: "quiet", "aria-label": `${exports.title} as CSV`, on: { click: asFile } }, "CSV"),
    h("button", { type: "button", class: "quiet", "aria-label": `${exports.title} as PNG`, on: { click: () => savePicture(exports) } }, "PNG"),
  );
}

export function chartHead(title: Child, exports: Exports, extra: Child = null): HTMLElement {
  return h("div", { class: "chart-head" }, h("h3", null, title), extra, exportButtons(exports));
}

// Browsers also tell of a mouse that rests while the page moves under it; that must not take away what the keys chose.
function moved(event: MouseEvent): boolean {
  return event.movementX !== 0 || event.movementY !== 0;
}

// A canvas whose parts are known by a number: pointed at with the mouse or chosen with the keys, and opened.
export interface Pointed {
  find: (x: number, y: number) => number | null;
  choose: (at: number | null) => void;
  open: (at: number) => void;
  key: (event: KeyboardEvent) => void;
}

export function pointable(canvas: HTMLCanvasElement, { find, choose, open, key }: Pointed): void {
  canvas.tabIndex = 0;
  canvas.addEventListener("mousemove", (event) => moved(event) && choose(find(event.offsetX, event.offsetY)));
  canvas.addEventListener("mouseleave", () => document.activeElement !== canvas && choose(null));
  canvas.addEventListener("click", (event) => {
    const at = find(event.offsetX, event.offsetY);
    if (at !== null) open(at);
  });
  canvas.addEventListener("keydown", key);
}

// A canvas of the size of its place, sharp on any screen. Draws again when either changes.
export class Surface {
  readonly canvas: HTMLCanvasElement;
  width = 0;
  height = 0;

  constructor(
    private readonly draw: (context: CanvasRenderingContext2D, width: number, height: number) => void,
    label: string,
  ) {
    this.canvas = h("canvas", { role: "img", "aria-label": label });
    new ResizeObserver(() => this.fit()).observe(this.canvas);
  }

  private fit(): void {
    const { clientWidth, clientHeight } = this.canvas;
    if (clientWidth === 0 || (clientWidth === this.width && clientHeight === this.height)) return;
    this.width = clientWidth;
    this.height = clientHeight;
    this.redraw();
  }

  redraw(): void {
    if (this.width === 0) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.scale(scale, scale);
    this.draw(context, this.width, this.height);
  }
}
