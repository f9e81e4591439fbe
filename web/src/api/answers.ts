// The answers of the API, with its own names (docs/serve.md, openapi.json): ratios 0 to 1, hours, hertz, watts, US dollars. Times are read as
// milliseconds since 1970; null is "not known".
import { column, flag, instant, list, maybe, number, object, record, text } from "./shape";
import type { Reader } from "./shape";

type Of<R> = R extends Reader<infer T> ? T : never;

const windowShape = object({ start: maybe(instant), end: maybe(instant) });
const qualityShape = list(object({ code: text, count: number, where: text, meaning: text }));

const waterfallMembers = {
  ofu_ratio: maybe(number),
  clock_loss_ratio: maybe(number),
  tensor_idle_sm_busy_ratio: maybe(number),
  sm_idle_ratio: maybe(number),
  tensor_idle_unsplit_ratio: maybe(number),
  unmeasured_ratio: maybe(number),
};
const waterfallShape = object(waterfallMembers);

const summaryMembers = {
  gpu_count: number,
  gpu_hours_allocated: maybe(number),
  gpu_hours_delivered: maybe(number),
  gpu_hours_lost: maybe(number),
  gpu_hours_unmeasured: maybe(number),
  ofu_ratio: maybe(number),
  ofu_ratio_low: maybe(number),
  ofu_ratio_high: maybe(number),
  tensor_active_ratio: maybe(number),
  sm_clock_hertz_mean: maybe(number),
  coverage_ratio: maybe(number),
  cost_usd: maybe(number),
  cost_lost_usd: maybe(number),
  cost_unmeasured_usd: maybe(number),
};

// As answers about fleets and jobs name those that are open.
const mentionShape = object({ id: text, kind: text, severity: text, state: text, job: maybe(text), text, cost_gpu_hours: maybe(number), cost_usd: maybe(number) });

export const fleetShape = object({
  window: windowShape,
  source: text,
  by: text,
  fleet: object({ ...summaryMembers, waterfall: waterfallShape, absent_ratios: record(number) }),
  groups: list(
    object({
      key: record(maybe(text)),
      ...summaryMembers,
      reported_mfu_ratio: maybe(number),
      absent_reason: maybe(text),
      waterfall: waterfallShape,
    }),
  ),
  groups_omitted_count: number,
  finding_count: maybe(number),
  findings: maybe(list(mentionShape)),
  quality: qualityShape,
  assumptions: list(text),
});

const head = { window: windowShape, simulated: flag, quality: qualityShape };

const columnMembers = {
  ofu_ratio: column,
  tensor_active_ratio: column,
  sm_active_ratio: column,
  dram_active_ratio: column,
  sm_clock_hertz: column,
  coverage_ratio: column,
  power_watts: column,
  gpu_count: column,
  nvlink_bytes_per_second: column,
  pcie_bytes_per_second: column,
  absent_reason: list(maybe(text)),
};

export const fleetSeriesShape = object({ ...head, step_seconds: number, time: list(instant), ...columnMembers });

export const seriesShape = object({
  ...head,
  id: text,
  step_seconds: number,
  time: list(instant),
  ...columnMembers,
  ofu_ratio_p5: column,
  ofu_ratio_p50: column,
  ofu_ratio_p95: column,
  reported_mfu_ratio: column,
});

const reportedShape = object({
  mfu_ratio: maybe(number),
  flops_per_second_per_gpu: maybe(number),
  tokens_per_second_per_gpu: maybe(number),
  step_seconds: maybe(number),
  steps_used: number,
  steps_excluded: number,
  peak_flops_per_second_implied: maybe(number),
  first: maybe(instant),
  last: maybe(instant),
  source: maybe(text),
  format: maybe(text),
});

const jobMembers = {
  id: text,
  job: maybe(text),
  namespace: maybe(text),
  user: maybe(text),
  team: maybe(text),
  attributed_by: maybe(text),
  first: instant,
  last: instant,
  models: list(text),
  ...summaryMembers,
  ofu_adjusted_ratio: maybe(number),
  tile_overhead_ratio: maybe(number),
  tile_overhead_source: maybe(text),
  gpu_count_told: maybe(number),
  ofu_ratio_min: maybe(number),
  ofu_ratio_p5: maybe(number),
  ofu_ratio_p50: maybe(number),
  ofu_ratio_p95: maybe(number),
  ofu_ratio_max: maybe(number),
  energy_joules: maybe(number),
  energy_coverage_ratio: maybe(number),
  absent_reason: maybe(text),
  waterfall: waterfallShape,
  reported: maybe(reportedShape),
  audit_verdict: maybe(text),
  family: maybe(text),
  members: list(text),
};

const errorPart = object({ id: text, basis: text, low_ratio: maybe(number), high_ratio: maybe(number), in_band: text });

const auditShape = object({
  recomputed: object({ mfu_ratio: maybe(number), band_low: maybe(number), band_high: maybe(number), from: maybe(text) }),
  ofu_ratio: maybe(number),
  verdict: text,
  summary: text,
  expected_ofu_over_mfu_ratio: maybe(number),
  reported_over_ofu_ratio: maybe(number),
  hypotheses: list(
    object({
      id: text,
      predicted_ratio: maybe(number),
      observed_ratio: maybe(number),
      evidence: text,
      explanation: text,
      corrected_mfu_ratio: maybe(number),
    }),
  ),
  missing: list(text),
  notes: list(text),
  assumptions: list(text),
});

export const jobsShape = object({ ...head, jobs: list(object(jobMembers)), next_cursor: maybe(text) });
export const jobShape = object({
  ...head,
  ...jobMembers,
  error_band: maybe(object({ low_ratio: number, high_ratio: number, confidence_ratio: number, unknown: list(text) })),
  error_parts: maybe(list(errorPart)),
  error_sources: maybe(record(text)),
  audit: maybe(auditShape),
});

const gpuNames = {
  uuid: maybe(text),
  mig_instance: maybe(text),
  mig_profile: maybe(text),
  host: maybe(text),
  index: maybe(text),
  model: maybe(text),
  model_raw: maybe(text),
  driver_version: maybe(text),
};

export const gpuSeriesShape = object({
  ...head,
  step_seconds: number,
  time: list(instant),
  gpus: list(
    object({
      ...gpuNames,
      jobs: list(text),
      ofu_ratio: maybe(column),
      tensor_active_ratio: maybe(column),
      sm_active_ratio: maybe(column),
      dram_active_ratio: maybe(column),
      sm_clock_hertz: maybe(column),
      coverage_ratio: maybe(column),
      power_watts: maybe(column),
      gpu_count: maybe(column),
      nvlink_bytes_per_second: maybe(column),
      pcie_bytes_per_second: maybe(column),
      absent_reason: maybe(list(maybe(text))),
    }),
  ),
});

export const gpuMapShape = object({
  ...head,
  gpu_count: number,
  hosts: list(text),
  models: list(text),
  jobs: list(text),
  absent_reasons: list(text),
  gpus: object({
    host: column,
    index: list(maybe(text)),
    uuid: list(maybe(text)),
    mig_instance: list(maybe(text)),
    model: column,
    job: column,
    job_count: column,
    ofu_ratio: column,
    tensor_active_ratio: column,
    sm_clock_hertz: column,
    reference_clock_hertz: column,
    coverage_ratio: column,
    absent_reason: column,
  }),
});

const agreementMembers = {
  job_count: number,
  pearson_ratio: maybe(number),
  spearman_ratio: maybe(number),
  correlation_absent_reason: maybe(text),
  error_mean_ratio: maybe(number),
  within_5_points_ratio: maybe(number),
  within_10_points_ratio: maybe(number),
};

export const mfuShape = object({
  ...head,
  all: object(agreementMembers),
  without_known_wrong: object(agreementMembers),
  by_size: list(object({ gpu_count_min: number, gpu_count_max: maybe(number), ...agreementMembers })),
  points: list(
    object({
      job: text,
      namespace: maybe(text),
      gpu_count: number,
      reported_mfu_ratio: number,
      ofu_ratio: number,
      formula_known_wrong: flag,
    }),
  ),
  jobs_without_mfu: number,
  jobs_without_ofu: number,
});

const amountsShape = object({ allocated: number, delivered: number, lost: number, lost_by_cause: record(number), unmeasured: number });
const wasteRowShape = object({
  key: maybe(record(maybe(text))),
  user: maybe(text),
  job_count: number,
  ofu_ratio: maybe(number),
  gpu_hours: amountsShape,
  usd: maybe(amountsShape),
  usd_absent_reason: maybe(text),
  attainable: maybe(object({ gpu_hours_lost: number, usd_lost: maybe(number), gpu_hours_measured: number, reference: text })),
  attainable_absent_reason: maybe(text),
});
export const wasteShape = object({
  ...head,
  source: text,
  by: text,
  total: wasteRowShape,
  rows: list(wasteRowShape),
  rows_omitted_count: number,
  assumptions: list(text),
});

const goodputShape = object({
  goodput_ratio: maybe(number),
  ettr_ratio: maybe(number),
  gpu_seconds: record(maybe(number)),
  lost_source: maybe(text),
  lost_steps: maybe(number),
  failure_count: number,
  failure_interval_seconds: maybe(number),
  checkpoint_seconds: maybe(number),
  checkpoint_interval_seconds: maybe(number),
  checkpoint_interval_young_seconds: maybe(number),
  checkpoint_interval_daly_seconds: maybe(number),
});
export const phasesShape = object({
  ...head,
  id: text,
  slot_seconds: number,
  absent_reason: maybe(text),
  phases: list(object({ phase: text, start: instant, end: instant })),
  gpu_seconds_by_phase: record(number),
  failures: list(object({ stopped: instant, training_again: instant })),
  precision_switches: list(instant),
  goodput: maybe(goodputShape),
  assumptions: list(text),
});

const partShape = object({ part: text, what: text, predicted_ratio: number, measured_ratio: maybe(number), difference_ratio: maybe(number) });
export const adviceShape = object({
  ...head,
  id: text,
  missing: list(text),
  model_from: maybe(text),
  settings: maybe(object({ gpu: text, gpus: number, fabric: text, layout: text, seq_len: number, global_batch: number, micro_batch: number, precision: text, recompute: text })),
  predicted: maybe(object({ step_seconds: number, tokens_per_second_per_gpu: number, mfu_ratio: number, attainable_ofu_ratio: number, memory_bytes_per_gpu: number, fits: maybe(flag) })),
  measured: maybe(object({ ofu_ratio: maybe(number), step_seconds: maybe(number), step_seconds_implied_by_ofu: flag, out_of_line: maybe(text), out_of_line_cause: maybe(text), parts: list(partShape), causes: list(partShape) })),
  advice: list(
    object({
      id: text,
      change: text,
      gain_ratio: maybe(number),
      usd_saved_per_day: maybe(number),
      confidence: text,
      why: text,
      price: maybe(text),
      source: text,
    }),
  ),
  rejected: list(object({ id: text, change: text, why: text })),
  assumptions: list(text),
});

const findingMembers = {
  id: text,
  kind: text,
  severity: text,
  state: text,
  silenced: flag,
  data_quality: flag,
  job: maybe(text),
  job_name: maybe(text),
  namespace: maybe(text),
  user: maybe(text),
  team: maybe(text),
  host: maybe(text),
  gpu: maybe(text),
  gpu_model: maybe(text),
  first: instant,
  last: instant,
  opened: instant,
  changed: instant,
  resolved: maybe(instant),
  resolved_by: maybe(text),
  acknowledged: maybe(instant),
  acknowledged_by: maybe(text),
  note: maybe(text),
  flap_count: number,
  text,
  action: text,
  cost_gpu_hours: maybe(number),
  cost_usd: maybe(number),
  cost_absent_reason: maybe(text),
  cost_usd_absent_reason: maybe(text),
  simulated: flag,
};
export const findingShape = object({
  ...findingMembers,
  evidence: list(object({ name: text, value: number })),
  series: maybe(object({ name: text, time: list(instant), value: list(number) })),
  suspects: list(object({ kind: text, explained_ratio: maybe(number), text })),
});
export const findingsShape = object({
  simulated: flag,
  findings: list(object(findingMembers)),
  findings_total: number,
  next_cursor: maybe(text),
  looked_until: maybe(instant),
  absent_reason: maybe(text),
});
export const silenceShape = object({
  id: text,
  matchers: list(object({ name: text, pattern: text })),
  start: instant,
  end: instant,
  author: text,
  comment: text,
});
export const silencesShape = object({ silences: list(silenceShape), next_cursor: maybe(text) });
export const endedShape = object({ id: text });

export const targetsShape = object({
  targets: list(
    object({
      url: text,
      up: maybe(flag),
      last_scrape: maybe(instant),
      duration_seconds: maybe(number),
      samples: maybe(number),
      error: maybe(text),
      failures: maybe(number),
    }),
  ),
  problems: list(text),
  totals: record(number),
});

export const searchShape = object({ ...head, matches: list(object({ kind: text, name: text, detail: maybe(text) })) });

export type Fleet = Of<typeof fleetShape>;
export type FleetSeries = Of<typeof fleetSeriesShape>;
export type Series = Of<typeof seriesShape>;
export type Jobs = Of<typeof jobsShape>;
export type Job = Of<typeof jobShape>;
export type Audit = NonNullable<Job["audit"]>;
export type GpuSeries = Of<typeof gpuSeriesShape>;
export type GpuMap = Of<typeof gpuMapShape>;
export type Mfu = Of<typeof mfuShape>;
export type Waste = Of<typeof wasteShape>;
export type WasteRow = Waste["total"];
export type Phases = Of<typeof phasesShape>;
export type Advice = Of<typeof adviceShape>;
export type Findings = Of<typeof findingsShape>;
export type FindingRow = Findings["findings"][number];
export type Finding = Of<typeof findingShape>;
export type Mention = Of<typeof mentionShape>;
export type Silences = Of<typeof silencesShape>;
export type Targets = Of<typeof targetsShape>;
export type Matches = Of<typeof searchShape>["matches"];
export type Waterfall = Of<typeof waterfallShape>;
export type Quality = Of<typeof qualityShape>;
export type Summary = Pick<Fleet["fleet"], keyof typeof summaryMembers>;
