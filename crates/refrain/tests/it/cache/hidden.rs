//! The result cache and what no text shows: objects that functions make.

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

with_both_versions! {
    a_write_to_a_parent_reaches_children_that_a_function_has_made,
}

fn caching(version: Version) -> Proxy {
    let config = Config::over(cluster(version)).pool("pool_size", "8").general("workers", "2");
    // No look behind a call shows what it has made.
    let config = config.pool("track_functions", "\"off\"");
    config.more("[[cache.rules]]\nttl = \"10min\"\n").start()
}

/// Parents and a table whose keys they have, and functions that make children.
const SETUP: &str = "
    drop schema if exists public cascade; create schema public;
    create table other as select 1 as a;
    create table keys (k int primary key); insert into keys select generate_series(0, 99);
    create table parts (k int references keys on update cascade, a int) partition by range (k);
    create table part_0 partition of parts for values from (0) to (10);
    create function make() returns void language plpgsql as $$ begin
        execute 'create table part_1 partition of parts for values from (10) to (20)';
        insert into parts values (10, 0);
    end $$;
    create function make_deep() returns void language plpgsql as $$ begin
        execute 'create table middle partition of parts for values from (10) to (20)
            partition by range (k)';
        execute 'create table part_1 partition of middle for values from (10) to (20)';
        insert into parts values (10, 0);
    end $$;
    create table heirs (k int, a int);
    create function inherit() returns void language plpgsql as $$ begin
        execute 'create table part_1 () inherits (heirs)';
        insert into part_1 values (10, 0);
    end $$;
    create table made (); create function made() returns trigger language plpgsql as
        $$ begin perform make(); return null; end $$;
    create trigger made after insert on made for each row execute function made()";

/// Texts that make a child, each with a write to a parent of it and a read of the child.
const MADE: &[(&str, &str, &str)] = &[
    ("select make()", "update parts set a = a + 1", "select sum(a) from part_1"),
    ("select make()", "insert into parts values (11, 1)", "select count(*) from part_1"),
    ("select make()", "update keys set k = -k", "select sum(k) from part_1"),
    ("insert into made default values", "update parts set a = a + 1", "select a from part_1"),
    ("select make_deep()", "update parts set a = a + 1", "select a from part_1"),
    ("select make_deep()", "update parts set a = a + 1", "select a from middle"),
    ("select inherit()", "update heirs set a = a + 1", "select a from part_1"),
    (
        "select inherit()",
        "with x as (update heirs set a = a + 1 returning a) select count(*) from x",
        "select a from part_1 p where exists (select from other)",
    ),
];

fn a_write_to_a_parent_reaches_children_that_a_function_has_made(version: Version) {
    let name = database_of(version, "cache_hidden_parts");
    for (number, (make, write, read)) in MADE.iter().enumerate() {
        let way = WAYS[number % WAYS.len()];
        let mut direct = Session::open(addr(cluster(version)), name);
        direct.run(SETUP);
        // A partition has to hold what the keys become.
        direct.run("create table part_x partition of parts default");
        let proxy = caching(version);
        let (mut reader, mut writer) = (proxy.open(name), proxy.open(name));
        way.prepare(&mut writer, write);
        let mut others = proxy.open(name);
        eventually("the write is known to leave the other table alone", || {
            warm(&proxy, Way::Simple, &mut others, "select a from other");
            way.read(&mut writer, write);
            let before = proxy.counter("cache_hits");
            Way::Simple.read(&mut others, "select a from other");
            proxy.counter("cache_hits") > before
        });
        if write.contains("keys") {
            direct.run("update keys set k = abs(k)");
        }
        direct.run("drop table part_x");
        if write.contains("keys") {
            direct.run("delete from parts; create table part_x partition of parts default");
        } else if write.contains("insert") {
            direct.run("delete from parts where k > 9");
        }
        writer.run(make);
        way.prepare(&mut reader, read);
        for _ in 0..2 {
            let before = warm(&proxy, way, &mut reader, read);
            way.read(&mut writer, write);
            let (after, due) = (way.read(&mut reader, read), direct.query(read).words());
            assert!(before != due && after.ends_with(&due[3..]), "{way:?} {write}: {after} {due}");
        }
    }
}
