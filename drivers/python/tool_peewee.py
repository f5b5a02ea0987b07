"""peewee: models, queries, changes of tables, and what introspection finds."""

import datetime
import os

from peewee import (
    JOIN,
    BooleanField,
    CharField,
    DateField,
    DateTimeField,
    FloatField,
    ForeignKeyField,
    IntegrityError,
    Model,
    PostgresqlDatabase,
    fn,
)
from playhouse.migrate import PostgresqlMigrator, migrate
from playhouse.reflection import generate_models

from checks import check

database = PostgresqlDatabase(
    os.environ["PGDATABASE"],
    host=os.environ["PGHOST"],
    port=int(os.environ["PGPORT"]),
    user=os.environ["PGUSER"],
)


class Person(Model):
    name = CharField(unique=True)
    born = DateField(null=True)

    class Meta:
        database = database
        table_name = "tool_person"


class Pet(Model):
    owner = ForeignKeyField(Person, backref="pets", on_delete="CASCADE")
    kind = CharField(index=True)
    at = DateTimeField(default=datetime.datetime.now)
    weight = FloatField(null=True)
    tame = BooleanField(default=True)

    class Meta:
        database = database
        table_name = "tool_pet"


@check
def creates_its_tables_twice():
    database.drop_tables([Pet, Person])
    for _ in range(2):
        database.create_tables([Person, Pet])
    assert Pet.table_exists() and {"tool_pet", "tool_person"} <= set(database.get_tables())


@check
def finds_columns_and_keys():
    columns = database.get_columns("tool_pet")
    assert [(one.name, one.data_type, one.null, one.primary_key) for one in columns] == [
        ("id", "integer", False, True),
        ("owner_id", "integer", False, False),
        ("kind", "character varying", False, False),
        ("at", "timestamp without time zone", False, False),
        ("weight", "real", True, False),
        ("tame", "boolean", False, False),
    ]
    assert database.get_primary_keys("tool_pet") == ["id"]
    (key,) = database.get_foreign_keys("tool_pet")
    assert (key.column, key.dest_table, key.dest_column) == ("owner_id", "tool_person", "id")
    assert (key.name, key.on_delete) == ("tool_pet_owner_id_fkey", "CASCADE")


@check
def finds_indexes():
    found = {one.name: one for one in database.get_indexes("tool_pet")}
    assert set(found) == {"tool_pet_pkey", "pet_kind", "pet_owner_id"}
    assert found["pet_kind"].columns == ["kind"] and found["tool_pet_pkey"].unique
    written = "CREATE INDEX pet_kind ON public.tool_pet USING btree (kind)"
    assert found["pet_kind"].sql == written


@check
def writes_and_reads_rows():
    ann = Person.create(name="Ann")
    Pet.create(owner=ann, kind="cat", weight=1.5)
    Pet.insert_many([dict(owner=ann, kind=kind) for kind in "abc"]).execute()
    pets = Pet.select(Pet, Person).join(Person).order_by(Pet.id)
    assert [(pet.kind, pet.owner.name) for pet in pets] == [(k, "Ann") for k in ("cat", *"abc")]
    count = fn.COUNT(Pet.id).alias("count")
    people = Person.select(Person, count).join(Pet, JOIN.LEFT_OUTER).group_by(Person)
    assert [(person.name, person.count) for person in people] == [("Ann", 4)]


@check
def changes_rows():
    assert Pet.update(weight=Pet.weight + 1).where(Pet.kind == "cat").execute() == 1
    assert Pet.get(Pet.kind == "cat").weight == 2.5
    assert Person.get_or_create(name="Ann")[1] is False
    born = datetime.date(2000, 1, 1)
    target = dict(conflict_target=[Person.name], update={Person.born: born})
    Person.insert(name="Ann").on_conflict(**target).execute()
    assert Person.get().born == born


@check
def tells_a_duplicate_key():
    try:
        with database.atomic():
            Person.create(name="Ann")
    except IntegrityError:
        return
    raise AssertionError("the key was written twice")


@check
def changes_tables():
    change = PostgresqlMigrator(database)
    migrate(change.add_column("tool_pet", "color", CharField(default="red")))
    migrate(change.rename_column("tool_pet", "color", "hue"))
    migrate(change.drop_not_null("tool_pet", "kind"))
    migrate(change.add_index("tool_pet", ("hue", "kind"), False))
    columns = {one.name: one for one in database.get_columns("tool_pet")}
    assert columns["kind"].null and not columns["hue"].null
    assert [row[0] for row in database.execute_sql("SELECT DISTINCT hue FROM tool_pet")] == ["red"]


@check
def makes_models_of_tables():
    found = generate_models(database, table_names=["tool_pet", "tool_person"])
    assert sorted(found) == ["tool_person", "tool_pet"]
    assert {"owner", "kind", "hue"} <= set(found["tool_pet"]._meta.fields)


@check
def drops_its_tables():
    assert Pet.delete().execute() == 4
    database.drop_tables([Pet, Person])
    assert "tool_pet" not in database.get_tables()
