"""The admin console by client libraries of MySQL: `console_mysql.py LIBRARY`."""

import sys

import mysql_libraries
from checks import Report

TIMES = 10
LIBRARY = mysql_libraries.LIBRARIES[sys.argv[1]]()
# The database that the libraries ask for.
mysql_libraries.SCHEMA = "pgbouncer"


def rows(db, text):
    """Returns the names of the columns, and the rows."""
    cursor = LIBRARY.cursor(db)
    try:
        cursor.execute(text)
        found = [tuple(row) for row in cursor.fetchall()]
        return [column[0] for column in cursor.description], found
    finally:
        cursor.close()


def refused(db, text):
    """Returns the number of the error that a text ends in."""
    try:
        rows(db, text)
    except Exception as error:
        number = LIBRARY.error(error)[0]
        assert isinstance(number, int), error
        return number
    raise AssertionError("no error")


def every_listing_ten_times():
    db = LIBRARY.connect()
    _, lines = rows(db, "SHOW HELP")
    names = lines[0][0].split("|")[1:]
    assert lines[0][0].startswith("SHOW HELP|") and len(names) > 40, lines[0]
    for name in names:
        columns = {len(rows(db, f"SHOW {name}")[0]) for _ in range(TIMES)}
        assert len(columns) == 1, (name, columns)
    db.close()


def numbers_are_numbers():
    db = LIBRARY.connect()
    columns, lists = rows(db, "SHOW LISTS")
    assert columns == ["list", "items"] and dict(lists)["databases"] >= 1, (columns, lists)
    columns, stats = rows(db, "SHOW STATS")
    assert stats[0][columns.index("total_query_count")] == 0, stats
    columns, pools = rows(db, "SHOW POOLS")
    active = {row[0]: row[columns.index("cl_active")] for row in pools}
    # A connection that was closed before may still be there.
    assert active["pgbouncer"] >= 1, pools
    db.close()


def a_select_over_listings():
    db = LIBRARY.connect()
    text = (
        "SELECT p.`database`, p.cl_active, s.total_query_count FROM pools p"
        " JOIN stats s ON s.`database` = p.`database` WHERE p.cl_active > 0"
    )
    [(name, active, queries)] = rows(db, text)[1]
    assert (name, queries) == ("pgbouncer", 0) and active >= 1, (name, active, queries)
    db.close()


def errors_have_numbers_of_mysql():
    db = LIBRARY.connect()
    assert refused(db, "SELECT * FROM pols") == 1146
    assert refused(db, "SHOW POLS") == 1064
    assert refused(db, "SELECT @@nothing_of_the_kind") == 1193
    assert rows(db, "SHOW VERSION")[1], "the session goes on"
    db.close()


def a_transaction_is_words():
    db = LIBRARY.connect()
    LIBRARY.autocommit(db, False)
    assert rows(db, "SHOW LISTS")[1]
    db.commit()
    db.rollback()
    LIBRARY.autocommit(db, True)
    db.ping()
    db.close()


def a_command_takes_effect():
    db = LIBRARY.connect()
    cursor = db.cursor()
    cursor.execute("RELOAD")
    cursor.close()
    db.close()


report = Report()
for check in (
    every_listing_ten_times,
    numbers_are_numbers,
    a_select_over_listings,
    errors_have_numbers_of_mysql,
    a_transaction_is_words,
    a_command_takes_effect,
):
    try:
        check()
    except Exception:
        report.bad(check)
    else:
        report.ok(check)
report.finish()
