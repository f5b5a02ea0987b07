// Sequelize: models, associations, sync three times, and its query interface.
"use strict";

const { DataTypes, Op, Sequelize } = require("sequelize");

module.exports = (server, refused) => {
  const { database, user, ...rest } = server;
  const db = new Sequelize(database, user, "", { ...rest, dialect: "postgres", logging: false });
  const User = db.define("SqUser", {
    email: { type: DataTypes.STRING, allowNull: false, unique: true },
    age: DataTypes.INTEGER,
    active: { type: DataTypes.BOOLEAN, defaultValue: true },
    data: DataTypes.JSONB,
    born: DataTypes.DATEONLY,
    big: DataTypes.BIGINT,
  }, { indexes: [{ fields: ["age"] }] });
  const Post = db.define("SqPost", { title: DataTypes.STRING(100) });
  const Tag = db.define("SqTag", { name: DataTypes.STRING });
  User.hasMany(Post, { onDelete: "CASCADE" });
  Post.belongsTo(User);
  Post.belongsToMany(Tag, { through: "SqPostTag" });
  Tag.belongsToMany(Post, { through: "SqPostTag" });
  const queries = db.getQueryInterface();
  const steps = [
    ["creates its tables", undefined, async () => void (await db.sync({ force: true }))],
    ["finds them there", undefined, async () => void (await db.sync())],
    ["alters them", undefined, async () => void (await db.sync({ alter: true }))],
    ["inserts", ["a@x", true, { k: 1 }, "2020-01-02", "9007199254740993"], async () => {
      const it = await User.create({ email: "a@x", age: 3, data: { k: 1 }, born: "2020-01-02", big: "9007199254740993" });
      await User.bulkCreate([{ email: "b@x", age: 5 }, { email: "c@x", age: 7 }]);
      return [it.email, it.active, it.data, it.born, it.big];
    }],
    ["knows a duplicate", ["SequelizeUniqueConstraintError", { email: "a@x" }], async () => {
      const error = await User.create({ email: "a@x" }).catch((error) => error);
      return [error.name, error.fields];
    }],
    ["knows a missing row", ["23503", "SqPosts", "SqPosts_SqUserId_fkey", "Key (SqUserId)=(99) is not present in table \"SqUsers\"."],
      async () => (await refused(() => Post.create({ title: "x", SqUserId: 99 }))).map((it) => it.replaceAll("\"SqUserId\"", "SqUserId").replace("fkey1", "fkey"))],
    ["reads associations", [["p1", 0], ["p2", 1]], async () => {
      await Post.create({ title: "p1", SqUserId: 1 });
      await Post.create({ title: "p2", SqUserId: 1, SqTags: [{ name: "t" }] }, { include: [Tag] });
      const it = await User.findOne({ where: { id: 1 }, include: [{ model: Post, include: [Tag] }], order: [[Post, "id"]] });
      return it.SqPosts.map((post) => [post.title, post.SqTags.length]);
    }],
    ["counts and pages", [3, ["b@x"]], async () => {
      const it = await User.findAndCountAll({ limit: 1, offset: 1, order: ["id"], include: [Post], distinct: true });
      return [it.count, it.rows.map((row) => row.email)];
    }],
    ["updates", [1, 9], async () => {
      const [count, rows] = await User.update({ age: 9 }, { where: { email: { [Op.iLike]: "A%" } }, returning: true });
      return [count, rows[0].age];
    }],
    ["updates on conflict", 11, async () => (await User.upsert({ email: "a@x", age: 11 }, { conflictFields: ["email"] }))[0].age],
    ["locks a row", 20, () => db.transaction(async (transaction) => {
      const it = await User.findByPk(1, { lock: transaction.LOCK.UPDATE, transaction });
      return (await it.update({ age: 20 }, { transaction })).age;
    })],
    ["changes columns", undefined, async () => {
      await queries.addColumn("SqUsers", "nick", { type: DataTypes.STRING });
      await queries.changeColumn("SqUsers", "nick", { type: DataTypes.TEXT, allowNull: false, defaultValue: "n" }).catch(async () => {
        await queries.bulkUpdate("SqUsers", { nick: "n" }, {});
        await queries.changeColumn("SqUsers", "nick", { type: DataTypes.TEXT, allowNull: false, defaultValue: "n" });
      });
      await queries.renameColumn("SqUsers", "nick", "name");
      await queries.addConstraint("SqUsers", { fields: ["age"], type: "check", where: { age: { [Op.gt]: 0 } }, name: "sq_age" });
      await queries.removeConstraint("SqUsers", "sq_age");
      await queries.removeColumn("SqUsers", "name");
    }],
    ["describes a table", ["CHARACTER VARYING(255)", false, true], async () => {
      const it = await queries.describeTable("SqUsers");
      return [it.email.type, it.email.allowNull, it.id.primaryKey];
    }],
    ["empties a table", 0, async () => {
      await Post.destroy({ truncate: true, cascade: true, restartIdentity: true });
      return Post.count();
    }],
    ["drops its tables", undefined, async () => void (await db.drop())],
  ];
  return { steps, end: () => db.close() };
};
