// Takes a picture of a page of primus once it shows a run: node scripts/picture.mjs URL FILE

import { createRequire } from "node:module";
import path from "node:path";

const puppeteer = createRequire(path.resolve("bin/site-env/node_modules/x.js"))("puppeteer-core");
const [url, file] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
const tab = await browser.newPage();
await tab.setViewport({ width: 1100, height: 1000 });
await tab.goto(url, { waitUntil: "load" });
await tab.waitForFunction(() => document.body.innerText.includes("tokens/s") && document.querySelectorAll("svg path, svg polyline").length > 1, { timeout: 120000 });
await tab.screenshot({ path: file });
await browser.close();
