// TypeORM: synchronised entities, relations, and migrations.
"use strict";

require("reflect-metadata");
const { DataSource, EntitySchema, ILike, In, TableColumn, TableIndex } = require("typeorm");

const columns = {
  id: { type: Number, primary: true, generated: true },
  email: { type: String, unique: true },
  name: { type: "varchar", length: 50, nullable: true },
  active: { type: Boolean, default: true },
  data: { type: "jsonb", nullable: true },
  at: { type: "timestamptz", createDate: true },
  changed: { type: "timestamp", updateDate: true },
  day: { type: "date", nullable: true },
  version: { type: Number, version: true },
};
const user = (columns) => new EntitySchema({
  name: "User",
  tableName: "to_user",
  columns,
  relations: { posts: { type: "one-to-many", target: "Post", inverseSide: "user" } },
  indices: [{ columns: ["name"] }],
});
const Post = new EntitySchema({
  name: "Post",
  tableName: "to_post",
  columns: { id: { type: "uuid", primary: true, generated: "uuid" }, title: { type: "text" } },
  relations: {
    user: { type: "many-to-one", target: "User", inverseSide: "posts", onDelete: "CASCADE", joinColumn: true },
    tags: { type: "many-to-many", target: "Tag", joinTable: true, cascade: true },
  },
});
const Tag = new EntitySchema({
  name: "Tag",
  tableName: "to_tag",
  columns: { id: { type: Number, primary: true, generated: true }, name: { type: String } },
});

class Extra1700000000001 {
  name = "Extra1700000000001";

  async up(runner) {
    await runner.query('CREATE TABLE "to_extra" ("id" SERIAL NOT NULL, "x" integer, CONSTRAINT "PK_extra" PRIMARY KEY ("id"))');
    await runner.addColumn("to_extra", new TableColumn({ name: "y", type: "varchar", isNullable: true }));
    await runner.createIndex("to_extra", new TableIndex({ name: "IX_y", columnNames: ["y"] }));
    await runner.renameColumn("to_extra", "y", "z");
  }

  async down(runner) {
    await runner.dropTable("to_extra");
  }
}

module.exports = (server, refused) => {
  const { user: username, ...rest } = server;
  const source = (columns, more) => new DataSource({
    type: "postgres", username, ...rest, entities: [user(columns), Post, Tag], migrations: [Extra1700000000001], synchronize: true, ...more,
  });
  let db = source(columns);
  const users = () => db.getRepository("User");
  const steps = [
    ["creates its tables", undefined, async () => void (await db.initialize())],
    ["finds them there", [], async () => (await db.driver.createSchemaBuilder().log()).upQueries],
    ["migrates", 1, async () => (await db.runMigrations()).length],
    ["migrates again", 0, async () => (await db.runMigrations()).length],
    ["saves", [1, true, 1], async () => {
      const it = await users().save({ email: "a@x", name: "A", data: { k: 1 }, day: "2024-01-02" });
      await users().save([{ email: "b@x" }, { email: "c@x" }]);
      return [it.id, it.active, it.version];
    }],
    ["is told of a duplicate", ["23505", "to_user", "Key (email)=(a@x) already exists."], async () => {
      const [code, table, , detail] = await refused(() => users().insert({ email: "a@x" }));
      return [code, table, detail];
    }],
    ["reads relations", [["a@x", 1], ["b@x", 0], ["c@x", 0]], async () => {
      await db.getRepository("Post").save({ title: "t", user: { id: 1 }, tags: [{ name: "g" }] });
      const all = await users().find({ relations: { posts: { tags: true } }, order: { id: "ASC" } });
      return all.map((it) => [it.email, it.posts.length]);
    }],
    ["finds", [1, 2], async () => [await users().countBy({ email: ILike("A%") }), await users().countBy({ id: In([1, 2]) })]],
    ["pages a join", 2, async () => {
      const query = users().createQueryBuilder("u").leftJoinAndSelect("u.posts", "p").orderBy("u.id").skip(0).take(2);
      return (await query.getMany()).length;
    }],
    ["saves a new version", ["B", 2], async () => {
      const it = await users().save({ ...(await users().findOneBy({ id: 1 })), name: "B" });
      return [it.name, it.version];
    }],
    ["locks a row", "a@x", () => db.transaction(async (own) =>
      (await own.getRepository("User").findOne({ where: { id: 1 }, lock: { mode: "pessimistic_write" } })).email)],
    ["updates on conflict", "U", async () => {
      await users().upsert({ email: "a@x", name: "U" }, ["email"]);
      return (await users().findOneBy({ email: "a@x" })).name;
    }],
    ["cuts dates", 3, () => users().createQueryBuilder("u").where("date_trunc('day', u.at) <= now()").getCount()],
    ["changes a table", ["n", "n", "n"], async () => {
      await db.destroy();
      db = source({ ...columns, name: { type: "varchar", length: 50, nullable: true, default: "x" }, nick: { type: String, default: "n" } });
      await db.initialize();
      return (await users().find()).map((it) => it.nick);
    }],
    ["takes it back", undefined, async () => {
      await db.undoLastMigration();
      const runner = db.createQueryRunner();
      for (const table of ["to_post_tags_to_tag", "to_post", "to_tag", "to_user", "migrations"]) await runner.dropTable(table);
      await runner.release();
    }],
  ];
  return { steps, end: () => db.destroy() };
};
