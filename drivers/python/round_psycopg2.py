"""A round of psycopg2: what a user does on the first day, printed (see `rounds.py`)."""

import datetime as d
import io
import json
import uuid

import psycopg2
import psycopg2.extras
from psycopg2.extras import Json, execute_batch, execute_values

from rounds import ARRAY_COLUMNS, ARRAY_ROWS, ARRAYS, COLUMNS, KEYS, ROWS, TABLE, part, say, say_rows

NAMES = ", ".join(COLUMNS)
MARKS = ", ".join(["%s"] * len(COLUMNS))

psycopg2.extras.register_uuid()
db = psycopg2.connect("")
db.set_session(autocommit=False)


def run(sql, *values):
    with db.cursor() as cursor:
        cursor.execute(sql, values or None)
        say("status", cursor.statusmessage)
        if cursor.description:
            say("columns", [(column.name, column.type_code) for column in cursor.description])
            say_rows("rows", cursor)
    db.commit()


def made(name):
    run(f"DROP TABLE IF EXISTS {name}")
    run(TABLE.format(table=name, key=KEYS.get(name.removeprefix("r_"), "SERIAL")))


def refused(sql, *values):
    try:
        run(sql, *values)
    except psycopg2.Error as error:
        say("refused", (type(error).__name__, error.pgcode))
    db.rollback()


def keys():
    for key in KEYS:
        made(f"r_{key}")
        for row in ROWS:
            run(f"INSERT INTO r_{key} ({NAMES}) VALUES ({MARKS}) RETURNING id", *row)
        run(f"SELECT * FROM r_{key} ORDER BY id")
    run("INSERT INTO r_serial (t) VALUES ('the defaults') RETURNING id, ok, n4")
    run("INSERT INTO r_serial (id, t) VALUES (DEFAULT, 'a key by DEFAULT') RETURNING id")
    run("INSERT INTO r_serial DEFAULT VALUES RETURNING id")
    refused("INSERT INTO r_always (id, t) VALUES (%s, %s)", 77, "given")
    run("INSERT INTO r_by_default (id, t) VALUES (%s, %s) RETURNING id", 77, "given")


def many():
    made("many")
    with db.cursor() as cursor:
        cursor.executemany(f"INSERT INTO many ({NAMES}) VALUES ({MARKS})", ROWS)
        say("executemany", cursor.rowcount)
        execute_batch(cursor, f"INSERT INTO many ({NAMES}) VALUES ({MARKS})", ROWS, page_size=3)
        ids = execute_values(cursor, f"INSERT INTO many ({NAMES}) VALUES %s RETURNING id", ROWS, page_size=2, fetch=True)
        say_rows("execute_values", ids)
        typed = "UPDATE many SET t = data.t FROM (VALUES %s) AS data (id, t) WHERE many.id = data.id"
        execute_values(cursor, typed, [(1, "changed"), (2, "as well")])
        say("update from values", cursor.rowcount)
        template = "(%(n4)s, %(da)s::date, %(u)s::uuid)"
        named = [{"n4": 5, "da": "2024-03-01", "u": str(uuid.UUID(int=9))}, {"n4": 6, "da": None, "u": None}]
        execute_values(cursor, "INSERT INTO many (n4, da, u) VALUES %s", named, template)
    db.commit()
    run(f"SELECT id, {NAMES} FROM many ORDER BY id")


def found():
    for column, value in zip(COLUMNS, ROWS[0]):
        run(f"SELECT id FROM r_serial WHERE {column} = %s ORDER BY id", value)
        run(f"SELECT id FROM r_serial WHERE {column} >= %s ORDER BY id", value)
        run(f"SELECT id FROM r_serial WHERE {column} IN %s ORDER BY id", (value, ROWS[1][COLUMNS.index(column)]))
        run(f"SELECT id FROM r_serial WHERE {column} IS NULL ORDER BY id")
        run(f"SELECT count({column}), count(DISTINCT {column}) FROM r_serial")
    run("SELECT id FROM r_serial WHERE ts BETWEEN %s AND %s", d.date(2024, 1, 1), d.datetime(2024, 2, 29, 13))
    run("SELECT id FROM r_serial WHERE ok AND t LIKE %s ORDER BY n4 DESC NULLS LAST LIMIT %s", "%o%", 2)
    run("SELECT min(da), max(ts), sum(n4), avg(n4) FROM r_serial WHERE n4 > 0")


def values():
    run("SELECT %s, %s, %s, %s, %s", 1, 2**40, 1.5, "text", None)
    run("SELECT %s, %s, %s, %s", d.date(2024, 2, 29), d.time(1, 2), ROWS[0][11], ROWS[1][12])
    run("SELECT %s, %s, %s AS b", uuid.UUID(int=5), True, b"\x00\xff")
    run("SELECT %s AS a, %s::date AS b, %s::timestamptz AS c, %s::uuid AS d", d.date(2024, 1, 1), "2024-01-02",
        "2024-01-01 12:00+02", str(uuid.UUID(int=6)))


def jsons():
    document = {"a": [1, 2.5, None, True], "\u00e9": {"b": "it's"}}
    run("INSERT INTO r_serial (js, jb) VALUES (%s, %s) RETURNING js, jb", Json(document), Json(document))
    run("SELECT js, jb FROM r_serial WHERE jb IS NOT NULL")
    run("UPDATE r_serial SET jb = %s WHERE js IS NOT NULL RETURNING jb", json.dumps([1]))


def changes():
    run("UPDATE r_serial SET da = %s, b = %s, u = %s, ok = %s, ts = %s, f8 = f8 * 2 WHERE id = %s RETURNING da, b, u, ok, ts, f8",
        d.date(2000, 1, 1), b"\x01", uuid.UUID(int=4), False, d.datetime(2000, 1, 1, 1, 1), 1)
    run("INSERT INTO r_bigserial (id, t) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, t", 1, "upsert")
    run("DELETE FROM r_bigserial WHERE id = %s RETURNING *", 2)
    refused("INSERT INTO r_bigserial (id, t) VALUES (%s, %s)", 1, "again")
    refused("INSERT INTO r_bigserial (ok) VALUES (%s)", None)
    refused("INSERT INTO r_bigserial (da) VALUES (%s)", "2024-02-30")
    refused("INSERT INTO r_bigserial (u) VALUES (%s)", "no uuid")
    refused("INSERT INTO r_bigserial (n2) VALUES (%s)", 40000)
    refused("SELECT 1/0")
    with db:
        with db.cursor() as cursor:
            cursor.execute("INSERT INTO r_bigserial (t) VALUES ('kept') RETURNING t")
            say("kept", cursor.fetchone())
    try:
        with db, db.cursor() as cursor:
            cursor.execute("INSERT INTO r_bigserial (t) VALUES ('undone')")
            raise KeyError
    except KeyError:
        run("SELECT t FROM r_bigserial WHERE t IN ('kept', 'undone')")


def copies():
    made("copied")
    with db.cursor() as cursor:
        text = "1\t2024-02-29\tt\t\\\\x00ff\n2\t\\N\tf\t\\N\n"
        cursor.copy_from(io.StringIO(text), "copied", columns=("n4", "da", "ok", "b"))
        say("copy_from", cursor.rowcount)
        cursor.copy_expert("COPY copied (n4, u, ts) FROM STDIN WITH (FORMAT csv, HEADER)",
                           io.StringIO("n4,u,ts\n3,00000000-0000-0000-0000-000000000001,2024-01-01 01:02:03.5\n"))
        out = io.StringIO()
        cursor.copy_to(out, "copied", columns=("id", "n4", "da", "ok", "b", "u", "ts"))
        say("copy_to", out.getvalue())
    db.commit()


def cursors():
    kinds = psycopg2.extras
    for factory in (kinds.DictCursor, kinds.RealDictCursor, kinds.NamedTupleCursor):
        with db.cursor(cursor_factory=factory) as cursor:
            cursor.execute("SELECT id, da, u FROM r_serial WHERE id = %s", (1,))
            row = cursor.fetchone()
            say(factory.__name__, list(row.values()) if hasattr(row, "values") else list(row))
            say("columns", [column.name for column in cursor.description])
    db.commit()


def arrays():
    run("DROP TABLE IF EXISTS ar2")
    run(ARRAYS.format(table="ar2"))
    marks = ", ".join(["%s"] * 9)
    for row in ARRAY_ROWS:
        run(f"INSERT INTO ar2 ({ARRAY_COLUMNS}) VALUES ({marks}) RETURNING n, t", *row)
    run("SELECT * FROM ar2 ORDER BY id")
    run("SELECT id, n[1], t[2], n || 7, array_append(t, 'z') FROM ar2 WHERE t @> %s::text[] OR n = %s::int[] ORDER BY id", ["y"], [1, -2])
    run("SELECT id FROM ar2 WHERE %s = ANY (t) AND id = ANY (%s) ORDER BY id", "x", [1, 2, 3])
    run("UPDATE ar2 SET n = %s::int[], t = t || %s::text[] RETURNING id, n, t", [5, 6], ["w"])
    refused("INSERT INTO ar2 (id, n) VALUES (9, '{x}')")


PARTS = (keys, many, found, values, jsons, changes, copies, arrays, cursors)
for function in PARTS:
    part(function.__name__, function, db.rollback)
