// The dashboard in Chromium over the embedded database (BACKEND=sqlite) or over MySQL or MariaDB
// (BACKEND=mysql): it has something to show from the first query on.
"use strict";

const assert = require("node:assert/strict");
const { check, run, violations, go, text, column, tile } = require("./seen.js");

const PAGE = process.env.DASHBOARD;
const IS_FILE = process.env.BACKEND === "sqlite";

// Returns a way to run a text, and one to leave.
async function connected() {
  if (IS_FILE) {
    const { Client } = require("pg");
    const db = new Client();
    await db.connect();
    return { query: (sql) => db.query(sql), end: () => db.end() };
  }
  const { MYSQL_PORT: port, MYSQL_USER: user, MYSQL_PASSWORD: password } = process.env;
  const db = await require("mysql2/promise").createConnection({ host: "127.0.0.1", port, user, password });
  return { query: (sql) => db.query(sql), execute: (sql, values) => db.execute(sql, values), end: () => db.end() };
}

run(async (browser) => {
  const db = await connected();
  await db.query("SELECT 1");
  const page = await browser.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (line) => line.type() === "error" && wrong.push(line.text()));
  await page.setViewport({ width: 320, height: 720 });
  await page.goto(PAGE);

  await check("the first screen has the first query", async () => {
    await page.waitForSelector("#now .tile polyline");
    assert.match(await tile(page, "Transactions"), /[1-9]\d* since the start/);
    assert.match(await tile(page, "Clients"), /^Clients1/);
    assert.equal(await text(page, "#waits"), "No client waits for a server.");
    assert.deepEqual(await violations(page), []);
  });

  await check("statements and their figures", async () => {
    if (!IS_FILE) await db.execute("SELECT ? + 1, 'ann'", [7]);
    for (let turn = 0; IS_FILE && turn < 3; turn += 1) await db.query("SELECT 7 + 1, 'ann'");
    await go(page, "statements");
    const wanted = IS_FILE ? "SELECT" : "SELECT ? + 0, ''";
    await page.waitForFunction((it) => document.getElementById("statement-table").textContent.toUpperCase().includes(it), {}, wanted);
    const texts = await column(page, "#statement-table", "text");
    assert.ok(!texts.some((it) => it.includes("ann")), texts.join("\n"));
    assert.ok((await column(page, "#statement-table", "calls")).some((calls) => Number(calls) > 0));
    assert.deepEqual(await violations(page), []);
  });

  await check("the reasons of a statement", async () => {
    if (IS_FILE) return;
    const [found] = await page.$$("::-p-xpath(//button[contains(., 'SELECT ?')])");
    await found.click();
    await page.waitForSelector("#why:not([hidden]) .reason");
    assert.match(await text(page, "#why"), /Prepared .*: yes/);
    assert.match(await text(page, "#why"), /Answered from memory .*: no. The cache is for PostgreSQL alone/);
  });

  await check("pools and hosts", async () => {
    await go(page, "pools");
    await page.waitForSelector("#pool-table tbody tr");
    assert.ok((await column(page, "#pool-table", "cl_active")).includes("1"));
    if (IS_FILE) assert.match(await text(page, "#host-table"), /^No pool of a database server is open/);
    else assert.deepEqual(await column(page, "#host-table", "state"), ["good"]);
    assert.deepEqual(await violations(page), []);
  });

  await check("a text explained", async () => {
    await go(page, "explain");
    await page.type("#sql", "SELECT 1");
    await page.click("#explain button");
    await page.waitForSelector("#explained .reason");
    assert.match(await text(page, "#explained"), /Answered from memory .*: no/);
    assert.deepEqual(wrong, []);
  });
  await db.end();
});
