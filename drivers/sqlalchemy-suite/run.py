"""Runs SQLAlchemy's own tests of a dialect at the server of MySQL that `MYSQL_HOST` and
`MYSQL_PORT` name.

What fails directly as well is no fault of a proxy, so the program succeeds if the tests ran, and
says of each what became of it.
"""

import os
import re
import sys

import pymysql
import pytest

# Left out: hundreds of pairs of options of the same queries, names of which few are possible, and
# tests that ask no server.
LEFT_OUT = ["ComponentReflection", "BizarroCharacter", "ArgSignature"]
# The tests' own, and others that they look into.
SCHEMAS = ["sqlalchemy", "test_schema", "test_schema_2"]
HERE = os.path.dirname(os.path.abspath(__file__))


class Outcomes:
    """What became of each test, by class."""

    def __init__(self):
        self.classes = {}

    def pytest_runtest_logreport(self, report):
        _, kind, name = report.nodeid.split("::", 2)
        # The name of a class ends with the driver's and with the server's version.
        tests = self.classes.setdefault(re.sub(r"_(mysql|mariadb)\+.*", "", kind), {})
        if report.when == "call" or report.outcome != "passed":
            tests[name] = " ".join([report.outcome, *self.reason(report).split()])

    def reason(self, report):
        if report.outcome != "failed":
            return ""
        crash = getattr(report.longrepr, "reprcrash", None)
        return crash.message if crash else str(report.longrepr)

    def print(self):
        for kind in sorted(self.classes):
            print(f"= {kind}")
            for name, outcome in sorted(self.classes[kind].items()):
                print(name, outcome)


def main():
    outcomes = Outcomes()
    host, port = os.environ["MYSQL_HOST"], os.environ["MYSQL_PORT"]
    with pymysql.connect(host=host, port=int(port), user="app", password="secret") as db:
        for schema in SCHEMAS:
            db.cursor().execute(f"CREATE DATABASE IF NOT EXISTS {schema} CHARACTER SET utf8mb4")
    url = f"mysql+pymysql://app:secret@{host}:{port}/{SCHEMAS[0]}?charset=utf8mb4"
    os.chdir(HERE)
    options = ["-p", "no:cacheprovider", "-p", "no:terminal", "--dropfirst", "--dburi", url]
    options += ["-k", " and ".join(f"not {name}" for name in LEFT_OUT)]
    result = pytest.main([*options, "test_suite.py"], plugins=[outcomes])
    outcomes.print()
    ran = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    sys.exit(0 if result in ran else int(result))


main()
