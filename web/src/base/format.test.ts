import assert from "node:assert/strict";
import { test } from "node:test";
import { band, bytesPerSecondTick, csv, duration, gpuHours, megahertz, percent, percentTick, points, shortTime, tick, time, usd } from "./format";

test("what is not known is unknown and never 0", () => {
  for (const text of [percent(null), gpuHours(null), usd(null), megahertz(null), points(null), duration(null), time(null, "utc"), band(null, 1)]) {
    assert.equal(text, "unknown");
  }
  assert.equal(percent(0), "0.0\u202f%");
});

test("numbers have three digits and narrow spaces between thousands", () => {
  assert.equal(gpuHours(12345.6), "12\u202f346 GPU-h");
  assert.equal(gpuHours(17.34), "17.3 GPU-h");
  assert.equal(gpuHours(0.526), "0.53 GPU-h");
  assert.equal(usd(1234.5), "$1\u202f235");
  assert.equal(megahertz(1.83e9), "1\u202f830 MHz");
});

test("a share above 1 and below 0 is shown as it is", () => {
  assert.equal(percent(1.234), "123.4\u202f%");
  assert.equal(points(-0.011), "\u22121.1\u202fpp");
  assert.equal(points(0.2), "+20.0\u202fpp");
});

test("a band has as many digits as tell its ends apart", () => {
  assert.equal(band(0.4, 0.5), "40.0\u202f% to 50.0\u202f%");
  assert.equal(band(0.4371, 0.4374), "43.71\u202f% to 43.74\u202f%");
});

test("labels of an axis have as many digits as tell them apart", () => {
  const axis = (label: (value: number, step: number) => string, step: number): string[] => [0, 1, 2, 3, 4].map((i) => label(i * step, step));
  for (const step of [0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.0002]) assert.equal(new Set(axis(percentTick, step)).size, 5, `${step}`);
  assert.deepEqual(axis(percentTick, 0.0025).slice(0, 3), ["0.00\u202f%", "0.25\u202f%", "0.50\u202f%"]);
  assert.deepEqual(axis(percentTick, 0.05).slice(0, 3), ["0\u202f%", "5\u202f%", "10\u202f%"]);
  assert.deepEqual([1830.5, 1831].map((value) => tick(value, 0.5)), ["1\u202f830.5", "1\u202f831.0"]);
  assert.deepEqual([1.2e9, 1.2005e9].map((value) => bytesPerSecondTick(value, 5e5)), ["1.2000 GB/s", "1.2005 GB/s"]);
  assert.deepEqual([0, 5e8, 1e9].map((value) => bytesPerSecondTick(value, 5e8)), ["0 B/s", "500 MB/s", "1.0 GB/s"]);
});

test("times say their zone", () => {
  const t = Date.UTC(2026, 10, 29, 7, 5, 9);
  assert.equal(time(t, "utc"), "2026-11-29 07:05\u00a0UTC");
  assert.equal(time(t, "utc", true), "2026-11-29 07:05:09\u00a0UTC");
  assert.equal(shortTime(t, "utc"), "11-29 07:05");
  assert.match(time(t, "local"), /UTC[+\u2212]\d\d:\d\d$/);
});

test("durations have two parts", () => {
  assert.equal(duration(0.52), "0.52 s");
  assert.equal(duration(61), "1 min 1 s");
  assert.equal(duration(2 * 86_400 + 3 * 3600 + 5), "2 d 3 h");
});

test("a file quotes what it has to, and starts no formula in a spreadsheet", () => {
  assert.equal(csv([["a,b", 'say "x"', null, -1.5]]), '"a,b","say ""x""",,-1.5\r\n');
  assert.equal(csv([["=HYPERLINK(1)", "@x", "-job"]]), "'=HYPERLINK(1),'@x,'-job\r\n");
});
