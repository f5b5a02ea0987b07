// What the tests of the dashboard share: a browser, and ways to read a page.
"use strict";

const fs = require("node:fs");
const puppeteer = require("puppeteer-core");

const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

let passed = 0;
let failed = 0;

async function check(name, run) {
  try {
    await run();
    passed += 1;
  } catch (error) {
    console.log(`FAILED ${name}:`, error);
    failed += 1;
  }
}

// Runs the tests with a browser, says how many there were, and ends with that.
function run(main) {
  const options = { executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"] };
  const all = async () => {
    const browser = await puppeteer.launch(options);
    try {
      await main(browser);
    } finally {
      await browser.close();
    }
  };
  all().catch((error) => {
    console.log(error);
    failed += 1;
  }).then(() => {
    console.log(`${passed} passed, ${failed} failed`);
    process.exitCode = failed > 0 ? 1 : 0;
  });
}

async function violations(page) {
  // The page's policy lets no script in: the tests have another way.
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

async function go(page, section) {
  await page.evaluate((name) => { location.hash = name; }, section);
  await page.waitForSelector(`#section-${section}:not([hidden])`);
}

const text = (page, selector) => page.$eval(selector, (found) => found.textContent);
const column = (page, table, name) => page.$eval(table, (found, wanted) => {
  const cells = [...found.querySelectorAll("th")];
  const place = cells.findIndex((cell) => cell.dataset.column === wanted);
  return [...found.querySelectorAll("tbody tr")].map((row) => row.cells[place].textContent);
}, name);

// Returns the figure and the line below it of a tile.
const tile = (page, name) => page.$$eval(".tile", (all, wanted) => {
  const found = all.find((one) => one.firstChild.textContent === wanted);
  return found && found.textContent;
}, name);

module.exports = { check, run, violations, go, text, column, tile };
