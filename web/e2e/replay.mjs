// What real exporters said, as the page shows it: nothing is simulated, models are named, and what cannot be known is unknown with its reason.
import { run } from "./browser.mjs";

await run(async (test) => {
  const page = await test.page();
  const fleet = await (await fetch(`${test.url}/api/v1/fleet?since=1h&by=model`)).json();
  const models = fleet.groups.map(({ key }) => key.model ?? key.model_raw);
  test.check("several models of GPUs were seen", models.length >= 3, models.join(", "));
  const views = { fleet: "/?since=1h&by=model", jobs: "/jobs?since=1h", map: "/map?of=span&since=1h", waste: "/waste?since=1h&by=model", quality: "/quality?since=1h", findings: "/findings" };
  for (const [name, path] of Object.entries(views)) {
    await test.open(page, path);
    test.equal(`${name}: no error is shown`, await page.locator(".notice.error").count(), 0);
    test.equal(`${name}: nothing says SIMULATED`, await page.locator(".simulated").count(), 0);
    test.check(`${name}: nothing reads undefined, NaN or null`, !/undefined|NaN|\bnull\b|\[object/.test(await page.locator("body").innerText()));
    await test.accessible(page, name);
    await test.shot(page, `replay-${name}`);
    if (["fleet", "waste", "quality"].includes(name)) {
      const text = await page.locator("main").innerText();
      test.check(`${name}: every model is named`, models.every((model) => text.includes(model)), models.filter((model) => !text.includes(model)).join(", "));
    }
  }
  await test.open(page, views.quality);
  const reasons = await page.locator('[aria-label="Coverage"]').innerText();
  test.check("what is not known has a reason", Object.values(fleet.fleet.absent_ratios).every((ratio) => ratio === 0) || (await page.locator('[aria-label="Coverage"] tbody tr').count()) > 0, reasons);
  const { hosts } = await (await fetch(`${test.url}/api/v1/gpus?since=1h`)).json();
  const host = hosts.find((one) => one.startsWith("gpu1-"));
  await test.open(page, `/host?name=${encodeURIComponent(host)}&since=1h`);
  test.equal("a host has its page", await page.locator(".notice.error").count(), 0);
  await page.locator("tbody a.name").first().click();
  await test.goes("a GPU of it leads away", page, "/gpu");
  test.equal("and has its page", await page.locator(".notice.error").count(), 0);
  await test.shot(page, "replay-gpu");
  await test.open(page, "/?since=1h");
  test.equal("without prices there are no dollars", (await page.locator("main").innerText()).includes("$"), false);
  await test.open(page, "/waste?since=1h");
  test.check("and the waste account says how to tell prices", (await page.locator('[data-key="prices.csv"] code').innerText()).includes("usd_per_gpu_hour"));
});
