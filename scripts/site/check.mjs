// Looks at every page of the site in Chromium, from the file system, at two widths and in both
// colours: nothing is requested from elsewhere, nothing is wider than the window, links lead to files
// and headings that exist, axe-core finds no fault of WCAG 2 AA, and the search finds a word. With a
// folder it writes pictures there.
//
//   node scripts/site/check.mjs bin/site [FOLDER]

import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [site, pictures] = process.argv.slice(2).map((p) => path.resolve(p));
const require = createRequire(path.resolve("bin/site-env/node_modules/x.js"));
const puppeteer = require("puppeteer-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const pages = fs.readdirSync(site, { recursive: true }).filter((f) => f.endsWith(".html")).sort();
const faults = new Set();
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  protocolTimeout: 600000,
});
const tab = await browser.newPage();
await tab.evaluateOnNewDocument(() => localStorage.clear()); // which keeps the colours of the page before
tab.on("request", (r) => /^(file|data|blob|about):/.test(r.url()) || faults.add(`a request to ${r.url()}`));
tab.on("pageerror", (e) => faults.add(`an error: ${e.message}`));

const anchors = {};
const links = [];
for (const page of pages) {
  for (const [width, colours] of [[1440, "light"], [360, "dark"]]) {
    await tab.setViewport({ width, height: 1000 });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: colours }]);
    await tab.goto(pathToFileURL(path.join(site, page)).href, { waitUntil: "load" });
    const where = `${page} at ${width}`;
    if (await tab.evaluate(() => document.body.dataset.mdColorScheme) !== { light: "default", dark: "slate" }[colours]) faults.add(`${where}: not in ${colours} colours`);
    if (await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth)) faults.add(`${where}: wider than the window`);
    await tab.evaluate(axe);
    const found = await tab.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa"] }));
    for (const v of found.violations) faults.add(`${where}: ${v.id}: ${v.nodes[0].html.slice(0, 120)} (${v.nodes.length} places)`);
    if (pictures) await tab.screenshot({ path: path.join(pictures, `${page.replaceAll("/", "-")}-${width}.png`) });
  }
  anchors[page] = new Set(await tab.$$eval("[id]", (all) => all.map((e) => e.id)));
  for (const href of await tab.$$eval("a[href]", (all) => all.map((e) => e.href))) {
    if (href.startsWith("file:")) links.push([page, new URL(href)]);
  }
}
for (const [page, url] of links) {
  const target = path.relative(site, decodeURIComponent(url.pathname));
  const anchor = decodeURIComponent(url.hash.slice(1));
  if (!fs.existsSync(path.join(site, target))) faults.add(`${page}: a link to ${target}, which is not there`);
  else if (anchor && anchors[target] && !anchors[target].has(anchor) && !anchor.startsWith("__")) faults.add(`${page}: a link to ${target}#${anchor}, which is not there`);
}

await tab.setViewport({ width: 1440, height: 1000 });
await tab.goto(pathToFileURL(path.join(site, "index.html")).href, { waitUntil: "load" });
await tab.click(".md-search__input");
await tab.type(".md-search__input", "quarantine");
await tab.waitForSelector(".md-search-result__item", { timeout: 60000 }).catch(() => faults.add("the search finds nothing"));
if (pictures) await tab.screenshot({ path: path.join(pictures, "search.png") });
await browser.close();

for (const f of faults) console.error(f);
console.log(`${pages.length} pages, ${links.length} links, ${faults.size} faults`);
process.exit(faults.size ? 1 : 0);
