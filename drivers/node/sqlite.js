// A client library against SQLite behind PostgreSQL's protocol: `node sqlite.js LIBRARY`.
"use strict";

const assert = require("node:assert/strict");

const library = process.argv[2];
const TABLE = `smoke_sqlite_${library.replace(/[.-]/, "_")}`;
const LOOKUP = `SELECT name FROM ${TABLE} WHERE id = $1`;
const INSERT = `INSERT INTO ${TABLE} (name) VALUES ($1) RETURNING id`;

// node-postgres prepares what has a name.
const NAMES = { [LOOKUP]: "lookup", [INSERT]: "insert" };

// Each gives rows for a text with values, runs something in a transaction that fails, and ends.
const libraries = {
  async "node-postgres"() {
    const { Client } = require("pg");
    const db = new Client();
    await db.connect();
    const query = async (text, values) => (await db.query({ name: values && NAMES[text], text, values })).rows;
    const undone = async (work) => {
      await db.query("BEGIN");
      await work(query);
      await db.query("ROLLBACK");
    };
    return { query, undone, end: () => db.end() };
  },

  async "postgres.js"() {
    const db = require("postgres")({ max: 1, onnotice: () => {} });
    const query = (text, values) => (values ? db.unsafe(text, values, { prepare: true }) : db.unsafe(text));
    const stop = new Error("undo");
    const undone = (work) =>
      assert.rejects(
        db.begin(async (own) => {
          await work((text, values) => own.unsafe(text, values, { prepare: true }));
          throw stop;
        }),
        stop,
      );
    return { query, undone, end: () => db.end() };
  },
};

const checks = {
  async "lookups"(db) {
    for (let turn = 0; turn < 20; turn++) {
      assert.equal((await db.query(LOOKUP, [1]))[0].name, "one");
      assert.equal((await db.query(LOOKUP, [7])).length, 0);
    }
  },

  async "insert returning"(db) {
    // int4 is a number to both.
    assert.equal((await db.query(INSERT, ["three"]))[0].id, 3);
    assert.equal((await db.query(LOOKUP, [3]))[0].name, "three");
  },

  async "a duplicate key has its code"(db) {
    for (let turn = 0; turn < 3; turn++) {
      await assert.rejects(db.query(INSERT, ["one"]), (error) => error.code === "23505");
      assert.equal((await db.query(LOOKUP, [2]))[0].name, "two");
    }
  },

  async "rollback undoes"(db) {
    await db.undone(async (query) => assert.equal((await query(INSERT, ["four"]))[0].id, 4));
    assert.equal((await db.query(LOOKUP, [4])).length, 0);
  },
};

async function main() {
  const db = await libraries[library]();
  await db.query(`DROP TABLE IF EXISTS ${TABLE}`);
  await db.query(`CREATE TABLE ${TABLE} (id integer PRIMARY KEY, name text NOT NULL UNIQUE)`);
  await db.query(`INSERT INTO ${TABLE} VALUES (1, 'one'), (2, 'two')`);
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check(db);
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}`);
    }
  }
  await db.query(`DROP TABLE ${TABLE}`);
  await db.end();
  console.log(`${Object.keys(checks).length - failed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}

main().catch((error) => {
  console.log(error.stack);
  process.exit(1);
});
