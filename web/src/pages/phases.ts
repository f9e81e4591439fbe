// Phases of a job (docs/waste.md): what it did when, how much of its time was productive, and how often a checkpoint would pay.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { count, duration, gpuHours, percent, time } from "../base/format";
import type { Zone } from "../base/format";
import { reasonText } from "../base/reasons";
import type { Phases } from "../api/answers";
import { stackedBar } from "../charts/bars";
import type { Span } from "../charts/bands";
import type { Colour } from "../charts/palette";
import { assumptionList, figure, nothing, table } from "./parts";
import type { Explanation } from "./parts";

const PHASES: Record<string, [string, Colour]> = {
  start_up: ["Start-up", "--line-tensor"],
  training: ["Training", "--delivered"],
  evaluation: ["Evaluation", "--line-dram"],
  checkpoint: ["Checkpoint", "--line-clock"],
  restart: ["Restart", "--error"],
  stalled: ["Stalled", "--lost-idle"],
  slowed: ["Slowed by data or host", "--lost-unsplit"],
  idle_tail: ["Idle at the end", "--line-spread"],
  unmeasured: ["Unmeasured", "--unmeasured"],
};
// Of goodput's GPU-seconds, in the order in which they are told; productive is what the others are taken from.
const SHARES: [string, string, Colour][] = [
  ["productive", "Productive", "--delivered"],
  ["starting", "Starting", "--line-tensor"],
  ["checkpointing", "Checkpointing", "--line-clock"],
  ["restarting", "Restarting", "--error"],
  ["stalled", "Stalled", "--lost-idle"],
  ["slowed", "Slowed by data or host", "--lost-unsplit"],
  ["ending", "Idle at the end", "--line-spread"],
  ["lost", "Done twice", "--lost-kernels"],
  ["unmeasured", "Unmeasured", "--unmeasured"],
];
const LISTED = 200;
const LOST_SOURCES: Record<string, string> = { log: "by the steps that it tells", "checkpoints seen": "by the checkpoints seen" };
const ABSENT: Record<string, string> = {
  works_in_bursts: "it works in bursts and stands for longer between them, as a notebook does",
  no_training_seen: "no tensor work to speak of was seen, as of an inference server or a notebook",
  no_sm_activity: "SM activity is not scraped, and pauses are told from it",
};

const ofPhase = (phase: string): [string, Colour] => PHASES[phase] ?? [phase.replaceAll("_", " "), "--muted"];

export function phaseSpans(phases: Phases): Span[] {
  return phases.phases.map(({ phase, start, end }) => ({ start, end, label: ofPhase(phase)[0], colour: ofPhase(phase)[1], usual: phase === "training" }));
}

function checkpointFigure(value: Phases, why: (title: string, says: string[]) => () => Explanation): HTMLElement {
  const goodput = value.goodput;
  const seen = goodput?.checkpoint_interval_seconds ?? null;
  const best = goodput?.checkpoint_interval_daly_seconds ?? goodput?.checkpoint_interval_young_seconds ?? null;
  const advised = best === null ? "no best one: it needs a failure and a checkpoint that were seen" : `would cost least at ${duration(best)}`;
  return figure({
    label: "Checkpoint interval",
    value: seen === null ? "none seen" : duration(seen),
    unknown: seen === null,
    below: h("span", { class: "muted" }, advised),
    why: why("Checkpoint interval", [
      "What was seen is the mean time from one checkpoint to the next in the counters. The interval that costs least balances the time that checkpoints take against the work that a failure loses.",
      `Young 1974: the square root of 2 \u00d7 checkpoint \u00d7 time between failures: ${duration(goodput?.checkpoint_interval_young_seconds ?? null)}. Daly 2006, of higher order: ${duration(goodput?.checkpoint_interval_daly_seconds ?? null)}. Both assume that failures come independently of each other, at the rate of this window.`,
      `A checkpoint takes ${duration(goodput?.checkpoint_seconds ?? null)}, a failure comes every ${duration(goodput?.failure_interval_seconds ?? null)} (${count(goodput?.failure_count ?? null)} seen).`,
    ]),
  });
}

export function phaseElements(value: Phases, zone: Zone, source: string): Child {
  const { goodput } = value;
  if (!goodput) {
    return nothing(`No phases are told: ${ABSENT[value.absent_reason ?? ""] ?? reasonText(value.absent_reason)}.`);
  }
  const why = (title: string, says: string[]) => (): Explanation => ({ title, says: [...says, ...value.assumptions], source });
  const allocated = goodput.gpu_seconds.allocated ?? 0;
  const lost = goodput.gpu_seconds.lost ?? null;
  return [
    h("div", { class: "figures" },
      figure({ label: "Goodput", value: percent(goodput.goodput_ratio), unknown: goodput.goodput_ratio === null, below: h("span", { class: "muted" }, "of the GPU time"), why: why("Goodput", ["Productive GPU time over allocated GPU time: training that was not lost, without starts, checkpoints, restarts, stalls and waiting beyond what is usual for this job."]) }),
      figure({ label: "ETTR", value: percent(goodput.ettr_ratio), unknown: goodput.ettr_ratio === null, below: h("span", { class: "muted" }, "of the time from first to last"), why: why("Effective training time ratio", ["Productive time over the time from the job's first slot to its last, in this window (Kokolis et al., arXiv 2410.21680), without time in the queue."]) }),
      figure({ label: "Failures", value: count(goodput.failure_count), below: h("span", { class: "muted" }, goodput.failure_interval_seconds === null ? "" : `every ${duration(goodput.failure_interval_seconds)}`), why: why("Failures", ["Times at which training stopped and began anew with a start."]) }),
      figure({ label: "Done twice", value: lost === null ? "unknown" : gpuHours(lost / 3600), unknown: lost === null, below: h("span", { class: "muted" }, goodput.lost_source ? LOST_SOURCES[goodput.lost_source] ?? goodput.lost_source : "within productive"), why: why("Work that was done twice", ["From the steps that the job tells, where it says some twice; else what it had trained since the last checkpoint that its counters showed before it failed. Where neither is known it is within productive."]) }),
      checkpointFigure(value, why)),
    stackedBar({
      title: "What its GPU time was",
      file_columns: ["gpu_hours"],
      parts: SHARES.map(([name, label, colour]) => {
        const seconds = goodput.gpu_seconds[name] ?? null;
        const share = seconds === null || allocated <= 0 ? null : seconds / allocated;
        return { name, label, share, value: gpuHours(seconds === null ? null : seconds / 3600), detail: percent(share), detail_text: percent(share), file_values: [seconds === null ? null : seconds / 3600], colour };
      }).filter((part) => part.share !== 0),
    }),
    h("details", { "data-key": "phases" }, h("summary", null, `All ${count(value.phases.length)} phases, and the rules`),
      table([
        { title: "Phase", cell: (span) => [h("i", { class: "swatch", vars: { "--c": `var(${ofPhase(span.phase)[1]})` } }), ofPhase(span.phase)[0]] },
        { title: "From", cell: (span) => h("span", { class: "time" }, time(span.start, zone)) },
        { title: "To", cell: (span) => h("span", { class: "time" }, time(span.end, zone)) },
        { title: "Length", number: true, cell: (span) => duration((span.end - span.start) / 1000) },
      ], value.phases.slice(0, LISTED), (span) => `${span.phase} ${span.start}`, "Phases of the job"),
      value.phases.length > LISTED ? h("p", { class: "muted" }, `and ${count(value.phases.length - LISTED)} more`) : null,
      value.precision_switches.length > 0 ? h("p", { class: "muted" }, `The peak that its log divides by changes at ${value.precision_switches.map((t) => time(t, zone)).join(", ")}: a change of precision.`) : null,
      assumptionList(value.assumptions)),
  ];
}
