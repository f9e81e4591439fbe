// The search box: jobs, users, teams, hosts, GPUs and models whose name contains a text. Built as a combobox, so that it can be used without
// a mouse and is read out: arrows choose, Enter opens, Escape closes, "/" anywhere goes to it.
import { h, keep, morph } from "../base/dom";
import { jobName } from "../base/job_id";
import * as api from "../api/client";
import type { Matches } from "../api/answers";
import type { Context } from "./page";

const WAIT_MILLISECONDS = 150;
const KINDS: Record<string, string> = { job: "Job", user: "User", team: "Team", host: "Host", gpu: "GPU", model: "GPU model" };

export class SearchBox {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly list: HTMLElement;
  private matches: Matches = [];
  private at = -1;
  private timer = 0;
  private said = "";

  constructor(private readonly context: Context) {
    this.list = h("ul", { id: "search-results", role: "listbox", "aria-label": "Found", hidden: true });
    this.input = h("input", {
      type: "search",
      placeholder: "Search jobs, users, hosts, GPUs",
      "aria-label": "Search jobs, users, hosts, GPUs, models",
      role: "combobox",
      "aria-expanded": "false",
      "aria-controls": "search-results",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "60",
      on: {
        input: () => this.typed(),
        keydown: (event) => this.key(event as KeyboardEvent),
        blur: () => setTimeout(() => this.close(), 150),
        focus: () => this.typed(),
      },
    });
    this.element = keep(h("div", { class: "search", role: "search" }, this.input, this.list));
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.input.focus();
    });
  }

  private typed(): void {
    clearTimeout(this.timer);
    const text = this.input.value.trim();
    if (text === "") {
      this.close();
      return;
    }
    this.timer = window.setTimeout(() => void this.ask(text), WAIT_MILLISECONDS);
  }

  private async ask(text: string): Promise<void> {
    try {
      this.matches = await api.search(text, this.context.query());
      this.said = this.matches.length === 0 ? `Nothing is called like \u201c${text}\u201d in this time.` : "";
    } catch (error) {
      if (error instanceof DOMException) return; // a later question took its place
      this.matches = [];
      this.said = error instanceof Error ? error.message : String(error);
    }
    this.at = -1;
    if (document.activeElement === this.input) this.show();
  }

  private show(): void {
    const rows = this.matches.map((match, i) =>
      h("li", { role: "option", id: `search-${i}`, "aria-selected": i === this.at ? "true" : "false", on: { mousedown: (event) => event.preventDefault(), click: () => this.open(i) } },
        h("span", { class: "kind" }, KINDS[match.kind] ?? match.kind),
        h("span", { class: "name" }, match.kind === "job" ? jobName(match.name) : match.name),
        match.detail ? h("span", { class: "muted" }, match.detail) : null));
    morph(this.list, this.said ? [h("li", { class: "muted", role: "option", "aria-disabled": "true", "aria-selected": "false" }, this.said)] : rows);
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    if (this.at >= 0) this.input.setAttribute("aria-activedescendant", `search-${this.at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  private close(): void {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.matches.length === 0) return;
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.at = (this.at + step + this.matches.length + (this.at < 0 && step < 0 ? 1 : 0)) % this.matches.length;
      this.show();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.open(Math.max(0, this.at));
    }
  }

  private open(i: number): void {
    const match = this.matches[i];
    if (!match) return;
    this.close();
    this.input.value = "";
    this.input.blur();
    if (match.kind === "job") this.context.go("job", { id: match.name });
    else if (match.kind === "host") this.context.go("host", { name: match.name });
    else if (match.kind === "gpu") this.context.go("gpu", { uuid: match.name });
    else this.context.go("jobs", { [match.kind]: match.name });
  }
}
