// The admin console by mysql2 and mariadb of Node, by text and by prepared statements.
"use strict";

const assert = require("node:assert/strict");

const TIMES = 10;
const { MYSQL_HOST, MYSQL_PORT } = process.env;
const PLACE = { host: MYSQL_HOST, port: Number(MYSQL_PORT), user: "app", password: "secret", database: "pgbouncer" };

// Each gives functions that return rows, by text and prepared, and one that ends.
const LIBRARIES = {
  async mysql2() {
    const db = await require("mysql2/promise").createConnection(PLACE);
    return {
      query: async (text) => (await db.query(text))[0],
      execute: async (text) => (await db.execute(text))[0],
      again: () => db.changeUser({ ...PLACE, database: "refrain" }),
      end: () => db.end(),
    };
  },
  async mariadb() {
    const db = await require("mariadb").createConnection(PLACE);
    return {
      query: async (text) => Array.from(await db.query(text)),
      execute: async (text) => Array.from(await db.execute(text)),
      again: () => db.changeUser({ ...PLACE, database: "refrain" }),
      end: () => db.end(),
    };
  },
};

async function main() {
  const db = await LIBRARIES[process.argv[2]]();
  const [help] = await db.query("SHOW HELP");
  const [line] = Object.values(help);
  assert.ok(line.startsWith("SHOW HELP|"), line);
  const names = line.split("|").slice(1);
  assert.ok(names.length > 40);
  const columns = (rows) => rows.map((row) => Object.entries(row).map(([name, value]) => [name, typeof value]));
  for (const name of names) {
    for (let turn = 0; turn < TIMES; turn++) {
      const [text, prepared] = [await db.query(`SHOW ${name}`), await db.execute(`SHOW ${name}`)];
      // Rows may come and go, and their types stay.
      if (text.length === prepared.length) assert.deepEqual(columns(text), columns(prepared), name);
    }
  }
  const text = "SELECT cl_active FROM pools WHERE `database` = 'pgbouncer'";
  for (const rows of [await db.query(text), await db.execute(text)]) {
    assert.deepEqual(rows.map((row) => Number(row.cl_active)), [1]);
  }
  await assert.rejects(db.execute("SHOW POLS"), (error) => error.errno === 1064);
  await db.again();
  const [{ "DATABASE()": name }] = await db.query("SELECT DATABASE()");
  assert.equal(name, "refrain");
  await db.end();
}

main().then(
  () => console.log("1 passed, 0 failed"),
  (error) => {
    console.log(error);
    console.log("0 passed, 1 failed");
    process.exitCode = 1;
  },
);
