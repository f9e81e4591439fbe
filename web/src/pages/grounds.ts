// How far the numbers of an answer can be trusted, beside the log of its quality: what is unmeasured, and what is open about the measurement. An empty
// log says little where the answer is from the store, which keeps rollups and not what was wrong with single readings.
import { percent } from "../base/format";
import { reasonText } from "../base/reasons";
import type { Quality } from "../api/answers";

export interface Grounds {
  unmeasured_ratio: number | null;  // of the allocated time; null: not known
  absent_ratios?: Record<string, number>;
  data_findings: { kind: string; state: string }[] | null;  // about the measurement, of any state; null: not asked
}

const RESOLVED = "resolved";

export function groundLines(quality: Quality, grounds: Grounds): string[] {
  const lines: string[] = [];
  const unmeasured = grounds.unmeasured_ratio;
  if (unmeasured !== null && unmeasured > 0) {
    const reasons = Object.entries(grounds.absent_ratios ?? {}).filter(([, ratio]) => ratio > 0).sort((a, b) => b[1] - a[1]);
    lines.push(`${percent(unmeasured, 1)} of the allocated time is unmeasured${reasons.length === 0 ? "" : `: ${reasons.map(([reason, ratio]) => `${percent(ratio, 1)} ${reasonText(reason)}`).join("; ")}`}.`);
  }
  const found = grounds.data_findings ?? [];
  if (found.length > 0) {
    const open = found.filter(({ state }) => state !== RESOLVED).length;
    const kinds = [...new Set(found.map(({ kind }) => kind.replaceAll("_", " ")))].join(", ");
    lines.push(`${found.length === 1 ? "One finding is" : `${found.length} findings are`} about the measurement, ${open === 0 ? "none of them open" : `${open} open`}: ${kinds}.`);
  }
  if (quality.some(({ code }) => code !== "simulated")) return lines;
  const known = unmeasured === 0 && found.length === 0 && grounds.data_findings !== null;
  lines.push(known
    ? "All of the allocated time was measured, and no finding is about the measurement. What was wrong with single readings is not kept."
    : "What was wrong with single readings is not kept: see the findings about the measurement on the page of data quality.");
  return lines;
}
