// The waste account of the API as parts, and as what changed between two of them.
import { gpuHours, percent, signed, usd } from "../base/format";
import type { Part } from "../charts/bars";
import type { Colour } from "../charts/palette";
import type { Waste, WasteRow } from "../api/answers";

// Of analysis/waste.cc, in its words.
const CAUSES: Record<string, [string, Colour]> = {
  clock_power_cap: ["Clock: power cap", "--lost-clock"],
  clock_thermal: ["Clock: heat", "--lost-clock"],
  clock_setting: ["Clock: setting", "--lost-clock"],
  clock_unexplained: ["Clock: unexplained", "--lost-clock"],
  clock_gain: ["Clock above the peak's (a gain)", "--lost-clock"],
  memory_bound: ["SMs busy, bound by memory", "--lost-kernels"],
  other_kernels: ["SMs busy without tensor work", "--lost-kernels"],
  sm_busy_unsplit: ["SMs busy without tensor work, not split", "--lost-kernels"],
  stalled: ["Stalled or not running", "--lost-idle"],
  communication: ["Waiting on communication", "--lost-idle"],
  host: ["Waiting on host or input", "--lost-idle"],
  small_kernels: ["Kernels that fill only some SMs", "--lost-idle"],
  sm_idle_unsplit: ["SMs idle, not split", "--lost-idle"],
  tensor_idle_unsplit: ["Tensor pipe idle, SM activity not known", "--lost-unsplit"],
};

export function causeText(cause: string): string {
  return CAUSES[cause]?.[0] ?? cause.replaceAll("_", " ");
}

// Within a sentence; abbreviations keep their letters.
export function causeWithin(cause: string): string {
  const text = causeText(cause);
  return /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

function part(name: string, label: string, colour: Colour, hours: number, dollars: number | null, allocated: number): Part {
  const share = allocated > 0 ? hours / allocated : null;
  const detail = [share !== null && share < 0 ? signed(share, (size) => percent(size)) : percent(share), dollars === null ? "" : usd(dollars)].filter((text) => text !== "").join(" \u00b7 ");
  return { name, label, share, value: hours < 0 ? signed(hours, gpuHours) : gpuHours(hours), detail, detail_text: detail, file_values: [hours, dollars], colour };
}

const LEAST_SHARE = 1e-4; // what would read as 0.0 %

// Delivered, each cause that took anything, most first, and unmeasured: they add up to what was allocated.
export function wasteParts(row: WasteRow): Part[] {
  const { gpu_hours, usd: dollars } = row;
  const causes = Object.entries(gpu_hours.lost_by_cause).filter(([, hours]) => Math.abs(hours) >= LEAST_SHARE * gpu_hours.allocated).sort((a, b) => b[1] - a[1]);
  return [
    part("delivered", "Delivered (OFU)", "--delivered", gpu_hours.delivered, dollars?.delivered ?? null, gpu_hours.allocated),
    ...causes.map(([cause, hours]) => part(cause, causeText(cause), CAUSES[cause]?.[1] ?? "--lost", hours, dollars?.lost_by_cause[cause] ?? null, gpu_hours.allocated)),
    part("unmeasured", "Unmeasured", "--unmeasured", gpu_hours.unmeasured, dollars?.unmeasured ?? null, gpu_hours.allocated),
  ];
}

export function mainCause(row: WasteRow): [string, number] | null {
  const most = Object.entries(row.gpu_hours.lost_by_cause).sort((a, b) => b[1] - a[1])[0];
  return most && most[1] > 0 ? most : null;
}

export const keyText = (row: WasteRow): string => JSON.stringify(row.key);

// The same row before; null where it was not there, undefined where it may only have been left out of a shortened list.
export function rowBefore(row: WasteRow, before: Waste): WasteRow | null | undefined {
  const found = before.rows.find((one) => keyText(one) === keyText(row));
  return found ?? (before.rows_omitted_count > 0 ? undefined : null);
}

export interface Mover {
  row: WasteRow; // of the later period; of the earlier one where it is gone
  hours: number; // lost later less lost before
  gone: boolean;
}

// Rows by how much what they lost changed, most first.
export function movers(now: Waste, before: Waste, most: number): Mover[] {
  const out: Mover[] = [];
  for (const row of now.rows) {
    const then = rowBefore(row, before);
    if (then !== undefined) out.push({ row, hours: row.gpu_hours.lost - (then?.gpu_hours.lost ?? 0), gone: false });
  }
  if (now.rows_omitted_count === 0) {
    const here = new Set(now.rows.map(keyText));
    for (const row of before.rows) if (!here.has(keyText(row))) out.push({ row, hours: -row.gpu_hours.lost, gone: true });
  }
  return out.filter((mover) => Math.abs(mover.hours) >= 0.05).sort((a, b) => Math.abs(b.hours) - Math.abs(a.hours)).slice(0, most);
}
