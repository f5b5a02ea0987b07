"""A tool's first real work, as its users write it: `tools.py TOOL`.

The server that libpq's environment variables name is PostgreSQL or SQLite in Refrain: both must
give what is written here.
"""

import importlib
import os
import sys

from checks import CHECKS, Report

SQLALCHEMY = "postgresql+{driver}://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}"


def url(driver="psycopg"):
    """Returns SQLAlchemy's URL of the server."""
    return SQLALCHEMY.format(driver=driver, **os.environ)


def main():
    importlib.import_module("tool_" + sys.argv[1])
    report = Report()
    for function in CHECKS:
        try:
            function()
            report.ok(function)
        except Exception:
            report.bad(function)
    report.finish()


if __name__ == "__main__":
    main()
