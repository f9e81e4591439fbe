// A service with tokens: the page asks for one, and is refused with a wrong one.
import { readFileSync } from "node:fs";
import { run } from "./browser.mjs";

await run(async (test, token) => {
  const page = await test.page({ allowed: /401|403/ });
  await test.open(page, "/");
  const form = page.locator("form.token");
  await form.waitFor();
  await form.locator("input").fill("not-the-token-0001");
  await form.locator("button").click();
  await test.settled(page);
  test.check("a wrong token is refused, and it says so", (await form.innerText()).includes("That token was not accepted"), await form.innerText());
  await test.accessible(page, "token");
  await test.shot(page, "token");
  await form.locator("input").fill(token);
  await form.locator("button").click();
  await page.locator("text=No GPU has been seen yet").waitFor();
  test.equal("with a token the form is gone", await form.count(), 0);
  const files = await fetch(`${test.url}/api/v1/waste?since=7d&format=csv`);
  test.equal("without a token there is no file", files.status, 401);
  await test.open(page, "/waste");
  for (const [text, name, begin] of [["CSV", "flopsight-waste.csv", /^team,/], ["Markdown", "flopsight-waste.md", /^#/], ["HTML to mail", "flopsight-waste.html", /^<!DOCTYPE html>/i]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".actions a", { hasText: new RegExp(`^${text}$`) }).click()]);
    test.equal(`${text} is saved, asked for with the token`, download.suggestedFilename(), name);
    const saved = readFileSync(await download.path(), "utf8");
    test.check(`${text} is the file that was asked for`, begin.test(saved), saved.slice(0, 200));
  }
  await test.open(page, "/");
  await page.evaluate(() => sessionStorage.setItem("flopsight-token", "not-the-token-0002"));
  await test.open(page, "/waste");
  test.check("a token that is no longer good is asked for again", await form.isVisible());
  await page.locator(".actions a").first().click();
  await page.locator("dialog").waitFor();
  test.check("and a file says why it is not saved", (await page.locator("dialog").innerText()).includes("CSV was not saved"), await page.locator("dialog").innerText());
  await page.keyboard.press("Escape");
  await page.evaluate((good) => sessionStorage.setItem("flopsight-token", good), token);
  await test.open(page, "/");
  await page.reload();
  await page.locator("text=No GPU has been seen yet").waitFor();
  await test.open(page, "/quality");
  test.check("what is for administrators is said to be so", (await page.textContent("main"))?.includes("Only administrators see the targets."));
});
