"""SQLAlchemy: tables, objects with relations, and what the inspector finds."""

import datetime

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    joinedload,
    mapped_column,
    relationship,
    selectinload,
)

from checks import check
from tools import url

engine = create_engine(url())


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "tool_authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50), unique=True)
    bio: Mapped[str | None] = mapped_column(Text)
    born: Mapped[datetime.date | None]
    active: Mapped[bool] = mapped_column(default=True, server_default=text("true"))
    books: Mapped[list["Book"]] = relationship(
        back_populates="author", cascade="all, delete-orphan", order_by="Book.id"
    )


class Book(Base):
    __tablename__ = "tool_books"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(200), index=True)
    pages: Mapped[int] = mapped_column(
        Integer, CheckConstraint("pages > 0", name="tool_pages_positive")
    )
    price: Mapped[float]
    made: Mapped[datetime.datetime] = mapped_column(server_default=func.now())
    author_id: Mapped[int] = mapped_column(ForeignKey("tool_authors.id", ondelete="CASCADE"))
    author: Mapped[Author] = relationship(back_populates="books")
    __table_args__ = (UniqueConstraint("author_id", "title", name="tool_once"),)


@check
def creates_its_tables_twice():
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    found = inspect(engine)
    assert found.has_table("tool_authors") and not found.has_table("tool_nobody")
    assert {"tool_authors", "tool_books"} <= set(found.get_table_names())
    assert found.get_schema_names() == ["information_schema", "public"]


@check
def finds_columns():
    found = inspect(engine).get_columns("tool_books")
    assert [(one["name"], str(one["type"]), one["nullable"], one["default"]) for one in found] == [
        ("id", "INTEGER", False, "nextval('tool_books_id_seq'::regclass)"),
        ("title", "VARCHAR(200)", False, None),
        ("pages", "INTEGER", False, None),
        ("price", "DOUBLE PRECISION", False, None),
        ("made", "TIMESTAMP", False, "now()"),
        ("author_id", "INTEGER", False, None),
    ]
    active = inspect(engine).get_columns("tool_authors")[4]
    assert (str(active["type"]), active["default"]) == ("BOOLEAN", "true")


@check
def finds_keys_and_constraints():
    found = inspect(engine)
    key = found.get_pk_constraint("tool_books")
    assert (key["name"], key["constrained_columns"]) == ("tool_books_pkey", ["id"])
    (foreign,) = found.get_foreign_keys("tool_books")
    assert foreign["name"] == "tool_books_author_id_fkey"
    assert foreign["constrained_columns"] == ["author_id"]
    assert (foreign["referred_table"], foreign["referred_columns"]) == ("tool_authors", ["id"])
    assert foreign["options"] == {"ondelete": "CASCADE"}
    (once,) = found.get_unique_constraints("tool_books")
    assert (once["name"], once["column_names"]) == ("tool_once", ["author_id", "title"])
    (positive,) = found.get_check_constraints("tool_books")
    assert (positive["name"], positive["sqltext"]) == ("tool_pages_positive", "pages > 0")


@check
def finds_indexes():
    found = {one["name"]: one for one in inspect(engine).get_indexes("tool_books")}
    assert set(found) == {"ix_tool_books_title", "tool_once"}
    assert found["ix_tool_books_title"]["column_names"] == ["title"]
    assert not found["ix_tool_books_title"]["unique"]
    assert found["tool_once"]["duplicates_constraint"] == "tool_once"


@check
def finds_sequences_and_no_comments_views_and_enums():
    found = inspect(engine)
    assert {"tool_authors_id_seq", "tool_books_id_seq"} <= set(found.get_sequence_names())
    assert found.get_table_comment("tool_books") == {"text": None}
    assert found.get_view_names() == [] and found.get_enums() == []


@check
def writes_and_reads_objects():
    with Session(engine) as session:
        books = [Book(title="One", pages=10, price=1.5), Book(title="Two", pages=20, price=2.5)]
        session.add(Author(name="Ann", born=datetime.date(1970, 1, 2), books=books))
        session.add(Author(name="Bob"))
        session.commit()
    with Session(engine) as session:
        ann, bob = session.scalars(select(Author).order_by(Author.id)).all()
        assert (ann.born, bob.born, bob.active) == (datetime.date(1970, 1, 2), None, True)
        assert [book.title for book in ann.books] == ["One", "Two"]


@check
def loads_relations():
    for how in (selectinload, joinedload):
        with Session(engine) as session:
            query = select(Author).options(how(Author.books)).order_by(Author.id)
            found = session.scalars(query).unique().all()
            assert [(one.name, len(one.books)) for one in found] == [("Ann", 2), ("Bob", 0)]


@check
def joins_groups_and_counts():
    with Session(engine) as session:
        query = select(Author.name, func.count(Book.id)).outerjoin(Book).group_by(Author.name)
        found = session.execute(query.order_by(Author.name)).all()
        assert [tuple(row) for row in found] == [("Ann", 2), ("Bob", 0)]
        some = select(Author.name).where(Author.books.any(Book.pages > 15))
        assert session.scalars(some).all() == ["Ann"]
        titles = select(Book.title).where(Book.id.in_([1, 2, 3])).order_by(Book.title.desc())
        assert session.scalars(titles.limit(1).offset(1)).all() == ["One"]


@check
def changes_rows():
    with Session(engine) as session:
        session.execute(update(Book).where(Book.pages > 15).values(price=Book.price * 2))
        session.commit()
        assert session.scalars(select(Book.price).order_by(Book.id)).all() == [1.5, 5.0]
        rows = [dict(title=f"b{n}", pages=n + 1, price=1, author_id=1) for n in range(50)]
        session.execute(insert(Book), rows)
        session.commit()
        assert session.scalar(select(func.count()).select_from(Book)) == 52


@check
def tells_a_duplicate_key():
    try:
        with Session(engine) as session:
            session.add(Author(name="Ann"))
            session.commit()
    except IntegrityError as error:
        assert error.orig.sqlstate == "23505"
    else:
        raise AssertionError("the key was written twice")


@check
def deletes_what_belongs_to_an_object():
    with Session(engine) as session:
        session.delete(session.scalars(select(Author).where(Author.name == "Ann")).one())
        session.commit()
        assert session.scalar(select(func.count()).select_from(Book)) == 0


@check
def reflects_tables():
    found = MetaData()
    found.reflect(engine, only=["tool_authors", "tool_books"])
    books = found.tables["tool_books"]
    assert [column.name for column in books.primary_key] == ["id"]
    assert {key.target_fullname for key in books.foreign_keys} == {"tool_authors.id"}
    assert "ix_tool_books_title" in {index.name for index in books.indexes}


@check
def changes_a_table_that_it_reflected():
    old = Table("tool_books", MetaData(), autoload_with=engine)
    Index("tool_pages", old.c.pages.desc()).create(engine)
    assert "tool_pages" in {index["name"] for index in inspect(engine).get_indexes("tool_books")}
    Base.metadata.drop_all(engine)
    assert not inspect(engine).has_table("tool_books")
