// Every page opened, everything on it used, in light and dark and on a phone; the tour of the README is made of some of its screenshots.
import { readFileSync } from "node:fs";
import { PHONE, run } from "./browser.mjs";

async function download(page, button) {
  // Chromium drops what a page downloads beyond ten files a second: then it is asked for again.
  let file = null;
  for (let attempt = 0; attempt < 4 && !file; attempt += 1) {
    [file] = await Promise.all([page.waitForEvent("download", { timeout: 6_000 }).catch(() => null), button.click()]);
  }
  if (!file) throw new Error(`${await button.getAttribute("aria-label")}: nothing was downloaded`);
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

await run(async (test) => {
  const jobs = (await (await fetch(`${test.url}/api/v1/jobs?since=3h&limit=100`)).json()).jobs;
  const big = jobs.filter((one) => one.ofu_ratio !== null).sort((a, b) => b.gpu_hours_delivered - a.gpu_hours_delivered)[0];
  const job = `/job?id=${encodeURIComponent(big.id)}&since=3h`;
  const { gpus } = await (await fetch(`${test.url}/api/v1/gpus/series?since=3h&columns=ofu_ratio&job=${encodeURIComponent(big.id)}`)).json();
  const host = `/host?name=${encodeURIComponent(gpus[0].host)}&since=3h`;
  const gpu = `/gpu?uuid=${encodeURIComponent(gpus[0].uuid)}&since=3h`;
  const views = { fleet: "/?since=3h", jobs: "/jobs?since=3h", job, map: "/map?of=1h", study: "/study?since=3h", waste: "/waste?since=3h", quality: "/quality?since=3h", host, gpu };

  // --- each page: it opens by its address, says SIMULATED, shows no mistake, and nothing keeps anybody out of it
  const page = await test.page();
  for (const [name, path] of Object.entries(views)) {
    await test.open(page, path);
    test.equal(`${name}: no error is shown`, await page.locator(".notice.error").count(), 0);
    test.check(`${name}: SIMULATED is visible`, await page.locator(".simulated").isVisible());
    test.check(`${name}: nothing reads undefined, NaN or null`, !/undefined|NaN|\bnull\b|\[object/.test(await page.locator("body").innerText()), (await page.locator("body").innerText()).match(/.{0,40}(undefined|NaN|\bnull\b|\[object).{0,40}/)?.[0]);
    test.check(`${name}: the title names the page`, (await page.title()).endsWith("\u2013 Flopsight"), await page.title());
    test.check(`${name}: it is not wider than the screen`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await test.accessible(page, name);
    await test.shot(page, name);
  }

  // --- dark, and a phone
  const dark = await test.page({ dark: true });
  for (const [name, path] of Object.entries(views)) {
    await test.open(dark, path);
    if (["fleet", "job", "study", "waste"].includes(name)) await test.accessible(dark, `${name}, dark`);
    await test.shot(dark, `${name}-dark`);
  }
  const phone = await test.page({ viewport: PHONE });
  for (const name of Object.keys(views)) {
    await test.open(phone, views[name]);
    test.check(`${name} on a phone scrolls in one direction only`, await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), await phone.evaluate(() => document.documentElement.scrollWidth));
    await test.shot(phone, `${name}-phone`);
  }

  await tour(test, views);
  await figures(test, page, views);
  await charts(test, page, views, big);
  await places(test, page, views, big);
  await waste(test, page, views);
  await parts(test, page, views, big);
  await filters(test, page, big);
  await search(test, page, big);
  await updates(test, page);
  await addresses(test, page);
});

// --- the pictures of the README: small ones, of what is seen first
async function tour(test, views) {
  const viewport = { width: 1280, height: 860 };
  for (const [name, dark] of [["fleet", false], ["job", false], ["waste", false], ["map", true], ["study", true]]) {
    const page = await test.page({ viewport, dark });
    await test.open(page, views[name]);
    await test.shot(page, `tour-${name}`, { fullPage: false });
    await page.context().close();
  }
}

// --- every number, one click from how it was made
async function figures(test, page, views) {
  await test.open(page, views.fleet);
  const shown = await page.locator(".figure").count();
  test.check("the fleet has its figures", shown >= 6, shown);
  for (let i = 0; i < shown; i += 1) {
    await page.locator(".figure-label").nth(i).click();
    const dialog = page.locator("dialog[open]");
    await dialog.waitFor();
    test.check(`figure ${i} says where it is from`, (await dialog.locator("a").getAttribute("href"))?.startsWith("./api/v1/fleet"));
    if (i === 0) {
      await test.accessible(page, "a dialog");
      await test.shot(page, "explanation", { fullPage: false });
      const source = await fetch(new URL(await dialog.locator("a").getAttribute("href"), `${test.url}/`));
      test.equal("the answer that a number is from is there", source.status, 200);
    }
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  const hours = async (label) => Number((await page.locator(`.figure[data-key="${label}"] .figure-value`).innerText()).replace(/[^\d.]/g, ""));
  const fleet = (await (await fetch(`${test.url}/api/v1/fleet?since=3h`)).json()).fleet;
  test.check("what is shown as lost is what the API says", Math.abs((await hours("Lost")) - fleet.gpu_hours_lost) < 0.02 * fleet.gpu_hours_lost + 0.2, await hours("Lost"));
  await page.locator(".column-why").first().click();
  await page.locator("dialog[open]").waitFor();
  await page.locator("dialog button").click();
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.locator("button", { hasText: "How it is made" }).first().click();
  test.check("the account says how it adds up", (await page.locator("dialog").innerText()).includes("1 = OFU + clock loss"));
  await page.keyboard.press("Escape");
}

// --- charts: their data and picture as files, reading single values, zooming
async function charts(test, page, views, big) {
  for (const [name, path] of Object.entries({ fleet: views.fleet, job: views.job, map: views.map, study: views.study, gpu: views.gpu })) {
    await test.open(page, path);
    const buttons = page.locator(".chart .exports button");
    for (let i = 0; i < (await buttons.count()); i += 1) {
      const { name: file, bytes } = await download(page, buttons.nth(i));
      const label = `${name}: ${await buttons.nth(i).getAttribute("aria-label")}`;
      if (file.endsWith(".csv")) test.check(`${label} has a head and rows`, bytes.toString().trim().split("\r\n").length >= 2 && !/undefined|NaN/.test(bytes.toString()), bytes.toString().slice(0, 200));
      else test.check(`${label} is a picture`, bytes.subarray(1, 4).toString() === "PNG" && bytes.length > 3000, bytes.length);
    }
    test.check(`${name}: there are charts`, (await buttons.count()) > 0);
  }
  await test.open(page, views.job);
  const plot = page.locator(".plot").first();
  await plot.focus();
  await page.keyboard.press("Home");
  const first = await page.locator(".legend").first().innerText();
  await page.keyboard.press("ArrowRight");
  const second = await page.locator(".legend").first().innerText();
  test.check("arrow keys read one step after the other", first !== second && /\d\d:\d\d/.test(second), `${first} / ${second}`);
  test.check("a cursor in one chart is one in all", /\d\d:\d\d/.test(await page.locator(".legend").nth(2).innerText()), await page.locator(".legend").nth(2).innerText());
  // The first steps of the window may lie before what the job reported.
  let read = second;
  for (let i = 0; i < 200 && !read.includes("Reported MFU"); i += 1) {
    await page.keyboard.press("ArrowRight");
    read = await page.locator(".legend").first().innerText();
  }
  test.check("what the job reported is beside its OFU", read.includes("Reported MFU"), `${first} … ${read}`);
  const box = await plot.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await test.goes("zooming is in the address", page, /start=.*end=/);
  test.check("a fixed time is said, with a way back", await page.locator("[data-key=fixed] a").isVisible());
  await test.shot(page, "job-zoomed");
  await page.goBack();
  await test.goes("the back button leads back", page, /\?(?!.*start=).*since=3h/);
  test.equal("it is the same job", await page.locator("h2").first().innerText(), big.job);
  const heat = page.locator(".grid-map canvas");
  // What the way back asked for may still be on its way, and takes the place of the cells that the keys were on.
  const cell = page.locator(".cell-text b");
  for (let turn = 0; turn < 5 && (await cell.count()) === 0; turn += 1) {
    await heat.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await test.settled(page);
  }
  test.check("a cell of the heat map is read with the keys", (await cell.count()) === 1 && /%|unknown/.test(await cell.innerText()));
  await page.keyboard.press("Enter");
  await test.goes("and opened", page, "/gpu");
}

// --- groupings, tables, the map, the study: what is chosen is in the address and comes back
async function places(test, page, views, big) {
  await test.open(page, views.fleet);
  for (const name of ["Teams", "Users", "Namespaces", "GPU models", "Jobs"]) {
    await page.locator(".tabs button", { hasText: name }).click();
    await page.locator(`.tabs button[aria-pressed=true]`, { hasText: name }).waitFor();
    await test.settled(page);
    test.check(`grouped by ${name} there are rows`, (await page.locator(".rows tbody tr").count()) > 0);
  }
  await page.locator(".tabs button", { hasText: "Users" }).click();
  await test.settled(page);
  await page.reload();
  await test.settled(page);
  test.equal("after a reload it is grouped as before", await page.locator(".tabs button[aria-pressed=true]").innerText(), "Users");
  await page.locator(".tabs button", { hasText: "Jobs" }).click();
  await test.settled(page);
  await page.locator(".rows a.name", { hasText: big.job }).first().click();
  await test.goes("a job of the list leads away", page, "/job");
  test.equal("a job of the list is opened", await page.locator("h2").first().innerText(), big.job);
  await page.locator(".facts a").first().click();
  await test.goes("its user leads away", page, /jobs\?user=/);
  test.check("its user's jobs", (await page.locator("h2").first().innerText()).startsWith("Jobs of user"), await page.locator("h2").first().innerText());

  await test.open(page, views.map);
  for (const metric of ["Tensor activity", "SM clock", "Coverage", "OFU"]) {
    await page.locator(".tabs button", { hasText: metric }).click();
    await page.locator(".tabs button[aria-pressed=true]", { hasText: metric }).waitFor();
    await test.settled(page);
    const cell = await test.cell(page, 8, 8, /MHz|%/);
    test.check(`the map by ${metric} reads a cell`, /MHz|%/.test(cell), cell);
  }
  await page.locator(".tabs button", { hasText: "SM clock" }).click();
  await test.goes("the choice is in the address", page, /metric=sm_clock_hertz/);
  await page.locator(".choice select").first().selectOption("5m");
  await test.goes("the time of the map is in the address", page, /of=5m/);
  await page.locator(".grid-map canvas").click({ position: { x: 8, y: 8 } });
  await test.goes("a cell leads away", page, "/host");
  test.check("a cell leads to its host", (await page.locator("h2").first().innerText()).startsWith("Host "), page.url());

  await test.open(page, views.study);
  const canvas = page.locator(".scatter canvas");
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  test.check("the keys read a job of the scatter", (await page.locator(".scatter .legend").innerText()).includes("reported MFU"));
  test.check("the job that says too much is named", (await page.locator(".panel", { hasText: "Furthest apart" }).locator("tbody tr").count()) >= 1);
  await page.keyboard.press("Enter");
  await test.goes("and opened, to be audited", page, "/job");
}

// --- the waste account: periods, groupings, what changed, files, paper
async function waste(test, page, views) {
  await test.open(page, views.waste);
  const api = await (await fetch(`${test.url}/api/v1/waste?since=3h&by=team`)).json();
  const lost = Number((await page.locator('.figure[data-key="Lost against the peak"] .figure-value').innerText()).replace(/[^\d.]/g, ""));
  test.check("what the account calls lost is what the API says", Math.abs(lost - api.total.gpu_hours.lost) < 0.02 * lost + 0.1, `${lost} ${api.total.gpu_hours.lost}`);
  test.check("it is said in dollars as prices are configured", (await page.locator(".summary").innerText()).includes("$"), await page.locator(".summary").innerText());
  for (const name of ["Users", "Jobs", "Families of jobs", "GPU models"]) {
    await page.getByRole("button", { name, exact: true }).click();
    await page.locator('.tabs[aria-label="Grouped by"] button[aria-pressed=true]', { hasText: name }).waitFor();
    await test.settled(page);
    test.check(`waste by ${name} has rows`, (await page.locator('[aria-label="Whose it was"] tbody tr').count()) > 0);
  }
  await test.goes("the grouping is in the address", page, /by=model/);
  await page.locator('[aria-label="Whose it was"] a.name').first().click();
  await test.goes("a GPU model leads to its jobs", page, /\/jobs\?.*model=/);
  test.check("which are there", (await page.locator("tbody tr").count()) > 0);
  await page.goBack();
  await test.settled(page);
  await page.getByRole("button", { name: "Last week", exact: true }).click();
  await test.goes("a whole week is in the address", page, /start=.*end=/);
  test.equal("and is chosen", await page.locator('.tabs[aria-label="Period"] [aria-pressed=true]').innerText(), "Last week");
  await page.reload();
  await test.settled(page);
  test.equal("also after a reload", await page.locator('.tabs[aria-label="Period"] [aria-pressed=true]').innerText(), "Last week");
  await test.open(page, "/waste");
  test.equal("without a word it is of a week", await page.locator("header [data-key=span] select").inputValue(), "7d");
  for (const format of ["CSV", "Markdown", "HTML"]) {
    const answer = await fetch(new URL(await page.locator(".actions a", { hasText: format }).getAttribute("href"), `${test.url}/`));
    test.equal(`the account as ${format} is there`, answer.status, 200);
  }
  await page.evaluate(() => { globalThis.print = () => { globalThis.printed = true; }; });
  await page.locator(".actions button", { hasText: "Print" }).click();
  test.check("the button prints", await page.evaluate(() => globalThis.printed === true));
  await page.emulateMedia({ media: "print" });
  test.check("paper says SIMULATED", await page.locator("[data-key=period] b").isVisible());
  test.check("paper has no frame", await page.locator("header.top").isHidden());
  await test.shot(page, "waste-paper");
  await page.emulateMedia({ media: "screen" });
}

// --- phases and advice of a job
async function parts(test, page, views, big) {
  await test.open(page, views.job);
  const phases = await (await fetch(`${test.url}/api/v1/jobs/${encodeURIComponent(big.id)}/phases?since=3h`)).json();
  test.check("the job has phases", phases.phases.length > 0, JSON.stringify(phases).slice(0, 200));
  test.check("a chart names them", (await page.locator(".legend .strip").count()) >= new Set(phases.phases.map(({ phase }) => phase)).size);
  const goodput = await page.locator('.figure[data-key="Goodput"] .figure-value').innerText();
  test.check("goodput is what the API says", Math.abs(Number(goodput.replace(/[^\d.]/g, "")) - 100 * phases.goodput.goodput_ratio) < 0.11, goodput);
  await page.locator('.figure[data-key="ETTR"] .figure-label').click();
  test.check("with its assumptions", (await page.locator("dialog[open]").innerText()).includes("phases: a pause is"));
  await page.keyboard.press("Escape");
  const advice = page.locator('[aria-label="What to change next"]');
  test.check("advice has a predicted gain", /\+\d/.test(await advice.locator("tbody").first().innerText()), await advice.innerText());
  const others = (await (await fetch(`${test.url}/api/v1/jobs?since=3h`)).json()).jobs.filter(({ id }) => id !== big.id);
  await test.open(page, `/job?id=${encodeURIComponent(others[0].id)}&since=3h`);
  test.check("another says what is missing", (await advice.innerText()).includes("config.json of the model"), await advice.innerText());
  await advice.locator("summary").click();
  test.check("and how to tell it", (await advice.locator("code").first().innerText()).includes(`/api/v1/jobs/${encodeURIComponent(others[0].id)}/model`));
}

// --- filters of the list are the API's: over all jobs
async function filters(test, page, big) {
  await test.open(page, "/jobs?since=3h");
  const all = await page.locator("tbody tr").count();
  await page.locator(".find input").fill(big.job);
  await test.goes("what is looked for is in the address", page, /q=/);
  test.check("fewer jobs are left", (await page.locator("tbody tr").count()) < all && (await page.locator("tbody").innerText()).includes(big.job));
  await page.goto(`${test.url}/jobs?since=3h&user=${encodeURIComponent(big.user)}&q=${encodeURIComponent(big.job.slice(0, 3))}`);
  await test.settled(page);
  test.equal("what was looked for is in the box after a reload", await page.locator(".find input").inputValue(), big.job.slice(0, 3));
  await page.locator(".chip button").first().click();
  await test.goes("a filter is taken off", page, /jobs\?(?!.*user=)/);
}

async function search(test, page, big) {
  await test.open(page, "/?since=3h");
  await page.keyboard.press("/");
  test.equal("the slash goes to the search box", await page.evaluate(() => document.activeElement?.getAttribute("type")), "search");
  await page.keyboard.type(big.job.slice(0, 12));
  await page.locator(".search li .kind", { hasText: "Job" }).first().waitFor();
  await test.accessible(page, "search");
  await test.shot(page, "search", { fullPage: false });
  await page.keyboard.press("ArrowDown");
  test.check("the arrow keys choose", (await page.locator(".search [aria-selected=true]").count()) === 1);
  await page.keyboard.press("Enter");
  await test.goes("Enter opens", page, "/job");
  await page.locator(".search input").fill("no such thing anywhere");
  await page.locator(".search li", { hasText: "Nothing is called like" }).waitFor();
  await page.keyboard.press("Escape");
  test.check("Escape closes", await page.locator(".search ul").isHidden());
}

// --- times, colours, the time span, and an update that moves nothing
async function updates(test, page) {
  await test.open(page, "/jobs?since=3h");
  const utc = await page.locator("tbody .time").first().innerText();
  await page.selectOption("header [data-key=zone] select", "local");
  await page.locator("th", { hasText: "Last seen, local" }).waitFor();
  const local = await page.locator("tbody .time").first().innerText();
  test.check("local time is another than UTC, and the head says which", utc !== local, `${utc} ${local}`);
  await page.reload();
  await test.settled(page);
  test.equal("the choice stays", await page.locator("header [data-key=zone] select").inputValue(), "local");
  await page.selectOption("header [data-key=zone] select", "utc");
  await page.selectOption("header [data-key=theme] select", "dark");
  test.equal("dark by choice", await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
  await page.selectOption("header [data-key=theme] select", "auto");
  await page.selectOption("header [data-key=span] select", "6h");
  await test.goes("the time span is in the address", page, /since=6h/);

  // The same elements are there after an update, with what the reader did to them.
  await test.open(page, "/?since=3h");
  await page.locator("details summary").click();
  await page.locator("tbody a.name").first().focus();
  await page.evaluate(() => {
    scrollTo(0, 400);
    globalThis.marked = [...document.querySelectorAll(".figure-value, canvas, tbody tr")];
  });
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.waitForResponse((response) => response.url().includes("/api/v1/fleet"));
  await test.settled(page);
  const after = await page.evaluate(() => ({
    kept: globalThis.marked.filter((element) => element.isConnected).length / globalThis.marked.length,
    open: document.querySelector("details")?.open,
    focus: document.activeElement?.className,
    y: scrollY,
  }));
  test.check("an update keeps what is on the screen", after.kept > 0.95, after.kept);
  test.equal("what was opened stays open", after.open, true);
  test.equal("the focus stays where it was", after.focus, "name");
  test.equal("nothing scrolls", after.y, 400);

  await test.open(page, "/?since=3h");
  await page.keyboard.press("Tab");
  test.equal("the keyboard begins with a way past the frame", await page.evaluate(() => document.activeElement?.textContent), "Skip to content");
}

// --- addresses that somebody wrote, or cut
async function addresses(test, page) {
  const note = page.locator("[data-key=misread]");
  for (const [path, said, corrected] of [["/?since=bogus", "since \u201cbogus\u201d", "/"], ["/?start=1767225600", "start without end", "/"], ["/waste?by=bogus&since=3h", "shown is team", "/waste?since=3h"]]) {
    await test.open(page, path);
    test.check(`${path}: what is not understood is said`, (await note.innerText()).includes(said), await note.innerText());
    test.equal(`${path}: and does not stay`, page.url(), test.url + corrected);
  }
  await page.getByRole("button", { name: "Users", exact: true }).click();
  await test.goes("another address", page, /by=user/);
  test.equal("is understood", await note.count(), 0);
  await test.open(page, "/?start=1767225600&end=1767229200");
  test.equal("Unix seconds are", await note.count(), 0);
  test.check("and shown", (await page.locator("[data-key=fixed]").innerText()).includes("(1 h)"), await page.locator("[data-key=fixed]").innerText());
  for (const [path, parameter] of [["/job", "id"], ["/finding", "id"], ["/host", "name"], ["/gpu?uuid=", "uuid"]]) {
    await test.open(page, path);
    const error = await page.locator(".notice.error").innerText();
    test.check(`${path}: what is missing is said`, error.includes(`${parameter} is missing`), error);
  }
}
