import assert from "node:assert/strict";
import { test } from "node:test";
import { wholeMonth, wholeWeek } from "./periods";

const text = ({ start, end }: { start: number; end: number }): string => `${new Date(start).toISOString().slice(0, 10)} ${new Date(end).toISOString().slice(0, 10)}`;

test("a whole week ends on the Monday before, also on a Monday and on a Sunday", () => {
  assert.equal(text(wholeWeek(Date.UTC(2026, 10, 30, 0, 0, 1), "utc")), "2026-11-23 2026-11-30"); // a Monday
  assert.equal(text(wholeWeek(Date.UTC(2026, 10, 29, 23, 59), "utc")), "2026-11-16 2026-11-23"); // the Sunday before
  assert.equal(text(wholeWeek(Date.UTC(2026, 10, 30), "utc", 1)), "2026-11-16 2026-11-23");
  assert.equal(text(wholeWeek(Date.UTC(2027, 0, 2), "utc")), "2026-12-21 2026-12-28");
});

test("a whole month is the one before this", () => {
  assert.equal(text(wholeMonth(Date.UTC(2026, 2, 31), "utc")), "2026-02-01 2026-03-01");
  assert.equal(text(wholeMonth(Date.UTC(2027, 0, 1), "utc")), "2026-12-01 2027-01-01");
});
