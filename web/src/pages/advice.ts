// What to change about a job next, with the gain that is predicted, and what has to be told before anything can be.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { bytes, count, percent, points, seconds, signed, usd } from "../base/format";
import type { Advice } from "../api/answers";
import { copyable } from "./connect";
import { assumptionList, nothing, table } from "./parts";

function told(id: string): string {
  const body = `{"config": '"$(cat config.json)"', "seq_len": 8192, "precision": "bf16", "recompute": "none",\n  "training": {"global_batch": 512, "micro_batch": 1, "tp": 1, "pp": 1, "zero": 1}}`;
  return `curl --data-binary '${body}' \\\n  ${location.origin}${location.pathname.replace(/[^/]*$/, "")}api/v1/jobs/${encodeURIComponent(id)}/model`;
}

function untold(value: Advice): Child {
  return [
    nothing("There is no advice for this job. What is missing:"),
    h("ul", { class: "assumptions" }, value.missing.map((line) => h("li", null, line))),
    h("details", { "data-key": "tell" }, h("summary", null, "How to tell it"),
      h("p", null, "The model\u2019s config.json and how it is trained, once for each job (or its config by a rule for many, with the key mfu.models). With the numbers of this job:"),
      copyable("telling a job\u2019s model and training", told(value.id)),
      h("p", { class: "muted" }, "Other keys of training: vp, cp, ep, etp, optimizer, kernels, attention, dispatch, overlap, fabric. They are those of flopsight tune train.")),
  ];
}

// In words, with the options of `flopsight tune` in brackets behind them set off.
function withOptions(change: string): Child[] {
  return change.split(/(?<=\()(--[^()]+)(?=\))/).map((part, i) => (i % 2 === 1 ? h("code", null, part) : part));
}

export function adviceElements(value: Advice): Child {
  const { settings, predicted, measured } = value;
  if (!settings || !predicted || !measured) return untold(value);
  const parts = [...measured.parts, ...measured.causes];
  const out = parts.find(({ part }) => part === (measured.out_of_line_cause ?? measured.out_of_line));
  return [
    h("p", null,
      `As it is told, a step should take ${seconds(predicted.step_seconds)} at an OFU of ${percent(predicted.attainable_ofu_ratio)}; measured: ${measured.step_seconds === null ? "no step time" : `${seconds(measured.step_seconds)}${measured.step_seconds_implied_by_ofu ? " (implied by OFU)" : ""}`} at ${percent(measured.ofu_ratio)}. `,
      out ? h("b", null, `Most out of line: ${out.what} (${points(out.difference_ratio)}).`) : "No part of its time is out of line with the prediction."),
    value.advice.length === 0
      ? nothing("No rule of the advisor has anything to say about it.")
      : table(
          [
            { title: "Change", cell: (one) => h("span", { class: "wrap" }, withOptions(one.change)) },
            { title: "Predicted gain", number: true, cell: (one) => (one.gain_ratio === null ? h("span", { class: "muted" }, "not known") : signed(one.gain_ratio, (size) => percent(size))) },
            ...(value.advice.some((one) => one.usd_saved_per_day !== null) ? [{ title: "Saved a day", number: true, cell: (one: Advice["advice"][number]) => (one.usd_saved_per_day === null ? "" : usd(one.usd_saved_per_day)) }] : []),
            { title: "Confidence", cell: (one) => one.confidence },
            { title: "Why, and what it costs", cell: (one) => h("span", { class: "wrap", title: one.source }, one.why, one.price ? h("span", { class: "muted" }, ` Costs: ${one.price}.`) : null) },
          ],
          value.advice,
          (one) => one.id + one.change,
          "Advice, by predicted gain",
        ),
    h("p", { class: "muted small" }, "Gains are predictions in tokens per second, each with everything else as it is: they do not add up. In brackets: the option with which ", h("code", null, "flopsight tune train"), " predicts the same; your trainer has names of its own for it."),
    h("details", { "data-key": "advice" }, h("summary", null, "What it rests on"),
      table(
        [
          { title: "Part of the time", cell: (part) => part.what },
          { title: "Predicted", number: true, cell: (part) => percent(part.predicted_ratio) },
          { title: "Measured", number: true, cell: (part) => percent(part.measured_ratio) },
        ],
        parts,
        (part) => part.part,
        "Prediction and measurement",
      ),
      h("p", { class: "muted" }, `${count(settings.gpus)} \u00d7 ${settings.gpu}, ${settings.fabric}; ${settings.layout}; ${count(settings.global_batch)} sequences of ${count(settings.seq_len)} tokens a step, ${count(settings.micro_batch)} at once; ${settings.precision}, recompute ${settings.recompute}. Memory of a GPU: ${bytes(predicted.memory_bytes_per_gpu)}${predicted.fits === false ? ", more than it has" : ""}. Model: ${value.model_from ?? "not told"}.`),
      value.rejected.length > 0 ? [h("h3", null, "Looked at, and rejected by what was measured"), h("ul", { class: "assumptions" }, value.rejected.map((one) => h("li", null, withOptions(one.change), `: ${one.why}`)))] : null,
      assumptionList(value.assumptions)),
  ];
}
