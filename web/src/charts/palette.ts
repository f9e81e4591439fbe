// Colours of charts: names of custom properties of the style sheet, read when something is drawn, so that light and dark are one code.

export type Colour = `--${string}`;

export function colour(name: Colour): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
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

export function rgbOf(css: string): Rgb {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(css);
  return hex ? [parseInt(hex[1] ?? "0", 16), parseInt(hex[2] ?? "0", 16), parseInt(hex[3] ?? "0", 16)] : [136, 136, 136];
}

export interface Domain {
  low: number;
  high: number;
}

export function shareOf(value: number, domain: Domain): number {
  return domain.high > domain.low ? (value - domain.low) / (domain.high - domain.low) : 0.5;
}
