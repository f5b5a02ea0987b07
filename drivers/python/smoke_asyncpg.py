"""asyncpg: prepares every statement, and keeps the last hundred on each connection."""

import asyncio
import datetime
import decimal
import io
import uuid

import asyncpg
from checks import CHECKS, DDL, Report, check

TABLE = "smoke_asyncpg"
LOOKUP = f"SELECT id, name FROM {TABLE} WHERE id = $1"


async def expect(error, awaitable):
    try:
        await awaitable
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


@check
async def lookups(db):
    for _ in range(20):
        assert (await db.fetchrow(LOOKUP, 1))["name"] == "one"


@check
async def lookups_in_transactions(db):
    for _ in range(5):
        async with db.transaction():
            for number, name in ((1, "one"), (2, "two")):
                assert (await db.fetchrow(LOOKUP, number))["name"] == name


@check
async def parameters_of_many_types(db):
    now = datetime.datetime.now(datetime.timezone.utc)
    values = {
        "int2": 7, "int4": -8, "int8": 1 << 60, "float8": 1.5, "bool": True, "text": "ä€", "bytea": b"\0\xff",
        "numeric": decimal.Decimal("12.340"), "uuid": uuid.uuid4(), "timestamptz": now, "date": now.date(),
        "interval": datetime.timedelta(days=1, seconds=5), "int4[]": [1, None, 3], "jsonb": '{"a": 1}',
    }
    for kind, value in values.items():
        assert await db.fetchval(f"SELECT $1::{kind}", value) == value, kind
        assert await db.fetchval(f"SELECT $1::{kind}", None) is None, kind


@check
async def a_megabyte_each_way(db):
    text = "x" * (1 << 20)
    assert await db.fetchval("SELECT $1::text", text) == text


@check
async def insert_returning(db):
    assert await db.fetchval(f"INSERT INTO {TABLE} VALUES ($1, $2) RETURNING id", 10, "ten") == 10
    assert await db.execute(f"DELETE FROM {TABLE} WHERE id = $1", 10) == "DELETE 1"


@check
async def errors_leave_the_connection_usable(db):
    for _ in range(3):
        insert = db.execute(f"INSERT INTO {TABLE} VALUES ($1, $2)", 1, "again")
        await expect(asyncpg.UniqueViolationError, insert)
        await expect(asyncpg.DivisionByZeroError, db.fetchval("SELECT 1 / $1::int", 0))
        await expect(asyncpg.PostgresSyntaxError, db.fetchval("SELEC 1"))
        assert (await db.fetchrow(LOOKUP, 1))["name"] == "one"


@check
async def rollback_undoes(db):
    transaction = db.transaction()
    await transaction.start()
    await db.execute(f"INSERT INTO {TABLE} VALUES (11, 'eleven')")
    await transaction.rollback()
    assert await db.fetchrow(LOOKUP, 11) is None


@check
async def failed_transaction_refuses_until_rolled_back(db):
    transaction = db.transaction()
    await transaction.start()
    await expect(asyncpg.DivisionByZeroError, db.fetchval("SELECT 1 / $1::int", 0))
    await expect(asyncpg.InFailedSQLTransactionError, db.fetchrow(LOOKUP, 1))
    await transaction.rollback()
    assert (await db.fetchrow(LOOKUP, 1))["name"] == "one"


@check
async def savepoints(db):
    async with db.transaction():
        await db.execute(f"INSERT INTO {TABLE} VALUES (12, 'twelve')")
        inner = db.transaction()
        await inner.start()
        await expect(asyncpg.DivisionByZeroError, db.fetchval("SELECT 1 / 0"))
        await inner.rollback()
        assert (await db.fetchrow(LOOKUP, 12))["name"] == "twelve"
        await db.execute(f"DELETE FROM {TABLE} WHERE id = 12")


@check
async def batches(db):
    insert = f"INSERT INTO {TABLE} VALUES ($1, $2)"
    await db.executemany(insert, [(number, str(number)) for number in range(100, 300)])
    await expect(asyncpg.UniqueViolationError, db.executemany(insert, [(300, "x"), (100, "y")]))
    assert await db.fetchval(f"SELECT count(*) FROM {TABLE} WHERE id >= 100") == 200
    await db.execute(f"DELETE FROM {TABLE} WHERE id >= 100")


@check
async def copy_in_and_out(db):
    rows = [(number, f"row {number}") for number in range(100, 1100)]
    assert await db.copy_records_to_table(TABLE, records=rows) == "COPY 1000"
    target = io.BytesIO()
    await db.copy_from_query(f"SELECT * FROM {TABLE} WHERE id >= $1 ORDER BY id", 100, output=target)
    assert target.getvalue().count(b"\n") == 1000
    await expect(asyncpg.UniqueViolationError, db.copy_records_to_table(TABLE, records=rows))
    await db.execute(f"DELETE FROM {TABLE} WHERE id >= 100")


@check
async def cursor_in_a_transaction(db):
    async with db.transaction():
        cursor = await db.cursor("SELECT generate_series(1, $1)", 250)
        first = await cursor.fetch(100)
        await cursor.forward(100)
        rest = await cursor.fetch(100)
        assert [len(first), len(rest), rest[-1][0]] == [100, 50, 250]


@check
async def statements_closed_and_prepared_again(db):
    for _ in range(3):
        statement = await db.prepare(LOOKUP)
        assert (await statement.fetchrow(2))["name"] == "two"
        assert [str(kind.name) for kind in statement.get_parameters()] == ["int4"]
        del statement
        await db.reload_schema_state()


@check
async def many_clients(_):
    async def client(number):
        db = await asyncpg.connect()
        try:
            for turn in range(100):
                value = number * 1000 + turn
                assert await db.fetchval("SELECT $1::int + 0", value) == value
                assert (await db.fetch("SELECT $1::int + 1", value))[0][0] == value + 1
                async with db.transaction():
                    assert (await db.fetchrow(LOOKUP, 1))["name"] == "one"
                    assert await db.fetchval("SELECT $1::text", str(value)) == str(value)
        finally:
            await db.close()

    await asyncio.gather(*(client(number) for number in range(40)))


async def main():
    report = Report()
    db = await asyncpg.connect()
    await db.execute(f"DROP TABLE IF EXISTS {TABLE}")
    await db.execute(DDL.format(table=TABLE))
    await db.execute(f"INSERT INTO {TABLE} VALUES (1, 'one'), (2, 'two')")
    for function in CHECKS:
        try:
            await asyncio.wait_for(function(db), 30)
            report.ok(function)
        except Exception:
            report.bad(function)
            db.terminate()
            db = await asyncpg.connect()
    await db.execute(f"DROP TABLE {TABLE}")
    await db.close()
    report.finish()


asyncio.run(main())
