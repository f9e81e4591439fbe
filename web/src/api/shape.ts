// What an answer has to look like, checked when it arrives: a page that trusts a type and is wrong shows "undefined" as if it were a number.
// Members that are not named are let through, as the API may grow. A mistake is one line: where, what was expected, what was found.

export class ShapeError extends Error {}

export type Reader<T> = (value: unknown, where: string) => T;
type Read<R> = R extends Reader<infer T> ? T : never;

function kindOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
}

function expected(what: string, value: unknown, where: string): never {
  throw new ShapeError(`${where}: expected ${what}, found ${kindOf(value)}`);
}

export const number: Reader<number> = (value, where) => (typeof value === "number" ? value : expected("a number", value, where));
export const text: Reader<string> = (value, where) => (typeof value === "string" ? value : expected("a text", value, where));
export const flag: Reader<boolean> = (value, where) => (typeof value === "boolean" ? value : expected("true or false", value, where));

// An RFC 3339 time, as milliseconds since 1970.
export const instant: Reader<number> = (value, where) => {
  const milliseconds = Date.parse(text(value, where));
  return Number.isFinite(milliseconds) ? milliseconds : expected("a time", value, where);
};

// null, or not there at all: not known.
export function maybe<T>(reader: Reader<T>): Reader<T | null> {
  return (value, where) => (value === null || value === undefined ? null : reader(value, where));
}

export function list<T>(reader: Reader<T>): Reader<T[]> {
  return (value, where) => {
    if (!Array.isArray(value)) return expected("a list", value, where);
    return value.map((one, i) => reader(one, `${where}[${i}]`));
  };
}

// Lists of numbers are long: read in place.
export const column: Reader<(number | null)[]> = (value, where) => {
  if (!Array.isArray(value)) return expected("a list", value, where);
  for (const one of value) if (one !== null && typeof one !== "number") return expected("numbers and null", one, where);
  return value as (number | null)[];
};

export function object<S extends Record<string, Reader<unknown>>>(shape: S): Reader<{ [K in keyof S]: Read<S[K]> }> {
  return (value, where) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return expected("an object", value, where);
    const out: Record<string, unknown> = {};
    for (const [name, reader] of Object.entries(shape)) out[name] = reader((value as Record<string, unknown>)[name], `${where}.${name}`);
    return out as { [K in keyof S]: Read<S[K]> };
  };
}

export function record<T>(reader: Reader<T>): Reader<Record<string, T>> {
  return (value, where) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return expected("an object", value, where);
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, reader(one, `${where}.${name}`)]));
  };
}
