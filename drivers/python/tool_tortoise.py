"""Tortoise on asyncpg: schemas with comments, relations, and queries by parts of dates."""

import asyncio
import datetime
import os

from tortoise import Tortoise, fields
from tortoise.exceptions import IntegrityError
from tortoise.expressions import F, Q
from tortoise.functions import Count
from tortoise.models import Model
from tortoise.transactions import in_transaction

from checks import check


class User(Model):
    id = fields.IntField(primary_key=True)
    email = fields.CharField(max_length=100, unique=True, description="the address")
    active = fields.BooleanField(default=True)
    at = fields.DatetimeField(auto_now_add=True)
    data = fields.JSONField(null=True)
    score = fields.FloatField(null=True)

    class Meta:
        table = "tt_user"
        table_description = "people * of all kinds"


class Tag(Model):
    id = fields.BigIntField(primary_key=True)
    name = fields.CharField(max_length=20)

    class Meta:
        table = "tt_tag"


class Post(Model):
    id = fields.UUIDField(primary_key=True)
    user = fields.ForeignKeyField("models.User", related_name="posts", on_delete=fields.CASCADE)
    title = fields.CharField(max_length=50, db_index=True)
    tags = fields.ManyToManyField("models.Tag", related_name="posts", through="tt_post_tag")

    class Meta:
        table = "tt_post"


def run(work):
    """Runs a check with a connection."""

    async def with_connection():
        server = "postgres://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ)
        await Tortoise.init(db_url=server, modules={"models": [__name__]})
        try:
            await work(Tortoise.get_connection("default"))
        finally:
            await Tortoise.close_connections()

    def checked():
        asyncio.run(with_connection())

    checked.__name__ = work.__name__
    return check(checked)


@run
async def creates_its_tables_twice(db):
    for _ in range(2):
        await Tortoise.generate_schemas(safe=True)
    text = "SELECT obj_description('tt_user'::regclass, 'pg_class') AS told"
    _, rows = await db.execute_query(text)
    assert rows[0]["told"] == "people * of all kinds"


@run
async def stores_objects_with_their_relations(_):
    user = await User.create(email="a@x", data={"k": 1}, score=1.5)
    await User.bulk_create([User(email="b@x"), User(email="c@x")])
    post = await Post.create(user=user, title="t")
    await post.tags.add(await Tag.create(name="g"))
    found = await User.all().prefetch_related("posts__tags").order_by("id")
    assert [(it.email, len(it.posts)) for it in found] == [("a@x", 1), ("b@x", 0), ("c@x", 0)]


@run
async def is_told_of_a_duplicate(_):
    try:
        await User.create(email="a@x")
    except IntegrityError as error:
        assert 'unique constraint "tt_user_email_key"' in str(error)
    else:
        raise AssertionError("nothing was refused")


@run
async def groups_and_filters(_):
    counted = await User.annotate(n=Count("posts")).order_by("id").values_list("email", "n")
    assert counted == [("a@x", 1), ("b@x", 0), ("c@x", 0)]
    found = User.filter(Q(email__icontains="A@") | Q(id__in=[2])).order_by("id")
    assert await found.values_list("email", flat=True) == ["a@x", "b@x"]
    year = datetime.datetime.now(datetime.UTC).year
    assert await User.filter(at__year=year).count() == 3


@run
async def locks_and_updates_a_row(_):
    async with in_transaction() as own:
        user = await User.filter(id=1).using_db(own).select_for_update().first()
        await User.filter(id=user.id).using_db(own).update(score=F("score") + 1)
    assert (await User.get(id=1)).score == 2.5


@run
async def deletes_and_drops(db):
    assert await User.filter(email="a@x").delete() == 1
    assert await Post.all().count() == 0
    await db.execute_script("DROP TABLE tt_post_tag, tt_post, tt_user, tt_tag CASCADE")
