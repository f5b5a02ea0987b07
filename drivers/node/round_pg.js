// A round of node-postgres: what a user does on the first day, printed (see `rounds.js`).
"use strict";

const { Client, Pool, types } = require("pg");
const Cursor = require("pg-cursor");
const { from: copyFrom, to: copyTo } = require("pg-copy-streams");
const { pipeline } = require("node:stream/promises");
const { Readable } = require("node:stream");
const { KEYS, NAMES, ROWS, run, say, sayRows, table } = require("./rounds.js");

const columns = NAMES.join(", ");
const places = NAMES.map((_, index) => `$${index + 1}`).join(", ");
const insert = (into) => `INSERT INTO ${into} (${columns}) VALUES (${places}) RETURNING id`;

const db = new Client();

async function query(text, values, more) {
  const result = await db.query({ text, values, ...more });
  say("command", [result.command, result.rowCount]);
  say("columns", result.fields.map((field) => [field.name, field.dataTypeID, field.dataTypeSize]));
  sayRows("rows", result.rows);
  return result;
}

const refused = (text, values) => query(text, values).catch((error) => say("refused", [error.code]));

async function made(name, key) {
  await query(`DROP TABLE IF EXISTS ${name}`);
  await query(table(name, key));
}

const parts = {
  async keys() {
    for (const [kind, key] of Object.entries(KEYS)) {
      await made(`rn_${kind}`, key);
      for (const row of ROWS) {
        await query(insert(`rn_${kind}`), row);
        await query(insert(`rn_${kind}`), row, { name: `insert_${kind}` });
      }
      await query(`SELECT * FROM rn_${kind} ORDER BY id`);
      await query(`SELECT * FROM rn_${kind} WHERE id > $1 ORDER BY id`, [4], { rowMode: "array" });
    }
    await refused("INSERT INTO rn_always (id, t) VALUES ($1, $2)", [77, "given"]);
    await query("INSERT INTO rn_by_default (id, t) VALUES ($1, $2) RETURNING id", [77, "given"]);
  },

  async many() {
    await made("many_n", "SERIAL");
    const groups = ROWS.map((row, at) => `(${row.map((_, index) => `$${at * row.length + index + 1}`).join(", ")})`);
    await query(`INSERT INTO many_n (${columns}) VALUES ${groups.join(", ")} RETURNING id, da, b`, ROWS.flat());
    await query("UPDATE many_n SET t = $1, da = $2 WHERE id = $3 RETURNING t, da", ["changed", new Date(2020, 0, 1), 1]);
    const results = await db.query("INSERT INTO many_n (t) VALUES ('a') RETURNING id; SELECT count(*) FROM many_n");
    results.forEach((result) => sayRows(result.command, result.rows));
  },

  async found() {
    for (const [at, name] of NAMES.entries()) {
      await query(`SELECT id FROM rn_serial WHERE ${name} = $1 ORDER BY id`, [ROWS[0][at]]);
      await query(`SELECT id FROM rn_serial WHERE ${name} >= $1 ORDER BY id`, [ROWS[0][at]], { name: `from_${name}` });
      await query(`SELECT id FROM rn_serial WHERE ${name} IN ($1, $2) ORDER BY id`, [ROWS[0][at], ROWS[1][at]]);
      await query(`SELECT id FROM rn_serial WHERE ${name} IS NOT DISTINCT FROM $1 ORDER BY id`, [null]);
      await query(`SELECT count(${name}), count(DISTINCT ${name}) FROM rn_serial`);
    }
    await query("SELECT id FROM rn_serial WHERE ok AND t LIKE $1 ORDER BY n4 DESC NULLS LAST, id LIMIT $2", ["%o%", 2]);
    await query("SELECT min(da), max(ts), sum(n4), avg(n4) FROM rn_serial WHERE n4 > 0");
  },

  async values() {
    await query("SELECT $1::int AS a, $2::bigint AS b, $3::float8 AS c, $4::text AS d, $5 AS e", [1, 2 ** 40, 1.5, "text", null]);
    await query("SELECT $1::date AS a, $2::time AS b, $3::timestamp AS c, $4::timestamptz AS d",
      ["2024-02-29", "01:02", ROWS[0][12], ROWS[0][12]]);
    await query("SELECT $1::uuid AS a, $2::bool AS b, $3::bytea AS c, $4 AS d", [ROWS[2][8], true, ROWS[0][7], 5]);
    await query("SELECT 1 AS a, 1.5 AS b, 'x' AS c, true AS d, NULL AS e, date '2024-01-01' AS f, count(*) FROM rn_serial");
  },

  async jsons() {
    const document = { a: [1, 2.5, null, true], é: { b: "it's" } };
    await query("INSERT INTO rn_serial (js, jb) VALUES ($1, $2) RETURNING js, jb", [document, document]);
    await query("INSERT INTO rn_serial (js, jb) VALUES ($1, $2) RETURNING js, jb", [JSON.stringify([1, "a"]), '"text"']);
    await query("SELECT js, jb FROM rn_serial WHERE jb IS NOT NULL ORDER BY id");
  },

  async changes() {
    await query("UPDATE rn_serial SET da = $1, b = $2, u = $3, ok = $4, ts = $5, f8 = f8 * 2 WHERE id = $6 RETURNING da, b, u, ok, ts, f8",
      ["2000-01-01", Buffer.from([1]), ROWS[2][8], false, new Date(2000, 0, 1, 1, 1), 1]);
    await query("INSERT INTO rn_bigserial (id, t) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, t", [1, "upsert"]);
    await query("DELETE FROM rn_bigserial WHERE id = $1 RETURNING *", [2]);
    await refused("INSERT INTO rn_bigserial (id, t) VALUES ($1, $2)", [1, "again"]);
    await refused("INSERT INTO rn_bigserial (ok) VALUES ($1)", [null]);
    await refused("INSERT INTO rn_bigserial (da) VALUES ($1)", ["2024-02-30"]);
    await refused("INSERT INTO rn_bigserial (u) VALUES ($1)", ["no uuid"]);
    await refused("INSERT INTO rn_bigserial (n2) VALUES ($1)", [40000]);
    await refused("SELECT 1/0");
    await db.query("BEGIN");
    await query("INSERT INTO rn_bigserial (t) VALUES ('undone') RETURNING t");
    await refused("SELECT 1/0");
    await refused("SELECT 1");
    await db.query("ROLLBACK");
    await query("SELECT t FROM rn_bigserial WHERE t = 'undone'");
  },

  async cursors() {
    const cursor = db.query(new Cursor("SELECT id, da, u FROM rn_serial WHERE id <= $1 ORDER BY id", [7]));
    for (let rows = await cursor.read(3); rows.length > 0; rows = await cursor.read(3)) sayRows("read", rows);
    await cursor.close();
  },

  async copies() {
    await made("copied_n", "SERIAL");
    const text = "1\t2024-02-29\tt\t\\\\x00ff\n2\t\\N\tf\t\\N\n";
    await pipeline(Readable.from([text]), db.query(copyFrom("COPY copied_n (n4, da, ok, b) FROM STDIN")));
    const data = [];
    const out = db.query(copyTo("COPY copied_n TO STDOUT WITH (FORMAT csv, HEADER)"));
    for await (const piece of out) data.push(piece);
    say("copied", Buffer.concat(data).toString());
  },

  async pools() {
    const pool = new Pool({ max: 3 });
    const keys = await Promise.all([...ROWS, ...ROWS, ...ROWS].map((row) => pool.query(insert("rn_serial"), row)));
    say("keys", new Set(keys.map((result) => result.rows[0].id)).size);
    await pool.end();
  },

  async parsers() {
    const texts = new Client({ types: { getTypeParser: (oid, form) => (oid === 20 ? BigInt : types.getTypeParser(oid, form)) } });
    await texts.connect();
    sayRows("bigint", (await texts.query("SELECT n8, count(*) FROM rn_serial WHERE n8 IS NOT NULL GROUP BY n8 ORDER BY n8")).rows);
    await texts.end();
    const binary = new Client({ binary: true });
    await binary.connect();
    sayRows("binary", (await binary.query("SELECT id, n2, n8, f8, ok, t, b, ts, tz FROM rn_serial WHERE id < $1 ORDER BY id", [5])).rows);
    await binary.end();
  },
};

db.connect()
  .then(() => run(parts))
  .finally(() => db.end());
