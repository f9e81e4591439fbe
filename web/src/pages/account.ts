// The account of GPU time as parts of a whole: delivered, lost by cause, unmeasured. One for the fleet, for a job, for anything with a summary.
import { gpuHours, percent, signed, UNKNOWN, usd } from "../base/format";
import type { Part } from "../charts/bars";
import type { Colour } from "../charts/palette";
import type { Summary, WasteRow, Waterfall } from "../api/answers";
import { reasonText } from "../base/reasons";

interface Step {
  name: keyof Waterfall;
  label: string;
  colour: Colour;
}

const STEPS: Step[] = [
  { name: "ofu_ratio", label: "Delivered (OFU)", colour: "--delivered" },
  { name: "clock_loss_ratio", label: "Clock below the peak's", colour: "--lost-clock" },
  { name: "tensor_idle_sm_busy_ratio", label: "Tensor pipe idle, SMs busy", colour: "--lost-kernels" },
  { name: "sm_idle_ratio", label: "SMs idle", colour: "--lost-idle" },
  { name: "tensor_idle_unsplit_ratio", label: "Tensor pipe idle, not split", colour: "--lost-unsplit" },
  { name: "unmeasured_ratio", label: "Unmeasured", colour: "--unmeasured" },
];

function label(step: Step, share: number | null): string {
  return step.name === "clock_loss_ratio" && share !== null && share < 0 ? "Clock above the peak's (a gain)" : step.label;
}

// Dollars by step of the waterfall, out of the waste account, which has them by cause: a price per GPU model makes the cost of a cause something
// that no share of a sum can tell.
export type Costs = Partial<Record<keyof Waterfall, number>>;

const CAUSE_OF: [RegExp, keyof Waterfall][] = [
  [/^clock_/, "clock_loss_ratio"],
  [/^(memory_bound|other_kernels|sm_busy_unsplit)$/, "tensor_idle_sm_busy_ratio"],
  [/^(stalled|communication|host|small_kernels|sm_idle_unsplit)$/, "sm_idle_ratio"],
  [/^tensor_idle_unsplit$/, "tensor_idle_unsplit_ratio"],
];

export function costsOf(row: WasteRow): Costs {
  if (!row.usd) return {};
  const out: Costs = { ofu_ratio: row.usd.delivered, unmeasured_ratio: row.usd.unmeasured };
  for (const [cause, dollars] of Object.entries(row.usd.lost_by_cause)) {
    const step = CAUSE_OF.find(([pattern]) => pattern.test(cause))?.[1];
    if (step) out[step] = (out[step] ?? 0) + dollars;
  }
  return out;
}

// Without the account only what a summary itself has.
function cost(step: Step, row: Summary, costs: Costs): number | null {
  const known = costs[step.name];
  if (known !== undefined) return known;
  if (row.cost_usd === null) return null;
  if (step.name === "unmeasured_ratio") return row.cost_unmeasured_usd;
  if (step.name !== "ofu_ratio" || row.cost_lost_usd === null || row.cost_unmeasured_usd === null) return null;
  return row.cost_usd - row.cost_lost_usd - row.cost_unmeasured_usd;
}

// Steps that are not known are left out where another says the same: a loss is split, or it is not.
function steps(fall: Waterfall): Step[] {
  return STEPS.filter((step) => fall[step.name] !== null || (step.name === "ofu_ratio" && fall.unmeasured_ratio === null));
}

function shown(share: number | null): string {
  return share !== null && share < 0 ? signed(share, (size) => percent(size)) : percent(share);
}

export function accountParts(row: Summary, fall: Waterfall, absent: Record<string, number> = {}, costs: Costs = {}): Part[] {
  return steps(fall).map((step) => {
    const share = fall[step.name];
    const hours = share === null || row.gpu_hours_allocated === null ? null : share * row.gpu_hours_allocated;
    const dollars = cost(step, row, costs);
    const main = Object.entries(absent).sort((a, b) => b[1] - a[1])[0];
    const why = step.name === "unmeasured_ratio" && (share ?? 0) > 0 && main ? `mostly: ${reasonText(main[0])}` : "";
    const detail = [shown(share), dollars === null ? "" : usd(dollars), why].filter((text) => text !== "").join(" \u00b7 ");
    return {
      name: step.name,
      label: label(step, share),
      share,
      value: hours !== null && hours < 0 ? signed(hours, (size) => gpuHours(size)) : gpuHours(hours),
      detail,
      detail_text: detail,
      file_values: [hours, dollars],
      colour: step.colour,
    };
  });
}

export const ACCOUNT_COLUMNS = ["gpu_hours", "cost_usd"];

export interface Adjusted {
  ofu_adjusted_ratio: number | null;
  tile_overhead_source: string | null;
}

export function waterfallParts(row: Summary, fall: Waterfall, adjusted: Adjusted | null = null): Part[] {
  const parts = steps(fall).filter((step) => step.name !== "ofu_ratio").map((step): Part => {
    const share = fall[step.name];
    const hours = share === null || row.gpu_hours_allocated === null ? null : share * row.gpu_hours_allocated;
    return {
      name: step.name,
      label: label(step, share),
      share,
      value: shown(share),
      detail: hours === null ? UNKNOWN : hours < 0 ? signed(hours, (size) => gpuHours(size)) : gpuHours(hours),
      file_values: [hours],
      colour: step.colour,
    };
  });
  const ofu = fall.ofu_ratio;
  parts.push({
    name: "ofu_ratio",
    label: "OFU of the allocated time",
    share: ofu,
    value: percent(ofu),
    detail: ofu === null ? "" : gpuHours(row.gpu_hours_delivered),
    file_values: [row.gpu_hours_delivered],
    colour: "--delivered",
  });
  // Of the measured time both: what of OFU the kernels' padding was.
  const left = adjusted?.ofu_adjusted_ratio ?? null;
  if (left !== null && row.ofu_ratio) {
    parts.push({
      name: "ofu_adjusted_ratio",
      label: "OFU without tile padding",
      share: null,
      value: percent(left),
      detail: adjusted?.tile_overhead_source ?? "",
      file_values: [null],
      colour: "--delivered",
    });
  }
  return parts;
}
