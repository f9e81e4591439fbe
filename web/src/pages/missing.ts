// A page of one thing whose address does not say which.
import { h } from "../base/dom";
import type { Child } from "../base/dom";
import type { View } from "../base/url_state";
import type { Context, Page } from "./page";
import { nothing, section } from "./parts";

interface Need {
  parameter: string;
  of: string;
  list: View; // where all of them are
}

const NEEDS: Partial<Record<View, Need>> = {
  job: { parameter: "id", of: "job", list: "jobs" },
  finding: { parameter: "id", of: "finding", list: "findings" },
  host: { parameter: "name", of: "host", list: "map" },
  gpu: { parameter: "uuid", of: "GPU", list: "map" },
};

// What the address at hand lacks; null: nothing.
export function missing(context: Context): Need | null {
  const need = NEEDS[context.address.view];
  return need && !context.address.parameters[need.parameter] ? need : null;
}

export class MissingPage implements Page {
  constructor(private readonly context: Context, private readonly need: Need) {}

  title(): string {
    return `No ${this.need.of}`;
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  render(): Child {
    const { parameter, of, list } = this.need;
    return section(this.title(), h("p", { class: "notice error", role: "alert" }, `The address does not say which ${of}: ${parameter} is missing, expected /${this.context.address.view}?${parameter}=\u2026.`),
      nothing("Choose one from ", h("a", { href: this.context.href(list) }, `the ${list}`), ", or look for it in the search box."));
  }

  simulated(): boolean {
    return false;
  }
}
