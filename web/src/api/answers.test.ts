// The answers in tests/golden/api are what the program gives (apps/flopsight/serve/api_golden_test.cc); the page has to accept them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as answers from "./answers";
import { ShapeError } from "./shape";

declare const ROOT: string;
const golden = (name: string): unknown => JSON.parse(readFileSync(`${ROOT}tests/golden/api/${name}.json`, "utf8"));

test("the page reads what the program writes", () => {
  const fleet = answers.fleetShape(golden("fleet"), "fleet");
  assert.equal(fleet.groups.length, 3);
  assert.ok(Math.abs((fleet.fleet.gpu_hours_allocated ?? 0) - 1.25) < 1e-6);
  assert.equal(answers.fleetShape(golden("fleet_by_model"), "fleet").groups[0]?.key.model, "H100-SXM5-80GB");
  assert.equal(answers.jobsShape(golden("jobs"), "jobs").jobs.length, 2);
  const job = answers.jobShape(golden("job"), "job");
  assert.equal(job.reported?.mfu_ratio, 0.33);
  assert.equal(job.first, Date.UTC(2026, 10, 29, 10));
  assert.equal(answers.mfuShape(golden("mfu"), "mfu").points.length, 1);
  assert.equal(answers.searchShape(golden("search"), "search").matches[0]?.kind, "job");
});

test("accounts, phases and advice are read", () => {
  const waste = answers.wasteShape(golden("waste"), "waste");
  const { allocated, delivered, lost, unmeasured, lost_by_cause } = waste.total.gpu_hours;
  assert.ok(Math.abs(allocated - delivered - lost - unmeasured) < 1e-9);
  assert.ok(Math.abs(lost - Object.values(lost_by_cause).reduce((sum, hours) => sum + hours, 0)) < 1e-9);
  assert.equal(answers.phasesShape(golden("phases"), "phases").id, "a-1@a");
  assert.ok(answers.adviceShape(golden("advice_missing"), "advice").missing.length > 0);
  const advice = answers.adviceShape(golden("advice"), "advice");
  assert.deepEqual(advice.missing, []);
  assert.ok(advice.advice.length > 0 && advice.settings !== null);
  assert.deepEqual(advice.measured?.causes, []);
});

test("columns of a course are as long as its time", () => {
  const series = answers.seriesShape(golden("series"), "series");
  assert.equal(series.time.length, 15);
  for (const column of [series.ofu_ratio, series.reported_mfu_ratio, series.ofu_ratio_p95, series.absent_reason]) assert.equal(column.length, 15);
  assert.ok(series.reported_mfu_ratio.includes(null), "a step without a report is not known");
  const fleet = answers.fleetSeriesShape(golden("fleet_series"), "series");
  assert.equal(fleet.gpu_count.length, fleet.time.length);
  const gpus = answers.gpuSeriesShape(golden("gpu_series"), "series");
  assert.equal(gpus.gpus[0]?.ofu_ratio?.length, gpus.time.length);
  assert.equal(answers.gpuSeriesShape(golden("gpu_series_columns"), "series").gpus[0]?.sm_clock_hertz, null);
  const map = answers.gpuMapShape(golden("gpus"), "gpus");
  assert.equal(map.gpus.ofu_ratio.length, map.gpu_count);
});

test("an answer of another form is one line that says where", () => {
  const fleet = golden("fleet") as { fleet: { ofu_ratio: unknown } };
  fleet.fleet.ofu_ratio = "0.4";
  assert.throws(() => answers.fleetShape(fleet, "/api/v1/fleet"), (error) => error instanceof ShapeError && error.message === "/api/v1/fleet.fleet.ofu_ratio: expected a number, found string");
  assert.throws(() => answers.seriesShape(null, "x"), /x: expected an object, found null/);
});
