// Numbers and times as people read them. The only place where a ratio becomes percent, and where "not known" gets its word.
//
// Every function takes null for what is not known. Digits are as many as tell two neighbouring values apart on such a page, not more.

import { visible } from "./visible";

export const UNKNOWN = "unknown";

function grouped(value: number, digits: number): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replaceAll(",", "\u202f");
}

// Three significant digits for large and small alike: 0.52, 17.3, 842, 12 345.
function threeDigits(value: number): string {
  const size = Math.abs(value);
  return grouped(value, size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2);
}

export function percent(ratio: number | null, digits = 1): string {
  return ratio === null ? UNKNOWN : `${grouped(ratio * 100, digits)}\u202f%`;
}

// The ends of a band, with as many digits as tell them apart, three at most.
export function band(low: number | null, high: number | null): string {
  if (low === null || high === null) return UNKNOWN;
  const digits = [1, 2, 3].find((some) => percent(low, some) !== percent(high, some)) ?? 1;
  return `${percent(low, digits)} to ${percent(high, digits)}`;
}

// A difference of two ratios, in points of percent, with its sign.
export function points(difference: number | null): string {
  if (difference === null) return UNKNOWN;
  const sign = difference > 0 ? "+" : difference < 0 ? "\u2212" : "\u00b1";
  return `${sign}${grouped(Math.abs(difference) * 100, 1)}\u202fpp`;
}

export function signed(value: number | null, format: (value: number) => string): string {
  if (value === null) return UNKNOWN;
  return `${value > 0 ? "+" : value < 0 ? "\u2212" : "\u00b1"}${format(Math.abs(value))}`;
}

export function count(value: number | null): string {
  return value === null ? UNKNOWN : grouped(value, 0);
}

// Digits after the point that tell values apart which are a step apart: 0 for 5, 1 for 2.5, 2 for 0.02.
export function digitsOf(step: number): number {
  const most = 9;
  for (let digits = 0; digits < most; digits += 1) {
    const whole = Math.abs(step) * 10 ** digits;
    if (Math.abs(whole - Math.round(whole)) <= 1e-6 * whole) return digits;
  }
  return most;
}

// On an axis, whose labels are a step apart.
export function tick(value: number, step: number): string {
  return grouped(value, digitsOf(step));
}

export function percentTick(ratio: number, step: number): string {
  return `${tick(ratio * 100, step * 100)}\u202f%`;
}

export function hours(value: number | null): string {
  return value === null ? UNKNOWN : threeDigits(value);
}

export function gpuHours(value: number | null): string {
  return value === null ? UNKNOWN : `${threeDigits(value)} GPU-h`;
}

export function usd(value: number | null): string {
  return value === null ? UNKNOWN : `${value < 0 ? "\u2212" : ""}$${grouped(Math.abs(value), Math.abs(value) >= 100 ? 0 : 2)}`;
}

export function megahertz(hertz: number | null): string {
  return hertz === null ? UNKNOWN : `${grouped(hertz / 1e6, 0)} MHz`;
}

export function watts(value: number | null): string {
  return value === null ? UNKNOWN : `${grouped(value, 0)} W`;
}

const SCALES: [number, string][] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function bytesPerSecondTick(value: number, step: number): string {
  const [size, letter] = SCALES.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  return `${tick(value / size, step / size)} ${letter}B/s`;
}

function scaled(value: number, unit: string): string {
  for (const [size, letter] of SCALES) if (Math.abs(value) >= size) return `${threeDigits(value / size)} ${letter}${unit}`;
  return `${threeDigits(value)} ${unit}`;
}

export function bytesPerSecond(value: number | null): string {
  return value === null ? UNKNOWN : scaled(value, "B/s");
}

export function bytes(value: number | null): string {
  return value === null ? UNKNOWN : scaled(value, "B");
}

export function flopsPerSecond(value: number | null): string {
  return value === null ? UNKNOWN : scaled(value, "FLOP/s");
}

export function joules(value: number | null): string {
  return value === null ? UNKNOWN : `${threeDigits(value / 3.6e6)} kWh`;
}

export function plain(value: number | null, digits = 2): string {
  return value === null ? UNKNOWN : grouped(value, digits);
}

export function duration(seconds: number | null): string {
  if (seconds === null) return UNKNOWN;
  if (seconds < 1) return `${threeDigits(seconds)} s`;
  const parts: [number, string][] = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = parts.findIndex(([size]) => seconds >= size);
  const [size, unit] = parts[at] ?? [1, "s"];
  const whole = Math.floor(seconds / size);
  const next = parts[at + 1];
  const rest = next ? Math.floor((seconds - whole * size) / next[0]) : 0;
  return next && rest > 0 ? `${whole} ${unit} ${rest} ${next[1]}` : `${whole} ${unit}`;
}

// Of a step: with digits after the point where they matter.
export function seconds(value: number | null): string {
  return value === null ? UNKNOWN : value < 100 ? `${threeDigits(value)} s` : duration(value);
}

export type Zone = "utc" | "local";

function two(value: number): string {
  return String(value).padStart(2, "0");
}

// "2026-11-30 07:41 UTC". Milliseconds since 1970.
export function time(milliseconds: number | null, zone: Zone, withSeconds = false): string {
  if (milliseconds === null || !Number.isFinite(milliseconds)) return UNKNOWN;
  const t = new Date(milliseconds);
  const utc = zone === "utc";
  const day = utc ? [t.getUTCFullYear(), t.getUTCMonth() + 1, t.getUTCDate()] : [t.getFullYear(), t.getMonth() + 1, t.getDate()];
  const clock = utc ? [t.getUTCHours(), t.getUTCMinutes(), t.getUTCSeconds()] : [t.getHours(), t.getMinutes(), t.getSeconds()];
  const seconds = withSeconds ? `:${two(clock[2] ?? 0)}` : "";
  return `${day[0]}-${two(day[1] ?? 0)}-${two(day[2] ?? 0)} ${two(clock[0] ?? 0)}:${two(clock[1] ?? 0)}${seconds}\u00a0${zoneName(zone, t)}`;
}

// Where the year and the zone are said elsewhere: "11-30 07:41".
export function shortTime(milliseconds: number | null, zone: Zone): string {
  return milliseconds === null ? UNKNOWN : (time(milliseconds, zone).slice(5).split("\u00a0")[0] ?? UNKNOWN);
}

export function zoneName(zone: Zone, at: Date): string {
  if (zone === "utc") return "UTC";
  const minutes = -at.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "\u2212" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

// A number for a file: every digit, nothing for what is not known.
export function forFile(value: number | string | null): string {
  if (value === null) return "";
  const text = visible(String(value));
  // What a spreadsheet would run as a formula is kept from it by a quote.
  const harmless = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

export function csv(rows: (number | string | null)[][]): string {
  return rows.map((row) => row.map(forFile).join(",")).join("\r\n") + "\r\n";
}
