"""SQLModel: tables, relationships, errors, and a locked row."""

import datetime
import uuid

from sqlalchemy.exc import IntegrityError
from sqlmodel import Field, Relationship, Session, SQLModel, create_engine, func, select

from checks import check
from tools import url


class Team(SQLModel, table=True):
    __tablename__ = "sm_team"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    heroes: list["Hero"] = Relationship(back_populates="team")


class Hero(SQLModel, table=True):
    __tablename__ = "sm_hero"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(index=True)
    age: int | None = None
    uid: uuid.UUID = Field(default_factory=uuid.uuid4)
    at: datetime.datetime = Field(default_factory=lambda: datetime.datetime.now(datetime.UTC))
    team_id: int | None = Field(default=None, foreign_key="sm_team.id")
    team: Team | None = Relationship(back_populates="heroes")


engine = create_engine(url())


@check
def creates_its_tables_twice():
    SQLModel.metadata.drop_all(engine)
    for _ in range(2):
        SQLModel.metadata.create_all(engine)


@check
def stores_objects_with_their_relationships():
    with Session(engine) as session:
        team = Team(name="A")
        session.add_all([Hero(name="x", age=3, team=team), Hero(name="y")])
        session.commit()
        assert [hero.name for hero in session.exec(select(Team)).one().heroes] == ["x"]


def refused(row):
    """Returns what psycopg tells of the error of a row."""
    with Session(engine) as session:
        session.add(row)
        try:
            session.commit()
        except IntegrityError as error:
            diag = error.orig.diag
            return diag.sqlstate, diag.table_name, diag.constraint_name, diag.message_detail


@check
def is_told_of_violated_constraints():
    duplicate = "Key (name)=(A) already exists."
    assert refused(Team(name="A")) == ("23505", "sm_team", "sm_team_name_key", duplicate)
    missing = 'Key (team_id)=(99) is not present in table "sm_team".'
    assert refused(Hero(name="z", team_id=99)) == ("23503", "sm_hero", "sm_hero_team_id_fkey", missing)


@check
def locks_and_updates_a_row():
    with Session(engine) as session:
        hero = session.exec(select(Hero).where(Hero.name == "y").with_for_update()).one()
        hero.age = 5
        session.commit()
        session.refresh(hero)
        assert hero.age == 5


@check
def computes_with_dates():
    year = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    with Session(engine) as session:
        later = func.date_trunc("year", func.max(Hero.at)) >= year
        assert session.exec(select(func.count(), func.max(Hero.age), later)).one() == (2, 5, True)
        recent = select(func.count()).where(func.extract("year", Hero.at) > 2000)
        assert session.exec(recent).one() == 2


@check
def drops_its_tables():
    SQLModel.metadata.drop_all(engine)
