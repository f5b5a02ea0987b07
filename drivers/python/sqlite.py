"""A client library against SQLite behind PostgreSQL's protocol: `sqlite.py LIBRARY`."""

import asyncio
import os
import sys

from checks import CHECKS, Report, check

TABLE = "smoke_sqlite_" + sys.argv[1].replace("-", "_")
DDL = f"CREATE TABLE {TABLE} (id integer PRIMARY KEY, name text NOT NULL UNIQUE)"
LOOKUP = f"SELECT name FROM {TABLE} WHERE id = %s"
ALL = f"SELECT * FROM {TABLE} WHERE id = %s"
INSERT = f"INSERT INTO {TABLE} (name) VALUES (%s) RETURNING id"


class DbApi:
    """A library of Python's DB-API; `unique` is what it raises for a duplicate key."""

    def __init__(self, db, unique, state=lambda error: "23505"):
        self.db, self.unique, self.state = db, unique, state

    def one(self, sql, *values):
        cursor = self.db.cursor()
        cursor.execute(sql, values)
        row = cursor.fetchone() if cursor.description else None
        cursor.close()
        return row and row[0]

    def run(self, sql):
        self.one(sql)
        self.db.commit()

    def all_of(self, number):
        cursor = self.db.cursor()
        cursor.execute(ALL, (number,))
        row = list(cursor.fetchone())
        cursor.close()
        self.db.commit()
        return row

    def name_of(self, number):
        name = self.one(LOOKUP, number)
        self.db.commit()
        return name

    def add(self, name):
        number = self.one(INSERT, name)
        self.db.commit()
        return number

    def refuses(self, name):
        try:
            self.one(INSERT, name)
        except self.unique as error:
            return self.state(error) == "23505"
        finally:
            self.db.rollback()

    def add_and_undo(self, name):
        number = self.one(INSERT, name)
        self.db.rollback()
        return number


class Asyncpg:
    """asyncpg prepares every statement, and asks for its types."""

    def __init__(self):
        import asyncpg

        self.unique = asyncpg.UniqueViolationError
        self.loop = asyncio.new_event_loop()
        self.db = self.wait(asyncpg.connect())

    def wait(self, awaited):
        return self.loop.run_until_complete(awaited)

    def run(self, sql):
        self.wait(self.db.execute(sql))

    def name_of(self, number):
        return self.wait(self.db.fetchval(LOOKUP.replace("%s", "$1"), number))

    def add(self, name):
        return self.wait(self.db.fetchval(INSERT.replace("%s", "$1"), name))

    def refuses(self, name):
        try:
            self.add(name)
        except self.unique:
            return True

    def all_of(self, number):
        return list(self.wait(self.db.fetchrow(ALL.replace("%s", "$1"), number)))

    def add_and_undo(self, name):
        transaction = self.db.transaction()
        self.wait(transaction.start())
        number = self.add(name)
        self.wait(transaction.rollback())
        return number


class Alchemy:
    """SQLAlchemy's core over psycopg."""

    def __init__(self, driver="psycopg"):
        import sqlalchemy

        self.sa = sqlalchemy
        place = "{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ)
        self.engine = sqlalchemy.create_engine(f"postgresql+{driver}://{place}")
        columns = [
            sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
            sqlalchemy.Column("name", sqlalchemy.Text),
        ]
        self.table = sqlalchemy.Table(TABLE, sqlalchemy.MetaData(), *columns)

    def run(self, sql):
        with self.engine.begin() as db:
            db.execute(self.sa.text(sql))

    def name_of(self, number):
        with self.engine.connect() as db:
            named = self.sa.select(self.table.c.name).where(self.table.c.id == number)
            return db.execute(named).scalar()

    def all_of(self, number):
        with self.engine.connect() as db:
            return list(db.execute(self.sa.text(ALL.replace("%s", str(number)))).one())

    def insert(self, db, name):
        return db.execute(self.table.insert().values(name=name).returning(self.table.c.id)).scalar()

    def add(self, name):
        with self.engine.begin() as db:
            return self.insert(db, name)

    def refuses(self, name):
        try:
            self.add(name)
        except self.sa.exc.IntegrityError as error:
            return error.orig.sqlstate == "23505"

    def add_and_undo(self, name):
        with self.engine.connect() as db:
            return self.insert(db, name)


class AlchemyOrm(Alchemy):
    """SQLAlchemy's objects over psycopg2."""

    def __init__(self):
        super().__init__("psycopg2")
        from sqlalchemy import orm

        self.orm = orm
        self.Row = type("Row", (), {})
        orm.registry().map_imperatively(self.Row, self.table)

    def name_of(self, number):
        with self.orm.Session(self.engine) as session:
            row = session.get(self.Row, number)
            return row and row.name

    def keep(self, name, end):
        with self.orm.Session(self.engine) as session:
            row = self.Row()
            row.name = name
            session.add(row)
            session.flush()
            number = row.id
            end(session)
            return number

    def add(self, name):
        return self.keep(name, lambda session: session.commit())

    def refuses(self, name):
        try:
            self.add(name)
        except self.sa.exc.IntegrityError as error:
            return error.orig.pgcode == "23505"

    def add_and_undo(self, name):
        return self.keep(name, lambda session: session.rollback())


def psycopg():
    import psycopg

    return DbApi(psycopg.connect(""), psycopg.errors.UniqueViolation)


def psycopg2():
    import psycopg2

    return DbApi(psycopg2.connect(""), psycopg2.errors.UniqueViolation)


def pg8000():
    from pg8000 import dbapi

    names = {"user": "PGUSER", "host": "PGHOST", "port": "PGPORT", "database": "PGDATABASE"}
    db = dbapi.connect(**{name: os.environ[variable] for name, variable in names.items()})
    return DbApi(db, dbapi.DatabaseError, lambda error: error.args[0]["C"])


LIBRARIES = {
    "asyncpg": Asyncpg,
    "psycopg": psycopg,
    "psycopg2": psycopg2,
    "pg8000": pg8000,
    "sqlalchemy-core": Alchemy,
    "sqlalchemy-orm": AlchemyOrm,
}


@check
def lookups(db):
    for _ in range(20):
        assert db.name_of(1) == "one"
        assert db.name_of(7) is None


@check
def insert_returning(db):
    number = db.add("three")
    assert number == 3
    assert db.name_of(3) == "three"


@check
def a_duplicate_key_is_the_librarys_own_error(db):
    for _ in range(3):
        assert db.refuses("one")
        assert db.name_of(2) == "two"


@check
def rollback_undoes(db):
    assert db.add_and_undo("four") == 4
    assert db.name_of(4) is None


@check
def a_column_that_another_client_adds_is_seen(db):
    for _ in range(10):
        assert db.all_of(1) == [1, "one"]
    LIBRARIES[sys.argv[1]]().run(f"ALTER TABLE {TABLE} ADD COLUMN hp integer DEFAULT 7")
    for _ in range(3):
        assert db.all_of(1) == [1, "one", 7]


def main():
    report = Report()
    db = LIBRARIES[sys.argv[1]]()
    db.run(f"DROP TABLE IF EXISTS {TABLE}")
    db.run(DDL)
    db.run(f"INSERT INTO {TABLE} VALUES (1, 'one'), (2, 'two')")
    for function in CHECKS:
        try:
            function(db)
            report.ok(function)
        except Exception:
            report.bad(function)
            db = LIBRARIES[sys.argv[1]]()
    db.run(f"DROP TABLE {TABLE}")
    report.finish()


main()
