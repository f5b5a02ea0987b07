"""A round of psycopg 3: what a user does on the first day, printed (see `rounds.py`)."""

import datetime as d
import uuid

import psycopg
from psycopg.rows import class_row, dict_row, namedtuple_row
from psycopg.types.json import Json, Jsonb

from rounds import ARRAY_COLUMNS, ARRAY_ROWS, ARRAYS, COLUMNS, KEYS, ROWS, TABLE, part, say, say_rows

NAMES = ", ".join(COLUMNS)
MARKS = ", ".join(["%s"] * len(COLUMNS))
BINARY = ", ".join(["%b"] * len(COLUMNS))
INSERT = f"INSERT INTO {{}} ({NAMES}) VALUES ({MARKS}) RETURNING id"

db = psycopg.connect("", autocommit=True)


def run(sql, *values, **more):
    cursor = db.execute(sql, values or None, **more)
    say("status", cursor.statusmessage)
    if cursor.description:
        say("columns", [(column.name, column.type_code, column.type_display) for column in cursor.description])
        say_rows("rows", cursor)


def made(name):
    run(f"DROP TABLE IF EXISTS {name}")
    run(TABLE.format(table=name, key=KEYS.get(name.removeprefix("r3_"), "SERIAL")))


def refused(sql, *values):
    try:
        run(sql, *values)
    except psycopg.Error as error:
        say("refused", (type(error).__name__, error.sqlstate))


def keys():
    for key in KEYS:
        made(f"r3_{key}")
        for row in ROWS:
            run(INSERT.format(f"r3_{key}"), *row)
        for row in ROWS:
            run(INSERT.format(f"r3_{key}"), *row, prepare=True, binary=True)
        run(f"INSERT INTO r3_{key} ({NAMES}) VALUES ({BINARY}) RETURNING id", *ROWS[2], binary=True)
        run(f"SELECT * FROM r3_{key} ORDER BY id")
        run(f"SELECT * FROM r3_{key} ORDER BY id", binary=True)
        run(f"SELECT * FROM r3_{key} WHERE id > %s ORDER BY id", 4, prepare=True, binary=True)
    refused("INSERT INTO r3_always (id, t) VALUES (%s, %s)", 77, "given")
    run("INSERT INTO r3_by_default (id, t) VALUES (%s, %s) RETURNING id", 77, "given")


def many():
    made("many3")
    with db.cursor() as cursor:
        cursor.executemany(INSERT.format("many3"), ROWS, returning=True)
        say("executemany", cursor.rowcount)
        while True:
            say_rows("returned", cursor)
            if not cursor.nextset():
                break
        cursor.executemany("UPDATE many3 SET t = %s, da = %s WHERE id = %s",
                           [("changed", d.date(2020, 1, 1), 1), ("as well", None, 2)])
        say("updated", cursor.rowcount)
    run("SELECT * FROM many3 ORDER BY id")


def found():
    for form in (False, True):
        for column, value in zip(COLUMNS, ROWS[0]):
            run(f"SELECT id FROM r3_serial WHERE {column} = %s ORDER BY id", value, binary=form)
            run(f"SELECT id FROM r3_serial WHERE {column} >= %s ORDER BY id", value, prepare=form)
            other = ROWS[1][COLUMNS.index(column)]
            run(f"SELECT id FROM r3_serial WHERE {column} IN (%s, %s) ORDER BY id", value, other, prepare=form)
            run(f"SELECT id FROM r3_serial WHERE {column} IS NOT DISTINCT FROM %s ORDER BY id", None)
            run(f"SELECT count({column}), count(DISTINCT {column}) FROM r3_serial", binary=form)
    run("SELECT id FROM r3_serial WHERE ts BETWEEN %s AND %s", d.date(2024, 1, 1), d.datetime(2024, 2, 29, 13))
    run("SELECT id FROM r3_serial WHERE ok AND t LIKE %s ORDER BY n4 DESC NULLS LAST, id LIMIT %s", "%o%", 2)
    run("SELECT min(da), max(ts), sum(n4), avg(n4) FROM r3_serial WHERE n4 > 0", binary=True)


def values():
    for form in (False, True):
        run("SELECT %s::int, %s::bigint, %s::float8, %s::text, %s::text", 1, 2**40, 1.5, "text", None, binary=form)
        run("SELECT %s, %s, %s, %s, %s", 1, 2**40, 1.5, "text", None, binary=form)
        run("SELECT %s, %s, %s, %s", d.date(2024, 2, 29), d.time(1, 2), ROWS[0][11], ROWS[1][12], binary=form)
        run("SELECT %s, %s, %s", uuid.UUID(int=5), True, b"\x00\xff", binary=form)
        run("SELECT %s::date, %s::timestamptz, %s::uuid", "2024-01-02", "2024-01-01 12:00+02", str(uuid.UUID(int=6)), binary=form)


def jsons():
    document = {"a": [1, 2.5, None, True], "\u00e9": {"b": "it's"}}
    for form in (False, True):
        run("INSERT INTO r3_serial (js, jb) VALUES (%s, %s) RETURNING js, jb", Json(document), Jsonb(document), binary=form)
        run("SELECT js, jb FROM r3_serial WHERE jb IS NOT NULL", binary=form)
    run("UPDATE r3_serial SET jb = %s WHERE js IS NOT NULL RETURNING jb", Jsonb([1]))


def changes():
    run("UPDATE r3_serial SET da = %s, b = %s, u = %s, ok = %s, ts = %s, f8 = f8 * 2 WHERE id = %s RETURNING da, b, u, ok, ts, f8",
        d.date(2000, 1, 1), b"\x01", uuid.UUID(int=4), False, d.datetime(2000, 1, 1, 1, 1), 1)
    run("INSERT INTO r3_bigserial (id, t) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, t", 1, "upsert")
    run("DELETE FROM r3_bigserial WHERE id = %s RETURNING *", 2)
    refused("INSERT INTO r3_bigserial (id, t) VALUES (%s, %s)", 1, "again")
    refused("INSERT INTO r3_bigserial (ok) VALUES (%s)", None)
    refused("INSERT INTO r3_bigserial (da) VALUES (%s)", "2024-02-30")
    refused("INSERT INTO r3_bigserial (u) VALUES (%s)", "no uuid")
    refused("INSERT INTO r3_bigserial (n2) VALUES (%s)", 40000)
    refused("SELECT 1/0")
    with db.transaction():
        run("INSERT INTO r3_bigserial (t) VALUES ('kept')")
        try:
            with db.transaction():
                run("INSERT INTO r3_bigserial (t) VALUES ('undone')")
                raise KeyError
        except KeyError:
            say("savepoint", "rolled back")
    run("SELECT t FROM r3_bigserial WHERE t IN ('kept', 'undone')")


def pipelines():
    made("pipe3")
    with db.pipeline():
        cursors = [db.execute(INSERT.format("pipe3"), row) for row in ROWS]
        last = db.execute("SELECT id, da, u, b FROM pipe3 ORDER BY id")
        for cursor in cursors:
            say_rows("inserted", cursor)
        say_rows("read", last)
    try:
        with db.pipeline():
            db.execute("INSERT INTO pipe3 (t) VALUES ('undone')")
            db.execute("SELECT 1/0")
            db.execute("SELECT 1")
    except psycopg.Error as error:
        say("pipeline", (type(error).__name__, error.sqlstate))
    run("SELECT count(*) FROM pipe3 WHERE t = %s", "undone")


TYPES = "int2 int4 int8 float8 bool text varchar bytea uuid date time timestamp timestamptz".split()


def copies():
    made("copied3")
    for form, types in (("text", None), ("binary", TYPES)):
        with db.cursor() as cursor:
            with cursor.copy(f"COPY copied3 ({NAMES}) FROM STDIN (FORMAT {form})") as copy:
                if types:
                    copy.set_types(types)
                for row in ROWS:
                    copy.write_row(row)
            say("copied", cursor.rowcount)
            with cursor.copy(f"COPY copied3 (id, {NAMES}) TO STDOUT (FORMAT {form})") as copy:
                copy.set_types(["int4", *TYPES])
                say_rows(form, copy.rows())
    with db.cursor().copy("COPY (SELECT id, t FROM copied3 WHERE n4 > 0 ORDER BY id) TO STDOUT (FORMAT csv, HEADER)") as copy:
        say("csv", [bytes(data) for data in copy])


class Row:
    def __init__(self, id, da, u):
        self.row = (id, da, u)


def rows():
    sql = "SELECT id, da, u FROM r3_serial WHERE id = %s"
    for factory in (dict_row, namedtuple_row):
        row = db.cursor(row_factory=factory).execute(sql, (1,)).fetchone()
        say("row", list(row.values()) if isinstance(row, dict) else list(row))
    say("class", db.cursor(row_factory=class_row(Row)).execute(sql, (1,)).fetchone().row)
    with psycopg.ClientCursor(db) as cursor:
        cursor.execute(INSERT.format("r3_serial"), ROWS[1])
        say_rows("client cursor", cursor)
        say_rows("client cursor", cursor.execute("SELECT * FROM r3_serial WHERE u = %s ORDER BY id", (ROWS[1][8],)))
    with psycopg.RawCursor(db) as cursor:
        say_rows("raw cursor", cursor.execute("SELECT id, da FROM r3_serial WHERE n4 = $1 AND da = $2 ORDER BY id", [10, d.date(2024, 2, 29)]))
    say_rows("stream", db.cursor().stream("SELECT id, t FROM r3_serial WHERE id < %s ORDER BY id", (4,)))


async def asynchronous():
    async with await psycopg.AsyncConnection.connect("") as other:
        async with other.cursor() as cursor:
            for row in ROWS:
                await cursor.execute(INSERT.format("r3_serial"), row)
                say_rows("inserted", await cursor.fetchall())
            await cursor.executemany(INSERT.format("r3_serial"), ROWS)
            say("executemany", cursor.rowcount)


def in_a_loop():
    import asyncio

    asyncio.run(asynchronous())


def arrays():
    run("DROP TABLE IF EXISTS ar3")
    run(ARRAYS.format(table="ar3"))
    marks = ", ".join(["%s"] * 9)
    for row in ARRAY_ROWS:
        run(f"INSERT INTO ar3 ({ARRAY_COLUMNS}) VALUES ({marks}) RETURNING n, t", *row)
    run("SELECT * FROM ar3 ORDER BY id")
    run("SELECT * FROM ar3 ORDER BY id", binary=True)
    for row in ARRAY_ROWS:
        run(f"UPDATE ar3 SET n = %b, t = %b WHERE id = %b RETURNING n, t", row[1], row[3], row[0], binary=True)
    run("SELECT id, n[1], t[2], n || 7, array_append(t, 'z') FROM ar3 WHERE t @> %s::text[] OR n = %s::int[] ORDER BY id", ["y"], [1, -2])
    run("SELECT id FROM ar3 WHERE %s = ANY (t) AND id = ANY (%s) ORDER BY id", "x", [1, 2, 3])
    run("UPDATE ar3 SET n = %s::int[], t = t || %s::text[] RETURNING id, n, t", [5, 6], ["w"])
    refused("INSERT INTO ar3 (id, n) VALUES (9, '{x}')")


PARTS = (keys, many, found, values, jsons, changes, pipelines, copies, rows, arrays, in_a_loop)
for function in PARTS:
    part(function.__name__, function, lambda: None)
