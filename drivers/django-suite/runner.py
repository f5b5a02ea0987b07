"""Prints what became of each test of Django, under the name of its class."""

import unittest

from django.test.runner import DiscoverRunner


class Result(unittest.TestResult):
    """Results by class. A test that leaves out some of its parts passes."""

    def __init__(self, *arguments, **options):
        super().__init__()
        self.classes = {}

    def note(self, test, outcome):
        kind, _, name = test.id().rpartition(".")
        self.classes.setdefault(kind, {})[name] = outcome

    def addSuccess(self, test):
        self.note(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "left out")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.note(test, "fails as expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "passes unexpectedly")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, f"fails: {error[1]}")

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, f"fails: {error[0].__name__}: {error[1]}")

    def addSubTest(self, test, part, error):
        super().addSubTest(test, part, error)
        if error is not None:
            self.note(test, f"fails: {error[1]}")


class Runner(DiscoverRunner):
    def run_suite(self, suite, **options):
        result = Result()
        suite.run(result)
        for kind in sorted(result.classes):
            print(f"= {kind}")
            for name, outcome in sorted(result.classes[kind].items()):
                print(name, " ".join(outcome.split()))
        return result
