"""The tests that SQLAlchemy has for the dialects of others."""

from sqlalchemy.testing.suite import *  # noqa: F401,F403
