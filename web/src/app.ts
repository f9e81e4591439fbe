// The frame of all pages: which is shown, its address, the time span, light and dark, local time or UTC, the search, and updates.
import { h, morph } from "./base/dom";
import type { Child } from "./base/dom";
import { duration, time } from "./base/format";
import type { Zone } from "./base/format";
import { visible } from "./base/visible";
import { keepFor, kept } from "./base/kept";
import { DEFAULT_SINCE, defaultSince, formatAddress, parseAddress, readAddress, spanQuery, spanSeconds } from "./base/url_state";
import type { Address, Span, View } from "./base/url_state";
import { hasToken, setToken } from "./api/client";
import { describePictures } from "./charts/frame";
import { drawAllAgain } from "./charts/time_chart";
import type { Context, Page } from "./pages/page";
import { makePage } from "./pages/all";
import { SearchBox } from "./pages/search";

const UPDATE_SECONDS = 30;
const STALE_SECONDS = 600; // newest slot this old: said
const LENGTHS: [string, string][] = [["1h", "1 hour"], ["6h", "6 hours"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];
const VIEWS: [View, string][] = [["fleet", "Fleet"], ["jobs", "Jobs"], ["findings", "Findings"], ["waste", "Waste"], ["map", "Map"], ["study", "OFU and MFU"], ["quality", "Data quality"]];
const THEMES: [string, string][] = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]];

export class App {
  private address: Address;
  private zone: Zone = kept("flopsight-zone", "utc") === "local" ? "local" : "utc";
  private theme = kept("flopsight-theme", "auto");
  private page: Page | null = null;
  private page_key = "";
  private readonly header = h("header", { class: "top" });
  private readonly notices = h("div", { class: "notices" });
  private readonly main = h("main", { id: "main", tabindex: "-1" });
  private readonly search: SearchBox;
  private misread: string[] = [];
  private drawing = false;
  private loading = false;
  // The service does not answer; `answered`: when the oldest of what is shown came, null where nothing is.
  private away: { answered: number | null } | null = null;
  private refused = false;
  private readonly context: Context;

  constructor(root: HTMLElement) {
    this.address = parseAddress(location.pathname, location.search);
    this.context = {
      address: this.address,
      zone: this.zone,
      changed: () => this.draw(),
      href: (view, parameters = {}) => formatAddress({ view, span: this.address.span, parameters }),
      go: (view, parameters = {}) => this.navigate({ view, span: this.address.span, parameters }, true),
      set: (parameters, push = false) => this.navigate({ ...this.address, parameters: { ...this.address.parameters, ...parameters } }, push),
      zoom: (start, end) => this.context.during({ since: null, start, end }),
      during: (span) => this.navigate({ ...this.address, span }, true),
      query: () => spanQuery(this.address.span),
    };
    this.search = new SearchBox(this.context);
    root.replaceChildren(h("a", { class: "skip", href: "#main" }, "Skip to content"), this.header, this.notices, this.main);
    addEventListener("popstate", () => this.arrive());
    document.addEventListener("click", (event) => this.follow(event));
    document.addEventListener("visibilitychange", () => void this.update());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redrawCharts());
    setInterval(() => void this.update(), UPDATE_SECONDS * 1000);
    setInterval(() => this.drawFrame(), 5_000);
    this.applyTheme();
    drawAllAgain(this.zone);
    this.arrive();
  }

  // At an address that somebody else wrote: what of it is not understood is said, and does not stay.
  private arrive(): void {
    const { address, misread } = readAddress(location.pathname, location.search);
    this.misread = misread;
    if (misread.length > 0) history.replaceState(null, "", formatAddress(address));
    this.show(address);
  }

  // Links within the page are followed without loading it anew.
  private follow(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    const here = new URL("./", location.href);
    if (url.origin !== here.origin || !url.pathname.startsWith(here.pathname) || link.getAttribute("href")?.startsWith("#")) return;
    const rest = url.pathname.slice(here.pathname.length);
    if (rest.includes("/") || rest === "metrics") return;
    event.preventDefault();
    this.navigate(parseAddress(url.pathname, url.search), true);
    this.main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  private navigate(address: Address, push: boolean): void {
    this.misread = [];
    const url = formatAddress(address);
    const same = new URL(url, location.href).href === location.href;
    if (push && !same) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
    this.show(address);
  }

  private show(address: Address): void {
    this.address = address;
    this.context.address = address;
    this.context.zone = this.zone;
    const { id, name, uuid } = address.parameters;
    const key = JSON.stringify([address.view, id, name, uuid]);
    if (key !== this.page_key || !this.page) {
      this.page?.dispose?.();
      this.page_key = key;
      this.page = makePage(this.context);
    }
    this.draw();
    void this.load();
  }

  private async load(): Promise<void> {
    const page = this.page;
    if (!page) return;
    this.loading = true;
    await page.load();
    if (page !== this.page) return;
    this.loading = false;
    this.draw();
  }

  private async update(): Promise<void> {
    const can_change = this.address.span.since !== null || this.away !== null;
    if (document.visibilityState !== "visible" || this.loading || !can_change) return;
    await this.load();
  }

  // Once a frame, however much arrived.
  private draw(): void {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      const page = this.page;
      if (!page) return;
      document.title = visible(`${page.title()} \u2013 Flopsight`);
      describePictures(`${page.title()}, ${this.spanText()}`, page.simulated());
      const rendered = h("div", null, page.render());
      this.readErrors(rendered);
      morph(this.main, [...rendered.childNodes]);
      this.drawFrame();
    });
  }

  private readErrors(rendered: HTMLElement): void {
    const said = [...rendered.querySelectorAll(".notice.error")].map((element) => element.textContent ?? "");
    const away = [...rendered.querySelectorAll<HTMLElement>(".away")];
    const answered = away.map((element) => Number(element.dataset.answered ?? Infinity)).reduce((a, b) => Math.min(a, b), Infinity);
    this.away = away.length === 0 ? null : { answered: Number.isFinite(answered) ? answered : null };
    this.refused = said.some((text) => text.startsWith("expected a bearer token") || text.startsWith("these credentials"));
  }

  private spanText(): string {
    const { since, start, end } = this.address.span;
    if (since !== null) return `the last ${LENGTHS.find(([name]) => name === since)?.[1] ?? duration(spanSeconds(this.address.span))}`;
    return `${time(start, this.zone)} to ${time(end, this.zone)}`;
  }

  private drawFrame(): void {
    morph(this.header, this.frame());
    morph(this.notices, this.notes());
  }

  private frame(): HTMLElement[] {
    const at = this.address.view;
    const place: Partial<Record<View, View>> = { job: "jobs", host: "map", gpu: "map", finding: "findings" };
    return [
      h("a", { class: "brand", href: "./", "aria-label": "Flopsight, fleet" }, "Flopsight"),
      h("nav", { "aria-label": "Pages" }, VIEWS.map(([view, label]) =>
        h("a", { href: formatAddress({ view, span: this.spanFor(view), parameters: {} }), "data-key": view, "aria-current": (place[at] ?? at) === view ? "page" : false }, label))),
      this.page?.simulated() ? h("strong", { class: "simulated", "data-key": "simulated", title: "Some of this fleet does not exist: its samples are made by flopsight simulate." }, "SIMULATED") : null,
      this.search.element,
      this.spanChoice(),
      this.select("zone", "Time zone", [["utc", "UTC"], ["local", "Local"]], this.zone, (value) => this.setZone(value === "local" ? "local" : "utc")),
      this.select("theme", "Colours", THEMES, this.theme, (value) => this.setTheme(value)),
    ].filter((element): element is NonNullable<typeof element> => element !== null);
  }

  // A time span that nobody chose is not carried to a page that has another of its own.
  private spanFor(view: View): Span {
    const { view: here, span } = this.address;
    return span.since === defaultSince(here) ? { since: defaultSince(view), start: null, end: null } : span;
  }

  private select(key: string, label: string, options: [string, string][], value: string, choose: (value: string) => void): HTMLElement {
    return h("label", { class: "top-choice", "data-key": key }, h("span", { class: "unseen" }, label),
      h("select", { on: { change: (event) => choose((event.target as HTMLSelectElement).value) } },
        options.map(([name, text]) => h("option", { value: name, selected: name === value }, text))));
  }

  private spanChoice(): HTMLElement {
    const { since } = this.address.span;
    const options: [string, string][] = LENGTHS.map(([name, text]) => [name, `Last ${text}`]);
    if (since !== null && !LENGTHS.some(([name]) => name === since)) options.unshift([since, `Last ${duration(spanSeconds(this.address.span))}`]);
    if (since === null) options.unshift(["fixed", this.spanText()]);
    return this.select("span", "Time span", options, since ?? "fixed", (value) => {
      if (value !== "fixed") this.navigate({ ...this.address, span: { since: value, start: null, end: null } }, true);
    });
  }

  private notes(): HTMLElement[] {
    const out: Child[] = [];
    const now = Date.now();
    if (this.refused) out.push(this.tokenForm());
    if (this.misread.length > 0) {
      out.push(h("p", { class: "notice", role: "status", "data-key": "misread" }, `Not understood in the address: ${this.misread.join("; ")}. Shown is ${this.spanText()}.`));
    }
    if (this.away) {
      const shown = this.away.answered === null ? "" : ` What is shown is what it said at ${time(this.away.answered, this.zone, true)}.`;
      out.push(h("p", { class: "notice error", role: "alert", "data-key": "unreachable" }, `The service does not answer.${shown} This page tries again by itself.`));
    }
    const newest = this.page?.newest?.() ?? null;
    if (newest !== null && !this.away && this.address.span.since !== null && now - newest > STALE_SECONDS * 1000) {
      out.push(h("p", { class: "notice", role: "status", "data-key": "stale" }, `Nothing new for ${duration((now - newest) / 1000)}: the newest sample is of ${time(newest, this.zone)}.`));
    }
    if (this.address.span.since === null) {
      out.push(h("p", { class: "notice quiet", "data-key": "fixed" }, `${this.spanText()} (${duration(spanSeconds(this.address.span))}). `,
        h("a", { href: formatAddress({ ...this.address, span: { since: DEFAULT_SINCE, start: null, end: null } }) }, "Back to the last 24 hours")));
    }
    return out.filter((note): note is HTMLElement => note instanceof HTMLElement);
  }

  private tokenForm(): HTMLElement {
    const input = h("input", { type: "password", name: "token", autocomplete: "off", required: true, "aria-label": "Bearer token" });
    return h("form", { class: "notice token", "data-key": "token", on: { submit: (event) => {
      event.preventDefault();
      const given = (event.target as HTMLFormElement).querySelector("input");
      setToken(given?.value.trim() ?? "");
      void this.load();
    } } }, h("span", null, hasToken() ? "That token was not accepted. Another one, with the role \u201cread\u201d: " : "This service wants a token with the role \u201cread\u201d. It is kept until this tab is closed. "), input, h("button", { type: "submit" }, "Use it"));
  }

  private setZone(zone: Zone): void {
    this.zone = zone;
    this.context.zone = zone;
    keepFor("flopsight-zone", zone);
    drawAllAgain(zone);
    this.draw();
  }

  private setTheme(theme: string): void {
    this.theme = theme;
    keepFor("flopsight-theme", theme);
    this.applyTheme();
    this.redrawCharts();
    this.draw();
  }

  private applyTheme(): void {
    if (this.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
  }

  private redrawCharts(): void {
    this.page?.redraw?.();
  }
}
