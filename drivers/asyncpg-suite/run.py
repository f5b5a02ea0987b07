"""Runs asyncpg's own tests of its statement cache against a running server.

Its argument is asyncpg's unpacked source distribution, for the tests only: the library is the
installed one, whose test helpers use a running server if `PGHOST` names one.
"""

import importlib.util
import os
import sys
import unittest

TESTS = "tests/test_cache_invalidation.py"


def main(source):
    location = os.path.join(source, TESTS)
    spec = importlib.util.spec_from_file_location("test_cache_invalidation", location)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed or not result.testsRun else 0)


main(sys.argv[1])
