// What a page is to the application, and what the application is to a page.
import type { Address, Span, View } from "../base/url_state";
import type { Child } from "../base/dom";
import type { Zone } from "../base/format";
import { ApiError } from "../api/client";

export interface Context {
  address: Address;
  zone: Zone;
  // Something arrived: draw again. Many at once are one drawing.
  changed: () => void;
  // To another view, or the same with other parameters ("" removes one); the time span stays.
  href: (view: View, parameters?: Record<string, string>) => string;
  go: (view: View, parameters?: Record<string, string>) => void;
  // In this view; a place in the history for it only where `push` is said.
  set: (parameters: Record<string, string>, push?: boolean) => void;
  zoom: (start: number, end: number) => void;
  during: (span: Span) => void;
  // How the time span is asked of the API.
  query: () => Record<string, string>;
}

export interface Page {
  title: () => string;
  // Asks for everything that is shown; resolves when all has arrived or failed. Called again for each update.
  load: () => Promise<void>;
  render: () => Child;
  // Of what is on the screen: whether some of it does not exist, and the end of the newest step with data (none: it cannot be stale).
  simulated: () => boolean;
  newest?: () => number | null;
  // Where there are charts.
  redraw?: () => void;
  dispose?: () => void;
}

// One answer: what came last stays until something newer comes, also when a later question fails.
export class Asked<T> {
  value: T | null = null;
  error: ApiError | null = null;
  answered: number | null = null; // when the value came, milliseconds since 1970
  private turn = 0;

  constructor(private readonly changed: () => void) {}

  async ask(answer: Promise<T>): Promise<T | null> {
    const turn = ++this.turn;
    try {
      const value = await answer;
      if (turn !== this.turn) return null;
      this.value = value;
      this.answered = Date.now();
      this.error = null;
      return value;
    } catch (error) {
      if (turn === this.turn) this.error = error instanceof ApiError ? error : new ApiError(-1, String(error));
      return null;
    } finally {
      if (turn === this.turn) this.changed();
    }
  }

  get waiting(): boolean {
    return this.value === null && this.error === null;
  }
}
