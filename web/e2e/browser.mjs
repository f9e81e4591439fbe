// Debian's Chromium for the tests of the page: claims that are counted, errors of the console that are none of ours to have, screenshots,
// and what axe-core finds.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 900 };

export class Test {
  failed = [];
  held = 0;
  complaints = [];

  constructor(url, shots) {
    this.url = url;
    this.shots = shots;
    if (shots) mkdirSync(shots, { recursive: true });
  }

  async start() {
    if (!CHROMIUM) throw new Error("no Chromium: apt-get install chromium");
    this.browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    return this;
  }

  // A page of its own; what its console complains of counts, but for the answers that a test provokes.
  async page({ viewport = DESK, dark = false, allowed = /$^/ } = {}) {
    const context = await this.browser.newContext({ viewport, colorScheme: dark ? "dark" : "light", timezoneId: "Europe/Paris", acceptDownloads: true, reducedMotion: "reduce" });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()) && !allowed.test(message.text())) this.complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.complaints.push(error.stack ?? String(error)));
    page.on("dialog", (dialog) => {
      this.complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    return page;
  }

  async open(page, path) {
    await page.goto(this.url + path);
    await this.settled(page);
  }

  // Nothing is being asked for, and everything that came is drawn.
  async settled(page) {
    await page.waitForLoadState("networkidle");
    await page.waitForFunction(() => !document.querySelector(".waiting"));
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }

  // The address becomes one whose path, or any part for an expression, is this.
  async goes(claim, page, wanted) {
    const there = (url) => (wanted instanceof RegExp ? wanted.test(url.href) : url.pathname === wanted);
    await page.waitForURL(there, { timeout: 10_000, waitUntil: "commit" }).catch(() => {});
    this.check(claim, there(new URL(page.url())), page.url());
    await this.settled(page);
  }

  // The text of the cell at a place of a map, once it is a wanted one: a mouse that came before the cells did pointed at none, and moves again.
  async cell(page, x, y, wanted) {
    const text = page.locator(".cell-text");
    for (let turn = 0; turn < 10; ++turn) {
      await page.locator(".grid-map canvas").hover({ position: { x: x - (turn % 2), y } });
      if (await text.filter({ hasText: wanted }).waitFor({ timeout: 2000 }).then(() => true, () => false)) break;
    }
    return text.innerText();
  }

  check(claim, holds, found = "") {
    if (holds) this.held += 1;
    else this.failed.push(found === "" ? claim : `${claim} (found: ${found})`);
  }

  equal(claim, found, expected) {
    this.check(claim, found === expected, `${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }

  async shot(page, name, options = {}) {
    if (this.shots) await page.screenshot({ path: `${this.shots}/${name}.png`, fullPage: true, ...options });
  }

  // Nothing that axe-core calls serious or critical.
  async accessible(page, name) {
    // The policy of the page forbids scripts of others: it is handed over as an expression.
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    this.check(`${name}: axe-core finds nothing serious`, serious.length === 0, serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, any }) => `${html.slice(0, 160)} ${any.map(({ message }) => message).join("; ")}`).join(" | ")}`).join("\n  "));
  }

  async end() {
    await this.browser?.close();
    for (const complaint of this.complaints) this.failed.push(`the console says: ${complaint}`);
    for (const claim of this.failed) console.log(`FAILED ${claim}`);
    console.log(`${this.held} claims hold, ${this.failed.length} do not`);
    process.exitCode = this.failed.length > 0 || this.held === 0 ? 1 : 0;
  }
}

export async function run(body) {
  const [url, ...rest] = process.argv.slice(2);
  if (!url) {
    console.error("expected the address of a service");
    process.exit(2);
  }
  const shots = rest.at(-1);
  const test = new Test(url, shots);
  try {
    await test.start();
    await body(test, ...rest);
  } catch (error) {
    test.failed.push(error.stack ?? String(error));
  }
  await test.end();
}
