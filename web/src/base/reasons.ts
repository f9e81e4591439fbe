// Why a value is not known: the API's key, and a sentence for people. Keys are those of samples/absent.h and of mfu_comparison.h; one that is not here is shown as it is.

const MEANINGS: Record<string, string> = {
  no_tensor_counter: "no tensor counter is scraped for it",
  no_clock: "tensor activity is scraped without an SM clock",
  no_reference_clock: "nobody knows the clock of the GPU model's peak: the catalogue does not have the model, or has it without a clock",
  uncalibrated: "this vendor's tensor activity is not calibrated against FLOPs",
  blank: "DCGM said \u201cno value\u201d",
  not_a_number: "the exporter said NaN",
  stale: "the series had ended",
  out_of_range: "the reading was physically impossible",
  frozen: "the counter stood still: exporter or DCGM is stuck",
  contradicted: "profiling said idle while the device was busy",
  profiler_pause: "a profiler held the counters",
  gap: "no sample for longer than the gap limit",
  not_seen: "no sample at all",
  few_jobs: "two points always lie on a line: it takes three jobs",
  no_spread: "all jobs are alike in one of the two",
  unsplit_instances: "slices of a MIG GPU that no instance holds",
};

export function reasonText(reason: string | null): string {
  if (reason === null) return "nothing was measured";
  return MEANINGS[reason] ?? reason.replaceAll("_", " ");
}
