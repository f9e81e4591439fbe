// How fast the page is, as JSON, for benchmarks/page.py: measure.mjs URL PATH. The page is opened five times; medians.
import { chromium } from "playwright-core";

const [url, path] = process.argv.slice(2);
const TIMES = 5;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

// From an event to the frame in which its effect is painted.
const interaction = (page, act) =>
  page.evaluate(async (source) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const act = new Function(`return (${source})`)();
    await frame();
    const start = performance.now();
    act();
    await frame();
    await frame();
    return performance.now() - start;
  }, act.toString());

const opened = [];
for (let i = 0; i < TIMES; i += 1) {
  // The policy of the page would forbid the functions that are handed over to be measured.
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true });
  const page = await context.newPage();
  const answers = [];
  page.on("requestfinished", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/api/")) answers.push([pathname, request.timing().responseStart - request.timing().requestStart]);
  });
  await page.goto(url + path);
  await page.waitForFunction(() => document.querySelector(".figure-value, .grid-map canvas"));
  const shown = await page.evaluate(() => performance.now());
  await page.waitForLoadState("networkidle");
  const paint = await page.evaluate(() => performance.getEntriesByType("paint").find(({ name }) => name === "first-contentful-paint")?.startTime ?? null);
  const result = { first_paint_milliseconds: paint, figures_milliseconds: shown, answers: {} };
  // Of several questions to one path the slowest.
  for (const [name, milliseconds] of answers) result.answers[name] = Math.max(result.answers[name] ?? 0, milliseconds);
  if (path.startsWith("/map")) {
    result.hover_milliseconds = median([
      await interaction(page, () => document.querySelector(".grid-map canvas").dispatchEvent(new MouseEvent("mousemove", { clientX: 600, clientY: 420, movementX: 1, bubbles: true }))),
      await interaction(page, () => document.querySelector(".grid-map canvas").dispatchEvent(new MouseEvent("mousemove", { clientX: 300, clientY: 520, movementX: 1, bubbles: true }))),
      await interaction(page, () => document.querySelector(".grid-map canvas").dispatchEvent(new MouseEvent("mousemove", { clientX: 900, clientY: 460, movementX: 1, bubbles: true }))),
    ]);
    result.colour_milliseconds = await interaction(page, () => document.querySelectorAll(".tabs button")[2].click());
  } else {
    result.dialog_milliseconds = await interaction(page, () => document.querySelector(".figure-label").click());
  }
  opened.push(result);
  await context.close();
}
await browser.close();
const names = Object.keys(opened[0]).filter((name) => name !== "answers");
const out = Object.fromEntries(names.map((name) => [name, median(opened.map((one) => one[name]))]));
out.answers = Object.fromEntries(Object.keys(opened[0].answers).map((name) => [name, median(opened.map((one) => one.answers[name] ?? Infinity))]));
console.log(JSON.stringify(out));
