// Parts that all pages are made of: figures that say how they were made, tables, and the states that are no data (waiting, nothing there, a
// mistake).
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import { percent } from "../base/format";
import { ApiError, file, hasToken } from "../api/client";
import { fileName, save } from "../charts/frame";
import type { Asked } from "./page";
import type { Quality, Summary } from "../api/answers";
import { groundLines } from "./grounds";
import type { Grounds } from "./grounds";

// How a number came about, behind one click on it.
export interface Explanation {
  title: string;
  says: Child[]; // a paragraph each
  formula?: string;
  numbers?: [string, string][]; // what went into it
  source?: string; // address of the answer that it is from
}

export function explain(explanation: Explanation): void {
  const dialog = h(
    "dialog",
    { class: "explain", "aria-labelledby": "explain-title" },
    h("h2", { id: "explain-title" }, explanation.title),
    explanation.says.map((paragraph) => h("p", null, paragraph)),
    explanation.formula ? h("p", { class: "formula" }, explanation.formula) : null,
    explanation.numbers && explanation.numbers.length > 0
      ? h("table", { class: "numbers" }, h("tbody", null, explanation.numbers.map(([name, value]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, value)))))
      : null,
    explanation.source
      ? h("p", null, "From ", answerLink(explanation.source.replace(/^\.\//, "/"), explanation.source, fileName("answer", "json")), ".")
      : null,
    h("form", { method: "dialog" }, h("button", { type: "submit" }, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
}

// To an answer of the service. Where it wants a token, which a link does not carry, the answer is asked for here and saved under the name.
export function answerLink(text: string, url: string, file_name: string): HTMLElement {
  const click = (event: Event): void => {
    if (!hasToken()) return;
    event.preventDefault();
    file(url).then((blob) => save(blob, file_name), (error: unknown) => {
      explain({ title: `${text} was not saved`, says: [error instanceof ApiError ? error.message : String(error)] });
    });
  };
  return h("a", { href: url, target: "_blank", rel: "noopener", on: { click } }, text);
}

export interface Figure {
  label: string;
  value: string;
  below?: Child;
  unknown?: boolean;
  why: () => Explanation;
}

export function figure(figure: Figure): HTMLElement {
  return h(
    "div",
    { class: figure.unknown ? "figure not-known" : "figure", "data-key": figure.label },
    h("button", { type: "button", class: "figure-label", title: "How this number was made", "aria-label": `${figure.label} ${figure.value}: how this number was made`, on: { click: () => explain(figure.why()) } },
      figure.label, h("span", { class: "why", "aria-hidden": "true" }, "?")),
    h("div", { class: "figure-value" }, figure.value),
    figure.below ? h("div", { class: "figure-below" }, figure.below) : null,
  );
}

export function section(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "panel", "data-key": title, "aria-label": title }, h("h2", null, title), children);
}

export interface Column<T> {
  title: string;
  number?: boolean;
  cell: (row: T) => Child;
  why?: () => Explanation;
}

const MANY_COLUMNS = 9; // such a table is made narrower
const FEW_COLUMNS = 4; // such a table is not drawn out over the whole width

export function table<T>(columns: Column<T>[], rows: T[], key: (row: T) => string, caption: string): HTMLElement {
  return h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      // Roles are said as a phone shows rows as blocks, which would take the table's meaning from it.
      { class: columns.length <= FEW_COLUMNS ? "rows few" : columns.length >= MANY_COLUMNS ? "rows many" : "rows", role: "table", "aria-label": caption },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((column) =>
        h("th", { scope: "col", role: "columnheader", class: column.number ? "number" : "" },
          column.why
            ? h("button", { type: "button", class: "column-why", title: "How this column is made", on: { click: () => column.why && explain(column.why()) } }, column.title, h("span", { class: "why", "aria-hidden": "true" }, "?"))
            : column.title)))),
      h("tbody", { role: "rowgroup" }, rows.map((row) =>
        h("tr", { role: "row", "data-key": key(row) }, columns.map((column, i) =>
          i === 0
            ? h("th", { scope: "row", role: "rowheader" }, column.cell(row))
            : h("td", { role: "cell", class: column.number ? "number" : "", "data-title": column.title }, column.cell(row)))))),
    ),
  );
}

// Delivered, lost and unmeasured of what was allocated, as a thin bar.
export function accountBar(row: Pick<Summary, "gpu_hours_allocated" | "gpu_hours_delivered" | "gpu_hours_lost" | "gpu_hours_unmeasured">): HTMLElement {
  const whole = row.gpu_hours_allocated ?? 0;
  const part = (name: string, hours: number | null): Child =>
    whole > 0 && hours !== null && hours > 0 ? h("span", { class: name, vars: { "--share": String(hours / whole) } }) : null;
  const said = whole > 0
    ? `delivered ${percent((row.gpu_hours_delivered ?? 0) / whole)}, lost ${percent((row.gpu_hours_lost ?? 0) / whole)}, unmeasured ${percent((row.gpu_hours_unmeasured ?? 0) / whole)}`
    : "nothing allocated";
  return h("span", { class: "account-bar", role: "img", "aria-label": said, title: said },
    part("delivered", row.gpu_hours_delivered), part("lost", row.gpu_hours_lost), part("unmeasured", row.gpu_hours_unmeasured));
}

export function unknown(reason: string): HTMLElement {
  return h("span", { class: "unknown", title: reason }, "unknown");
}

// A part of the page that waits for its answer, or says in one line why there is none. What came before stays, with the line above it. That the
// service does not answer is said once, by the frame, which reads here of when the oldest part is that stays.
export function asked<T>(answer: Asked<T>, show: (value: T) => Child): Child {
  if (answer.error?.status === 0) {
    const away = h("span", { class: "away", hidden: true, "data-answered": answer.answered });
    return [away, answer.value !== null ? show(answer.value) : nothing("Waiting for the service\u2026")];
  }
  const error = answer.error ? h("p", { class: "notice error", role: "alert" }, answer.error.message) : null;
  if (answer.value !== null) return [error, show(answer.value)];
  return error ?? h("p", { class: "waiting", role: "status" }, "Loading\u2026");
}

export function nothing(...children: Child[]): HTMLElement {
  return h("p", { class: "nothing" }, children);
}

export function qualityList(quality: Quality, grounds: Grounds): Child {
  const shown = quality.filter((entry) => entry.code !== "simulated");
  const lines = groundLines(quality, grounds).map((line) => h("p", { class: "nothing" }, line));
  if (shown.length === 0) return lines;
  return [lines, table(
    [
      { title: "What", cell: (entry) => entry.code.replaceAll("_", " ") },
      { title: "How often", number: true, cell: (entry) => String(entry.count) },
      { title: "Where", cell: (entry) => h("span", { class: "wrap" }, entry.where) },
      { title: "Meaning", cell: (entry) => h("span", { class: "wrap" }, entry.meaning) },
    ],
    shown,
    (entry) => `${entry.code} ${entry.where}`,
    "Quality of the data",
  )];
}

// Of hours: a share of nothing is not known.
export function shareOf(part: number | null, whole: number | null): number | null {
  return part === null || whole === null || whole <= 0 ? null : part / whole;
}

export function assumptionList(assumptions: string[]): Child {
  return h("ul", { class: "assumptions" }, assumptions.map((line) => h("li", null, line)));
}

export function choice(label: string, options: [string, string][], value: string, choose: (value: string) => void): HTMLElement {
  return h("label", { class: "choice" }, h("span", null, label),
    h("select", { on: { change: (event) => choose((event.target as HTMLSelectElement).value) } },
      options.map(([name, text]) => h("option", { value: name, selected: name === value }, text))));
}

// Few options side by side.
export function tabs(label: string, options: [string, string][], value: string, choose: (value: string) => void): HTMLElement {
  return h("div", { class: "tabs", role: "group", "aria-label": label },
    options.map(([name, text]) =>
      h("button", { type: "button", "data-key": name, "aria-pressed": name === value ? "true" : "false", on: { click: () => choose(name) } }, text)));
}
