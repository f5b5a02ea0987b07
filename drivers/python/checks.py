"""Runs the checks of one client library and counts them."""

import sys
import traceback

CHECKS = []

# One table for each script, so that scripts do not disturb each other.
DDL = "CREATE TABLE {table} (id int PRIMARY KEY, name text NOT NULL)"


def check(function):
    """Marks a function as a check; its name says what must hold."""
    CHECKS.append(function)
    return function


class Report:
    """Counts checks as they pass and fail."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def ok(self, function):
        self.passed += 1
        print(f"ok      {function.__name__}")

    def bad(self, function):
        self.failed += 1
        print(f"FAILED  {function.__name__}")
        traceback.print_exc(file=sys.stdout)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)
