// Kysely: its migrator, which takes an advisory lock, and its query builder.
"use strict";

const { Kysely, Migrator, PostgresDialect, sql } = require("kysely");
const { Pool } = require("pg");

const migrations = {
  one: {
    async up(db) {
      await db.schema.createTable("ky_person").addColumn("id", "serial", (it) => it.primaryKey())
        .addColumn("email", "varchar(100)", (it) => it.notNull().unique()).addColumn("age", "integer")
        .addColumn("at", "timestamp", (it) => it.defaultTo(sql`now()`).notNull()).execute();
      await db.schema.createTable("ky_pet").addColumn("id", "serial", (it) => it.primaryKey())
        .addColumn("owner_id", "integer", (it) => it.references("ky_person.id").onDelete("cascade").notNull())
        .addColumn("name", "text").execute();
    },
    async down(db) {
      await db.schema.dropTable("ky_pet").execute();
      await db.schema.dropTable("ky_person").execute();
    },
  },
  two: {
    async up(db) {
      await db.schema.alterTable("ky_person").addColumn("nick", "text").alterColumn("age", (it) => it.setNotNull())
        .alterColumn("nick", (it) => it.setDefault("x")).execute();
      await db.schema.alterTable("ky_pet").addUniqueConstraint("ky_once", ["owner_id", "name"]).execute();
    },
    async down(db) {
      await db.schema.alterTable("ky_pet").dropConstraint("ky_once").execute();
      await db.schema.alterTable("ky_person").dropColumn("nick").execute();
    },
  },
};

module.exports = (server, refused) => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool(server) }) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const ran = async (work) => {
    const { error, results } = await work;
    if (error) throw error;
    return results.map((it) => `${it.migrationName} ${it.direction}`);
  };
  const steps = [
    ["migrates", ["one Up", "two Up"], () => ran(migrator.migrateToLatest())],
    ["migrates again", [], () => ran(migrator.migrateToLatest())],
    ["inserts", [{ id: 1, nick: "x" }, { id: 2, nick: "x" }],
      () => db.insertInto("ky_person").values([{ email: "a@x", age: 1 }, { email: "b@x", age: 2 }]).returning(["id", "nick"]).execute()],
    ["is told of a duplicate", ["23505", "ky_person", "ky_person_email_key", "Key (email)=(a@x) already exists."],
      () => refused(() => db.insertInto("ky_person").values({ email: "a@x", age: 1 }).execute())],
    ["joins", [{ email: "a@x", n: "1" }, { email: "b@x", n: "0" }], async () => {
      await db.insertInto("ky_pet").values({ owner_id: 1, name: "p" }).execute();
      return db.selectFrom("ky_person as p").leftJoin("ky_pet as t", "t.owner_id", "p.id")
        .select((it) => ["p.email", it.fn.count("t.id").as("n")]).groupBy("p.id").orderBy("p.id").execute();
    }],
    ["updates on conflict", [{ age: 9 }],
      () => db.insertInto("ky_person").values({ email: "a@x", age: 9 }).onConflict((it) => it.column("email").doUpdateSet({ age: 9 }))
        .returning("age").execute()],
    ["deletes by another table", 1n, async () =>
      (await db.deleteFrom("ky_pet").using("ky_person").whereRef("ky_pet.owner_id", "=", "ky_person.id")
        .where("ky_person.email", "=", "a@x").executeTakeFirst()).numDeletedRows],
    ["locks rows", 2, () => db.transaction().execute(async (own) => (await own.selectFrom("ky_person").selectAll().forUpdate().execute()).length)],
    ["sees its tables", [["ky_person", "id", "int4", true], ["ky_pet", "id", "int4", true]], async () => {
      const tables = (await db.introspection.getTables()).filter((it) => it.name.startsWith("ky_"));
      return tables.map((it) => [it.name, ...["name", "dataType", "isAutoIncrementing"].map((fact) => it.columns[0][fact])]);
    }],
    ["takes it back", ["two Down", "one Down"], async () => {
      const undone = [...(await ran(migrator.migrateDown())), ...(await ran(migrator.migrateDown()))];
      await db.schema.dropTable("kysely_migration").execute();
      await db.schema.dropTable("kysely_migration_lock").execute();
      return undone;
    }],
  ];
  return { steps, end: () => db.destroy() };
};
