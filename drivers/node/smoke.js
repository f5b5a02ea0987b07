// node-postgres: the extended protocol for every query with parameters, and a prepared statement
// for every query with a name.
"use strict";

const assert = require("node:assert/strict");
const { pipeline } = require("node:stream/promises");
const { Readable } = require("node:stream");
const { Client, Pool } = require("pg");
const Cursor = require("pg-cursor");
const { from: copyFrom, to: copyTo } = require("pg-copy-streams");

const TABLE = "smoke_node";
const lookup = (id) => ({ name: "lookup", text: `SELECT name FROM ${TABLE} WHERE id = $1`, values: [id] });
const nameOf = async (db, id) => (await db.query(lookup(id))).rows[0]?.name;
const refused = (promise, code) => assert.rejects(promise, (error) => error.code === code);

const checks = {
  async "lookups"(db) {
    for (let turn = 0; turn < 20; turn++) assert.equal(await nameOf(db, 1), "one");
  },

  async "lookups in transactions"(db) {
    for (let turn = 0; turn < 5; turn++) {
      await db.query("BEGIN");
      assert.equal(await nameOf(db, 1), "one");
      assert.equal(await nameOf(db, 2), "two");
      await db.query("COMMIT");
    }
  },

  async "unnamed statements"(db) {
    for (let turn = 0; turn < 10; turn++) {
      const { rows } = await db.query("SELECT $1::int + $2::int AS sum", [turn, 1]);
      assert.equal(rows[0].sum, turn + 1);
    }
  },

  async "parameters of many types"(db) {
    const now = new Date();
    const values = {
      int4: -8, int8: "1152921504606846976", float8: 1.5, bool: true, text: "ä€", bytea: Buffer.from([0, 255]),
      numeric: "12.340", uuid: "c7a3f2de-0a1c-4c0e-9d5d-2b1f1f1a9b10", timestamptz: now, "int4[]": [1, null, 3],
      jsonb: { a: 1 },
    };
    for (const [type, value] of Object.entries(values)) {
      const { rows } = await db.query(`SELECT $1::${type} AS back, $2::${type} AS nothing`, [value, null]);
      assert.deepEqual(rows[0], { back: value, nothing: null });
    }
  },

  async "a megabyte each way"(db) {
    const text = "x".repeat(1 << 20);
    assert.equal((await db.query("SELECT $1::text AS back", [text])).rows[0].back, text);
  },

  async "insert returning"(db) {
    const { rows } = await db.query(`INSERT INTO ${TABLE} VALUES ($1, $2) RETURNING id`, [10, "ten"]);
    assert.equal(rows[0].id, 10);
    assert.equal((await db.query(`DELETE FROM ${TABLE} WHERE id = $1`, [10])).rowCount, 1);
  },

  async "errors leave the connection usable"(db) {
    const insert = { name: "insert", text: `INSERT INTO ${TABLE} VALUES ($1, $2)`, values: [1, "again"] };
    for (let turn = 0; turn < 3; turn++) {
      await refused(db.query(insert), "23505");
      await refused(db.query({ name: "divide", text: "SELECT 1 / $1::int", values: [0] }), "22012");
      await refused(db.query({ name: "broken", text: "SELEC $1", values: [0] }), "42601");
      await refused(db.query("SELEC 1"), "42601");
      assert.equal(await nameOf(db, 1), "one");
    }
  },

  async "several statements in one query"(db) {
    const results = await db.query("SELECT 1 AS a; SELECT 2 AS b");
    assert.deepEqual(results.map((result) => result.rows[0]), [{ a: 1 }, { b: 2 }]);
  },

  async "rollback undoes"(db) {
    await db.query("BEGIN");
    await db.query(`INSERT INTO ${TABLE} VALUES (11, 'eleven')`);
    await db.query("ROLLBACK");
    assert.equal(await nameOf(db, 11), undefined);
  },

  async "a failed transaction refuses until rolled back"(db) {
    await db.query("BEGIN");
    await refused(db.query("SELECT 1 / $1::int", [0]), "22012");
    await refused(nameOf(db, 1), "25P02");
    await db.query("ROLLBACK");
    assert.equal(await nameOf(db, 1), "one");
  },

  async "queries queued without waiting"(db) {
    const queries = Array.from({ length: 50 }, (_, number) => db.query("SELECT $1::int AS back", [number]));
    const results = await Promise.all(queries);
    results.forEach((result, number) => assert.equal(result.rows[0].back, number));
  },

  async "copy in and out"(db) {
    const rows = Array.from({ length: 1000 }, (_, number) => `${number + 100}\trow ${number}\n`);
    await pipeline(Readable.from(rows), db.query(copyFrom(`COPY ${TABLE} FROM STDIN`)));
    let text = "";
    for await (const chunk of db.query(copyTo(`COPY ${TABLE} TO STDOUT`))) text += chunk;
    assert.equal(text.split("\n").length - 1, 1002);
    const again = pipeline(Readable.from(rows), db.query(copyFrom(`COPY ${TABLE} FROM STDIN`)));
    await refused(again, "23505");
    await db.query(`DELETE FROM ${TABLE} WHERE id >= 100`);
  },

  async "a portal in a transaction"(db) {
    await db.query("BEGIN");
    const cursor = db.query(new Cursor("SELECT generate_series(1, $1::int) AS number", [250]));
    assert.equal((await cursor.read(100)).length, 100);
    assert.equal((await cursor.read(100)).at(-1).number, 200);
    await cursor.close();
    await db.query("COMMIT");
  },

  async "many clients"() {
    const pool = new Pool({ max: 40 });
    const client = async (number) => {
      const db = await pool.connect();
      try {
        for (let turn = 0; turn < 20; turn++) {
          const value = number * 1000 + turn;
          const query = { name: "echo", text: "SELECT $1::int AS back", values: [value] };
          assert.equal((await db.query(query)).rows[0].back, value);
          await db.query("BEGIN");
          assert.equal(await nameOf(db, 1), "one");
          await db.query("COMMIT");
        }
      } finally {
        db.release();
      }
    };
    await Promise.all(Array.from({ length: 40 }, (_, number) => client(number)));
    await pool.end();
  },
};

const connect = async () => {
  const db = new Client();
  db.on("error", () => {}); // The query under way reports it.
  await db.connect();
  return db;
};

async function main() {
  let passed = 0;
  let failed = 0;
  let db = await connect();
  await db.query(`DROP TABLE IF EXISTS ${TABLE}`);
  await db.query(`CREATE TABLE ${TABLE} (id int PRIMARY KEY, name text NOT NULL)`);
  await db.query(`INSERT INTO ${TABLE} VALUES (1, 'one'), (2, 'two')`);
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check(db);
      passed += 1;
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}`);
      await db.end().catch(() => {});
      db = await connect();
    }
  }
  await db.query(`DROP TABLE ${TABLE}`);
  await db.end();
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}

main().catch((error) => {
  console.log(error.stack);
  process.exitCode = 1;
});
