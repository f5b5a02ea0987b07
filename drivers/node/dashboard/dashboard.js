// The dashboard in Chromium, over PostgreSQL: what a person sees,
// clicks and copies. Screenshots go into the folder of SCREENSHOTS, if there is one.
"use strict";

const assert = require("node:assert/strict");
const path = require("node:path");
const { Client } = require("pg");
const { check, run, violations, go, text, column } = require("./seen.js");

const PAGE = process.env.DASHBOARD;
const SHOTS = process.env.SCREENSHOTS;

// Runs what a page may have to show: prepared statements, queries, a pin, a read under a rule.
async function work() {
  const db = new Client();
  await db.connect();
  await db.query("CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, owner text)");
  await db.query("INSERT INTO orders SELECT n, 'ann' FROM generate_series(1, 50) n ON CONFLICT DO NOTHING");
  await db.query("CREATE TABLE IF NOT EXISTS prices (id int PRIMARY KEY, price int)");
  for (let turn = 0; turn < 40; turn += 1) {
    await db.query({ name: "one", text: "SELECT owner FROM orders WHERE id = $1", values: [turn] });
    await db.query({ name: "write", text: "UPDATE orders SET owner = 'bob' WHERE id = $1", values: [turn] });
    await db.query({ name: "price", text: "SELECT price FROM prices WHERE id = $1", values: [1] });
    await db.query(`SELECT count(*) FROM orders WHERE id > ${turn}`);
  }
  const pinned = new Client({ application_name: "reports" });
  await pinned.connect();
  await pinned.query("CREATE TEMP TABLE notes (id int)");
  return [db, pinned];
}

async function shot(page, name) {
  if (SHOTS) await page.screenshot({ path: path.join(SHOTS, name) });
}

run(async (browser) => {
  const clients = await work();
  try {
    await looks(browser);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
});

async function looks(browser) {
  const page = await browser.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (line) => line.type() === "error" && wrong.push(line.text()));
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (origin !== new URL(PAGE).origin && origin !== "null") wrong.push(request.url());
  });
  await browser.defaultBrowserContext().overridePermissions(new URL(PAGE).origin, ["clipboard-read", "clipboard-sanitized-write"]);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.setViewport({ width: 1200, height: 860 });
  await page.goto(PAGE);

  await check("the first screen", async () => {
    await page.waitForSelector("#now .tile polyline");
    assert.equal(await text(page, "#waits"), "No client waits for a server.");
    const tiles = await page.$$eval(".tile", (all) => all.map((tile) => [tile.firstChild.textContent, tile.textContent]));
    const names = tiles.map(([name]) => name);
    for (const name of ["Transactions", "Latency p99", "Clients", "Round trips not made", "Reads answered from memory", "Servers not needed"]) {
      assert.ok(names.includes(name), name);
    }
    const parses = tiles.find(([name]) => name === "Parses that no server did")[1];
    assert.match(parses, /[1-9][\d,]* since the start/);
    assert.equal(await text(page, "#live"), "live");
    await shot(page, "dashboard.png");
    assert.deepEqual(await violations(page), []);
  });

  await check("who waits, and for what", async () => {
    // A pool of one server, which a transaction keeps.
    const [one, two] = [new Client({ database: "narrow" }), new Client({ database: "narrow" })];
    await Promise.all([one.connect(), two.connect()]);
    await one.query("BEGIN");
    const late = two.query("SELECT 1");
    await page.waitForFunction(() => document.getElementById("waits").classList.contains("bad"));
    assert.match(await text(page, "#waits"), /^1 wait for a server, the first for .*\. narrow\/.*: all 1 servers of the pool work\.$/);
    assert.deepEqual(await column(page, "#waits-table", "advice"), ["a larger pool_size, or shorter work"]);
    assert.deepEqual(await violations(page), []);
    await one.query("COMMIT");
    await late;
    await page.waitForFunction(() => document.getElementById("waits").classList.contains("good"));
    await Promise.all([one.end(), two.end()]);
  });

  await check("statements, sorted by any column", async () => {
    await go(page, "statements");
    await page.waitForSelector("#statement-table tbody tr");
    const count = (value) => Number(value.replaceAll(",", ""));
    const uses = async () => (await column(page, "#statement-table", "uses")).map(count);
    const descending = await uses();
    assert.ok(descending.length >= 3);
    assert.deepEqual(descending, [...descending].sort((a, b) => b - a));
    const texts = await column(page, "#statement-table", "text");
    assert.ok(texts.includes("UPDATE orders SET owner = '' WHERE id = $1"), "no literal is shown");
    const sorted = async (name, order) => {
      await page.click(`#statement-table th[data-column="${name}"] button`);
      await page.waitForSelector(`#statement-table th[data-column="${name}"][aria-sort="${order}"]`);
    };
    await sorted("text", "ascending");
    const ascending = await column(page, "#statement-table", "text");
    assert.deepEqual(ascending, [...ascending].sort());
    await sorted("text", "descending");
    await sorted("uses", "descending");
    await sorted("uses", "ascending");
    assert.deepEqual(await uses(), [...descending].reverse());
  });

  await check("why a statement is not cached, and a rule that is copied", async () => {
    const [found] = await page.$$("::-p-xpath(//button[contains(., 'SELECT price')])");
    // By keyboard alone.
    await found.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("#why:not([hidden]) .reason");
    const reasons = await page.$$eval("#why .reason", (all) => all.map((reason) => reason.textContent));
    assert.match(reasons[0], /Prepared .*: yes/);
    const cached = reasons.find((reason) => reason.startsWith("Answered from memory"));
    assert.match(cached, /: no\. No rule applies/);
    assert.deepEqual(await violations(page), []);
    await shot(page, "dashboard-statements.png");
    const [copy] = await page.$$("::-p-xpath(//button[text()='Copy the rule'])");
    await copy.click();
    await page.waitForFunction(() => document.getElementById("said").textContent.startsWith("Copied"));
    const rule = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(rule, /^\[\[cache\.rules\]\]\n/);
    assert.match(rule, /\nstatement = "SELECT price FROM prices WHERE id = \$1"\n/);
  });

  await check("the reason of a pin", async () => {
    await go(page, "pools");
    await page.waitForSelector("#pin-table tbody tr");
    const pins = await column(page, "#pin-table", "reason");
    assert.deepEqual(pins, ["temporary tables"]);
    assert.deepEqual(await column(page, "#pin-table", "application_name"), ["reports"]);
    assert.deepEqual(await violations(page), []);
  });

  await check("hosts", async () => {
    assert.deepEqual(await column(page, "#host-table", "state"), ["good"]);
  });

  await check("the cache, and a text explained", async () => {
    await go(page, "cache");
    await page.waitForSelector("#memory .tile");
    assert.deepEqual(await violations(page), []);
    await go(page, "explain");
    await page.type("#sql", "INSERT INTO orders VALUES (1, '<b>ann</b>')");
    await page.click("#explain button");
    await page.waitForSelector("#explained .reason");
    assert.match(await text(page, "#explained"), /Answered from memory .*: no/);
    assert.equal(await page.$("#explained b"), null);
    assert.deepEqual(await violations(page), []);
  });

  await check("dark", async () => {
    const ground = () => page.$eval("body", (body) => getComputedStyle(body).backgroundColor);
    const light = await ground();
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await go(page, "overview");
    await page.waitForFunction((was) => getComputedStyle(document.body).backgroundColor !== was, {}, light);
    assert.equal(await text(page, "#theme"), "Light");
    await page.waitForSelector("#now .tile polyline");
    assert.deepEqual(await violations(page), []);
    await shot(page, "dashboard-dark.png");
    await page.click("#theme");
    assert.equal(await ground(), light);
    await page.click("#theme");
  });

  await check("320 pixels", async () => {
    await page.setViewport({ width: 320, height: 720 });
    for (const section of ["overview", "statements", "pools", "cache", "explain"]) {
      await go(page, section);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 320, `${section} is ${wide} pixels wide`);
    }
    await go(page, "overview");
    await shot(page, "dashboard-320.png");
    assert.deepEqual(await violations(page), []);
  });

  await check("a page that nobody looks at asks nothing", async () => {
    let asked = 0;
    page.on("request", () => { asked += 1; });
    await page.evaluate(() => {
      Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.waitForFunction(() => document.getElementById("live").textContent === "not looking");
    const before = asked;
    // Longer than the time between two looks: a slow machine only asks later.
    await new Promise((done) => { setTimeout(done, 4500); });
    assert.equal(asked, before);
    await page.evaluate(() => {
      delete document.visibilityState;
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.waitForFunction(() => document.getElementById("live").textContent === "live");
  });

  await check("nothing went wrong, and nothing came from elsewhere", async () => {
    assert.deepEqual(wrong, []);
  });
}
