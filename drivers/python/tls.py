"""Connections as they are asked for: `tls.py LIBRARY QUERY`.

Each line of the input is one connection, as `name=value` with tabs between. For each, one line is
printed: `in RESULT`, or `refused SQLSTATE MESSAGE`. A connection stays open until the next line.
"""

import asyncio
import sys
import urllib.parse

LIBPQ = {
    "mode": "sslmode",
    "root": "sslrootcert",
    "cert": "sslcert",
    "key": "sslkey",
    "negotiation": "sslnegotiation",
    "binding": "channel_binding",
    "database": "dbname",
    "name": "application_name",
}


class Libpq:
    """psycopg or psycopg2, which pass options on to libpq by its own names."""

    def __init__(self, library):
        self.library, self.open = library, None

    def connect(self, options, query):
        self.open = self.library.connect(
            **{LIBPQ.get(name, name): value for name, value in options.items()}
        )
        cursor = self.open.cursor()
        cursor.execute(query)
        return cursor.fetchone()[0]

    def close(self):
        self.open, open = None, self.open
        if open:
            open.close()


class Asyncpg:
    """asyncpg, which reads libpq's names in a URL."""

    def __init__(self, library):
        self.library, self.open, self.loop = library, None, asyncio.new_event_loop()

    def connect(self, options, query):
        return self.loop.run_until_complete(self.session(options, query))

    async def session(self, options, query):
        place = "{host}:{port}/{database}".format(**options)
        options = {LIBPQ.get(name, name): value for name, value in options.items()}
        url = f"postgres://{place}?{urllib.parse.urlencode(options)}"
        self.open = await self.library.connect(url)
        return await self.open.fetchval(query)

    def close(self):
        self.open, open = None, self.open
        if open:
            self.loop.run_until_complete(open.close())


def library(name):
    if name == "asyncpg":
        import asyncpg

        return Asyncpg(asyncpg)
    return Libpq(__import__(name))


def sqlstate(error):
    for name in ("sqlstate", "pgcode"):
        if getattr(error, name, None):
            return getattr(error, name)
    return "-"


def main():
    driver, query = library(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        driver.close()
        options = dict(part.split("=", 1) for part in line.rstrip("\n").split("\t"))
        try:
            told = f"in {driver.connect(options, query)}"
        except Exception as error:
            message = " / ".join(f"{type(error).__name__}: {error}".split("\n"))
            told = f"refused {sqlstate(error)} {message}"
        print(told, flush=True)
    driver.close()


main()
