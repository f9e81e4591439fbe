import assert from "node:assert/strict";
import { test } from "node:test";
import { groundLines } from "./grounds";

test("an empty log of quality is not taken for good data", () => {
  const said = groundLines([], { unmeasured_ratio: 0.25, absent_ratios: { gap: 0.2, blank: 0.05, stale: 0 }, data_findings: [{ kind: "counter_frozen", state: "open" }, { kind: "unseen", state: "resolved" }] });
  assert.equal(said.length, 3);
  assert.match(said[0] ?? "", /^25\.0.% of the allocated time is unmeasured: 20\.0.% .*; 5\.0.% /);
  assert.equal(said[1], "2 findings are about the measurement, 1 open: counter frozen, unseen.");
  assert.match(said[2] ?? "", /is not kept/);
  assert.match(groundLines([], { unmeasured_ratio: null, data_findings: null })[0] ?? "", /^What was wrong with single readings is not kept/);
});

test("good data are called so only where time and findings were looked at", () => {
  assert.match(groundLines([], { unmeasured_ratio: 0, data_findings: [] })[0] ?? "", /^All of the allocated time was measured/);
  assert.doesNotMatch(groundLines([], { unmeasured_ratio: 0, data_findings: null })[0] ?? "", /^All/);
  assert.deepEqual(groundLines([{ code: "blank", count: 1, where: "a", meaning: "b" }], { unmeasured_ratio: 0, data_findings: [] }), []);
});
