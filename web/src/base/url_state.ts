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

export function parseAddress(path: string, query: string): Address {
  const last = path.split("/").pop() ?? "";
  const view = (Object.keys(PATHS) as View[]).find((name) => PATHS[name] === last) ?? "fleet";
  const span: Span = { since: defaultSince(view), start: null, end: null };
  const parameters: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "since") {
      if (LENGTH.test(value)) span.since = value;
    } else if (name !== "start" && name !== "end") {
      parameters[name] = value;
    }
  }
  const fixed = (name: string): number | null => {
    const text = new URLSearchParams(query).get(name);
    const milliseconds = text === null ? NaN : Date.parse(text);
    return Number.isFinite(milliseconds) ? milliseconds : null;
  };
  const start = fixed("start");
  const end = fixed("end");
  if (start !== null && end !== null && start < end) return { view, span: { since: null, start, end }, parameters };
  return { view, span, parameters };
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
