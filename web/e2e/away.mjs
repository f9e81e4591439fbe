// The service is stopped under a page that shows it: what was shown stays, and the page says that it is old.
import { createInterface } from "node:readline";
import { run } from "./browser.mjs";

await run(async (test) => {
  const page = await test.page({ allowed: /ERR_CONNECTION_REFUSED|Failed to load resource/ });
  await test.open(page, "/");
  const before = await page.locator(".figure-value").first().textContent();
  test.check("figures are shown", before?.includes("%"), before);
  console.log("shown");
  const gone = createInterface({ input: process.stdin });
  await new Promise((done) => gone.once("line", done));
  gone.close();
  await page.selectOption("header [data-key=span] select", "6h");
  await page.locator("[data-key=unreachable]").waitFor();
  test.equal("what was there stays", await page.locator(".figure-value").first().textContent(), before);
  const said = async () => ((await page.locator("body").innerText()).match(/does not answer/g) ?? []).length;
  test.equal("it is said once", await said(), 1);
  const notice = await page.locator("[data-key=unreachable]").innerText();
  test.check("it says of when the data is", /What is shown is what it said at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\u00a0UTC\./u.test(notice), notice);
  await test.shot(page, "away");
  await page.locator("nav a", { hasText: "Jobs" }).click();
  await page.waitForFunction(() => document.querySelector("main")?.textContent?.includes("Waiting for the service"));
  await page.waitForFunction(() => !document.querySelector("[data-key=unreachable]")?.textContent?.includes("What is shown"));
  test.equal("another page says it once as well", await said(), 1);
  test.check("and does not claim to show anything", !(await page.locator("[data-key=unreachable]").innerText()).includes("What is shown"));
});
