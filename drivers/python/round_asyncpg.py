"""A round of asyncpg: what a user does on the first day, printed (see `rounds.py`)."""

import asyncio
import datetime as d
import io
import json
import uuid

import asyncpg

from rounds import ARRAY_COLUMNS, ARRAY_ROWS, ARRAYS, COLUMNS, KEYS, ROWS, TABLE, part, say, say_rows

NAMES = ", ".join(COLUMNS)
MARKS = ", ".join(f"${number + 1}" for number in range(len(COLUMNS)))
INSERT = f"INSERT INTO {{}} ({NAMES}) VALUES ({MARKS}) RETURNING id"

loop = asyncio.new_event_loop()
wait = loop.run_until_complete
db = wait(asyncpg.connect())


def run(sql, *values):
    statement = wait(db.prepare(sql))
    say("parameters", [kind.name for kind in statement.get_parameters()])
    say("columns", [(column.name, column.type.name, column.type.oid) for column in statement.get_attributes()])
    say_rows("rows", wait(statement.fetch(*values)))
    say("status", statement.get_statusmsg())


def made(name):
    say("drop", wait(db.execute(f"DROP TABLE IF EXISTS {name}")))
    say("create", wait(db.execute(TABLE.format(table=name, key=KEYS.get(name.removeprefix("ra_"), "SERIAL")))))


def refused(sql, *values):
    try:
        run(sql, *values)
    except asyncpg.PostgresError as error:
        say("refused", (type(error).__name__, error.sqlstate))
    except asyncpg.DataError as error:
        say("refused", (type(error).__name__,))


def keys():
    for key in KEYS:
        made(f"ra_{key}")
        for row in ROWS:
            run(INSERT.format(f"ra_{key}"), *row)
            say("fetchval", wait(db.fetchval(INSERT.format(f"ra_{key}"), *row)))
        say_rows("fetch", wait(db.fetch(f"SELECT * FROM ra_{key} ORDER BY id")))
    refused("INSERT INTO ra_always (id, t) VALUES ($1, $2)", 77, "given")
    run("INSERT INTO ra_by_default (id, t) VALUES ($1, $2) RETURNING id", 77, "given")


def many():
    made("many_a")
    wait(db.executemany(INSERT.format("many_a"), ROWS))
    say_rows("fetchmany", wait(db.fetchmany(INSERT.format("many_a"), ROWS)))
    wait(db.executemany("UPDATE many_a SET t = $1, da = $2 WHERE id = $3", [("changed", d.date(2020, 1, 1), 1), ("as well", None, 2)]))
    run("SELECT * FROM many_a ORDER BY id")


def found():
    for column, value in zip(COLUMNS, ROWS[0]):
        run(f"SELECT id FROM ra_serial WHERE {column} = $1 ORDER BY id", value)
        run(f"SELECT id FROM ra_serial WHERE {column} >= $1 ORDER BY id", value)
        run(f"SELECT id FROM ra_serial WHERE {column} IN ($1, $2) ORDER BY id", value, ROWS[1][COLUMNS.index(column)])
        run(f"SELECT id FROM ra_serial WHERE {column} IS NOT DISTINCT FROM $1 ORDER BY id", None)
        run(f"SELECT count({column}), count(DISTINCT {column}) FROM ra_serial")
    run("SELECT id FROM ra_serial WHERE ts BETWEEN $1 AND $2", d.datetime(2024, 1, 1), d.datetime(2024, 2, 29, 13))
    run("SELECT id FROM ra_serial WHERE ok AND t LIKE $1 ORDER BY n4 DESC NULLS LAST, id LIMIT $2", "%o%", 2)
    run("SELECT min(da), max(ts), sum(n4), avg(n4) FROM ra_serial WHERE n4 > 0")


def values():
    run("SELECT $1::int, $2::bigint, $3::float8, $4::text, $5", 1, 2**40, 1.5, "text", None)
    run("SELECT $1::date, $2::time, $3::timestamp, $4::timestamptz", d.date(2024, 2, 29), d.time(1, 2), ROWS[0][11], ROWS[1][12])
    run("SELECT $1::uuid, $2::bool, $3::bytea, $4::smallint, $5::varchar", uuid.UUID(int=5), True, b"\x00\xff", 5, "v")
    run("SELECT 1 AS a, 1.5 AS b, 'x' AS c, true AS d, NULL AS e, date '2024-01-01' AS f")


def jsons():
    document = json.dumps({"a": [1, 2.5, None, True], "\u00e9": {"b": "it's"}})
    run("INSERT INTO ra_serial (js, jb) VALUES ($1, $2) RETURNING js, jb", document, document)
    for name in ("json", "jsonb"):
        wait(db.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog"))
    run("INSERT INTO ra_serial (js, jb) VALUES ($1, $2) RETURNING js, jb", [1, {"b": None}], [2, {"c": "d"}])
    run("SELECT js, jb FROM ra_serial WHERE jb IS NOT NULL ORDER BY id")
    for name in ("json", "jsonb"):
        wait(db.reset_type_codec(name, schema="pg_catalog"))


def changes():
    run("UPDATE ra_serial SET da = $1, b = $2, u = $3, ok = $4, ts = $5, f8 = f8 * 2 WHERE id = $6 RETURNING da, b, u, ok, ts, f8",
        d.date(2000, 1, 1), b"\x01", uuid.UUID(int=4), False, d.datetime(2000, 1, 1, 1, 1), 1)
    run("INSERT INTO ra_bigserial (id, t) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, t", 1, "upsert")
    run("DELETE FROM ra_bigserial WHERE id = $1 RETURNING *", 2)
    refused("INSERT INTO ra_bigserial (id, t) VALUES ($1, $2)", 1, "again")
    refused("INSERT INTO ra_bigserial (ok) VALUES ($1)", None)
    refused("INSERT INTO ra_bigserial (da) VALUES ('2024-02-30')")
    refused("INSERT INTO ra_bigserial (n2) VALUES ($1)", 40000)
    refused("SELECT 1/0")
    say("execute", wait(db.execute("INSERT INTO ra_bigserial (t) VALUES ($1)", "executed")))
    wait(transactions())
    run("SELECT t FROM ra_bigserial WHERE t IN ('kept', 'undone') ORDER BY id")


async def transactions():
    for isolation in ("read_committed", "repeatable_read", "serializable"):
        async with db.transaction(isolation=isolation):
            await db.execute("INSERT INTO ra_bigserial (t) VALUES ('kept')")
            try:
                async with db.transaction():
                    await db.execute("INSERT INTO ra_bigserial (t) VALUES ('undone')")
                    raise KeyError
            except KeyError:
                say("savepoint", "rolled back")
    async with db.transaction(readonly=True):
        rows = [row async for row in db.cursor("SELECT id, da FROM ra_serial WHERE id < $1 ORDER BY id", 6, prefetch=2)]
        say_rows("cursor", rows)
        cursor = await db.cursor("SELECT id FROM ra_serial ORDER BY id")
        say_rows("first", await cursor.fetch(3))
        say("next", await cursor.fetchrow())


def copies():
    made("copied_a")
    say("copy_records", wait(db.copy_records_to_table("copied_a", records=ROWS, columns=COLUMNS)))
    text = b"1\t2024-02-29\tt\t\\\\x00ff\n2\t\\N\tf\t\\N\n"
    say("text", wait(db.copy_to_table("copied_a", source=io.BytesIO(text), columns=["n4", "da", "ok", "b"])))
    for form in ("text", "csv"):
        out = io.BytesIO()
        say(form, wait(db.copy_from_query("SELECT * FROM copied_a WHERE id > $1 ORDER BY id", 2, output=out, format=form)))
        say("data", out.getvalue())
    out = io.BytesIO()
    say("binary", wait(db.copy_from_table("copied_a", output=out, format="binary")))
    say("data", out.getvalue())
    columns = ["id", *COLUMNS, "js", "jb"]
    wait(db.execute("DELETE FROM copied_a"))
    say("again", wait(db.copy_to_table("copied_a", source=io.BytesIO(out.getvalue()), columns=columns, format="binary")))
    say_rows("rows", wait(db.fetch("SELECT * FROM copied_a ORDER BY id")))


async def pooled():
    async with asyncpg.create_pool(min_size=2, max_size=3) as pool:
        made = [pool.fetchval(INSERT.format("ra_serial"), *row) for row in ROWS * 5]
        numbers = await asyncio.gather(*made)
        say("keys", len(set(numbers)))
        say_rows("pooled", await pool.fetch("SELECT da, u, b FROM ra_serial WHERE n4 = $1 ORDER BY da, id", 10))


def pools():
    wait(pooled())


def arrays():
    say("drop", wait(db.execute("DROP TABLE IF EXISTS ara")))
    say("create", wait(db.execute(ARRAYS.format(table="ara"))))
    marks = ", ".join(f"${number + 1}" for number in range(9))
    for row in ARRAY_ROWS:
        run(f"INSERT INTO ara ({ARRAY_COLUMNS}) VALUES ({marks}) RETURNING n, t", *row)
    run("SELECT * FROM ara ORDER BY id")
    run("SELECT id, n[1], t[2], n || 7, array_append(t, 'z') FROM ara WHERE t @> $1 OR n = $2 ORDER BY id", ["y"], [1, -2])
    run("SELECT id FROM ara WHERE $1 = ANY (t) AND id = ANY ($2) ORDER BY id", "x", [1, 2, 3])
    run("UPDATE ara SET n = $1, t = t || $2 RETURNING id, n, t", [5, 6], ["w"])
    refused("INSERT INTO ara (id, n) VALUES (9, '{x}')")


PARTS = (keys, many, found, values, jsons, changes, copies, arrays, pools)
for function in PARTS:
    part(function.__name__, function, lambda: None)
wait(db.close())
