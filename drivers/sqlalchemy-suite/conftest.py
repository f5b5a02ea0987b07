"""Lets SQLAlchemy's own tests of dialects run, and prints what became of each under its class."""

import pytest
from sqlalchemy.dialects import registry  # noqa: F401

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: F401,F403,E402
