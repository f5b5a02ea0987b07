"""The admin console, by drivers with their defaults: `console.py psycopg` or `console.py asyncpg`."""

import asyncio
import sys

import asyncpg
import psycopg
from checks import Report

TIMES = 10


def listings(help_text):
    """Returns the names of all listings, from the notice of SHOW HELP."""
    lines = (line.strip() for line in help_text.splitlines())
    line = next(line for line in lines if line.startswith("SHOW HELP|"))
    return line.split("|")[1:]


def connect():
    return psycopg.connect("dbname=pgbouncer")


def every_listing_ten_times():
    with connect() as db:
        notices = []
        db.add_notice_handler(lambda notice: notices.append(notice.message_detail))
        db.execute("SHOW HELP")
        names = listings(notices[0])
        assert len(names) > 40, names
        for name in names:
            counts = {len(db.execute(f"SHOW {name}").description) for _ in range(TIMES)}
            assert len(counts) == 1, (name, counts)


def a_listing_in_binary():
    with connect() as db:
        pool = db.cursor(binary=True).execute("SHOW POOLS").fetchone()
        assert pool[0] == "pgbouncer" and isinstance(pool[2], int), pool
        stats = db.cursor(binary=True).execute("SHOW STATS").fetchone()
        assert stats[0] == "pgbouncer" and stats[1] == 0, stats


def a_pipeline():
    with connect() as db, db.pipeline():
        cursors = [db.execute("SHOW LISTS") for _ in range(TIMES)]
        assert all(cursor.fetchall() for cursor in cursors)


def a_select_over_listings():
    with connect() as db:
        query = (
            "SELECT p.database, p.cl_active, s.total_query_count FROM pools p"
            " JOIN stats s USING (database) WHERE p.cl_active > 0"
        )
        assert db.cursor(binary=True).execute(query).fetchall() == [("pgbouncer", 1, 0)]


def an_error_ends_the_block_alone():
    with connect() as db:
        try:
            db.execute("SELECT * FROM pols", prepare=True)
        except psycopg.errors.UndefinedTable as error:
            assert "did you mean pools" in str(error), error
        else:
            raise AssertionError("no error")
        db.rollback()
        assert db.execute("SHOW VERSION", prepare=True).fetchone()


def with_asyncpg(check):
    def run():
        asyncio.run(check())

    run.__name__ = check.__name__
    return run


@with_asyncpg
async def every_listing_by_prepared_statements():
    db = await asyncpg.connect(database="pgbouncer")
    notices = []
    db.add_log_listener(lambda _, message: notices.append(message.detail))
    await db.execute("SHOW HELP")
    names = listings(notices[0])
    for name in names:
        for _ in range(TIMES):
            await db.fetch(f"SHOW {name}")
    stats = await db.fetchrow("SHOW STATS")
    assert stats["total_xact_count"] == 0, stats
    async with db.transaction():
        assert await db.fetchval("SELECT count(*) FROM lists") > 5
    await db.close()


@with_asyncpg
async def a_pool_that_resets_its_connections():
    async with asyncpg.create_pool(database="pgbouncer", min_size=1, max_size=2) as pool:
        for _ in range(TIMES):
            async with pool.acquire() as db:
                assert await db.fetch("SHOW POOLS")


CHECKS = {
    "psycopg": [
        every_listing_ten_times,
        a_listing_in_binary,
        a_pipeline,
        a_select_over_listings,
        an_error_ends_the_block_alone,
    ],
    "asyncpg": [every_listing_by_prepared_statements, a_pool_that_resets_its_connections],
}


report = Report()
for check in CHECKS[sys.argv[1]]:
    try:
        check()
    except Exception:
        report.bad(check)
    else:
        report.ok(check)
report.finish()
