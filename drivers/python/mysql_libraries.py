"""How each client library of MySQL connects, and what it calls things.

`MYSQL_HOST` and `MYSQL_PORT` name the server, or `MYSQL_SOCKET`. With `MYSQL_CA`, the file of an
authority, the connection is encrypted, else it is in the clear.
"""

import asyncio
import inspect
import os

USER = {"user": "app", "password": "secret"}
SCHEMA = "shop"
SOCKET = os.environ.get("MYSQL_SOCKET")
CA = os.environ.get("MYSQL_CA")
ADDRESS = {"host": os.environ.get("MYSQL_HOST"), "port": int(os.environ.get("MYSQL_PORT", 0))}
# Bits of the protocol's capabilities.
FOUND_ROWS, MULTI_STATEMENTS = 1 << 1, 1 << 16


def place(socket="unix_socket"):
    return {socket: SOCKET} if SOCKET else ADDRESS


class Library:
    """A library. What a check asks for and the library lacks, it says in `lacks`."""

    lacks = ()
    name = ""

    def arguments(self, several, local, found):
        raise NotImplementedError

    def module(self):
        raise NotImplementedError

    def connect(self, *, several=False, local=False, found=False):
        db = self.module().connect(**self.arguments(several, local, found))
        self.autocommit(db, True)
        return db

    def autocommit(self, db, value):
        db.autocommit(value)

    def cursor(self, db):
        return db.cursor()

    def stream(self, db):
        """Returns a cursor that does not keep all rows."""
        raise NotImplementedError

    def reset(self, db):
        """Has the session forget what it has set."""
        raise NotImplementedError

    def call(self, cursor, procedure, values):
        """Calls a procedure and returns its results."""
        cursor.execute(f"CALL {procedure}({', '.join(['%s'] * len(values))})", values)
        return every_result(cursor)

    def error(self, error):
        return error.args[:2]

    def pool(self, size):
        """Returns functions that take a connection and give it back."""
        raise NotImplementedError


def every_result(cursor):
    results = []
    while True:
        results.append([tuple(row) for row in cursor.fetchall()] if cursor.description else cursor.rowcount)
        if not cursor.nextset():
            return results


class PyMySQL(Library):
    """Text only."""

    lacks = ("reset", "pool")

    def module(self):
        import pymysql

        return pymysql

    def arguments(self, several, local, found):
        flags = (MULTI_STATEMENTS if several else 0) | (FOUND_ROWS if found else 0)
        tls = {"ssl_ca": CA, "ssl_verify_identity": True} if CA else {"ssl_disabled": True}
        return {**USER, **place(), **tls, "database": SCHEMA, "client_flag": flags, "local_infile": local}

    def stream(self, db):
        from pymysql.cursors import SSCursor

        return db.cursor(SSCursor)


class MysqlClient(Library):
    """libmariadb; text only. It reads bytes that it has sent as a text."""

    lacks = ("reset", "pool", "bytes")

    def module(self):
        import MySQLdb

        return MySQLdb

    def arguments(self, several, local, found):
        tls = {"ssl_mode": "VERIFY_CA", "ssl": {"ca": CA}} if CA else {"ssl_mode": "DISABLED"}
        flags = FOUND_ROWS if found else 0
        more = {"client_flag": flags, "multi_statements": several, "local_infile": int(local)}
        return {**USER, **place(), **tls, **more, "database": SCHEMA}

    def stream(self, db):
        from MySQLdb.cursors import SSCursor

        return db.cursor(SSCursor)


class Connector(Library):
    """Oracle's library, in Python alone. Its other half wants a later OpenSSL than Debian 12 has."""

    def module(self):
        import mysql.connector

        return mysql.connector

    def arguments(self, several, local, found):
        tls = {"ssl_ca": CA, "ssl_verify_cert": True} if CA else {"ssl_disabled": True}
        flags = [FOUND_ROWS if found else -FOUND_ROWS]
        more = {"use_pure": True, "allow_local_infile": local, "client_flags": flags}
        return {**USER, **place(), **tls, **more, "database": SCHEMA}

    def autocommit(self, db, value):
        db.autocommit = value

    def cursor(self, db):
        return db.cursor(buffered=True)

    def stream(self, db):
        return db.cursor(buffered=False)

    def reset(self, db):
        db.reset_session()
        db.autocommit = True

    def call(self, cursor, procedure, values):
        back = cursor.callproc(procedure, values)
        return [back] + [result.fetchall() for result in cursor.stored_results()]

    def error(self, error):
        return error.errno, error.sqlstate, error.msg

    def pool(self, size):
        from mysql.connector.pooling import MySQLConnectionPool

        arguments = self.arguments(False, False, False)
        pool = MySQLConnectionPool(pool_name="smoke", pool_size=size, autocommit=True, **arguments)
        return pool.get_connection, lambda db: db.close()


class ConnectorPrepared(Connector):
    """Oracle's library with prepared statements."""

    lacks = ("several", "call", "load", "pool", "reset", "stream")

    def cursor(self, db):
        return db.cursor(prepared=True)


class MariaDb(Library):
    """MariaDB's library over libmariadb."""

    def module(self):
        import mariadb

        return mariadb

    def arguments(self, several, local, found):
        tls = {"ssl_ca": CA, "ssl_verify_cert": True} if CA else {"ssl": False}
        flags = (MULTI_STATEMENTS if several else 0) | (FOUND_ROWS if found else 0)
        more = {"client_flag": flags, "local_infile": local}
        return {**USER, **place(), **tls, **more, "database": SCHEMA}

    def autocommit(self, db, value):
        db.autocommit = value

    def stream(self, db):
        return db.cursor(buffered=False)

    def reset(self, db):
        db.reset()
        db.autocommit = True

    def call(self, cursor, procedure, values):
        cursor.callproc(procedure, values)
        return every_result(cursor)

    def error(self, error):
        return getattr(error, "errno", None), getattr(error, "sqlstate", None), str(error)

    def pool(self, size):
        arguments = {**USER, **place(), "database": SCHEMA, "autocommit": True}
        arguments.update({"ssl_ca": CA, "ssl_verify_cert": True} if CA else {"ssl": False})
        pool = self.module().ConnectionPool(
            pool_name="smoke", pool_size=size, pool_reset_connection=True, pool_validation_interval=0, **arguments
        )
        return pool.get_connection, lambda db: db.close()


class MariaDbBinary(MariaDb):
    """MariaDB's library with prepared statements."""

    lacks = ("several", "call", "load", "pool", "reset", "stream")

    def cursor(self, db):
        return db.cursor(binary=True)


class Waiting:
    """A connection or cursor of an asynchronous library, whose calls are waited for."""

    def __init__(self, inner, loop):
        self.inner, self.loop = inner, loop

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        if not callable(found):
            return found
        return lambda *arguments, **named: self.wait(found(*arguments, **named))

    def wait(self, result):
        if inspect.isawaitable(result):
            result = self.loop.run_until_complete(waited(result))
        own = hasattr(result, "execute") or hasattr(result, "cursor")
        return Waiting(result, self.loop) if own else result


async def waited(result):
    return await result


class Asynchronous(PyMySQL):
    """A library for asyncio, whose calls are PyMySQL's."""

    lacks = ("reset",)

    def arguments(self, several, local, found):
        import ssl

        flags = (MULTI_STATEMENTS if several else 0) | (FOUND_ROWS if found else 0)
        tls = {"ssl": ssl.create_default_context(cafile=CA)} if CA else {}
        return {**USER, **place(), **tls, "db": SCHEMA, "client_flag": flags, "local_infile": local}

    def connect(self, *, several=False, local=False, found=False):
        loop = asyncio.new_event_loop()
        db = loop.run_until_complete(waited(self.module().connect(**self.arguments(several, local, found))))
        db = Waiting(db, loop)
        db.autocommit(True)
        return db

    def stream(self, db):
        return db.cursor(self.stream_class())

    def pool(self, size):
        loop = asyncio.new_event_loop()
        arguments = self.arguments(False, False, False)
        made = self.module().create_pool(minsize=1, maxsize=size, autocommit=True, **arguments)
        pool = loop.run_until_complete(waited(made))
        take = lambda: Waiting(loop.run_until_complete(waited(pool.acquire())), loop)

        def give_back(db):
            given = pool.release(db.inner)
            if inspect.isawaitable(given):
                loop.run_until_complete(waited(given))

        return take, give_back


class Aiomysql(Asynchronous):
    """PyMySQL for asyncio. Its `escape` of bytes is not that of the present PyMySQL."""

    lacks = ("reset", "bytes")

    def module(self):
        import aiomysql

        return aiomysql

    def stream_class(self):
        from aiomysql import SSCursor

        return SSCursor


class Asyncmy(Asynchronous):
    """The same in Cython. It cannot open the file that a server asks for."""

    lacks = ("reset", "load")

    def module(self):
        import asyncmy

        return asyncmy

    def stream_class(self):
        from asyncmy.cursors import SSCursor

        return SSCursor


LIBRARIES = {
    "pymysql": PyMySQL,
    "mysqlclient": MysqlClient,
    "aiomysql": Aiomysql,
    "asyncmy": Asyncmy,
    "connector": Connector,
    "connector-prepared": ConnectorPrepared,
    "mariadb": MariaDb,
    "mariadb-binary": MariaDbBinary,
}
