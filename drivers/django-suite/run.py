"""Runs tests of Django's own at the server of MySQL that `MYSQL_HOST` and `MYSQL_PORT` name.

Its argument is Django's unpacked source distribution, for the tests only: the library is the
installed one. What fails directly as well is no fault of a proxy, so the program succeeds if the
tests ran, and says of each what became of it.
"""

import os
import subprocess
import sys

# Packages of tests: queries of each kind, transactions, locks, tables that change, and what the
# backend reads of the server.
TESTS = [
    "backends",
    "basic",
    "bulk_create",
    "get_or_create",
    "introspection",
    "lookup",
    "select_for_update",
    "transactions",
    "update",
]


def main(source):
    here = os.path.dirname(os.path.abspath(__file__))
    options = ["--settings=settings", "--parallel=1", "--noinput", "--verbosity=0"]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "runtests.py", *options, *TESTS],
        cwd=os.path.join(source, "tests"),
        env={**os.environ, "PYTHONPATH": here, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    # One of tests that fail, two of a program that cannot run them.
    sys.exit(0 if run.returncode in (0, 1) else run.returncode)


main(sys.argv[1])
