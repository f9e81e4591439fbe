// What a reader sees is in the address: which view, of what, over which time. Pure functions of text, so that the back button, a reload
// and a link in a chat all lead to the same.

export type View = "fleet" | "map" | "jobs" | "job" | "study" | "findings" | "finding" | "waste" | "quality" | "host" | "gpu";

const PATHS: Record<View, string> = {
  fleet: "",
  map: "map",
  jobs: "jobs",
  job: "job",
  study: "study",
  findings: "findings",
  finding: "finding",
  waste: "waste",
  quality: "quality",
  host: "host",
  gpu: "gpu",
};

export interface Span {
  // A length up to now ("24h"), or a fixed part of time in milliseconds since 1970.
  since: string | null;
  start: number | null;
  end: number | null;
}

export interface Address {
  view: View;
  span: Span;
  // Everything else that a view has: id, by, metric, ….
  parameters: Record<string, string>;
}

export const DEFAULT_SINCE = "24h";
// Where nothing is said: a week for the account that is made weekly.
export function defaultSince(view: View): string {
  return view === "waste" ? "7d" : DEFAULT_SINCE;
}
const LENGTH = /^[1-9]\d{0,4}(?:m|h|d|w)$/;
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
const LATEST = 253_402_300_799_000; // the year 9999, as the API has it

// What a parameter may be; the first is what is shown without it.
const CHOICES: Partial<Record<View, Record<string, string[]>>> = {
  fleet: { by: ["job", "team", "user", "namespace", "model"] },
  waste: { by: ["team", "user", "namespace", "job", "family", "model"] },
  map: { metric: ["ofu_ratio", "tensor_active_ratio", "sm_clock_hertz", "coverage_ratio"], of: ["15m", "5m", "1h", "span"] },
};

// RFC 3339 with an offset, or Unix seconds, as the API takes them.
function instant(text: string): number | null {
  // A plus that nobody escaped arrives as a space.
  const written = text.replace(/ (?=\d\d:\d\d$)/, "+");
  const milliseconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : INSTANT.test(written) ? Date.parse(written) : NaN;
  return milliseconds >= 0 && milliseconds <= LATEST ? milliseconds : null;
}

const quoted = (value: string): string => `\u201c${[...value].slice(0, 40).join("")}\u201d`;

// The fixed part of time that is asked for; nothing where it is none, which `misread` then says.
function fixedSpan(query: URLSearchParams, misread: string[]): Span | null {
  const texts = { start: query.get("start"), end: query.get("end") };
  if (texts.start === null && texts.end === null) return null;
  if (texts.start === null || texts.end === null) {
    misread.push(texts.end === null ? "start without end" : "end without start");
    return null;
  }
  const start = instant(texts.start);
  const end = instant(texts.end);
  for (const [name, value] of [["start", start], ["end", end]] as const) {
    if (value === null) misread.push(`${name} ${quoted(texts[name] ?? "")} (expected Unix seconds, or a time such as 2026-01-31T12:00:00Z)`);
  }
  if (start === null || end === null) return null;
  if (start < end) return { since: null, start, end };
  misread.push("an end that is not after start");
  return null;
}

// misread: what the address says and nobody can show, in words; the default stands for it.
export function readAddress(path: string, text: string): { address: Address; misread: string[] } {
  const last = path.split("/").pop() ?? "";
  const view = (Object.keys(PATHS) as View[]).find((name) => PATHS[name] === last) ?? "fleet";
  const query = new URLSearchParams(text);
  const parameters: Record<string, string> = {};
  const misread: string[] = [];
  const fixed = fixedSpan(query, misread);
  let since = defaultSince(view);
  for (const [name, value] of query) {
    const choices = CHOICES[view]?.[name];
    if (name === "since") {
      if (LENGTH.test(value)) since = value;
      else if (fixed === null) misread.push(`since ${quoted(value)} (expected a length such as 90m, 24h, 7d or 2w)`);
    } else if (choices && value !== "" && !choices.includes(value)) {
      misread.push(`${name} ${quoted(value)} (expected one of ${choices.join(", ")}; shown is ${choices[0]})`);
    } else if (name !== "start" && name !== "end") {
      parameters[name] = value;
    }
  }
  return { address: { view, span: fixed ?? { since, start: null, end: null }, parameters }, misread };
}

export function parseAddress(path: string, query: string): Address {
  return readAddress(path, query).address;
}

export function formatAddress(address: Address): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(address.parameters)) if (value !== "") query.set(name, value);
  for (const [name, value] of Object.entries(spanQuery(address.span))) {
    if (name !== "since" || value !== defaultSince(address.view)) query.set(name, value);
  }
  const text = query.toString();
  return `./${PATHS[address.view]}${text ? `?${text}` : ""}`;
}

// As the API takes it.
export function spanQuery(span: Span): Record<string, string> {
  if (span.start !== null && span.end !== null) {
    return { start: new Date(span.start).toISOString(), end: new Date(span.end).toISOString() };
  }
  return { since: span.since ?? DEFAULT_SINCE };
}

const UNIT_SECONDS: Record<string, number> = { m: 60, h: 3600, d: 86_400, w: 7 * 86_400 };

export function spanSeconds(span: Span): number {
  if (span.start !== null && span.end !== null) return (span.end - span.start) / 1000;
  const text = span.since ?? DEFAULT_SINCE;
  return Number(text.slice(0, -1)) * (UNIT_SECONDS[text.slice(-1)] ?? 1);
}

// The same length before it, as the API takes it; `end` of an open window is now.
export function previousQuery(window: { start: number; end: number }): Record<string, string> {
  const length = window.end - window.start;
  return { start: new Date(window.start - length).toISOString(), end: new Date(window.start).toISOString() };
}
