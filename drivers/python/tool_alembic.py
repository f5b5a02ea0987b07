"""Alembic: revisions made from models, applied, compared again, and taken back."""

import pathlib
import sys
import tempfile

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, inspect, text

from checks import check
from tools import url

folder = pathlib.Path(tempfile.mkdtemp())
sys.path.insert(0, str(folder))
engine = create_engine(url())
config = Config()
config.set_main_option("script_location", str(folder / "migrations"))
config.set_main_option("sqlalchemy.url", url())
config.config_file_name = str(folder / "alembic.ini")
config.stdout = open(folder / "output", "w")
config.print_stdout = lambda *_: None

HEAD = "from sqlalchemy import *\nm = MetaData()\n"
USERS = """Table("tool_users", m, Column("id", Integer, primary_key=True),
    Column("name", String(50), nullable=False, unique=True),
    Column("listed", Boolean, server_default=text("true"), nullable=False){more})
"""
NOTES = """Table("tool_notes", m, Column("id", BigInteger, primary_key=True),
    Column("user_id", Integer, ForeignKey("tool_users.id")),
    Column("at", DateTime(timezone=True)), Index("tool_notes_at", "at"))
"""


def models(source):
    (folder / "tool_models.py").write_text(HEAD + source)
    sys.modules.pop("tool_models", None)
    cached = folder / "__pycache__"
    for file in cached.glob("tool_models*"):
        file.unlink()


def operations():
    """Makes a revision of the models. Returns its operations, upwards."""
    script = command.revision(config, "step", autogenerate=True)
    body = pathlib.Path(script.path).read_text().split("def downgrade")[0]
    lines = [line.strip() for line in body.splitlines()]
    return [line.split("(")[0] for line in lines if line.startswith("op.")]


@check
def starts_with_an_environment():
    with engine.begin() as connection:
        for table in ("tool_notes", "tool_users", "alembic_version"):
            connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
    command.init(config, str(folder / "migrations"))
    env = folder / "migrations/env.py"
    source = env.read_text().replace("fileConfig(config.config_file_name)", "pass")
    source = source.replace(
        "target_metadata = None",
        "import tool_models\ntarget_metadata = tool_models.m\n"
        "mine = lambda name, kind, _: kind != 'table' or name.startswith('tool_')",
    )
    env.write_text(
        source.replace(
            "target_metadata=target_metadata\n", "target_metadata=target_metadata, include_name=mine\n"
        )
    )


@check
def makes_a_first_revision_and_applies_it():
    models(USERS.format(more=""))
    assert operations() == ["op.create_table"]
    command.upgrade(config, "head")
    assert inspect(engine).has_table("tool_users")


@check
def finds_nothing_new_behind_it():
    assert operations() == []
    command.upgrade(config, "head")
    command.check(config)


@check
def finds_a_new_column_and_a_new_table():
    models(USERS.format(more=', Column("age", Integer)') + NOTES)
    found = operations()
    assert found == ["op.create_table", "op.create_index", "op.add_column"], found
    command.upgrade(config, "head")
    columns = [column["name"] for column in inspect(engine).get_columns("tool_users")]
    assert columns == ["id", "name", "listed", "age"]


@check
def finds_nothing_new_behind_that():
    assert operations() == []
    command.upgrade(config, "head")
    command.check(config)
    command.current(config)
    command.history(config)


@check
def takes_revisions_back():
    command.downgrade(config, "-2")
    assert not inspect(engine).has_table("tool_notes")
    command.upgrade(config, "head")
    assert inspect(engine).has_table("tool_notes")
    command.downgrade(config, "base")
    assert not inspect(engine).has_table("tool_users")
