// A tool's first real work, as its users write it: `node tools.js TOOL`.
//
// The server that libpq's environment variables name is PostgreSQL or SQLite in Refrain: both must give what is written here.
// Each tool is a list of steps: a name, the value that the step must give, and its code.
"use strict";

const assert = require("node:assert/strict");

const server = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
};

// Returns what a driver says of the error with which `work` ends.
async function refused(work) {
  try {
    await work();
  } catch (error) {
    const { code, table, constraint, detail } = error.driverError || error.parent || error;
    return [code, table, constraint, detail];
  }
  throw new Error("nothing was refused");
}

async function main() {
  const { steps, end } = require(`./${process.argv[2]}.js`)(server, refused);
  const count = { passed: 0, failed: 0 };
  for (const [name, expected, work] of steps) {
    try {
      assert.deepEqual(await work(), expected);
      count.passed++;
      console.log(`ok      ${name}`);
    } catch (error) {
      count.failed++;
      console.log(`FAILED  ${name}\n${error.sql || error.query || ""}\n${error.stack}`);
    }
  }
  await end();
  console.log(`${count.passed} passed, ${count.failed} failed`);
  process.exit(count.failed ? 1 : 0);
}

main();
