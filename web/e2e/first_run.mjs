// A service that has never seen a GPU.
import { PHONE, run } from "./browser.mjs";

await run(async (test) => {
  const page = await test.page();
  await test.open(page, "/");
  test.check("it says that nothing has been seen", (await page.textContent("main"))?.includes("No GPU has been seen yet"));
  const ways = await page.locator(".way pre").allTextContents();
  test.check("three ways to connect a fleet, and one to try", ways.length === 4, ways.length);
  test.check("remote write goes to where the page is", ways.some((text) => text.includes(`${test.url}/api/v1/write`)), ways.join("\n"));
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.locator(".way button").first().click();
  await page.locator(".way button", { hasText: "Copied" }).waitFor();
  test.equal("copying copies the command", await page.evaluate(() => navigator.clipboard.readText()), ways[0]);
  await test.accessible(page, "first run");
  await test.shot(page, "first-run");
  for (const path of ["/jobs", "/map", "/study", "/quality"]) {
    await test.open(page, path);
    test.check(`${path} says that there is nothing`, (await page.locator(".nothing").count()) > 0);
    test.equal(`${path} shows no error`, await page.locator(".notice.error").count(), 0);
  }
  const phone = await test.page({ viewport: PHONE });
  await test.open(phone, "/");
  test.check("a phone scrolls in one direction only", await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), await phone.evaluate(() => document.documentElement.scrollWidth));
  await test.shot(phone, "first-run-phone");
});
