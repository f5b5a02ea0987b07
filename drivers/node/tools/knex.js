// Knex: migrations, queries, and Objection's models on top of it.
"use strict";

const { Model } = require("objection");

const migrations = {
  async one(knex) {
    await knex.schema.createTable("kn_user", (table) => {
      table.increments("id");
      table.string("email").notNullable().unique();
      table.string("name").index();
      table.boolean("active").defaultTo(true);
      table.integer("age").unsigned();
      table.jsonb("data");
      table.timestamps(true, true);
    });
    await knex.schema.createTable("kn_post", (table) => {
      table.bigIncrements("id");
      table.integer("user_id").references("id").inTable("kn_user").onDelete("CASCADE").index();
      table.date("day");
      table.float("score");
      table.enu("kind", ["a", "b"]).defaultTo("a");
      table.unique(["user_id", "day"]);
    });
  },
  async two(knex) {
    await knex.schema.alterTable("kn_user", (table) => {
      table.string("nick", 50);
      table.dropColumn("age");
      table.renameColumn("name", "full_name");
      table.dropNullable("nick");
      table.timestamp("seen", { precision: 3 }).notNullable().defaultTo(knex.fn.now(3));
      table.unique(["full_name"], { indexName: "kn_once" });
    });
  },
};

const source = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => ({
    up: migrations[name],
    down: async (knex) => {
      if (name === "one") await knex.schema.dropTable("kn_post").dropTable("kn_user");
    },
  }),
};

module.exports = (server, refused) => {
  const knex = require("knex")({ client: "pg", connection: server, pool: { min: 1, max: 2 } });
  class Post extends Model {
    static tableName = "kn_post";
  }
  class User extends Model {
    static tableName = "kn_user";
    static relationMappings = {
      posts: { relation: Model.HasManyRelation, modelClass: Post, join: { from: "kn_user.id", to: "kn_post.user_id" } },
    };
  }
  Model.knex(knex);
  const users = () => knex("kn_user");
  const migrate = async () => (await knex.migrate.latest({ migrationSource: source }))[1];
  const steps = [
    ["migrates", ["one", "two"], migrate],
    ["migrates again", [], migrate],
    ["inserts", [{ id: 1 }, { id: 2 }],
      () => users().insert([{ email: "a@x", nick: "a", data: { a: 1 } }, { email: "b@x", nick: "b" }]).returning("id")],
    ["is told of a duplicate", ["23505", "kn_user", "kn_user_email_unique", "Key (email)=(a@x) already exists."],
      () => refused(() => users().insert({ email: "a@x", nick: "c" }))],
    ["is told of a missing row", ["23503", "kn_post", "kn_post_user_id_foreign", "Key (user_id)=(99) is not present in table \"kn_user\"."],
      () => refused(() => knex("kn_post").insert({ user_id: 99 }))],
    ["is told of a check", ["23514", "kn_post", "kn_post_kind_check"],
      async () => (await refused(() => knex("kn_post").insert({ user_id: 1, kind: "z" }))).slice(0, 3)],
    ["reads relations", [["a@x", 1], ["b@x", 0]], async () => {
      await User.relatedQuery("posts").for(1).insert({ day: "2024-01-02", score: 1.5 });
      const all = await User.query().withGraphFetched("posts").orderBy("email");
      return all.map((user) => [user.email, user.posts.length]);
    }],
    ["joins and counts", [{ email: "a@x", n: "1" }, { email: "b@x", n: "0" }],
      () => users().leftJoin("kn_post as p", "p.user_id", "kn_user.id").select("email").count("p.id as n").groupBy("email").orderBy("email")],
    ["merges", [{ full_name: "A" }],
      () => users().insert({ email: "a@x", nick: "a", full_name: "A" }).onConflict("email").merge().returning("full_name")],
    ["locks a row", "A", () => knex.transaction(async (own) => (await own("kn_user").where({ id: 1 }).forUpdate().first()).full_name)],
    ["cuts dates", [{ month: new Date(2024, 0, 1), year: "2024" }],
      () => knex("kn_post").select(knex.raw("date_trunc('month', day::timestamp) AS month, extract(year FROM day) AS year"))],
    ["tells columns", { type: "character varying", maxLength: 50, nullable: false, defaultValue: null }, () => users().columnInfo("nick")],
    ["replaces a view", 2, async () => {
      const view = (made) => (made.columns(["email"]), made.as(users().select("email")));
      await knex.schema.createViewOrReplace("kn_view", view);
      await knex.schema.createViewOrReplace("kn_view", view);
      const rows = await knex("kn_view");
      await knex.schema.dropView("kn_view");
      return rows.length;
    }],
    ["truncates", [{ count: "0" }], async () => {
      await knex("kn_post").truncate();
      return knex("kn_post").count();
    }],
    ["takes it back", ["two", "one"], async () => {
      const undone = (await knex.migrate.rollback({ migrationSource: source }, true))[1];
      await knex.schema.dropTable("knex_migrations").dropTable("knex_migrations_lock");
      return undone;
    }],
  ];
  return { steps, end: () => knex.destroy() };
};
