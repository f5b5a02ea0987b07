//! A SET follows its client to every server, and reaches no other client.

mod refused;
mod parameters;
mod defaults;
mod meanings;
mod canonical;
mod values;

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database, database_of, eventually};

fn over_15(database: &'static str) -> (Proxy, &'static str) {
    (Config::over(cluster(Version::V15)).pool("pool_size", "2").start(), database)
}

/// Shows a setting of `client` on each of the pool's two servers.
fn everywhere(proxy: &Proxy, database: &str, client: &mut Session, show: &str) -> Vec<String> {
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    let first = (client.value(show), client.pid());
    two.run("begin");
    one.run("commit");
    let second = (client.value(show), client.pid());
    two.run("commit");
    assert_ne!(first.1, second.1, "on two servers");
    vec![first.0, second.0]
}

/// Each setting, and a value that is not the default.
const SETTINGS: &[(&str, &str)] = &[
    ("datestyle", "SQL, DMY"),
    ("timezone", "Asia/Tokyo"),
    ("intervalstyle", "iso_8601"),
    ("application_name", "it's \"me\""),
    ("client_encoding", "LATIN1"),
    ("statement_timeout", "77s"),
    ("search_path", "pg_catalog, \"A b\""),
    ("work_mem", "9MB"),
    ("extra_float_digits", "-3"),
    ("my.own", "value"),
];

#[test]
fn a_set_follows_its_client() {
    let (proxy, database) = over_15(database("set_follows"));
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    for (name, value) in SETTINGS.iter().filter(|(name, _)| *name != "my.own") {
        let show = format!("select current_setting('{name}')");
        let before = two.value(&show);
        one.run(&format!("select set_config('{name}', '{}', false)", value.replace('\'', "''")));
        assert_eq!(everywhere(&proxy, database, &mut one, &show), [*value; 2], "{name}");
        assert_eq!(everywhere(&proxy, database, &mut two, &show), [before.as_str(); 2], "{name}");
    }
    let pins = proxy.pins();
    assert!(pins.is_empty(), "{pins:?}");
    // RESET ALL brings back the defaults.
    one.run("reset all");
    for (name, _) in SETTINGS.iter().filter(|(name, _)| *name != "my.own") {
        let show = format!("select current_setting('{name}')");
        let default = two.value(&show);
        assert_eq!(everywhere(&proxy, database, &mut one, &show), [default.as_str(); 2], "{name}");
    }
}

#[test]
fn set_in_all_its_forms() {
    let (proxy, database) = over_15(database("set_forms"));
    let mut one = proxy.open(database);
    let forms = [
        ("set statement_timeout = 5000", "statement_timeout", "5s"),
        ("SET SESSION statement_timeout TO '6s'", "statement_timeout", "6s"),
        ("set search_path = a, \"B c\", pg_catalog", "search_path", "a, \"B c\", pg_catalog"),
        ("set time zone 'Asia/Tokyo'", "timezone", "Asia/Tokyo"),
        ("set names 'LATIN1'", "client_encoding", "LATIN1"),
        ("set client_encoding to default", "client_encoding", "UTF8"),
        ("select 1; set work_mem = '3MB'; select 2", "work_mem", "3MB"),
        ("begin; set work_mem = '4MB'; commit", "work_mem", "4MB"),
        ("begin; set work_mem = '5MB'; rollback", "work_mem", "4MB"),
        ("begin; set local work_mem = '6MB'; commit", "work_mem", "4MB"),
        ("do $$ begin set work_mem = '7MB'; end $$", "work_mem", "7MB"),
        ("reset work_mem", "work_mem", "4MB"),
        ("set my.own = 'x'", "my.own", "x"),
    ];
    for (sql, name, value) in forms {
        one.run(sql);
        let show = format!("select current_setting('{name}')");
        assert_eq!(everywhere(&proxy, database, &mut one, &show), [value; 2], "{sql}");
    }
}

#[test]
fn what_is_reported_is_what_is_so() {
    let (proxy, database) = over_15(database("set_reported"));
    let mut direct = Session::open(addr(cluster(Version::V15)), database);
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    for sql in ["set timezone = 'Asia/Tokyo'", "set datestyle = 'SQL, DMY'", "reset timezone"] {
        for session in [&mut direct, &mut one] {
            session.run(sql);
        }
        two.run("select 1");
        one.run("select 1");
        assert_eq!(one.params, direct.params, "{sql}");
    }
}

/// If ALTER DATABASE changes the settings of new sessions, sessions through the pool soon have
/// them.
#[test]
fn what_sessions_begin_with_changes() {
    let (proxy, database) = over_15(database("set_begin"));
    let mut one = proxy.open(database);
    assert_eq!(one.value("show work_mem"), "4MB");
    one.run(&format!("alter database {database} set work_mem = '9MB'"));
    eventually("servers are new", || one.value("show work_mem") == "9MB");
    one.run(&format!("alter role postgres in database {database} set work_mem = '11MB'"));
    eventually("servers are new", || one.value("show work_mem") == "11MB");
}

/// The role whose rows a policy chooses, and the names of the tenants.
const READER: &str = "placeholder_reader";
const TENANT: &str = "6f1d1c1e-0000-4000-8000-000000000001";

/// Runs a transaction of a tenant. Returns the number of rows that it sees.
fn tenants_rows(session: &mut Session, set: &[Msg], between: &mut dyn FnMut()) -> String {
    session.run("begin");
    let replies = session.ask(set);
    assert!(replies.error().is_none(), "{}", replies.words());
    between();
    let rows = session.value("select count(*) from t");
    session.run("commit");
    rows
}

/// Two kinds of clients: tenants, and others who see no row. The others hardly ever meet a tenant's
/// empty parameter once there are servers of both kinds (`docs/differences.md`).
fn row_security_by_a_parameter(version: Version, name: &'static str) {
    let database = database_of(version, name);
    let mut owner = Session::open(addr(cluster(version)), database);
    owner.run(&format!("drop role if exists {READER}; create role {READER} login"));
    owner.run("create table t (tenant uuid); alter table t enable row level security");
    owner.run(
        "create policy p on t using (tenant = current_setting('app.tenant', true)::uuid); \
         grant select on t to public",
    );
    owner.run(&format!("insert into t values ('{TENANT}')"));
    let proxy = Config::over(cluster(version)).pool("pool_size", "4").start();
    let open = || {
        let login = [("user", READER), ("database", database)];
        Session::login(proxy.addr(), &login).expect("the login succeeds")
    };
    let (mut local, mut called, mut one, mut two) = (open(), open(), open(), open());
    let by_set = [query(&format!("set local app.tenant = '{TENANT}'"))];
    let call = "select set_config('app.tenant', $1, true)";
    let by_call = [parse("", call), bind("", &[TENANT]), execute(), Msg::Sync];
    let count = query("select count(*) from t");
    let mut round = || {
        let mut words = Vec::new();
        let mut ask =
            |session: &mut Session| words.push(session.ask(std::slice::from_ref(&count)).words());
        ask(&mut one);
        assert_eq!(tenants_rows(&mut local, &by_set, &mut || ask(&mut two)), "1");
        ask(&mut one);
        assert_eq!(tenants_rows(&mut called, &by_call, &mut || ask(&mut one)), "1");
        ask(&mut two);
        words.iter().all(|words| words == "T D(0) C(SELECT 1) Z(I)")
    };
    eventually("servers of both kinds are idle", || (0..20).all(|_| round()));
    // A client still gets a server that does not suit it while its core has no other idle one.
    let met = (0..100).filter(|_| !round()).count();
    assert!(met <= 5, "a client without the parameter has met it in {met} rounds of 100");
    drop((local, called, one, two));
    owner.run(&format!("drop table t; drop role {READER}"));
}

#[test]
fn row_security_by_a_parameter_15() {
    row_security_by_a_parameter(Version::V15, "set_policy15");
}

#[test]
fn row_security_by_a_parameter_18() {
    row_security_by_a_parameter(Version::V18, "set_policy18");
}
