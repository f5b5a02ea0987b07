// Drizzle: its migrator, which keeps its table in a schema of its own, and its query builder.
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { drizzle } = require("drizzle-orm/node-postgres");
const { migrate } = require("drizzle-orm/node-postgres/migrator");
const { bigserial, integer, pgSchema, pgTable, serial, text, timestamp, varchar } = require("drizzle-orm/pg-core");
const { and, asc, count, eq, gt, sql } = require("drizzle-orm");
const { Pool } = require("pg");

const users = pgTable("dz_users", {
  id: serial("id").primaryKey(),
  email: varchar("email", { length: 100 }).notNull().unique(),
  age: integer("age"),
  at: timestamp("at").defaultNow().notNull(),
});
const shop = pgSchema("dz_shop");
const orders = shop.table("orders", {
  id: bigserial("id", { mode: "number" }).primaryKey(),
  userId: integer("user_id").notNull().references(() => users.id, { onDelete: "cascade" }),
  note: text("note").default("none"),
});

// The files that drizzle-kit writes, as it writes them.
const files = [
  `CREATE TABLE "dz_users" (
	"id" serial PRIMARY KEY NOT NULL,
	"email" varchar(100) NOT NULL,
	"age" integer,
	"at" timestamp DEFAULT now() NOT NULL,
	CONSTRAINT "dz_users_email_unique" UNIQUE("email")
);
`,
  `CREATE SCHEMA "dz_shop";
--> statement-breakpoint
CREATE TABLE "dz_shop"."orders" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"user_id" integer NOT NULL,
	"note" text DEFAULT 'none'
);
--> statement-breakpoint
ALTER TABLE "dz_shop"."orders" ADD CONSTRAINT "orders_user_id_dz_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."dz_users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "orders_user_idx" ON "dz_shop"."orders" USING btree ("user_id");`,
];

function folder() {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "refrain-drizzle-"));
  fs.mkdirSync(path.join(made, "meta"));
  const entries = files.map((file, idx) => {
    fs.writeFileSync(path.join(made, `000${idx}_step.sql`), file);
    return { idx, version: "7", when: 1700000000000 + idx, tag: `000${idx}_step`, breakpoints: true };
  });
  fs.writeFileSync(path.join(made, "meta", "_journal.json"), JSON.stringify({ version: "7", dialect: "postgresql", entries }));
  return made;
}

module.exports = (server, refused) => {
  const pool = new Pool(server);
  const db = drizzle(pool, { schema: { users, orders } });
  const migrationsFolder = folder();
  const told = (work) => refused(() => work().catch((error) => { throw error.cause || error; }));
  const run = async () => {
    await migrate(db, { migrationsFolder });
    return (await db.execute(sql`SELECT count(*)::int AS n FROM drizzle.__drizzle_migrations`)).rows;
  };
  const steps = [
    ["migrates", [{ n: 2 }], run],
    ["migrates again", [{ n: 2 }], run],
    ["inserts", [{ id: 1, age: 3 }, { id: 2, age: null }],
      () => db.insert(users).values([{ email: "a@x", age: 3 }, { email: "b@x" }]).returning({ id: users.id, age: users.age })],
    ["inserts into a schema", [{ id: 1, userId: 1, note: "none" }, { id: 2, userId: 1, note: "n" }],
      () => db.insert(orders).values([{ userId: 1 }, { userId: 1, note: "n" }]).returning()],
    ["is told of a duplicate", ["23505", "dz_users", "dz_users_email_unique", "Key (email)=(a@x) already exists."],
      () => told(() => db.insert(users).values({ email: "a@x" }))],
    ["is told of a missing row", ["23503"], async () =>
      (await told(() => db.insert(orders).values({ userId: 99 }))).slice(0, 1)],
    ["joins", [{ email: "a@x", n: 2 }, { email: "b@x", n: 0 }], () =>
      db.select({ email: users.email, n: count(orders.id) }).from(users).leftJoin(orders, eq(orders.userId, users.id))
        .groupBy(users.id).orderBy(asc(users.id))],
    ["filters", [{ id: 1 }], () =>
      db.select({ id: users.id }).from(users).where(and(gt(users.age, 1), eq(users.email, "a@x"))).limit(1)],
    ["updates", [{ age: 4 }], () => db.update(users).set({ age: sql`${users.age} + 1` }).where(eq(users.id, 1)).returning({ age: users.age })],
    ["updates on conflict", [{ id: 1, age: 9 }], () =>
      db.insert(users).values({ id: 1, email: "c@x" }).onConflictDoUpdate({ target: users.id, set: { age: 9 } })
        .returning({ id: users.id, age: users.age })],
    ["rolls back", 2, async () => {
      await db.transaction(async (tx) => {
        await tx.delete(users);
        tx.rollback();
      }).catch(() => {});
      return db.$count(users);
    }],
    ["deletes with what refers to it", 0, async () => {
      await db.delete(users).where(eq(users.id, 1));
      return db.$count(orders);
    }],
    ["finds its tables", [{ table_schema: "drizzle", table_name: "__drizzle_migrations" }, { table_schema: "dz_shop", table_name: "orders" }],
      async () => (await db.execute(sql`SELECT table_schema, table_name FROM information_schema.tables
        WHERE table_schema NOT IN ('public', 'pg_catalog', 'information_schema') ORDER BY 1`)).rows],
    ["drops what it has made", 0, async () => {
      await db.execute(sql`DROP SCHEMA dz_shop CASCADE`);
      await db.execute(sql`DROP SCHEMA drizzle CASCADE`);
      await db.execute(sql`DROP TABLE dz_users`);
      return (await db.execute(sql`SELECT 1 FROM pg_namespace WHERE nspname IN ('dz_shop', 'drizzle')`)).rows.length;
    }],
  ];
  return { steps, end: () => pool.end() };
};
