// Colours of charts: names of custom properties of the style sheet, read when something is drawn, so that light and dark are one code. The
// sheet gives a colour for each, and only an element that has the colour says which of the two it is.
import { h } from "../base/dom";

export type Colour = `--${string}`;

let probe: HTMLElement | null = null;

export function colour(name: Colour): string {
  probe ??= h("span", { class: "unseen", "aria-hidden": "true" });
  if (!probe.isConnected) document.documentElement.append(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color || "#888";
}

// Viridis: even steps for the eye, also without red or green, and on light and dark grounds.
const VIRIDIS = [
  [68, 1, 84],
  [71, 44, 122],
  [59, 81, 139],
  [44, 113, 142],
  [33, 144, 141],
  [39, 173, 129],
  [92, 200, 99],
  [170, 220, 50],
  [253, 231, 37],
] as const;

export type Rgb = readonly [number, number, number];

// 0 to 1; what is outside has the colour of the end, as a legend says.
export function scaleColour(share: number): Rgb {
  const at = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1);
  const i = Math.min(VIRIDIS.length - 2, Math.floor(at));
  const a = VIRIDIS[i] ?? VIRIDIS[0];
  const b = VIRIDIS[i + 1] ?? a;
  const mix = (from: number, to: number): number => Math.round(from + (to - from) * (at - i));
  return [mix(a[0], b[0]), mix(a[1], b[1]), mix(a[2], b[2])];
}

// As the browser writes a colour that it computed: "rgb(31, 122, 77)".
export function rgbOf(css: string): Rgb {
  const [red, green, blue] = (css.match(/\d+(?:\.\d+)?/g) ?? []).map(Number);
  return red === undefined || green === undefined || blue === undefined ? [136, 136, 136] : [red, green, blue];
}

export interface Domain {
  low: number;
  high: number;
}

export function shareOf(value: number, domain: Domain): number {
  return domain.high > domain.low ? (value - domain.low) / (domain.high - domain.low) : 0.5;
}
