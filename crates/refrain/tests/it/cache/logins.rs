//! The result cache and users who may not log in any more: who logs in to Refrain alone gets
//! nothing from memory, and a session that was let in goes on, as one of PostgreSQL does.

use std::thread;
use std::time::Duration;

use xtask::postgres::{AUTH_DATABASE, Cluster, PASSWORD};

use crate::cache::{Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr};

with_both_versions! {
    who_may_not_log_in_any_more_reads_nothing_from_memory,
    who_may_not_log_in_any_more_reads_nothing_from_memory_once_refrain_has_seen_why,
}

/// Users, and what keeps each from logging in from then on: nothing, for some. PostgreSQL asks some
/// of them for a password; Refrain trusts all of them, and has the password.
const USERS: &[(&str, &str)] = &[
    ("trusted", ""),
    ("md5_user", ""),
    ("scram_user", "alter role scram_user password 'other'"),
    ("plain_user", "alter role plain_user valid until '2000-01-01'"),
    ("disabled", "alter role disabled nologin"),
    ("cut_off", "revoke connect on database auth_db from cut_off"),
    ("member", "revoke holder from member"),
    ("by_function", "do $$ begin execute 'alter role by_function nologin'; end $$"),
];

/// Time before a login in which one of the user at a server counts, and more.
const LONG: Duration = Duration::from_millis(5_500);
/// Time in which a login is confirmed, if it is.
const TRIES: usize = 25;

const READ: &str = "select a from t";

struct World {
    direct: Session,
    proxy: Proxy,
    /// The sessions that were let in before.
    before: Vec<Session>,
    _cluster: Cluster,
}

impl World {
    /// Has each user log in, and read what is kept then.
    fn new(version: Version) -> Self {
        let cluster = Cluster::start(version, &[]).unwrap();
        let mut direct = Session::open(addr(&cluster), AUTH_DATABASE);
        direct.run("create table t as select 'old' as a; grant select on t to public");
        direct.run("create role holder; revoke connect on database auth_db from public");
        for (user, _) in USERS {
            if !user.ends_with("_user") {
                direct.run(&format!("create role {user} login"));
            }
            direct.run(&format!("grant connect on database auth_db to {user}"));
        }
        direct.run(
            "revoke connect on database auth_db from member; grant holder to member;
             grant connect on database auth_db to holder",
        );
        let config = Config::over(&cluster).general("workers", "2");
        let config = config.server("password", &format!("{PASSWORD:?}"));
        let proxy = config.more("[[cache.rules]]\nttl = \"10min\"\n").start();
        let mut world = Self { direct, proxy, before: Vec::new(), _cluster: cluster };
        world.before = USERS.iter().map(|(user, _)| world.login(user).unwrap()).collect();
        world.warm();
        world
    }

    fn login(&self, user: &str) -> Option<Session> {
        let params = [("user", user), ("database", AUTH_DATABASE)];
        Session::login(self.proxy.addr(), &params).ok()
    }

    /// Has each user read what is kept.
    fn warm(&mut self) {
        for session in &mut self.before {
            assert!(warm(&self.proxy, Way::Simple, session, READ).contains("D(old)"));
        }
    }

    /// Changes the row past Refrain, and has each user log in once more.
    fn check(mut self) {
        self.direct.run("update t set a = 'new'");
        for (number, (user, taken)) in USERS.iter().enumerate() {
            // Who was let in before reads what is kept.
            let kept = Way::Simple.read(&mut self.before[number], READ);
            assert!(kept.contains("D(old)"), "{user}: {kept}");
            let Some(mut session) = self.login(user) else {
                assert!(!taken.is_empty(), "{user} is refused");
                continue;
            };
            let mut read = String::new();
            for _ in 0..TRIES {
                read = Way::Simple.read(&mut session, READ);
                assert!(taken.is_empty() || !read.contains("D(old)"), "{user}: {read}");
                if read.contains("D(old)") {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
            assert!(!taken.is_empty() || read.contains("D(old)"), "{user} gets {read} for ever");
        }
    }
}

fn who_may_not_log_in_any_more_reads_nothing_from_memory(version: Version) {
    let mut world = World::new(version);
    for (_, taken) in USERS.iter().filter(|(_, taken)| !taken.is_empty()) {
        world.direct.run(taken);
    }
    thread::sleep(LONG);
    world.check();
}

fn who_may_not_log_in_any_more_reads_nothing_from_memory_once_refrain_has_seen_why(
    version: Version,
) {
    let mut world = World::new(version);
    let mut writer = world.login("postgres").unwrap();
    for (_, taken) in USERS.iter().filter(|(_, taken)| !taken.is_empty()) {
        writer.run(taken);
    }
    // The changes have voided what was kept.
    world.warm();
    world.check();
}
