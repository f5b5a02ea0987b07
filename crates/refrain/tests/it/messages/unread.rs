//! Query strings longer than the part that Refrain reads before it sends them on.
//!
//! Each effect that a text can have on its session stands behind a long beginning, at every place
//! around the last byte that is read. Then the client's session and that of the server's next
//! client are what they are at PostgreSQL.

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, cluster, database_of};

/// An effect: the text that has it, and a question that shows it.
const EFFECTS: &[(&str, &str)] = &[
    ("set work_mem = '7MB'", "show work_mem"),
    ("select set_config('work_mem', '8MB', false)", "show work_mem"),
    ("update pg_settings set setting = 7000 where name = 'work_mem'", "show work_mem"),
    ("set time zone 'Asia/Tokyo'", "show timezone"),
    ("set search_path = pg_catalog, public", "show search_path"),
    ("set default_transaction_read_only = on", "show default_transaction_read_only"),
    ("set standard_conforming_strings = off", "show standard_conforming_strings"),
    (
        "set session characteristics as transaction deferrable",
        "show default_transaction_deferrable",
    ),
    ("set role unread_role", "select current_user"),
    ("select set_config('role', 'unread_role', false)", "select current_user"),
    ("set session authorization unread_role", "select session_user"),
    ("set app.plain = 'x'", "select nullif(current_setting('app.plain', true), '')"),
    (
        "set/**/\"app\" . \"quoted\" to 'x'",
        "select nullif(current_setting('app.quoted', true), '')",
    ),
    (
        "select set_config('app.called', 'x', false)",
        "select nullif(current_setting('app.called', true), '')",
    ),
    (
        "do $$ begin perform set_config('app.inside', 'x', false); end $$",
        "select nullif(current_setting('app.inside', true), '')",
    ),
    (
        "select set_config('app.' || 'computed', 'x', false)",
        "select nullif(current_setting('app.computed', true), '')",
    ),
    ("listen unread_news", "select count(*) from pg_listening_channels()"),
    ("prepare q as select 1", "select count(*) from pg_prepared_statements where name = 'q'"),
    ("create temp table unread_temp (a int)", "select to_regclass('unread_temp') is null"),
    ("select 1 as a into temp unread_into", "select to_regclass('unread_into') is null"),
    (
        "select pg_advisory_lock(pg_backend_pid())",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
    ),
    ("begin; declare c cursor with hold for select 1; commit", "select count(*) from pg_cursors"),
    ("load 'plpgsql'", "select 1"),
    ("alter role unread_other set work_mem = '9MB'", "select 1"),
    ("create or replace view unread_made as select 1", "select * from unread_made"),
    (
        "insert into unread_sink values ('y') returning set_config('work_mem', '6MB', false)",
        "show work_mem",
    ),
    (
        "prepare p as select set_config('role', 'unread_role', false); execute p; deallocate all",
        "select current_user",
    ),
];

/// A beginning: its name, and the text of a given length.
type Beginning = (&'static str, fn(usize) -> String);

/// Beginnings of a given length, some of which are statements of their own.
const BEGINNINGS: &[Beginning] = &[
    ("a comment", |length| format!("/*{}*/", "x".repeat(length - 4))),
    ("lines of comments", |length| {
        format!("{}\n", "--it's $$ a comment\n".repeat(length)[..length - 1].to_owned())
    }),
    ("a string", |length| format!("select '{}';", "x".repeat(length - 10))),
    ("a string in dollars", |length| format!("select $x$ /* ' {}$x$;", "x".repeat(length - 20))),
    ("rows", |length| {
        let head = "insert into unread_sink values ('(x)')";
        let rows = ",('a; b')".repeat((length - head.len() - 1) / 9);
        let blanks = " ".repeat(length - head.len() - 1 - rows.len());
        format!("{head}{rows}{blanks};")
    }),
    ("statements", |length| {
        format!("{}{}", "select 1;".repeat(length / 9), " ".repeat(length % 9))
    }),
    ("blanks", |length| " ".repeat(length)),
];

/// Places at which an effect begins. Those before the last byte that is read cut it in two.
const PLACES: &[usize] =
    &[65_510, 65_525, 65_530, 65_531, 65_532, 65_535, 65_536, 65_537, 65_600, 140_000];

const SETUP: &str = "create table unread_sink (a text); grant all on schema public to public; \
    grant all on all tables in schema public to public";

struct Scene {
    version: Version,
    database: &'static str,
    proxy: Proxy,
}

impl Scene {
    fn new(version: Version, name: &'static str, config: impl Fn(Config) -> Config) -> Self {
        let database = database_of(version, name);
        let mut session = Session::open(addr(cluster(version)), database);
        for role in ["unread_role", "unread_other"] {
            session.query(&format!("create role {role}"));
        }
        session.run(SETUP);
        let over = Config::over(cluster(version)).pool("pool_size", "2");
        Self { version, database, proxy: config(over).start() }
    }

    fn direct(&self) -> Session {
        Session::open(addr(cluster(self.version)), self.database)
    }

    /// Has a client do something, and compares the answers to a question with those at PostgreSQL:
    /// its own, and those of the next client of its server.
    fn same(
        &self,
        what: &str,
        question: &str,
        next: &mut Session,
        act: impl Fn(&mut Session) -> String,
    ) {
        let (mut direct, mut own) = (self.direct(), self.proxy.open(self.database));
        next.run("select 1");
        assert_eq!(act(&mut own), act(&mut direct), "{what}");
        assert_eq!(own.value(question), direct.value(question), "{what}: its own");
        assert_eq!(
            next.value(question),
            self.direct().value(question),
            "{what}: the next client's"
        );
        assert_eq!(own.value(question), direct.value(question), "{what}: its own, afterwards");
        own.leave();
        direct.leave();
        assert_eq!(next.value(question), self.direct().value(question), "{what}: when it has left");
    }
}

fn effects_behind_long_beginnings(version: Version, name: &'static str) {
    let scene = Scene::new(version, name, |config| config);
    let mut next = scene.proxy.open(scene.database);
    for (effect, question) in EFFECTS {
        for (at, (beginning, make)) in BEGINNINGS.iter().enumerate() {
            // Each beginning has some of the places, and all together have each.
            for place in PLACES.iter().skip(at % 2).step_by(2) {
                let text = format!("{}{effect}", make(*place));
                let what = format!("{effect:?} behind {beginning} of {place} bytes");
                scene.same(&what, question, &mut next, |session| session.query(&text).words());
            }
        }
    }
}

#[test]
fn effects_behind_long_beginnings_with_postgresql_15() {
    effects_behind_long_beginnings(Version::V15, "unread_15");
}

#[test]
fn effects_behind_long_beginnings_with_postgresql_18() {
    effects_behind_long_beginnings(Version::V18, "unread_18");
}

/// A Parse that is too long to be kept ties its client to the server, until the client gives all
/// its statements up.
#[test]
fn a_parse_that_is_not_kept_may_do_anything() {
    for managed in [true, false] {
        let scene = Scene::new(Version::V15, "unread_parse", |config| {
            let config = config.pool("max_client_statement_bytes", "\"4KiB\"");
            config
                .pool("max_cached_statement_bytes", "\"1KiB\"")
                .pool("prepared_statements", &managed.to_string())
        });
        let mut next = scene.proxy.open(scene.database);
        for (effect, question) in EFFECTS.iter().filter(|(effect, _)| !effect.contains(';')) {
            for name in ["", "s"] {
                let text = format!("/*{}*/ {effect}", "x".repeat(70_000));
                scene.same(&format!("{effect:?} as {name:?}"), question, &mut next, |session| {
                    let run = [parse(name, &text), bind(name, &[]), execute(), Msg::Sync];
                    session.ask(&run).words() + &session.query("deallocate all").words()
                });
            }
        }
    }
}

/// The effect of a text that SQL PREPARE hides comes to light when it is executed.
#[test]
fn what_a_prepared_text_does_is_seen_when_it_runs() {
    let scene = Scene::new(Version::V15, "unread_prepare", |config| config);
    let mut next = scene.proxy.open(scene.database);
    let (role, question) = ("set_config('role', 'unread_role', false)", "select current_user");
    for filler in [0, 70_000] {
        let filler = "x".repeat(filler);
        let prepare = format!("prepare q as select /*{filler}*/ {role}");
        let what = format!("prepared, {} bytes", prepare.len());
        scene.same(&what, question, &mut next, |session| {
            ["execute q", "deallocate all"]
                .iter()
                .fold(session.query(&prepare).words(), |said, sql| {
                    said + &session.query(sql).words()
                })
        });
        scene.same(&what, question, &mut next, |session| {
            let run = [bind("q", &[]), execute(), Msg::Sync];
            session.query(&prepare).words()
                + &session.ask(&run).words()
                + &session.query("deallocate all").words()
        });
    }
}

/// A long list of values is no text that may do anything.
#[test]
fn long_lists_of_values_cost_no_look_and_no_server() {
    let scene = Scene::new(Version::V15, "unread_values", |config| config);
    let (mut own, mut next) = (scene.proxy.open(scene.database), scene.proxy.open(scene.database));
    let rows = "('it''s; (a) set app.x'), ".repeat(5_000);
    let values: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let long = [
        format!("insert into unread_sink values ('1'), {rows}('2')"),
        format!("select a from unread_sink where length(a) in ({})", values.join(", ")),
        format!("delete from unread_sink where a in ('{}')", values.join("','")),
    ];
    for text in ["insert into unread_sink values (1)", "delete from unread_sink"].repeat(3) {
        own.run(text);
    }
    let before = scene.proxy.counter("session_checks");
    for text in &long {
        assert!(text.len() > 100_000);
        own.run(text);
    }
    assert_eq!(scene.proxy.counter("session_checks"), before, "calls of PostgreSQL's own alone");
    // This one calls a function. Nothing is found, so the client shares its server.
    own.run(&format!("insert into unread_sink values ('1'), {rows}(lower('2'))"));
    assert!(scene.proxy.counter("session_checks") > before);
    assert!(scene.proxy.pins().is_empty());
    assert_eq!(own.pid(), next.pid());
}
