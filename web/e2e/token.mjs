// A service with tokens: the page asks for one, and is refused with a wrong one.
import { run } from "./browser.mjs";

await run(async (test, token) => {
  const page = await test.page({ allowed: /401|403/ });
  await test.open(page, "/");
  const form = page.locator("form.token");
  await form.waitFor();
  await form.locator("input").fill("not-the-token-0001");
  await form.locator("button").click();
  await test.settled(page);
  test.check("a wrong token is refused", await form.isVisible());
  await test.accessible(page, "token");
  await test.shot(page, "token");
  await form.locator("input").fill(token);
  await form.locator("button").click();
  await page.locator("text=No GPU has been seen yet").waitFor();
  test.equal("with a token the form is gone", await form.count(), 0);
  await page.reload();
  await page.locator("text=No GPU has been seen yet").waitFor();
  await test.open(page, "/quality");
  test.check("what is for administrators is said to be so", (await page.textContent("main"))?.includes("Only administrators see the targets."));
});
