// Names of jobs, hosts, GPUs and users that try to be markup: on every page they are text, whole, and nothing runs.
import { run } from "./browser.mjs";

const MARK = "<img src=x onerror=alert(1)>";

await run(async (test) => {
  const page = await test.page({ allowed: /404/ });
  const { id, user } = (await (await fetch(`${test.url}/api/v1/jobs?since=24h`)).json()).jobs[0] ?? {};
  test.check("the hostile job is there", id !== undefined);
  const [found] = (await (await fetch(`${test.url}/api/v1/findings?state=all`)).json()).findings;
  test.check("something was found about it", found !== undefined);
  const gpus = await (await fetch(`${test.url}/api/v1/gpus/series?since=24h&columns=ofu_ratio&job=${encodeURIComponent(id)}`)).json();
  const { host, uuid } = gpus.gpus[0];
  const text = async () => page.locator("main").innerText();
  const clean = async (name) => {
    const found = await page.evaluate(() => document.querySelectorAll("img, script:not([src]), iframe, [onerror], [onload]").length);
    test.equal(`${name}: no element was made of a name`, found, 0);
  };
  for (const [name, path] of [["fleet", "/"], ["fleet by user", "/?by=user"], ["fleet by team", "/?by=namespace"], ["fleet by model", "/?by=model"], ["jobs", "/jobs"], ["job", `/job?id=${encodeURIComponent(id)}`],
    ["findings", "/findings"], ["finding", `/finding?id=${found.id}`], ["host", `/host?name=${encodeURIComponent(host)}`], ["gpu", `/gpu?uuid=${encodeURIComponent(uuid)}`], ["quality", "/quality"],
    ["waste by user", "/waste?by=user&since=24h"], ["waste by job", "/waste?by=job&since=24h"], ["waste by model", "/waste?by=model&since=24h"], ["jobs of a user", `/jobs?user=${encodeURIComponent(user)}`]]) {
    await test.open(page, path);
    test.check(`${name}: the name is shown as it is`, (await text()).includes(MARK), (await text()).slice(0, 600));
    await clean(name);
    test.check(`${name}: it does not push the page wider than the screen`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), await page.evaluate(() => document.documentElement.scrollWidth));
    await test.shot(page, `hostile-${name.replaceAll(" ", "-")}`);
  }
  await test.open(page, `/job?id=${encodeURIComponent(id)}`);
  const unseen = /[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/u;
  test.check("a mark that turns the direction of writing is shown by its number", (await text()).includes("\\u202e"), (await text()).slice(0, 400));
  const left = await page.evaluate(() => [document.title, document.body.textContent, ...[...document.querySelectorAll("[title], [aria-label]")].map((element) => element.title + element.ariaLabel)]);
  test.equal("no such mark is drawn, said or in the title", left.filter((part) => unseen.test(part)).length, 0);
  await test.open(page, "/map?of=span");
  const cell = await test.cell(page, 5, 5, MARK);
  test.check("map: the name is shown as it is", cell.includes(MARK), cell);
  await clean("map");
  await page.locator(".search input").fill("onerror");
  await page.locator(".search li").first().waitFor();
  test.check("search: names are found and shown as they are", (await page.locator(".search ul").innerText()).includes(MARK));
  await clean("search");
  await page.locator(".search li", { hasText: "Host" }).first().click();
  await test.goes("search: a host leads away", page, "/host");
  test.check("search: the host is opened", (await page.locator("h2").first().innerText()).includes(MARK));
  await test.open(page, `/job?id=${encodeURIComponent(MARK)}&since=1h`);
  test.check("an id that is none is an error in one line", (await page.locator(".notice.error").innerText()).startsWith("no job with the id"));
  await clean("unknown job");
});
