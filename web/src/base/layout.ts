// Where on a map each GPU goes: hosts follow each other, the GPUs of a host lie side by side, and hosts line up as far as they are of one
// size. Pure arithmetic.

export interface MapLayout {
  columns: number;
  rows: number;
  cell: number; // edge in CSS pixels
  group: number; // cells of a host in a row
  place: Int32Array; // of each GPU: its cell
}

// By which names sort as people count: "n9" before "n10".
export function naturalKey(name: string): string {
  return name.replace(/\d+/g, (digits) => digits.padStart(12, "0"));
}

const CELL_MAX = 22;
const GROUP_MAX = 16;
const HEIGHT_WANTED = 640;

// `host`: of each GPU, in the order of the map, GPUs of one host together.
export function mapLayout(host: (number | null)[], width: number): MapLayout {
  const sizes: number[] = [];
  host.forEach((one, i) => {
    if (i > 0 && one === host[i - 1] && one !== null) sizes[sizes.length - 1] = (sizes.at(-1) ?? 0) + 1;
    else sizes.push(1);
  });
  const group = Math.max(1, Math.min(GROUP_MAX, sizes.reduce((a, b) => Math.max(a, b), 1)));
  const places = sizes.reduce((sum, size) => sum + Math.ceil(size / group), 0);
  const usable = Math.max(width, 64);
  let cell = CELL_MAX;
  const perRow = (edge: number): number => Math.max(1, Math.floor(usable / (edge * group)));
  while (cell > 1 && Math.ceil(places / perRow(cell)) * cell > HEIGHT_WANTED) cell -= 1;
  const groups = Math.min(perRow(cell), Math.max(1, places));
  const columns = groups * group;
  const place = new Int32Array(host.length);
  let at = 0; // first cell of the host
  let gpu = 0;
  for (const size of sizes) {
    for (let i = 0; i < size; i += 1) place[gpu++] = at + i;
    at += Math.ceil(size / group) * group;
  }
  return { columns, rows: Math.max(1, Math.ceil(at / columns)), cell, group, place };
}
