// Parts of the calendar that an account is made for, as milliseconds since 1970: whole weeks from Monday to Monday and whole months, in UTC or in
// local time. Pure; `now` is an argument.
import type { Zone } from "./format";

export interface Period {
  start: number;
  end: number; // not part of it
}

function midnight(zone: Zone, year: number, month: number, day: number): number {
  return zone === "utc" ? Date.UTC(year, month, day) : new Date(year, month, day).getTime();
}

function dayOf(now: number, zone: Zone): { year: number; month: number; day: number; weekday: number } {
  const t = new Date(now);
  if (zone === "utc") return { year: t.getUTCFullYear(), month: t.getUTCMonth(), day: t.getUTCDate(), weekday: (t.getUTCDay() + 6) % 7 };
  return { year: t.getFullYear(), month: t.getMonth(), day: t.getDate(), weekday: (t.getDay() + 6) % 7 };
}

// The last whole week, or the one `back` weeks before it.
export function wholeWeek(now: number, zone: Zone, back = 0): Period {
  const { year, month, day, weekday } = dayOf(now, zone);
  const monday = day - weekday - 7 * back;
  return { start: midnight(zone, year, month, monday - 7), end: midnight(zone, year, month, monday) };
}

export function wholeMonth(now: number, zone: Zone): Period {
  const { year, month } = dayOf(now, zone);
  return { start: midnight(zone, year, month - 1, 1), end: midnight(zone, year, month, 1) };
}
