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
  await test.shot(page, "away");
});
