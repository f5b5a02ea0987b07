// Connections by node-postgres as they are asked for: `tls.js QUERY`.
//
// Each line of the input is one connection, as `name=value` with tabs between. For each, one line is printed: `in RESULT`, or
// `refused SQLSTATE MESSAGE`. A connection stays open until the next line.
"use strict";

const readline = require("node:readline");
const { Client } = require("pg");

// The names of a URL's options. The rest stands elsewhere in the URL.
const NAMES = {
  mode: "sslmode",
  compat: "uselibpqcompat",
  root: "sslrootcert",
  cert: "sslcert",
  key: "sslkey",
  negotiation: "sslnegotiation",
  name: "application_name",
};

function clientOf(options) {
  const url = new URL(`postgres://${options.host}:${options.port}/${options.database}`);
  url.username = options.user;
  url.password = options.password ?? "";
  for (const [name, value] of Object.entries(options)) if (NAMES[name]) url.searchParams.set(NAMES[name], value);
  return new Client({ connectionString: String(url), enableChannelBinding: options.binding === "require" });
}

async function main() {
  let open = null;
  const close = async () => {
    const client = open;
    open = null;
    await client?.end();
  };
  for await (const line of readline.createInterface({ input: process.stdin })) {
    await close();
    try {
      const client = clientOf(Object.fromEntries(line.split("\t").map((part) => part.split(/=(.*)/s, 2))));
      client.on("error", () => {});
      await client.connect();
      open = client;
      const { rows } = await client.query({ text: process.argv[2], rowMode: "array" });
      console.log(`in ${rows[0][0]}`);
    } catch (error) {
      console.log(`refused ${/^[0-9A-Z]{5}$/.test(error.code) ? error.code : "-"} ${String(error).split("\n").join(" / ")}`);
    }
  }
  await close();
}

main();
