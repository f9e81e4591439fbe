import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAddress, parseAddress, previousQuery, readAddress, spanQuery, spanSeconds } from "./url_state";
import { jobId, jobName } from "./job_id";
import { mapLayout, naturalKey } from "./layout";

test("every view comes back from its address", () => {
  for (const [path, query] of [["", ""], ["map", "metric=coverage_ratio"], ["jobs", "cursor=100&since=7d"], ["job", "id=train%7E20a%40ml&since=1h"], ["host", "name=n%2F1"],
    ["gpu", "uuid=GPU-1&start=2026-11-29T10%3A00%3A00.000Z&end=2026-11-29T11%3A00%3A00.000Z"]] as const) {
    const address = parseAddress(`/${path}`, query);
    const text = formatAddress(address);
    assert.equal(text, `./${path}${query ? `?${query}` : ""}`);
    assert.deepEqual(parseAddress(`/behind/a/proxy/${path}`, text.split("?")[1] ?? ""), address);
  }
});

test("what makes no sense in an address is the default", () => {
  assert.deepEqual(spanQuery(parseAddress("/", "since=yesterday").span), { since: "24h" });
  assert.deepEqual(spanQuery(parseAddress("/", "start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z").span), { since: "24h" });
  assert.equal(parseAddress("/nothing", "").view, "fleet");
});

test("times are Unix seconds as well, and offsets whose plus nobody escaped", () => {
  const wanted = { since: null, start: Date.UTC(2026, 0, 1), end: Date.UTC(2026, 0, 1, 1) };
  for (const query of ["start=1767225600&end=1767229200", "start=1767225600.0&end=2026-01-01T01:00:00Z", "start=2026-01-01T02:00:00+02:00&end=2026-01-01T03:00:00%2B02:00"]) {
    assert.deepEqual(readAddress("/", query), { address: { view: "fleet", span: wanted, parameters: {} }, misread: [] }, query);
  }
});

test("what of an address is not understood is said, and what is shown instead has an address", () => {
  const hour = "2026-01-01T00:00:00Z", next = "2026-01-01T01:00:00Z";
  for (const [query, said] of [["since=bogus", /^since .bogus. .expected a length/], ["since=30s", /^since .30s./], ["since=0h", /^since .0h./], [`start=${hour}`, /^start without end$/],
    [`end=${hour}`, /^end without start$/], [`start=${next}&end=${hour}`, /^an end that is not after start$/], [`start=${hour}&end=${hour}`, /not after/], [`start=x&end=${next}`, /^start .x./],
    ["start=1&end=99999999999999", /^end .99999999999999./], ["start=2026-01-01&end=2026-01-02", /^start .2026-01-01./], ["by=bogus", /^by .bogus. .expected one of job, .*shown is job/]] as const) {
    const { address, misread } = readAddress("/", query);
    assert.match(misread[0] ?? "", said, query);
    assert.equal(formatAddress(address), "./", query);
  }
  assert.equal(readAddress("/waste", "by=bogus").misread.length, 1);
  assert.equal(formatAddress(readAddress("/waste", "by=bogus&since=24h").address), "./waste?since=24h");
  for (const query of ["", "since=24h", "by=team", "by=", `since=bogus&start=${hour}&end=${next}`, "q=anything"]) assert.deepEqual(readAddress("/", query).misread, [], query);
});

test("spans have lengths, and something before them", () => {
  assert.equal(spanSeconds({ since: "7d", start: null, end: null }), 7 * 86_400);
  assert.deepEqual(previousQuery({ start: Date.UTC(2026, 0, 2), end: Date.UTC(2026, 0, 3) }), { start: "2026-01-01T00:00:00.000Z", end: "2026-01-02T00:00:00.000Z" });
});

test("ids of jobs are those of the API", () => {
  assert.equal(jobId("train-0", "ml"), "train-0@ml");
  assert.equal(jobId("a/b \u00e9", null), "a~2fb~20~c3~a9");
  assert.equal(jobName("a~2fb~20~c3~a9@ml"), "a/b \u00e9@ml");
  assert.equal(jobName("~ff"), "~ff");
});

test("names sort as people count", () => {
  const names = ["n10", "n9", "rack2-n1", "rack10-n1", "n9b", "n"];
  assert.deepEqual([...names].sort((a, b) => (naturalKey(a) < naturalKey(b) ? -1 : 1)), ["n", "n9", "n9b", "n10", "rack2-n1", "rack10-n1"]);
});

test("a map keeps hosts together, in lines of one length, and has every GPU once", () => {
  const hosts = [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, null, null];
  const layout = mapLayout(hosts, 22 * 8);
  assert.equal(layout.group, 4);
  assert.equal(new Set(layout.place).size, hosts.length);
  assert.deepEqual([...layout.place], [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 16]);
  const large = mapLayout(Array.from({ length: 100_000 }, (_, i) => Math.floor(i / 8)), 1240);
  assert.ok(large.columns * large.cell <= 1240 && large.rows * large.cell <= 700, JSON.stringify([large.columns, large.rows, large.cell]));
});
