// Silences: what matches one is shown and kept, and not delivered, until it ends.
import { h, keep } from "../base/dom";
import type { Child } from "../base/dom";
import { time } from "../base/format";
import { visible } from "../base/visible";
import * as api from "../api/client";
import type { Silences } from "../api/answers";
import { refusal } from "./finding_parts";
import { Asked } from "./page";
import type { Context } from "./page";
import { asked, nothing, table } from "./parts";

const NAMES = ["job", "kind", "user", "team", "host", "gpu", "namespace", "severity", "model", "id"];
const LENGTHS: [string, string][] = [["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"], ["604800", "1 week"], ["2592000", "30 days"]];

export class SilenceList {
  private readonly list: Asked<Silences>;
  private said = "";

  constructor(private readonly context: Context) {
    this.list = new Asked(context.changed);
  }

  async load(): Promise<void> {
    await this.list.ask(api.silences());
  }

  render(): Child {
    if (this.list.error?.status === 403) return nothing("Only those who see everybody\u2019s jobs see the silences.");
    return [
      asked(this.list, (value) =>
        value.silences.length === 0
          ? nothing("No silence holds. What matches one is still found and shown, and not delivered.")
          : table(
              [
                { title: "Matches", cell: (one) => h("span", { class: "wrap" }, one.matchers.map(({ name, pattern }) => `${name}=${pattern}`).join(", ")) },
                { title: "From", cell: (one) => h("span", { class: "time" }, time(one.start, this.context.zone)) },
                { title: "Until", cell: (one) => h("span", { class: "time" }, time(one.end, this.context.zone)) },
                { title: "By", cell: (one) => h("span", { class: "name" }, one.author) },
                { title: "Comment", cell: (one) => h("span", { class: "wrap" }, one.comment) },
                { title: "End it", cell: (one) => h("button", { type: "button", "aria-label": `End the silence of ${one.matchers.map(({ name, pattern }) => `${name}=${pattern}`).join(", ")}`, on: { click: () => void this.end(one.id) } }, "End") },
              ],
              value.silences,
              (one) => one.id,
              "Silences",
            )),
      this.said ? h("p", { class: "notice error", role: "alert" }, this.said) : null,
    ];
  }

  private async end(id: string): Promise<void> {
    try {
      await api.endSilence(id);
      this.said = "";
    } catch (error) {
      this.said = refusal(error);
    }
    await this.load();
    this.context.changed();
  }
}

// Adds one. Matchers are given by the page at first and can be changed.
export class SilenceForm {
  readonly element: HTMLElement;
  private readonly rows = h("div", { class: "matchers" });
  private readonly length = h("select", { "aria-label": "How long" }, LENGTHS.map(([value, label]) => h("option", { value, selected: value === "14400" }, label)));
  private readonly comment = h("input", { type: "text", "aria-label": "Comment", placeholder: "Why", maxlength: "900", required: true });
  private readonly said = h("p", { class: "small", role: "status" });

  constructor(matchers: [string, string][], private readonly done: () => void) {
    for (const [name, pattern] of matchers) this.add(name, pattern);
    this.element = keep(h("form", { class: "answer silence", on: { submit: (event) => {
      event.preventDefault();
      void this.send();
    } } },
      this.rows,
      h("button", { type: "button", class: "quiet", on: { click: () => this.add("kind", "") } }, "And another"),
      this.length, this.comment, h("button", { type: "submit" }, "Silence"), this.said));
  }

  private add(name: string, pattern: string): void {
    this.rows.append(h("span", { class: "matcher" },
      h("select", { "aria-label": "Property" }, NAMES.map((one) => h("option", { value: one, selected: one === name }, one))),
      h("input", { type: "text", "aria-label": "Pattern, * is any text", placeholder: "pattern, * is any text", value: pattern, maxlength: "300" }),
      h("button", { type: "button", class: "quiet", "aria-label": "Without this property", on: { click: (event) => (event.target as HTMLElement).closest(".matcher")?.remove() } }, "\u00d7")));
  }

  private async send(): Promise<void> {
    const matchers = [...this.rows.querySelectorAll(".matcher")].map((row) => ({ name: row.querySelector("select")?.value ?? "", pattern: row.querySelector("input")?.value.trim() ?? "" }));
    try {
      await api.silence({ matchers, duration_seconds: Number(this.length.value), comment: this.comment.value.trim() });
      this.comment.value = "";
      this.said.textContent = "Silenced.";
      this.done();
    } catch (error) {
      this.said.textContent = visible(refusal(error));
    }
  }
}
