"""pandas: tables from frames, and frames from tables."""

import pandas
from sqlalchemy import create_engine, text

from checks import check
from tools import url

engine = create_engine(url())
TABLE = "tool_frame"
frame = pandas.DataFrame(
    {
        "a": [1, 2, 3],
        "b": [1.5, None, 3.0],
        "c": ["x", "y", None],
        "d": pandas.to_datetime(["2024-01-01 00:00:00", "2024-01-02 03:04:05", None]),
        "e": [True, False, True],
    }
)


@check
def replaces_a_table():
    for index in (True, False):
        assert frame.to_sql(TABLE, engine, index=index, if_exists="replace") is not None
    read = pandas.read_sql(f"SELECT * FROM {TABLE} ORDER BY a", engine)
    assert list(read.columns) == ["a", "b", "c", "d", "e"]
    assert read["a"].tolist() == [1, 2, 3] and read["e"].tolist() == [True, False, True]
    assert read["b"].isna().tolist() == [False, True, False]
    assert read["d"][1] == pandas.Timestamp("2024-01-02 03:04:05")


@check
def appends_rows_with_one_statement():
    frame.to_sql(TABLE, engine, index=False, if_exists="append", method="multi")
    assert len(pandas.read_sql_table(TABLE, engine)) == 6


@check
def refuses_to_overwrite():
    try:
        frame.to_sql(TABLE, engine)
    except ValueError:
        return
    raise AssertionError("the table was overwritten")


@check
def reads_in_chunks_and_by_parameter():
    chunks = pandas.read_sql(f"SELECT * FROM {TABLE}", engine, chunksize=4)
    assert [len(chunk) for chunk in chunks] == [4, 2]
    query = text(f"SELECT * FROM {TABLE} WHERE a = :a")
    assert len(pandas.read_sql(query, engine, params={"a": 1})) == 2
    with engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {TABLE}"))
