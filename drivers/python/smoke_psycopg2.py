"""psycopg2: simple queries only, its literals written into the text; many programs still use it."""

import datetime
import decimal
import io

import psycopg2
from checks import CHECKS, DDL, Report, check
from psycopg2 import errors, extras

TABLE = "smoke_psycopg2"
LOOKUP = f"SELECT name FROM {TABLE} WHERE id = %s"


def connect():
    db = psycopg2.connect("")
    db.autocommit = True
    return db


def value(db, sql, *parameters):
    with db.cursor() as cursor:
        cursor.execute(sql, parameters)
        row = cursor.fetchone()
        return row and row[0]


def run(db, sql):
    with db.cursor() as cursor:
        cursor.execute(sql)


def expect(error, function, *arguments):
    try:
        function(*arguments)
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


@check
def lookups(db):
    for number in range(40):
        assert value(db, LOOKUP, 1 + number % 2) == ("one", "two")[number % 2]


@check
def lookups_in_transactions(db):
    for _ in range(5):
        run(db, "BEGIN")
        assert value(db, LOOKUP, 1) == "one"
        assert value(db, LOOKUP, 2) == "two"
        run(db, "COMMIT")


@check
def literals_of_many_types(db):
    now = datetime.datetime.now(datetime.timezone.utc)
    values = [7, -8, 1 << 60, 1.5, True, "it's \\ ä€", decimal.Decimal("12.340"), now, now.date(), [1, None, 3]]
    for sent in values:
        assert value(db, "SELECT %s", sent) == sent, sent
    assert bytes(value(db, "SELECT %s::bytea", b"\0\xff'")) == b"\0\xff'"


@check
def several_statements_in_one_query(db):
    assert value(db, f"SELECT 1; INSERT INTO {TABLE} VALUES (10, 'ten'); SELECT 2") == 2
    run(db, f"DELETE FROM {TABLE} WHERE id = 10")


@check
def errors_leave_the_connection_usable(db):
    for _ in range(3):
        expect(errors.UniqueViolation, run, db, f"INSERT INTO {TABLE} VALUES (1, 'again')")
        expect(errors.DivisionByZero, value, db, "SELECT 1 / %s", 0)
        expect(errors.SyntaxError, run, db, "SELEC 1")
        assert value(db, LOOKUP, 1) == "one"


@check
def rollback_undoes(db):
    db.autocommit = False
    try:
        run(db, f"INSERT INTO {TABLE} VALUES (11, 'eleven')")
        expect(errors.DivisionByZero, run, db, "SELECT 1 / 0")
        expect(errors.InFailedSqlTransaction, value, db, LOOKUP, 1)
        db.rollback()
        assert value(db, LOOKUP, 11) is None
        db.rollback()
    finally:
        db.autocommit = True


@check
def batches(db):
    rows = [(number, str(number)) for number in range(100, 300)]
    with db.cursor() as cursor:
        extras.execute_values(cursor, f"INSERT INTO {TABLE} VALUES %s", rows)
    assert value(db, f"SELECT count(*) FROM {TABLE} WHERE id >= 100") == 200
    run(db, f"DELETE FROM {TABLE} WHERE id >= 100")


@check
def copy_in_and_out(db):
    rows = "".join(f"{number}\trow {number}\n" for number in range(100, 1100))
    target = io.StringIO()
    with db.cursor() as cursor:
        cursor.copy_expert(f"COPY {TABLE} FROM STDIN", io.StringIO(rows))
        cursor.copy_expert(f"COPY (SELECT * FROM {TABLE} WHERE id >= 100 ORDER BY id) TO STDOUT", target)
        expect(errors.UniqueViolation, cursor.copy_expert, f"COPY {TABLE} FROM STDIN", io.StringIO(rows))
    assert target.getvalue() == rows
    run(db, f"DELETE FROM {TABLE} WHERE id >= 100")


@check
def cursor_in_a_transaction(db):
    db.autocommit = False
    try:
        with db.cursor(name="counting") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT generate_series(1, %s)", [250])
            assert sum(1 for _ in cursor) == 250
        db.commit()
    finally:
        db.autocommit = True


def main():
    report = Report()
    db = connect()
    run(db, f"DROP TABLE IF EXISTS {TABLE}")
    run(db, DDL.format(table=TABLE))
    run(db, f"INSERT INTO {TABLE} VALUES (1, 'one'), (2, 'two')")
    for function in CHECKS:
        try:
            function(db)
            report.ok(function)
        except Exception:
            report.bad(function)
            db.close()
            db = connect()
    run(db, f"DROP TABLE {TABLE}")
    db.close()
    report.finish()


main()
