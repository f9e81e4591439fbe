// The only place that talks to the service: one answer for a path and its parameters, checked, or an error in one line. Of the same
// question that is asked while one is under way, both get the one answer.
import type { Reader } from "./shape";
import { ShapeError } from "./shape";
import * as answers from "./answers";

export type Query = Record<string, string>;

// status 0: the service did not answer at all; -1: a mistake of the page's own.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const TOKEN_KEY = "flopsight-token";

// A bearer token is held for this tab only.
export function setToken(token: string): void {
  if (token === "") sessionStorage.removeItem(TOKEN_KEY);
  else sessionStorage.setItem(TOKEN_KEY, token);
}

export function address(path: string, query: Query = {}): string {
  const text = new URLSearchParams(query).toString();
  return `./api/v1/${path}${text ? `?${text}` : ""}`;
}

interface Told {
  method: "POST" | "DELETE";
  body: unknown;
}

async function request(url: string, signal: AbortSignal | null, told: Told | null): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN_KEY);
  const headers: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};
  if (told) headers["Content-Type"] = "application/json";
  try {
    return await fetch(url, told ? { headers, signal, method: told.method, body: told.method === "POST" ? JSON.stringify(told.body) : null } : { headers, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "the service does not answer");
  }
}

// What a proxy says, in a form of its own, whose service is gone.
const PROXY_ALONE = new Set([502, 503, 504]);

function parsed(response: Response, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    if (PROXY_ALONE.has(response.status)) throw new ApiError(0, `the service does not answer (${response.status} of what is before it)`);
    throw new ApiError(response.status, `${response.status} ${response.statusText}: an answer that is not JSON`);
  }
}

function refusal(response: Response, value: unknown): ApiError {
  return new ApiError(response.status, value !== null && typeof value === "object" && "error" in value ? String(value.error) : response.statusText);
}

async function ask<T>(url: string, reader: Reader<T>, signal: AbortSignal | null, told: Told | null = null): Promise<T> {
  const response = await request(url, signal, told);
  const value = parsed(response, await response.text());
  if (!response.ok) throw refusal(response, value);
  try {
    return reader(value, url);
  } catch (error) {
    if (error instanceof ShapeError) throw new ApiError(response.status, `an answer in a form that this page does not know: ${error.message}`);
    throw error;
  }
}

// Whether answers are asked for with a token, which a link does not carry.
export function hasToken(): boolean {
  return sessionStorage.getItem(TOKEN_KEY) !== null;
}

// An answer as it came, to be saved.
export async function file(url: string): Promise<Blob> {
  const response = await request(url, null, null);
  if (!response.ok) throw refusal(response, parsed(response, await response.text()));
  return response.blob();
}

const asked = new Map<string, Promise<unknown>>();

function get<T>(path: string, query: Query, reader: Reader<T>): Promise<T> {
  const url = address(path, query);
  const under_way = asked.get(url) as Promise<T> | undefined;
  if (under_way) return under_way;
  const answer = ask(url, reader, null).finally(() => asked.delete(url));
  asked.set(url, answer);
  return answer;
}

const jobPath = (id: string): string => `jobs/${encodeURIComponent(id)}`;

export const fleet = (query: Query) => get("fleet", query, answers.fleetShape);
export const fleetSeries = (query: Query) => get("fleet/series", query, answers.fleetSeriesShape);
export const jobs = (query: Query) => get("jobs", query, answers.jobsShape);
export const job = (id: string, query: Query) => get(jobPath(id), query, answers.jobShape);
export const series = (id: string, query: Query) => get(`${jobPath(id)}/series`, query, answers.seriesShape);
export const gpuSeries = (query: Query) => get("gpus/series", query, answers.gpuSeriesShape);
export const gpuMap = (query: Query) => get("gpus", query, answers.gpuMapShape);
export const mfu = (query: Query) => get("mfu", query, answers.mfuShape);
export const waste = (query: Query) => get("waste", query, answers.wasteShape);
export const phases = (id: string, query: Query) => get(`${jobPath(id)}/phases`, query, answers.phasesShape);
export const advice = (id: string, query: Query) => get(`${jobPath(id)}/advice`, query, answers.adviceShape);
export const targets = () => get("targets", {}, answers.targetsShape);

// What somebody says of a finding. `author` counts only where the service does not know its users.
export type Act = "acknowledge" | "unacknowledge" | "resolve";
export const findings = (query: Query) => get("findings", query, answers.findingsShape);
export const finding = (id: string) => get(`findings/${encodeURIComponent(id)}`, {}, answers.findingShape);
export const act = (what: Act, id: string, said: { note: string; author: string }) =>
  ask(address(`findings/${encodeURIComponent(id)}/${what}`), answers.findingShape, null, { method: "POST", body: said });
export const silences = () => get("silences", {}, answers.silencesShape);
export const silence = (told: { matchers: { name: string; pattern: string }[]; duration_seconds: number; comment: string }) =>
  ask(address("silences"), answers.silenceShape, null, { method: "POST", body: told });
export const endSilence = (id: string) => ask(address(`silences/${encodeURIComponent(id)}`), answers.endedShape, null, { method: "DELETE", body: null });

// Only the latest search counts.
let search_under_way: AbortController | null = null;
export async function search(text: string, query: Query): Promise<answers.Matches> {
  search_under_way?.abort();
  search_under_way = new AbortController();
  const found = await ask(address("search", { q: text, ...query }), answers.searchShape, search_under_way.signal);
  return found.matches;
}
