"""psycopg 3: prepares a statement the fifth time it runs, or when told to; has a pipeline mode."""

import datetime
import decimal
import threading
import uuid

import psycopg
from checks import CHECKS, DDL, Report, check
from psycopg import errors

TABLE = "smoke_psycopg"
LOOKUP = f"SELECT name FROM {TABLE} WHERE id = %s"


def connect():
    return psycopg.connect("", autocommit=True)


def value(db, sql, *parameters, **options):
    row = db.execute(sql, parameters, **options).fetchone()
    return row and row[0]


def expect(error, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


@check
def lookups(db):
    for _ in range(20):
        assert value(db, LOOKUP, 1) == "one"


@check
def lookups_prepared_at_once(db):
    for _ in range(5):
        assert value(db, LOOKUP, 2, prepare=True) == "two"


@check
def lookups_in_transactions(db):
    for _ in range(8):
        with db.transaction():
            assert value(db, LOOKUP, 1) == "one"
            assert value(db, LOOKUP, 2) == "two"


@check
def parameters_of_many_types(db):
    now = datetime.datetime.now(datetime.timezone.utc)
    values = [
        7, -8, 1 << 60, 1.5, True, "ä€", b"\0\xff", decimal.Decimal("12.340"), uuid.uuid4(), now, now.date(),
        datetime.timedelta(days=1, seconds=5), [1, None, 3],
    ]
    for binary in (False, True):
        for sent in values:
            assert db.execute("SELECT %s", [sent], binary=binary).fetchone()[0] == sent, sent
    assert value(db, "SELECT %s::int", None) is None


@check
def a_megabyte_each_way(db):
    text = "x" * (1 << 20)
    assert value(db, "SELECT %s::text", text) == text


@check
def insert_returning(db):
    assert value(db, f"INSERT INTO {TABLE} VALUES (%s, %s) RETURNING id", 10, "ten") == 10
    assert db.execute(f"DELETE FROM {TABLE} WHERE id = %s", [10]).rowcount == 1


@check
def errors_leave_the_connection_usable(db):
    for _ in range(8):
        insert = f"INSERT INTO {TABLE} VALUES (%s, %s)"
        expect(errors.UniqueViolation, db.execute, insert, (1, "again"))
        expect(errors.DivisionByZero, db.execute, "SELECT 1 / %s", [0])
        expect(errors.SyntaxError, db.execute, "SELEC 1")
        assert value(db, LOOKUP, 1) == "one"


@check
def rollback_undoes(db):
    with db.transaction() as transaction:
        db.execute(f"INSERT INTO {TABLE} VALUES (11, 'eleven')")
        raise psycopg.Rollback(transaction)
    assert value(db, LOOKUP, 11) is None


@check
def failed_transaction_refuses_until_rolled_back(db):
    db.execute("BEGIN")
    expect(errors.DivisionByZero, db.execute, "SELECT 1 / 0")
    expect(errors.InFailedSqlTransaction, db.execute, LOOKUP, [1])
    db.execute("ROLLBACK")
    assert value(db, LOOKUP, 1) == "one"


@check
def pipelines(db):
    with db.pipeline():
        cursors = [db.execute("SELECT %s::int", [number]) for number in range(100)]
        assert [cursor.fetchone()[0] for cursor in cursors] == list(range(100))


@check
def an_error_in_a_pipeline_spares_the_next_sync(db):
    refusals = []

    def attempt(step):
        # The error may be there at any later step: it comes when the server has it.
        try:
            step()
        except psycopg.Error as error:
            refusals.append(error)

    with db.pipeline() as pipeline:
        before = db.execute("SELECT 1")
        pipeline.sync()
        attempt(lambda: db.execute("SELECT 1 / %s", [0]))
        attempt(lambda: db.execute("SELECT 2"))
        attempt(pipeline.sync)
        after = db.execute("SELECT 3")
        pipeline.sync()
        assert before.fetchone()[0] == 1 and after.fetchone()[0] == 3
    assert isinstance(refusals[0], errors.DivisionByZero)


@check
def batches(db):
    rows = [(number, str(number)) for number in range(100, 300)]
    with db.transaction():
        db.cursor().executemany(f"INSERT INTO {TABLE} VALUES (%s, %s)", rows)
    assert value(db, f"SELECT count(*) FROM {TABLE} WHERE id >= 100") == 200
    db.execute(f"DELETE FROM {TABLE} WHERE id >= 100")


@check
def copy_in_and_out(db):
    with db.cursor().copy(f"COPY {TABLE} FROM STDIN") as copy:
        for number in range(100, 1100):
            copy.write_row((number, f"row {number}"))
    with db.cursor().copy(f"COPY {TABLE} TO STDOUT") as copy:
        assert sum(1 for _ in copy.rows()) == 1002
    db.execute(f"DELETE FROM {TABLE} WHERE id >= 100")


@check
def a_copy_given_up(db):
    def give_up():
        with db.cursor().copy(f"COPY {TABLE} FROM STDIN") as copy:
            copy.write_row((100, "never"))
            raise KeyError("given up")

    expect(KeyError, give_up)
    assert value(db, LOOKUP, 100) is None


@check
def cursor_in_a_transaction(db):
    with db.transaction(), db.cursor(name="counting") as cursor:
        cursor.execute("SELECT generate_series(1, %s)", [250])
        assert len(cursor.fetchmany(100)) == 100
        assert len(cursor.fetchall()) == 150


@check
def statements_closed_and_prepared_again(db):
    db.prepared_max = 3
    for turn in range(3):
        for number in range(10):
            assert value(db, f"SELECT %s::int + {number}", turn, prepare=True) == turn + number
    db.prepared_max = 100


@check
def many_clients(_):
    failures = []

    def client(number):
        try:
            with connect() as db:
                for turn in range(20):
                    sent = number * 1000 + turn
                    assert value(db, "SELECT %s::int + 0", sent) == sent
                    with db.transaction():
                        assert value(db, LOOKUP, 1) == "one"
                        assert value(db, "SELECT %s::text", str(sent)) == str(sent)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=client, args=[number]) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]


def main():
    report = Report()
    db = connect()
    db.execute(f"DROP TABLE IF EXISTS {TABLE}")
    db.execute(DDL.format(table=TABLE))
    db.execute(f"INSERT INTO {TABLE} VALUES (1, 'one'), (2, 'two')")
    for function in CHECKS:
        try:
            function(db)
            report.ok(function)
        except Exception:
            report.bad(function)
            db.close()
            db = connect()
    db.execute(f"DROP TABLE {TABLE}")
    db.close()
    report.finish()


main()
