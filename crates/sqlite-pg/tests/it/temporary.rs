//! Temporary objects that have the name of a permanent one.

use crate::client::Place;

#[test]
fn a_statement_for_a_permanent_table_stays_with_it() {
    for (text, sent) in [
        ("DELETE FROM public.t WHERE a = $1", "DELETE 1"),
        ("UPDATE public.t SET a = 2 WHERE a = $1", "UPDATE 1"),
        ("INSERT INTO public.t SELECT 3 WHERE 1 = $1", "INSERT 0 1"),
    ] {
        let place = Place::new();
        let mut client = place.client();
        client.query("CREATE TABLE t (a INT)");
        client.query("INSERT INTO t VALUES (1)");
        assert_eq!(client.parse("p", text, &[23]).sync(), ["parsed", "ready I"]);
        client.query("CREATE TEMP TABLE t (a INT)");
        client.query("INSERT INTO pg_temp.t VALUES (1)");
        let run = client.bind(("", "p"), 0, &[Some(b"1")], 0).execute("", 0).sync();
        assert_eq!(run, ["bound", sent, "ready I"], "{text}");
        assert_eq!(client.first("SELECT count(*), sum(a) FROM pg_temp.t"), "row 1|1", "{text}");
        assert_ne!(client.first("SELECT count(*), sum(a) FROM public.t"), "row 1|1", "{text}");
    }
}

#[test]
fn a_query_of_a_permanent_table_stays_with_it() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (a INT)");
    client.query("INSERT INTO t VALUES (1)");
    let text = "SELECT a FROM public.t";
    assert_eq!(client.parse("p", text, &[]).sync(), ["parsed", "ready I"]);
    let run = client.bind(("", "p"), 0, &[], 0).execute("", 0).sync();
    assert_eq!(run[1], "row 1");
    client.query("CREATE TEMP TABLE t (a INT)");
    client.query("INSERT INTO pg_temp.t VALUES (7)");
    for _ in 0..2 {
        let run = client.bind(("", "p"), 0, &[], 0).execute("", 0).sync();
        assert_eq!(run[1], "row 1");
        assert_eq!(client.first("SELECT a FROM t"), "row 7");
        assert_eq!(client.first(text), "row 1");
    }
    client.query("DROP TABLE pg_temp.t");
    let run = client.bind(("", "p"), 0, &[], 0).execute("", 0).sync();
    assert_eq!(run[1], "row 1");
}

#[test]
fn drop_takes_the_objects_of_both_schemas() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TABLE t (a INT)", "CREATE TABLE"),
        ("CREATE TEMP TABLE t (a INT)", "CREATE TABLE"),
        ("DROP TABLE IF EXISTS public.t, pg_temp.t", "DROP TABLE"),
        ("SELECT * FROM pg_temp.t", "error 42P01"),
        ("SELECT * FROM public.t", "error 42P01"),
    ]);
}

#[test]
fn cascade_takes_no_view_of_another_table() {
    let place = Place::new();
    let mut client = place.client();
    client.answers_first(&[
        ("CREATE TABLE u (c INT)", "CREATE TABLE"),
        ("CREATE TEMP TABLE u (c INT)", "CREATE TABLE"),
        ("INSERT INTO u VALUES (5)", "INSERT 0 1"),
        ("CREATE TEMP VIEW w AS SELECT c FROM u", "CREATE VIEW"),
        ("DROP TABLE public.u CASCADE", "error 0A000"),
        ("SELECT c FROM w", "row 5"),
        ("DROP VIEW w", "DROP VIEW"),
        ("DROP TABLE public.u CASCADE", "DROP TABLE"),
        ("SELECT c FROM u", "row 5"),
    ]);
}
