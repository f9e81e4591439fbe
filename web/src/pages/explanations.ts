// How the numbers of the page are made: the formulas of docs/report.md in words, with the values at hand.
import { band, count, gpuHours, megahertz, percent, points, usd } from "../base/format";
import type { Job, Summary } from "../api/answers";
import type { Explanation } from "./parts";

export function ofuExplanation(row: Summary, source: string): Explanation {
  return {
    title: "OFU, overall FLOP utilization",
    says: [
      "The share of the GPUs' peak that was delivered, out of two counters: how much of the time the tensor pipe was active, and how fast the SMs ran. It is made sample by sample and then integrated over time, so it is not the product of the two means below.",
      "The band says how far sampling of the clock and time that nobody measured can move it.",
    ],
    formula: "OFU = \u222b tensor activity \u00d7 SM clock \u00f7 clock of the tensor peak dt \u00f7 measured time",
    numbers: [
      ["OFU of the measured time", percent(row.ofu_ratio, 2)],
      ["Band", band(row.ofu_ratio_low, row.ofu_ratio_high)],
      ["Tensor pipe active, mean", percent(row.tensor_active_ratio, 2)],
      ["SM clock, mean", megahertz(row.sm_clock_hertz_mean)],
      ["Coverage", percent(row.coverage_ratio, 2)],
    ],
    source,
  };
}

// Of a job all that can be wrong with its OFU is known by parts, not only its scraping.
export function jobOfuExplanation(job: Job, source: string): Explanation {
  const explanation = ofuExplanation(job, source);
  const { error_band, error_parts, error_sources } = job;
  if (!error_band || !error_parts) return explanation;
  const parts = error_parts.map((part): [string, string] => {
    const name = part.id.replaceAll("_", " ");
    if (part.low_ratio === null || part.high_ratio === null) return [name, "unknown"];
    return [name, part.low_ratio === 0 && part.high_ratio === 0 ? `none (${part.basis})` : `${points(part.low_ratio)} to ${points(part.high_ratio)} (${part.basis})`];
  });
  const unknown = error_band.unknown.map((id) => error_sources?.[id] ?? id.replaceAll("_", " "));
  return {
    ...explanation,
    says: [
      ...explanation.says,
      `As the share of the peak that did useful work it lies between ${band(error_band.low_ratio, error_band.high_ratio)}, in ${percent(error_band.confidence_ratio, 0)} of cases and more. Parts of that error:`,
      unknown.length > 0 ? `Not known, and so in no band: ${unknown.join("; ")}.` : "",
    ].filter((text) => text !== ""),
    numbers: [...(explanation.numbers ?? []), ...parts],
  };
}

export function hoursExplanation(row: Summary, source: string): Explanation {
  return {
    title: "GPU-hours",
    says: [
      "An hour of a GPU is allocated once, whoever shares it: delivered is the integral of OFU, lost is what was measured and not delivered, unmeasured is time in which OFU is not known. The three add up to what was allocated.",
      "Unmeasured is not waste: nobody knows what it was.",
    ],
    formula: "allocated = delivered + lost + unmeasured",
    numbers: [
      ["Allocated", gpuHours(row.gpu_hours_allocated)],
      ["Delivered", gpuHours(row.gpu_hours_delivered)],
      ["Lost", gpuHours(row.gpu_hours_lost)],
      ["Unmeasured", gpuHours(row.gpu_hours_unmeasured)],
      ["GPUs", count(row.gpu_count)],
    ],
    source,
  };
}

export function costExplanation(row: Summary, source: string): Explanation {
  return {
    title: "Cost",
    says: [
      row.cost_usd === null
        ? "No price is configured for all of these GPUs, so there are no dollars. Give prices to the service with the key prices of its configuration."
        : "GPU-hours times the price that is configured for the GPU model, exactly; nothing is assumed.",
    ],
    numbers: [
      ["All hours", usd(row.cost_usd)],
      ["Lost", usd(row.cost_lost_usd)],
      ["Unmeasured", usd(row.cost_unmeasured_usd)],
    ],
    source,
  };
}

export function coverageExplanation(row: Summary, source: string): Explanation {
  return {
    title: "Coverage",
    says: ["The share of the allocated time in which OFU could be made: both counters were scraped, possible, and not contradicted. The rest is unmeasured."],
    formula: "coverage = measured time \u00f7 allocated time",
    numbers: [
      ["Coverage", percent(row.coverage_ratio, 2)],
      ["Unmeasured", gpuHours(row.gpu_hours_unmeasured)],
    ],
    source,
  };
}

export function waterfallExplanation(source: string): Explanation {
  return {
    title: "Where the capacity went",
    says: [
      "From 100 % of the allocated time down to OFU, out of counters alone. Each step is time of the tensor peak; they add up to 1 exactly.",
      "Clock loss: the tensor pipe was active below the clock of the peak (above it, the loss is negative, a gain, and shown as one). Tensor pipe idle, SMs busy: other kernels, or tensor kernels waiting for memory. SMs idle: stalled, waiting for communication, host or input, or nothing running. Not split: no SM activity counter is scraped, so the two cannot be told apart.",
    ],
    formula: "1 = OFU + clock loss + tensor pipe idle with SMs busy + SMs idle + unmeasured",
    source,
  };
}

export function reportedExplanation(source: string): Explanation {
  return {
    title: "Reported MFU",
    says: [
      "What the training framework says of itself, the median of the steps that count: warm-up, steps before the first true figure, and impossible values are left out. Nothing here corrects it; the audit says whether its formula and its peak can be right.",
    ],
    source,
  };
}
