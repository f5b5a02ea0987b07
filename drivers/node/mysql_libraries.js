// How each client library of MySQL connects, and what it calls things. `MYSQL_HOST` and
// `MYSQL_PORT` name the server, or `MYSQL_SOCKET`; with `MYSQL_CA` the connection is encrypted.
"use strict";

const fs = require("node:fs");
const { promisify } = require("node:util");

const { MYSQL_HOST, MYSQL_PORT, MYSQL_SOCKET, MYSQL_CA } = process.env;
const place = MYSQL_SOCKET ? { socketPath: MYSQL_SOCKET } : { host: MYSQL_HOST, port: Number(MYSQL_PORT) };
const tls = MYSQL_CA ? { ssl: { ca: fs.readFileSync(MYSQL_CA) } } : {};
const common = { ...place, ...tls, user: "app", password: "secret", database: "shop" };

// Each connects with options, and a connection has: `query` and, where the library prepares,
// `execute`, which give rows or what came of a change; `stream`, which gives rows one by one;
// `transaction`; `reset` and `ping`, where there are such; `end`.

function mysql2() {
  const driver = require("mysql2/promise");
  const options = (more) => ({
    ...common,
    multipleStatements: Boolean(more.several),
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    ...(more.local && { infileStreamFactory: (path) => fs.createReadStream(path) }),
  });
  const wrap = (db, end) => ({
    query: async (text, values) => (await db.query(text, values))[0],
    execute: async (text, values) => (await db.execute(text, values))[0],
    forget: (text) => db.unprepare(text),
    stream: (text) => (db.connection ?? db).query(text).stream(),
    begin: () => db.beginTransaction(),
    commit: () => db.commit(),
    rollback: () => db.rollback(),
    reset: () => db.changeUser({ user: "app", password: "secret", database: "shop" }),
    ping: () => db.ping(),
    end,
  });
  return {
    // A prepared statement's parameters are doubles or strings to this library.
    async connect(more = {}) {
      const db = await driver.createConnection(options(more));
      return wrap(db, () => db.end());
    },
    pool(size) {
      const pool = driver.createPool({ ...options({}), connectionLimit: size, enableKeepAlive: false });
      const take = async () => {
        const db = await pool.getConnection();
        return wrap(db, () => db.release());
      };
      return { take, end: () => pool.end() };
    },
  };
}

function mysql() {
  const driver = require("mysql");
  const options = (more) => ({
    ...common,
    multipleStatements: Boolean(more.several),
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    flags: more.local ? [] : ["-LOCAL_FILES"],
    localInfile: Boolean(more.local),
  });
  const wrap = (db, end) => {
    const waited = (name) => promisify(db[name].bind(db));
    return {
      query: waited("query"),
      stream: (text) => db.query(text).stream(),
      begin: waited("beginTransaction"),
      commit: waited("commit"),
      rollback: waited("rollback"),
      reset: () => waited("changeUser")({ user: "app", password: "secret", database: "shop" }),
      ping: waited("ping"),
      end,
    };
  };
  return {
    async connect(more = {}) {
      const db = driver.createConnection(options(more));
      await promisify(db.connect.bind(db))();
      return wrap(db, promisify(db.end.bind(db)));
    },
    pool(size) {
      const pool = driver.createPool({ ...options({}), connectionLimit: size });
      const take = async () => {
        const db = await promisify(pool.getConnection.bind(pool))();
        return wrap(db, () => db.release());
      };
      return { take, end: promisify(pool.end.bind(pool)) };
    },
  };
}

function mariadb() {
  const driver = require("mariadb");
  const options = (more) => ({
    ...common,
    multipleStatements: Boolean(more.several),
    permitLocalInfile: Boolean(more.local),
    dateStrings: true,
    allowPublicKeyRetrieval: true,
  });
  const wrap = (db, end) => ({
    query: (text, values) => db.query(text, values),
    execute: (text, values) => db.execute(text, values),
    batch: (text, rows) => db.batch(text, rows),
    stream: (text) => db.queryStream(text),
    begin: () => db.beginTransaction(),
    commit: () => db.commit(),
    rollback: () => db.rollback(),
    reset: () => db.reset(),
    ping: () => db.ping(),
    end,
  });
  return {
    async connect(more = {}) {
      const db = await driver.createConnection(options(more));
      return wrap(db, () => db.end());
    },
    pool(size) {
      const pool = driver.createPool({ ...options({}), connectionLimit: size, resetAfterUse: true, minDelayValidation: 0 });
      const take = async () => {
        const db = await pool.getConnection();
        return wrap(db, () => db.release());
      };
      return { take, end: () => pool.end() };
    },
  };
}

module.exports = { mysql2, mysql, mariadb };
