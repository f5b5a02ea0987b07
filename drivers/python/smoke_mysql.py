"""A client library of MySQL: `smoke_mysql.py LIBRARY`.

Each check prints `= NAME` and then what it got, with Python's types. Whether that is right is seen
by running the same without a proxy. A check that fails by itself prints FAILED.
"""

import datetime
import decimal
import os
import sys
import tempfile
import threading
import traceback

from checks import CHECKS, check
from mysql_libraries import LIBRARIES, every_result

NAME = sys.argv[1]
LIBRARY = LIBRARIES[NAME]()
TABLE = "smoke_python_" + NAME.replace("-", "_")
LOOKUP = f"SELECT name FROM {TABLE} WHERE id = %s"
INSERT = f"INSERT INTO {TABLE} (name, number) VALUES (%s, %s)"
CLIENTS, TURNS = 24, 10


def needs(what):
    """Leaves a check to the libraries that have something."""

    def marked(function):
        return function if what in LIBRARY.lacks else check(function)

    return marked


def rows(db, sql, *values):
    cursor = LIBRARY.cursor(db)
    try:
        execute(cursor, sql, values)
        return [tuple(row) for row in cursor.fetchall()]
    finally:
        cursor.close()


def execute(cursor, sql, values=()):
    cursor.execute(sql, values) if values else cursor.execute(sql)


def value(db, sql, *values):
    found = rows(db, sql, *values)
    return found[0][0] if found else None


def run(db, sql, *values):
    """Returns the number of rows, and the number that the row got."""
    cursor = LIBRARY.cursor(db)
    try:
        execute(cursor, sql, values)
        return cursor.rowcount, cursor.lastrowid
    finally:
        cursor.close()


def control(db, sql):
    """Runs what cannot be prepared on every server."""
    cursor = db.cursor()
    cursor.execute(sql)
    cursor.close()


def refused(function, *arguments):
    """Prints the error that a call ends in."""
    try:
        got = function(*arguments)
    except Exception as error:
        if isinstance(error, (TypeError, AttributeError, AssertionError)):
            raise
        print(type(error).__name__, *LIBRARY.error(error))
    else:
        print("no error:", got)


def closing(connect):
    """Runs a check with a connection of its own."""

    def of(function):
        def own(_):
            db = connect()
            try:
                function(db)
            finally:
                db.close()

        own.__name__ = function.__name__
        return own

    return of


@check
def lookups(db):
    for number in range(20):
        assert value(db, LOOKUP, 1 + number % 2) == ("one", "two")[number % 2]
    print(rows(db, f"SELECT * FROM {TABLE} ORDER BY id"))


@check
def lookups_in_transactions(db):
    for _ in range(5):
        control(db, "BEGIN")
        assert value(db, LOOKUP, 1) == "one"
        assert value(db, LOOKUP, 2) == "two"
        db.commit()
    print(value(db, LOOKUP, 3))


@check
def one_statement_many_times(db):
    cursor = LIBRARY.cursor(db)
    for number in range(10):
        cursor.execute(LOOKUP, (1 + number % 2,))
        print(*cursor.fetchone(), len(cursor.fetchall()))
    cursor.close()


@check
def values_of_many_types(db):
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
    sent = [7, -8, 1 << 60, 1.5, True, "it's \\ ä€😀", "", decimal.Decimal("12.340"), moment, moment.date(), b"\0\xff'", None]
    for one in sent:
        if isinstance(one, bytes) and "bytes" in LIBRARY.lacks:
            continue
        print(rows(db, "SELECT %s, %s", one, None))
    columns = {
        "TINYINT": -5, "SMALLINT UNSIGNED": 65535, "BIGINT": -(1 << 62), "BIGINT UNSIGNED": 1 << 63, "DOUBLE": 0.1,
        "DECIMAL(20,5)": decimal.Decimal("-12.34000"), "DATE": moment.date(), "DATETIME(6)": moment,
        "TIMESTAMP": moment.replace(microsecond=0), "TIME(3)": datetime.timedelta(hours=-30, milliseconds=250),
        "YEAR": 2024, "VARCHAR(20)": "ä€", "BLOB": b"\0\xff", "JSON": '{"a": 1}', "BIT(9)": 3, "ENUM('x','y')": "y",
    }
    if "bytes" in LIBRARY.lacks:
        del columns["BLOB"]
    definitions = [f"a{at} {kind}, b{at} {kind}" for at, kind in enumerate(columns)]
    run(db, f"DROP TABLE IF EXISTS {TABLE}_kind")
    run(db, f"CREATE TABLE {TABLE}_kind ({', '.join(definitions)})")
    for at, (kind, one) in enumerate(columns.items()):
        run(db, f"INSERT INTO {TABLE}_kind (a{at}, b{at}) VALUES (%s, %s)", one, None)
        print(kind, rows(db, f"SELECT a{at}, b{at} FROM {TABLE}_kind"))
        run(db, f"DELETE FROM {TABLE}_kind")
    run(db, f"DROP TABLE {TABLE}_kind")


@check
def a_megabyte_each_way(db):
    for sent in ["x" * (1 << 20), "ä€" * 300_000]:
        back = value(db, "SELECT %s", sent)
        assert (back if isinstance(back, str) else back.decode()) == sent
    sent = ("x" if "bytes" in LIBRARY.lacks else b"\xff") * (1 << 20)
    print(value(db, "SELECT LENGTH(%s)", sent), len(value(db, "SELECT REPEAT('y', 3000000)")))


@check
def numbers_of_new_rows(db):
    print(run(db, INSERT, "new", 1.5), run(db, INSERT, "newer", None))
    print(run(db, f"INSERT INTO {TABLE} (name) VALUES ('a'), ('b'), ('c')"), value(db, "SELECT LAST_INSERT_ID()"))
    print(run(db, f"UPDATE {TABLE} SET number = 2 WHERE name IN ('a', 'b')"))
    print(run(db, f"UPDATE {TABLE} SET number = 2 WHERE name IN ('a', 'c')"), run(db, f"DELETE FROM {TABLE} WHERE id > 2"))


@check
@closing(lambda: LIBRARY.connect(found=True))
def rows_found_rather_than_changed(db):
    print(run(db, f"UPDATE {TABLE} SET name = 'one' WHERE id = 1"), run(db, f"UPDATE {TABLE} SET name = 'one' WHERE id = 9"))


@check
def errors_leave_the_connection_usable(db):
    for _ in range(2):
        refused(run, db, f"INSERT INTO {TABLE} (id, name) VALUES (1, 'again')")
        refused(run, db, f"INSERT INTO {TABLE} (id, name) VALUES (%s, %s)", 2, "again")
        refused(run, db, f"INSERT INTO {TABLE} (name, number) VALUES ('zero', 1 / %s)", 0)
        refused(run, db, "SELEC 1")
        refused(run, db, "SELECT * FROM nowhere WHERE a = %s", 1)
        refused(run, db, f"INSERT INTO {TABLE} (name) VALUES (%s)", None)
        assert value(db, LOOKUP, 1) == "one"


@check
def warnings(db):
    print(rows(db, "SELECT CAST('12x' AS SIGNED), 1/0"))
    cursor = db.cursor()
    cursor.execute("SHOW WARNINGS")
    print(cursor.fetchall())
    cursor.close()


@check
def rollback_undoes(db):
    control(db, "START TRANSACTION")
    run(db, INSERT, "undone", 1)
    control(db, "SAVEPOINT s")
    run(db, INSERT, "undone", 2)
    control(db, "ROLLBACK TO s")
    refused(run, db, f"INSERT INTO {TABLE} (id, name) VALUES (1, 'again')")
    print(value(db, f"SELECT COUNT(*) FROM {TABLE}"))
    db.rollback()
    print(value(db, f"SELECT COUNT(*) FROM {TABLE}"))


@check
def without_autocommit(db):
    LIBRARY.autocommit(db, False)
    other = LIBRARY.connect()
    try:
        run(db, INSERT, "kept", 1)
        print(value(db, f"SELECT COUNT(*) FROM {TABLE}"), value(other, f"SELECT COUNT(*) FROM {TABLE}"))
        db.commit()
        print(value(other, f"SELECT COUNT(*) FROM {TABLE}"), value(db, "SELECT @@autocommit"))
        run(db, f"DELETE FROM {TABLE} WHERE id > 2")
        db.rollback()
        print(value(other, f"SELECT COUNT(*) FROM {TABLE}"))
        run(db, f"DELETE FROM {TABLE} WHERE id > 2")
        db.commit()
    finally:
        other.close()
        LIBRARY.autocommit(db, True)
    print(value(db, f"SELECT COUNT(*) FROM {TABLE}"), value(db, "SELECT @@autocommit"))


@check
def settings_and_variables(db):
    run(db, "SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT', time_zone = '+05:00'")
    run(db, "SET @a = 7, @b = 'ä'")
    for _ in range(3):
        print(rows(db, f"SELECT \"name\" || '!', @@time_zone, @a, @b FROM {TABLE} WHERE id = %s", 2))
    run(db, "SET SESSION sql_mode = DEFAULT, time_zone = DEFAULT")
    run(db, f"CREATE TEMPORARY TABLE {TABLE}_own SELECT 5 AS five")
    print(rows(db, f"SELECT five, '1' || '1' FROM {TABLE}_own"))
    run(db, f"DROP TEMPORARY TABLE {TABLE}_own")


@needs("several")
@closing(lambda: LIBRARY.connect(several=True))
def several_statements_in_a_text(db):
    def all_of(sql):
        cursor = LIBRARY.cursor(db)
        execute(cursor, sql)
        results = every_result(cursor)
        cursor.close()
        return results

    change = f"UPDATE {TABLE} SET number = number + 1"
    print(all_of(f"SELECT 1 AS a, 'x' AS b; {change}; SELECT name FROM {TABLE} ORDER BY id; DO 1"))
    refused(all_of, f"SELECT 1; {change}; INSERT INTO {TABLE} (id, name) VALUES (1, 'again'); SELECT 2")
    refused(all_of, "SELECT 1; SELEC 2; SELECT 3")
    print(value(db, LOOKUP, 1))


@needs("call")
def procedures_with_several_results(db):
    cursor = LIBRARY.cursor(db)
    print(LIBRARY.call(cursor, f"{TABLE}_pair", (5,)))
    cursor.close()
    for _ in range(2):
        cursor = LIBRARY.cursor(db)
        refused(LIBRARY.call, cursor, f"{TABLE}_fail", ())
        cursor.close()
        print(value(db, LOOKUP, 2))


@needs("load")
def files_of_the_client(_):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{number}\trow {number}\n" for number in range(100, 20_100)))
        load = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {TABLE} (id, name)"
        for local in True, False:
            db = LIBRARY.connect(local=local)
            print(run(db, load)[0]) if local else refused(run, db, load)
            db.close()
            db = LIBRARY.connect()
            print(value(db, f"SELECT COUNT(*) FROM {TABLE}"), run(db, f"DELETE FROM {TABLE} WHERE id > 2")[0])
            db.close()


@needs("stream")
def rows_bit_by_bit(db):
    cursor = LIBRARY.stream(db)
    execute(cursor, f"SELECT a.id, REPEAT(a.name, 500), b.name FROM {TABLE} a, {TABLE} b, information_schema.collations")
    taken = 0
    while part := cursor.fetchmany(100):
        taken += len(part)
    cursor.close()
    assert taken > 500
    print(value(db, LOOKUP, 1))


@check
def statements_closed_and_prepared_again(db):
    for _ in range(5):
        for number in 1, 2:
            cursor = LIBRARY.cursor(db)
            for _ in range(3):
                cursor.execute(LOOKUP, (number,))
                assert len(cursor.fetchall()) == 1
            cursor.close()
    print(value(db, LOOKUP, 2))


@check
def many_in_one_call(db):
    cursor = LIBRARY.cursor(db)
    cursor.executemany(INSERT, [(f"row {number}", number / 4) for number in range(200)])
    print(cursor.rowcount)
    cursor.close()
    print(rows(db, f"SELECT COUNT(*), SUM(number) FROM {TABLE}"), run(db, f"DELETE FROM {TABLE} WHERE id > 2")[0])


@check
def many_clients(_):
    failures = []

    def client(number):
        try:
            db = LIBRARY.connect()
            for turn in range(TURNS):
                sent = number * 1000 + turn
                assert int(value(db, "SELECT %s + 0", sent)) == sent
                control(db, "BEGIN")
                assert value(db, LOOKUP, 1) == "one"
                db.commit()
            db.close()
        except Exception:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise AssertionError(failures[0])


@needs("reset")
def a_reset_forgets(db):
    run(db, "SET @a = 7, SESSION time_zone = '+05:00'")
    control(db, "BEGIN")
    run(db, INSERT, "undone", 1)
    LIBRARY.reset(db)
    print(rows(db, f"SELECT @a, @@time_zone, DATABASE(), (SELECT COUNT(*) FROM {TABLE})"))


@needs("pool")
def connections_of_the_librarys_pool(_):
    take, give_back = LIBRARY.pool(3)
    for turn in range(12):
        held = [take() for _ in range(3)]
        for number, db in enumerate(held):
            assert value(db, LOOKUP, 1 + number % 2) == ("one", "two")[number % 2]
            run(db, "SET @a = %s", turn)
        for db in held:
            give_back(db)
    db = take()
    print(value(db, "SELECT @@autocommit"), value(db, LOOKUP, 2))
    give_back(db)


@check
def a_ping(db):
    run(db, "SET @a = 5")
    db.ping()
    print(value(db, "SELECT @a"))


def prepare(db):
    for sql in [
        f"DROP TABLE IF EXISTS {TABLE}",
        f"CREATE TABLE {TABLE} (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL, number DOUBLE)",
        f"INSERT INTO {TABLE} (name, number) VALUES ('one', 1), ('two', NULL)",
        f"DROP PROCEDURE IF EXISTS {TABLE}_pair",
        f"DROP PROCEDURE IF EXISTS {TABLE}_fail",
        f"CREATE PROCEDURE {TABLE}_pair(n INT) BEGIN SELECT n, n + 1; SELECT name FROM {TABLE} ORDER BY id; END",
        f"CREATE PROCEDURE {TABLE}_fail() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough'; END",
    ]:
        cursor = db.cursor()
        cursor.execute(sql)
        cursor.close()


def main():
    db = LIBRARY.connect()
    prepare(db)
    for function in CHECKS:
        print("=", function.__name__.replace("_", " "))
        try:
            function(db)
        except Exception:
            print("FAILED", traceback.format_exc())
            db = LIBRARY.connect()
    db.close()


main()
