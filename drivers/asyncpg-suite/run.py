"""Runs tests of asyncpg's own against a running server: of its statement cache, and of what it relies on besides.

Its argument is asyncpg's unpacked source distribution, for the tests only: the library is the
installed one, whose test helpers use a running server if `PGHOST` names one.
"""

import importlib.util
import os
import sys
import types
import unittest

# Files with the names of tests; none stands for all.
TESTS = [
    ("test_cache_invalidation", []),
    ("test_prepare", ["test_prepare_explicitly_named"]),
    ("test_connect", ["test_get_settings_01"]),
    # `test_listen_02` compares the process ID of another session, which no pooler can know.
    ("test_listeners", ["test_listen_01"]),
]


# `test_connect` imports it, to skip tests that are not run here.
distro = types.ModuleType("distro")
distro.id = lambda: ""
sys.modules.setdefault("distro", distro)


def load(source, name):
    location = os.path.join(source, "tests", f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, location)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def main(source):
    suite = unittest.TestSuite()
    for name, wanted in TESTS:
        tests = list(each(load(source, name)))
        chosen = [test for test in tests if not wanted or test._testMethodName in wanted]
        if len(chosen) < max(len(wanted), 1):
            sys.exit(f"{name} has no longer all of {wanted}")
        suite.addTests(chosen)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed or not result.testsRun else 0)


main(sys.argv[1])
