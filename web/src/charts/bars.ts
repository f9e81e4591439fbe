// Parts of a whole as bars: one stacked bar (an account), or one below the other, each beginning where the one above it ended (a waterfall).
// They are elements with their values as text, so that they can be read, searched and copied; the picture for a file is drawn from the
// same rows.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { visible } from "../base/visible";
import { chartHead } from "./frame";
import type { Exports } from "./frame";
import { colour } from "./palette";
import type { Colour } from "./palette";

export interface Part {
  name: string; // for the file: "clock_loss_ratio"
  label: string;
  share: number | null; // of the whole; null: not known
  value: string;
  detail?: Child;
  detail_text?: string; // of the detail, for the picture
  file_values: (number | null)[];
  colour: Colour;
}

export interface BarsOptions {
  title: string;
  file_columns: string[];
  parts: Part[];
  extra?: Child;
}

const ROW = 24;
const LABEL = 230;
const VALUE = 150;

interface Placed {
  part: Part;
  from: number;
  to: number;
}

// Each part from where the one before it ended. A negative part (a clock above the reference) runs backwards, and is shown as it is.
export function placed(parts: Part[]): Placed[] {
  let at = 0;
  return parts.map((part) => {
    const from = at;
    at += part.share ?? 0;
    return { part, from: Math.min(from, at), to: Math.max(from, at) };
  });
}

function exportsOf(options: BarsOptions): Exports {
  return {
    title: options.title,
    rows: () => [["part", "share_ratio", ...options.file_columns], ...options.parts.map((part) => [part.name, part.share, ...part.file_values])],
    size: () => ({ width: 760, height: options.parts.length * ROW }),
    draw: (context, width) => {
      context.font = "13px system-ui, sans-serif";
      context.textBaseline = "middle";
      const space = width - LABEL - VALUE;
      placed(options.parts).forEach(({ part, from, to }, i) => {
        const y = i * ROW + ROW / 2;
        context.fillStyle = colour("--text");
        context.fillText(visible(part.label), 0, y);
        context.fillStyle = colour("--grid");
        context.fillRect(LABEL, y - 8, space, 16);
        context.fillStyle = colour(part.colour);
        context.fillRect(LABEL + from * space, y - 8, (to - from) * space, 16);
        context.fillStyle = colour("--text");
        context.fillText([part.value, part.detail_text ?? ""].filter((text) => text !== "").join("  "), width - VALUE + 10, y);
      });
    },
  };
}

// Parts of one colour are told apart by its strength, most first.
const FADE_PERCENT = 27;
function shades(parts: Part[]): Map<Part, string> {
  const seen = new Map<Colour, number>();
  return new Map(parts.map((part) => {
    const before = seen.get(part.colour) ?? 0;
    seen.set(part.colour, before + 1);
    const faded = Math.min(before, 3) * FADE_PERCENT;
    return [part, faded === 0 ? `var(${part.colour})` : `color-mix(in oklab, var(${part.colour}), var(--panel) ${String(faded)}%)`];
  }));
}

export function stackedBar(options: BarsOptions): HTMLElement {
  const shade = shades(options.parts);
  const shown = options.parts.filter((part) => (part.share ?? 0) > 0);
  const total = shown.reduce((sum, part) => sum + (part.share ?? 0), 0);
  const label = options.parts.map((part) => `${part.label}: ${part.value}`).join(", ");
  return h(
    "figure",
    { class: "chart bars", "data-key": options.title },
    chartHead(options.title, exportsOf(options), options.extra ?? null),
    h(
      "div",
      { class: "stack", role: "img", "aria-label": label },
      shown.map((part) =>
        h("span", {
          "data-key": part.name,
          title: `${part.label}: ${part.value}`,
          vars: { "--share": String((part.share ?? 0) / (total || 1)), "--c": shade.get(part) ?? "" },
        }),
      ),
    ),
    h(
      "dl",
      { class: "stack-legend" },
      options.parts.map((part) =>
        h(
          "div",
          { "data-key": part.name },
          h("dt", null, h("i", { class: "swatch", vars: { "--c": shade.get(part) ?? "" } }), part.label),
          h("dd", null, h("b", null, part.value), part.detail ? h("span", { class: "muted" }, " ", part.detail) : null),
        ),
      ),
    ),
  );
}

export function waterfall(options: BarsOptions): HTMLElement {
  return h(
    "figure",
    { class: "chart bars", "data-key": options.title },
    chartHead(options.title, exportsOf(options), options.extra ?? null),
    h(
      "table",
      { class: "waterfall" },
      h("tbody", null,
        placed(options.parts).map(({ part, from, to }) =>
          h(
            "tr",
            { "data-key": part.name },
            h("th", { scope: "row" }, part.label),
            h("td", { class: "track", "aria-hidden": "true" },
              !part.share ? null : h("span", { vars: { "--from": String(from), "--share": String(to - from), "--c": `var(${part.colour})` } })),
            h("td", { class: "number" }, part.value),
            h("td", { class: "muted" }, part.detail ?? null),
          ),
        ),
      ),
    ),
  );
}
