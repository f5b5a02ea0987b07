// A round of Knex, by way of node-postgres: what a user does on the first day, printed (see `rounds.js`).
"use strict";

const { NAMES, ROWS, run, say, sayRows } = require("./rounds.js");

const knex = require("knex")({ client: "pg", connection: {}, pool: { min: 1, max: 2 } });

const rows = ROWS.map((row) => Object.fromEntries(row.map((value, at) => [NAMES[at], value])));
const refused = (query) => query.then(() => say("refused", false)).catch((error) => say("refused", [error.code]));

function columns(of) {
  of.smallint("n2");
  of.integer("n4").index();
  of.bigInteger("n8");
  of.double("f8");
  of.boolean("ok").notNullable().defaultTo(true);
  of.text("t");
  of.string("v", 20);
  of.binary("b");
  of.uuid("u");
  of.date("da");
  of.time("ti");
  of.timestamp("ts", { useTz: false });
  of.timestamp("tz");
  of.json("js");
  of.jsonb("jb");
}

const parts = {
  async schema() {
    for (const name of ["kx_owned", "kx_many", "kx_row", "kx_big"]) await knex.schema.dropTableIfExists(name);
    await knex.schema.createTable("kx_row", (of) => {
      of.increments("id");
      columns(of);
    });
    await knex.schema.createTable("kx_big", (of) => {
      of.bigIncrements("id");
      of.string("name").notNullable().unique();
      of.timestamps(true, true);
    });
    await knex.schema.createTable("kx_many", (of) => {
      of.uuid("id");
      of.string("name").defaultTo("it's");
    });
    await knex.schema.createTable("kx_owned", (of) => {
      of.increments("id").primary();
      of.integer("row_id").notNullable();
      of.string("name");
    });
    await knex.schema.alterTable("kx_many", (of) => of.integer("added").defaultTo(7));
    await knex.schema.alterTable("kx_many", (of) => of.renameColumn("added", "renamed"));
    say("hasTable", [await knex.schema.hasTable("kx_row"), await knex.schema.hasTable("kx_nosuch")]);
    say("hasColumn", [await knex.schema.hasColumn("kx_many", "renamed"), await knex.schema.hasColumn("kx_many", "added")]);
    say("columnInfo", await knex("kx_row").columnInfo());
  },

  async inserts() {
    for (const row of rows) sayRows("insert", await knex("kx_row").insert(row).returning("id"));
    sayRows("several", await knex("kx_row").insert(rows).returning(["id", "da", "u", "b"]));
    sayRows("all", await knex("kx_row").insert({ t: "defaults" }).returning("*"));
    sayRows("uneven", await knex("kx_row").insert([{ t: "uneven" }, { n4: 5, ok: false }]).returning(["id", "t", "n4", "ok"]));
    sayRows("batch", await knex.batchInsert("kx_row", [...rows, ...rows], 3).returning("id"));
    sayRows("big", await knex("kx_big").insert([{ name: "a" }, { name: "b" }]).returning(["id", "name"]));
    sayRows("kept", await knex("kx_big").insert({ name: "a" }).onConflict("name").ignore().returning("id"));
    sayRows("merged", await knex("kx_big").insert({ name: "b" }).onConflict("name").merge().returning("name"));
    sayRows("rows", await knex("kx_row").select().orderBy("id"));
    await refused(knex("kx_big").insert({ name: "a" }));
    await refused(knex("kx_big").insert({ name: null }));
  },

  async found() {
    const ids = (query) => query.select("id").orderBy("id");
    for (const [at, name] of NAMES.entries()) {
      sayRows(`${name} =`, await ids(knex("kx_row").where(name, ROWS[0][at])));
      sayRows(`${name} >=`, await ids(knex("kx_row").where(name, ">=", ROWS[0][at])));
      sayRows(`${name} in`, await ids(knex("kx_row").whereIn(name, [ROWS[0][at], ROWS[1][at]])));
      sayRows(`${name} not in`, await ids(knex("kx_row").whereNotIn(name, [ROWS[0][at], ROWS[1][at]])));
      sayRows(`${name} null`, await ids(knex("kx_row").whereNull(name).orWhere(name, ROWS[1][at])));
    }
    sayRows("between", await ids(knex("kx_row").whereBetween("n4", [1, 10]).andWhere({ ok: true })));
    sayRows("like", await ids(knex("kx_row").whereLike("t", "o%").orWhereILike("t", "THR%")));
    sayRows("raw", await ids(knex("kx_row").whereRaw("n8 + ? = ?", [1, 101]).whereRaw("n4 > ?", [0]).whereRaw("n2 < ?", [9])));
    say("first", await knex("kx_row").where({ id: 1 }).first("id", "t", "tz"));
    say("pluck", await knex("kx_row").where("id", "<", 4).orderBy("id", "desc").pluck("t"));
    say("count", await knex("kx_row").count("* as all").countDistinct("t as texts").max("n4 as most").first());
    sayRows("grouped", await knex("kx_row").select("ok").count("*").groupBy("ok").having(knex.raw("count(*)"), ">", 1).orderBy("ok"));
    sayRows("paged", await knex("kx_row").select("id", "n4").orderBy([{ column: "n4", order: "desc", nulls: "last" }, "id"]).limit(3).offset(1));
  },

  async joins() {
    await knex("kx_owned").insert([{ row_id: 1, name: "x" }, { row_id: 1, name: "y" }, { row_id: 2, name: "z" }]);
    const joined = knex("kx_row as r").leftJoin("kx_owned as o", "o.row_id", "r.id").where("r.id", "<", 4);
    sayRows("join", await joined.select("r.id", "r.da", { owned: "o.name" }).orderBy(["r.id", "o.name"]));
    sayRows("sub", await knex("kx_row").select("id").whereIn("id", knex("kx_owned").select("row_id")).orderBy("id"));
    sayRows("exists", await knex("kx_row").select("id").whereExists(knex("kx_owned").whereRaw("kx_owned.row_id = kx_row.id")).orderBy("id"));
    sayRows("with", await knex.with("few", knex("kx_row").where("id", "<", 3)).select("id", "da").from("few").orderBy("id"));
    sayRows("union", await knex("kx_row").select("id").where("id", 1).union(knex("kx_row").select("id").where("id", 2)).orderBy("id"));
    say("deleted", await knex("kx_row").where({ id: 1 }).del());
    sayRows("left", await knex("kx_owned").select("name"));
  },

  async changes() {
    say("update", await knex("kx_row").where({ id: 2 }).update({ t: "changed", da: "2020-01-01", b: Buffer.from([1]), ok: true }));
    sayRows("updated", await knex("kx_row").where({ id: 2 }).update({ tz: new Date(0), u: ROWS[2][8] }, ["id", "tz", "u", "t"]));
    sayRows("more", await knex("kx_row").where({ id: 3 }).increment("n4", -1).returning("n4"));
    sayRows("deleted", await knex("kx_row").where({ id: 3 }).del(["id", "da"]));
    const document = { a: [1, 2.5, null], é: "it's" };
    sayRows("json", await knex("kx_row").insert({ js: document, jb: JSON.stringify([document]) }).returning(["js", "jb"]));
    say("raw", (await knex.raw("SELECT ?::int AS a, ?::date AS d, ? AS t, ?? AS c FROM kx_row WHERE id = ?", [1, "2024-02-29", "x", "ok", 2])).rows);
  },

  async transactions() {
    await knex.transaction(async (own) => {
      await own("kx_big").insert({ name: "kept" });
      await own.transaction((inner) => inner("kx_big").insert({ name: "a" })).catch((error) => say("inner", [error.code]));
      sayRows("inside", await own("kx_big").select("name").orderBy("name"));
    });
    await knex.transaction(async (own) => {
      await own("kx_big").insert({ name: "undone" });
      throw new Error("stop");
    }).catch((error) => say("undone", [error.message]));
    const own = await knex.transaction({ isolationLevel: "serializable" });
    await own("kx_big").insert({ name: "by hand" });
    await own.commit();
    sayRows("names", await knex("kx_big").select("name").orderBy("name"));
    say("truncated", (await knex("kx_owned").del()) + (await knex("kx_owned").count("*").first()).count);
  },

  async migrations() {
    const migrations = [
      { name: "1_made", up: (db) => db.schema.createTable("kx_migrated", (of) => of.increments()), down: (db) => db.schema.dropTable("kx_migrated") },
      { name: "2_more", up: (db) => db.schema.alterTable("kx_migrated", (of) => of.string("name")), down: (db) => db.schema.alterTable("kx_migrated", (of) => of.dropColumn("name")) },
    ];
    const migrationSource = {
      getMigrations: async () => migrations,
      getMigrationName: (migration) => migration.name,
      getMigration: async (migration) => migration,
    };
    const config = { migrationSource, tableName: "kx_migrations" };
    await knex.schema.dropTableIfExists("kx_migrated");
    await knex.schema.dropTableIfExists("kx_migrations");
    await knex.schema.dropTableIfExists("kx_migrations_lock");
    say("latest", await knex.migrate.latest(config));
    sayRows("migrated", await knex("kx_migrated").insert({ name: "a" }).returning("*"));
    say("again", await knex.migrate.latest(config));
    say("version", await knex.migrate.currentVersion(config));
    say("rollback", await knex.migrate.rollback(config));
  },
};

run(parts).finally(() => knex.destroy());
