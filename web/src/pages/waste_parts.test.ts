import assert from "node:assert/strict";
import { test } from "node:test";
import type { Waste, WasteRow } from "../api/answers";
import { movers, rowBefore, wasteParts } from "./waste_parts";

function row(team: string | null, lost: number): WasteRow {
  return {
    key: { team }, user: null, job_count: 1, ofu_ratio: 0.5,
    gpu_hours: { allocated: 100, delivered: 90 - lost, lost, lost_by_cause: { host: lost + 5, clock_gain: -5, stalled: 0 }, unmeasured: 10 },
    usd: null, usd_absent_reason: null, attainable: null, attainable_absent_reason: "no target",
  };
}

function account(rows: WasteRow[], omitted = 0): Waste {
  return { window: { start: 0, end: 1 }, simulated: false, quality: [], source: "store", by: "team", total: row(null, 0), rows, rows_omitted_count: omitted, assumptions: [] };
}

test("parts of an account add up to the whole, with a gain as a negative part", () => {
  const parts = wasteParts(row("a", 20));
  assert.deepEqual(parts.map(({ name }) => name), ["delivered", "host", "clock_gain", "unmeasured"]);
  assert.ok(Math.abs(parts.reduce((sum, { share }) => sum + (share ?? 0), 0) - 1) < 1e-12);
  assert.equal(parts[2]?.value, "\u22125.00 GPU-h");
});

test("what changed is by how much, with what came and what went", () => {
  const moved = movers(account([row("a", 20), row("new", 7)]), account([row("a", 50), row("gone", 9), row(null, 0)]), 8);
  assert.deepEqual(moved.map(({ row: { key }, hours, gone }) => [key?.team, hours, gone]), [["a", -30, false], ["gone", -9, true], ["new", 7, false]]);
});

test("a row that may only have been cut off before is not called new", () => {
  assert.equal(rowBefore(row("b", 1), account([row("a", 1)])), null);
  assert.equal(rowBefore(row("b", 1), account([row("a", 1)], 5)), undefined);
  assert.deepEqual(movers(account([row("b", 1)]), account([row("a", 1)], 5), 8).map(({ gone }) => gone), [true]);
});
