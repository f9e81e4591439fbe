// What lies behind the lines of a chart over time: hatched ground where nothing is known, spans with a name (phases of a job) as a strip along
// the bottom, and marks (findings) as lines with a flag at the top. Drawn in the plot's own pixels.
import type uPlot from "uplot";

import { colour } from "./palette";
import type { Colour } from "./palette";

// Milliseconds since 1970.
export interface Span {
  start: number;
  end: number;
  label: string;
  colour: Colour;
  usual?: boolean; // of the strip only: what is usual does not tint the ground
}

// One moment, or a part of time.
export interface Mark {
  start: number;
  end: number;
  label: string;
  colour: Colour;
}

const STRIP = 8; // CSS pixels
const FLAG = 9;

const ratio = (): number => window.devicePixelRatio || 1;
const at = (u: uPlot, milliseconds: number): number => {
  const { left, width } = u.bbox;
  return Math.min(left + width, Math.max(left, u.valToPos(milliseconds / 1000, "x", true)));
};

export function hatch(u: uPlot, start: number, end: number): void {
  const { top, height } = u.bbox;
  const context = u.ctx;
  const [left, right] = [u.valToPos(start / 1000, "x", true), u.valToPos(end / 1000, "x", true)];
  context.save();
  context.strokeStyle = colour("--hatch");
  context.lineWidth = ratio();
  context.beginPath();
  context.rect(left, top, right - left, height);
  context.clip();
  context.beginPath();
  const gap = 8 * ratio();
  for (let x = left - height; x < right; x += gap) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

export function drawSpans(u: uPlot, spans: Span[]): void {
  const { top, height } = u.bbox;
  const context = u.ctx;
  const strip = STRIP * ratio();
  context.save();
  for (const span of spans) {
    const [left, right] = [at(u, span.start), at(u, span.end)];
    if (right <= left) continue;
    context.fillStyle = colour(span.colour);
    context.globalAlpha = span.usual ? 0 : 0.14;
    context.fillRect(left, top, right - left, height);
    context.globalAlpha = 1;
    context.fillRect(left, top + height - strip, Math.max(1, right - left), strip);
  }
  context.restore();
}

export function drawMarks(u: uPlot, marks: Mark[]): void {
  const { left: edge, top, width, height } = u.bbox;
  const context = u.ctx;
  context.save();
  for (const mark of marks) {
    const start = u.valToPos(mark.start / 1000, "x", true);
    const end = u.valToPos(mark.end / 1000, "x", true);
    if (end < edge || start > edge + width) continue;
    const [left, right] = [at(u, mark.start), at(u, mark.end)];
    context.fillStyle = context.strokeStyle = colour(mark.colour);
    context.lineWidth = ratio();
    context.fillRect(left, top, Math.max(ratio(), right - left), 2 * ratio());
    context.setLineDash([3 * ratio(), 3 * ratio()]);
    context.beginPath();
    context.moveTo(left, top);
    context.lineTo(left, top + height);
    context.stroke();
    context.setLineDash([]);
    const flag = FLAG * ratio();
    context.beginPath();
    context.moveTo(left, top);
    context.lineTo(left + flag, top + flag / 2);
    context.lineTo(left, top + flag);
    context.fill();
  }
  context.restore();
}

export function namesAt(parts: (Span | Mark)[], start: number, end: number): string[] {
  return [...new Set(parts.filter((part) => part.start < end && part.end >= start).map((part) => part.label))];
}
