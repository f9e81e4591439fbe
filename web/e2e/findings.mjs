// Findings in the page: listed, opened, acknowledged, taken back, silenced, resolved; marked in the charts of their job and of the fleet.
import { PHONE, run } from "./browser.mjs";

await run(async (test) => {
  const ask = async (path) => (await fetch(`${test.url}/api/v1/${path}`)).json();
  const [found] = (await ask("findings")).findings.filter(({ job }) => job);
  test.check("something was found", found !== undefined);
  const views = { findings: "/findings", finding: `/finding?id=${found.id}`, fleet: "/?since=6h", job: `/job?id=${encodeURIComponent(found.job)}&since=6h` };
  const page = await test.page();
  for (const [name, path] of Object.entries(views)) {
    await test.open(page, path);
    test.equal(`${name}: no error is shown`, await page.locator(".notice.error").count(), 0);
    test.check(`${name}: SIMULATED is visible`, await page.locator(".simulated").isVisible());
    test.check(`${name}: nothing reads undefined, NaN or null`, !/undefined|NaN|\bnull\b|\[object/.test(await page.locator("body").innerText()));
    test.check(`${name}: it is not wider than the screen`, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await test.accessible(page, name);
    await test.shot(page, `found-${name}`);
  }
  const dark = await test.page({ dark: true });
  const phone = await test.page({ viewport: PHONE });
  for (const name of ["findings", "finding"]) {
    await test.open(dark, views[name]);
    await test.accessible(dark, `${name}, dark`);
    await test.shot(dark, `found-${name}-dark`);
    await test.open(phone, views[name]);
    test.check(`${name} on a phone scrolls in one direction only`, await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await test.shot(phone, `found-${name}-phone`);
  }
  const tour = await test.page({ viewport: { width: 1280, height: 860 } });
  await test.open(tour, views.findings);
  await test.shot(tour, "tour-findings", { fullPage: false });

  // --- where else it is
  await test.open(page, views.job);
  test.check("the job's chart marks it, and links to it", (await page.locator(".marked a").count()) >= 1);
  await page.locator(`.marked [data-key="${found.id}"] a`).click();
  await test.goes("the mark leads to the finding", page, "/finding");
  test.check("which says what was found", (await page.locator(".summary").innerText()).includes(found.text), await page.locator(".summary").innerText());
  await page.goBack();
  await test.goes("and back", page, "/job");
  await test.open(page, views.fleet);
  test.check("the fleet has its top findings", (await page.locator('[aria-label="Top findings"] tbody tr').count()) >= 1);

  // --- what somebody says of it
  await test.open(page, views.finding);
  const state = page.locator('.figure[data-key="State"]');
  await page.locator('[aria-label="Note"]').fill("looked at <b>it</b>");
  await page.locator('[aria-label="Your name"]').fill("ada");
  await page.getByRole("button", { name: "Acknowledge", exact: true }).click();
  await state.filter({ hasText: "acknowledged by ada" }).waitFor();
  let kept = await ask(`findings/${found.id}`);
  test.equal("it is acknowledged", kept.state, "acknowledged");
  test.equal("with the note", kept.note, "looked at <b>it</b>");
  test.check("which is shown as text", (await page.locator(".facts").innerText()).includes("looked at <b>it</b>"));
  await page.getByRole("button", { name: "Take back" }).click();
  await state.filter({ hasText: "open" }).waitFor();
  test.equal("it is open again", (await ask(`findings/${found.id}`)).state, "open");
  await page.locator("summary", { hasText: "Silence it" }).click();
  await page.locator('[aria-label="Comment"]').fill("while we look");
  await page.getByRole("button", { name: "Silence", exact: true }).click();
  await page.locator(".silence [role=status]", { hasText: "Silenced" }).waitFor();
  kept = await ask(`findings/${found.id}`);
  test.check("it is silenced", kept.silenced === true);
  await test.open(page, views.findings);
  const silence = page.locator('[aria-label="Silences"] tbody tr').first();
  test.check("the silence is listed", (await silence.innerText()).includes("while we look"), await silence.innerText());
  await silence.getByRole("button").click();
  await page.locator(".nothing", { hasText: "No silence holds" }).waitFor();
  test.equal("an ended one is gone", (await ask("silences")).silences.length, 0);
  await page.getByRole("button", { name: /^Acknowledge: / }).first().click();
  await page.locator("tbody td", { hasText: "acknowledged" }).first().waitFor();
  test.check("the list acknowledges too", (await ask("findings?state=acknowledged")).findings_total >= 1);

  // --- filters are in the address
  await page.getByRole("button", { name: "Resolved", exact: true }).click();
  await test.goes("the state is in the address", page, /state=resolved/);
  await page.getByRole("button", { name: "All", exact: true }).click();
  await test.goes("also all", page, /state=all/);
  await page.locator(".choice select").first().selectOption(found.kind);
  await test.goes("and the kind", page, /kind=/);
  test.check("the kind is there", (await page.locator('[aria-label="Findings"] tbody tr').count()) >= 1);
  await test.open(page, views.finding);
  await page.getByRole("button", { name: "Resolve", exact: true }).click();
  await state.filter({ hasText: "resolved" }).waitFor();
  test.equal("it is resolved", (await ask(`findings/${found.id}`)).state, "resolved");
  test.equal("then there is nothing to answer", await page.locator(".answer button:visible", { hasText: "cknowledge" }).count(), 0);
  const lost = await test.page({ allowed: /404/ });
  await test.open(lost, "/finding?id=0123456789abcdef");
  test.check("one that is not there is an error in one line", (await lost.locator(".notice.error").innerText()).includes("0123456789abcdef"));
});
