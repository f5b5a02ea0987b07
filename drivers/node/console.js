// The admin console by node-postgres, with queries in each protocol.
"use strict";

const assert = require("node:assert/strict");
const { Client } = require("pg");

const TIMES = 10;

async function main() {
  const db = new Client({ database: "pgbouncer" });
  await db.connect();
  let help = "";
  db.once("notice", (notice) => (help = notice.detail));
  await db.query("SHOW HELP");
  const lines = help.split("\n").map((line) => line.trim());
  const names = lines.find((line) => line.startsWith("SHOW HELP|")).split("|").slice(1);
  assert.ok(names.length > 40);
  for (const name of names) {
    for (let turn = 0; turn < TIMES; turn++) {
      const text = `SHOW ${name}`;
      const simple = await db.query(text);
      const prepared = await db.query({ name, text });
      const columns = (result) => result.fields.map((field) => [field.name, field.dataTypeID]);
      assert.deepEqual(columns(simple), columns(prepared));
    }
  }
  const { rows } = await db.query({ name: "pools", text: "SELECT cl_active FROM pools" });
  assert.deepEqual(rows, [{ cl_active: 1 }]);
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
