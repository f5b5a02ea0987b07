// A client library of MySQL: `node smoke_mysql.js LIBRARY`.
//
// Each check prints `= NAME` and then what it got. Whether that is right is seen by running the
// same without a proxy. A check that fails by itself prints FAILED.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { inspect } = require("node:util");

const name = process.argv[2];
const library = require("./mysql_libraries.js")[name]();
const TABLE = `smoke_node_${name}`;
const LOOKUP = `SELECT name FROM ${TABLE} WHERE id = ?`;
const INSERT = `INSERT INTO ${TABLE} (name, number) VALUES (?, ?)`;
const COUNT = `SELECT COUNT(*) AS count FROM ${TABLE}`;
const CLIENTS = 24;
const TURNS = 10;

const plain = (value) => {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (Buffer.isBuffer(value) || value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
};
const show = (...values) =>
  console.log(...values.map((value) => inspect(plain(value), { breakLength: Infinity, depth: 5, maxArrayLength: 20 })));
const rows = (result) => [...result].map((row) => ({ ...row }));
const changed = ({ affectedRows, insertId, changedRows, warningStatus, warningCount }) =>
  show({ affectedRows, insertId, changedRows, warnings: warningStatus ?? warningCount });

async function refused(promise) {
  try {
    show("no error", await promise);
  } catch (error) {
    const message = error.sqlMessage ?? error.message;
    // The number of the connection and the name of a file are others each time.
    const words = message.replace(/conn:-?\d+/g, "conn").replace(/refrain-smoke-\w+/g, "folder");
    show(error.code, error.errno, error.sqlState, words);
  }
}

// Runs a check by texts and, if the library prepares, by prepared statements.
const bothWays = (check) => async (db) => {
  await check(db, (text, values) => db.query(text, values));
  if (db.execute) await check(db, (text, values) => db.execute(text, values));
};

const own = (options, check) => async () => {
  const db = await library.connect(options);
  try {
    await check(db);
  } finally {
    await db.end();
  }
};

const checks = {
  "lookups": bothWays(async (_, run) => {
    for (let turn = 0; turn < 20; turn++) {
      assert.equal((await run(LOOKUP, [1 + (turn % 2)]))[0].name, ["one", "two"][turn % 2]);
    }
    show(rows(await run(`SELECT * FROM ${TABLE} ORDER BY id`)));
  }),

  "lookups in transactions": bothWays(async (db, run) => {
    for (let turn = 0; turn < 5; turn++) {
      await db.begin();
      assert.equal((await run(LOOKUP, [1]))[0].name, "one");
      assert.equal((await run(LOOKUP, [2]))[0].name, "two");
      await db.commit();
    }
    show(rows(await run(LOOKUP, [3])));
  }),

  "values of many types": bothWays(async (_, run) => {
    const values = [7, -8, "1152921504606846976", 1.5, true, "it's \\ ä€😀", "", Buffer.from([0, 255, 39]), null];
    for (const value of values) show(rows(await run("SELECT ? AS back, ? AS nothing", [value, null])));
    const columns = {
      "TINYINT": -5, "SMALLINT UNSIGNED": 65535, "BIGINT": "-4611686018427387904", "BIGINT UNSIGNED": "9223372036854775808",
      "DOUBLE": 0.1, "DECIMAL(20,5)": "-12.34000", "DATE": "2024-02-29", "DATETIME(6)": "2024-02-29 12:30:15.123456",
      "TIME(3)": "-30:00:00.250", "YEAR": 2024, "VARCHAR(20)": "ä€", "BLOB": Buffer.from([0, 255]), "JSON": '{"a": 1}',
      "BIT(9)": 3, "ENUM('x','y')": "y",
    };
    const definitions = Object.keys(columns).map((type, at) => `a${at} ${type}, b${at} ${type}`);
    await run(`CREATE TABLE ${TABLE}_kind (${definitions.join(", ")})`);
    for (const [at, [type, value]] of Object.entries(columns).entries()) {
      await run(`INSERT INTO ${TABLE}_kind (a${at}, b${at}) VALUES (?, ?)`, [value, null]);
      show(type, rows(await run(`SELECT a${at}, b${at} FROM ${TABLE}_kind`)));
      await run(`DELETE FROM ${TABLE}_kind`);
    }
    await run(`DROP TABLE ${TABLE}_kind`);
  }),

  "a megabyte each way": bothWays(async (_, run) => {
    for (const text of ["x".repeat(1 << 20), "ä€".repeat(300000)]) {
      assert.equal(String((await run("SELECT ? AS back", [text]))[0].back), text);
    }
    show(rows(await run("SELECT LENGTH(?) AS length", [Buffer.alloc(1 << 20, 255)])));
    show((await run("SELECT REPEAT('y', 3000000) AS back"))[0].back.length);
  }),

  "numbers of new rows": bothWays(async (_, run) => {
    changed(await run(INSERT, ["new", 1.5]));
    changed(await run(`INSERT INTO ${TABLE} (name) VALUES ('a'), ('b'), ('c')`));
    show(rows(await run("SELECT LAST_INSERT_ID() AS id")));
    changed(await run(`UPDATE ${TABLE} SET number = 2 WHERE name IN ('a', 'b')`));
    changed(await run(`UPDATE ${TABLE} SET number = 2 WHERE name IN ('a', 'c')`));
    changed(await run(`DELETE FROM ${TABLE} WHERE id > ?`, [2]));
  }),

  "errors leave the connection usable": bothWays(async (_, run) => {
    for (let turn = 0; turn < 2; turn++) {
      await refused(run(`INSERT INTO ${TABLE} (id, name) VALUES (?, ?)`, [1, "again"]));
      await refused(run(`INSERT INTO ${TABLE} (name, number) VALUES ('zero', 1 / ?)`, [0]));
      await refused(run("SELEC 1"));
      await refused(run("SELECT * FROM nowhere WHERE a = ?", [1]));
      assert.equal((await run(LOOKUP, [1]))[0].name, "one");
    }
  }),

  "warnings": bothWays(async (db, run) => {
    await run("SELECT CAST('12x' AS SIGNED), 1/0");
    show(rows(await db.query("SHOW WARNINGS")));
  }),

  "rollback undoes": bothWays(async (db, run) => {
    await db.begin();
    await run(INSERT, ["undone", 1]);
    await db.query("SAVEPOINT s");
    await run(INSERT, ["undone", 2]);
    await db.query("ROLLBACK TO s");
    await refused(run(`INSERT INTO ${TABLE} (id, name) VALUES (1, 'again')`));
    show(rows(await run(COUNT)));
    await db.rollback();
    show(rows(await run(COUNT)));
  }),

  "without autocommit": own({}, async (db) => {
    const other = await library.connect();
    await db.query("SET autocommit = 0");
    await db.query(INSERT, ["kept", 1]);
    show(rows(await db.query(COUNT)), rows(await other.query(COUNT)));
    await db.commit();
    show(rows(await db.query(COUNT)), rows(await other.query(COUNT)));
    await db.query(`DELETE FROM ${TABLE} WHERE id > 2`);
    await db.rollback();
    show(rows(await other.query(COUNT)), rows(await db.query("SELECT @@autocommit AS own")));
    await db.query(`DELETE FROM ${TABLE} WHERE id > 2`);
    await db.commit();
    await other.end();
  }),

  "settings and variables": own({}, async (db) => {
    await db.query("SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT', time_zone = '+05:00'");
    await db.query("SET @a = 7, @b = 'ä'");
    const run = db.execute ?? db.query;
    const text = `SELECT "name" || '!' AS name, @@time_zone AS zone, @a, @b FROM ${TABLE} WHERE id = ?`;
    for (let turn = 0; turn < 3; turn++) show(rows(await run(text, [2])));
    await db.query(`CREATE TEMPORARY TABLE ${TABLE}_own SELECT 5 AS five`);
    show(rows(await run(`SELECT five FROM ${TABLE}_own`)));
  }),

  "several statements in a text": own({ several: true }, async (db) => {
    const change = `UPDATE ${TABLE} SET number = number + 1`;
    const results = await db.query(`SELECT 1 AS a; ${change}; SELECT name FROM ${TABLE} ORDER BY id; DO 1`);
    for (const result of results) Array.isArray(result) ? show(rows(result)) : changed(result);
    await refused(db.query(`SELECT 1; ${change}; INSERT INTO ${TABLE} (id, name) VALUES (1, 'again'); SELECT 2`));
    await refused(db.query("SELECT 1; SELEC 2; SELECT 3"));
    show(rows(await db.query(LOOKUP, [1])));
  }),

  "several statements without leave": (db) => refused(db.query("SELECT 1; SELECT 2")),

  "procedures with several results": bothWays(async (_, run) => {
    for (const result of await run(`CALL ${TABLE}_pair(?)`, [5])) {
      Array.isArray(result) ? show(rows(result)) : changed(result);
    }
    for (let turn = 0; turn < 2; turn++) {
      await refused(run(`CALL ${TABLE}_fail()`));
      show(rows(await run(LOOKUP, [2])));
    }
  }),

  async "files of the client"() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "refrain-smoke-"));
    const file = path.join(folder, "rows.txt");
    fs.writeFileSync(file, Array.from({ length: 20000 }, (_, at) => `${at + 100}\trow ${at}\n`).join(""));
    const load = `LOAD DATA LOCAL INFILE '${file}' INTO TABLE ${TABLE} (id, name)`;
    await own({ local: true }, async (db) => changed(await db.query(load)))();
    await own({}, async (db) => {
      show(rows(await db.query(COUNT)));
      changed(await db.query(`DELETE FROM ${TABLE} WHERE id > 2`));
    })();
    await own({}, (db) => refused(db.query(load)))().catch((error) => show(error.code));
    await own({}, async (db) => show(rows(await db.query(COUNT))))();
    fs.rmSync(folder, { recursive: true });
  },

  "rows bit by bit": own({}, async (db) => {
    const text = `SELECT a.id, REPEAT(a.name, 500) FROM ${TABLE} a, ${TABLE} b, information_schema.collations`;
    let taken = 0;
    const stream = db.stream(text).on("data", () => (taken += 1));
    await new Promise((resolve, reject) => stream.on("end", resolve).on("error", reject));
    assert.ok(taken > 500);
    show(rows(await db.query(LOOKUP, [1])));
  }),

  "statements closed and prepared again": own({}, async (db) => {
    for (let turn = 0; db.forget && turn < 5; turn++) {
      assert.equal((await db.execute(LOOKUP, [1]))[0].name, "one");
      await db.forget(LOOKUP);
    }
    for (let turn = 0; db.execute && turn < 300; turn++) {
      assert.equal(Number((await db.execute(`SELECT ${turn} + ? AS sum`, [1]))[0].sum), turn + 1);
    }
    show(rows(await (db.execute ?? db.query)(LOOKUP, [2])));
  }),

  async "many rows in one call"(db) {
    const values = Array.from({ length: 200 }, (_, at) => [`row ${at}`, at / 4]);
    changed(await (db.batch ? db.batch(INSERT, values) : db.query(`INSERT INTO ${TABLE} (name, number) VALUES ?`, [values])));
    show(rows(await db.query(`SELECT COUNT(*) AS count, SUM(number) AS sum FROM ${TABLE}`)));
    await db.query(`DELETE FROM ${TABLE} WHERE id > 2`);
  },

  async "queries queued without waiting"(db) {
    const run = db.execute ?? db.query;
    const results = await Promise.all(Array.from({ length: 50 }, (_, at) => run("SELECT ? AS back", [`${at}`])));
    results.forEach((result, at) => assert.equal(String(result[0].back), `${at}`));
  },

  async "many clients"() {
    const client = (number) =>
      own({}, async (db) => {
        const run = db.execute ?? db.query;
        for (let turn = 0; turn < TURNS; turn++) {
          const sent = number * 1000 + turn;
          assert.equal(Number((await run("SELECT ? + 0 AS back", [sent]))[0].back), sent);
          await db.begin();
          assert.equal((await run(LOOKUP, [1]))[0].name, "one");
          await db.commit();
        }
      })();
    await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  },

  "a reset forgets": own({}, async (db) => {
    await db.query("SET @a = 7, SESSION time_zone = '+05:00'");
    await db.begin();
    await db.query(INSERT, ["undone", 1]);
    await db.reset();
    show(rows(await db.query(`SELECT @a, @@time_zone AS zone, DATABASE() AS own, (${COUNT}) AS count`)));
  }),

  async "connections of the library's pool"() {
    const pool = library.pool(3);
    for (let turn = 0; turn < 12; turn++) {
      const held = await Promise.all(Array.from({ length: 3 }, () => pool.take()));
      for (const [at, db] of held.entries()) {
        const run = db.execute ?? db.query;
        assert.equal((await run(LOOKUP, [1 + (at % 2)]))[0].name, ["one", "two"][at % 2]);
        await db.query("SET @a = ?", [turn]);
        await db.ping();
      }
      for (const db of held) await db.end();
    }
    const db = await pool.take();
    show(rows(await db.query("SELECT @a, @@autocommit AS own")));
    await db.end();
    await pool.end();
  },

  async "a ping"(db) {
    await db.query("SET @a = 5");
    await db.ping();
    show(rows(await db.query("SELECT @a")));
  },
};

async function prepare(db) {
  for (const text of [
    `DROP TABLE IF EXISTS ${TABLE}`,
    `CREATE TABLE ${TABLE} (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL, number DOUBLE)`,
    `INSERT INTO ${TABLE} (name, number) VALUES ('one', 1), ('two', NULL)`,
    `DROP TABLE IF EXISTS ${TABLE}_kind`,
    `DROP PROCEDURE IF EXISTS ${TABLE}_pair`,
    `DROP PROCEDURE IF EXISTS ${TABLE}_fail`,
    `CREATE PROCEDURE ${TABLE}_pair(n INT) BEGIN SELECT n, n + 1; SELECT name FROM ${TABLE} ORDER BY id; END`,
    `CREATE PROCEDURE ${TABLE}_fail() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough'; END`,
  ]) {
    await db.query(text);
  }
}

async function main() {
  let db = await library.connect();
  await prepare(db);
  for (const [title, check] of Object.entries(checks)) {
    console.log(`= ${title}`);
    try {
      await check(db);
    } catch (error) {
      console.log(`FAILED ${error.stack}`);
      db = await library.connect();
    }
  }
  await db.end();
}

main().then(
  () => process.exit(0),
  (error) => {
    console.log(`FAILED ${error.stack}`);
    process.exit(1);
  },
);
