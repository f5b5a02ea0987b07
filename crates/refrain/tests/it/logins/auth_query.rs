//! Users who are not in the configuration file: from `auth_query`, and from `auth_file`.

use std::fs;
use std::thread;

use xtask::postgres::{AUTH_DATABASE, Cluster, PASSWORD};

use crate::world::{Config, Proxy, Version, eventually, psql};

/// Configures Refrain to look users up in a cluster, as its superuser.
fn over(cluster: &Cluster) -> Config {
    let config = Config::over(cluster).general("auth", "\"scram\"");
    let config = config.general("auth_user", "\"postgres\"");
    let config = config.general("auth_dbname", "\"postgres\"");
    // The console asks its user for a password.
    config.more(&format!("[users.postgres]\npassword = \"{PASSWORD}\"\n"))
}

fn new_cluster(version: Version) -> Cluster {
    Cluster::start(version, &[]).unwrap()
}

/// Logs in, and runs SQL.
fn runs(
    proxy: &Proxy,
    (user, password): (&str, &str),
    database: &str,
    sql: &str,
) -> Result<String, String> {
    psql(&format!("postgres://{user}@{}/{database}", proxy.addr()), password, sql)
}

/// Logs in, and asks who it is.
fn who(proxy: &Proxy, user: &str, password: &str) -> Result<String, String> {
    runs(proxy, (user, password), "postgres", "select current_user")
}

/// Runs a command on the console.
fn order(proxy: &Proxy, command: &str) -> String {
    runs(proxy, ("postgres", PASSWORD), "refrain", command).unwrap()
}

fn is_refused(proxy: &Proxy, user: &str, password: &str) {
    let told = who(proxy, user, password).unwrap_err();
    let words = format!("password authentication failed for user \"{user}\"");
    assert!(told.contains(&words), "{told}");
}

fn a_role_of_the_database_logs_in(version: Version) {
    let cluster = new_cluster(version);
    let runs_there = |sql: &str| cluster.psql("postgres", sql).unwrap();
    let proxy = over(&cluster).start();
    is_refused(&proxy, "ann", "first");
    runs_there("create role ann login password 'first'");
    order(&proxy, "flush auth");
    assert_eq!(who(&proxy, "ann", "first").as_deref(), Ok("ann"));
    is_refused(&proxy, "ann", "second");
    runs_there("alter role ann password 'second'");
    // The first login with the new password may be refused: it has Refrain ask again.
    eventually("the new password counts", || who(&proxy, "ann", "second").is_ok());
    is_refused(&proxy, "ann", "first");
    assert!(order(&proxy, "show auth").contains("ann|auth_query|postgres|scram-sha-256|"));
    for (off, on) in [("valid until '2000-01-01'", "valid until 'infinity'"), ("nologin", "login")]
    {
        runs_there(&format!("alter role ann {off}"));
        order(&proxy, "flush auth");
        is_refused(&proxy, "ann", "second");
        runs_there(&format!("alter role ann {on}"));
        order(&proxy, "flush auth");
        assert_eq!(who(&proxy, "ann", "second").as_deref(), Ok("ann"));
    }
    is_refused(&proxy, "nobody", "second");
    assert!(!proxy.log().contains("SCRAM-SHA-256$"));
}

#[test]
fn a_role_of_postgresql_15_logs_in() {
    a_role_of_the_database_logs_in(Version::V15);
}

#[test]
fn a_role_of_postgresql_18_logs_in() {
    a_role_of_the_database_logs_in(Version::V18);
}

#[test]
fn servers_ask_for_a_password_that_stands_nowhere() {
    let cluster = new_cluster(Version::V15);
    let proxy = over(&cluster).start();
    let asks = |password: &str| {
        runs(&proxy, ("scram_user", password), AUTH_DATABASE, "select current_user")
    };
    assert_eq!(asks(PASSWORD).as_deref(), Ok("scram_user"));
    cluster.psql("postgres", "alter role scram_user password 'other'").unwrap();
    // Servers that are connected from now on refuse the key that Refrain has learned.
    order(&proxy, "reconnect");
    assert!(asks(PASSWORD).is_err());
    eventually("the new password counts", || asks("other").as_deref() == Ok("scram_user"));
    assert!(asks(PASSWORD).is_err());
}

#[test]
fn a_storm_of_logins_leads_to_one_query() {
    let cluster = new_cluster(Version::V15);
    let runs_there = |sql: &str| cluster.psql("postgres", sql).unwrap();
    runs_there("create role asker login");
    runs_there("create role ann login password 'secret'");
    runs_there("create table asked (who name)");
    runs_there(
        "create function user_lookup(who name, out name name, out password text) \
         returns setof record language sql security definer set search_path = pg_catalog \
         as $$ insert into public.asked values (who); \
         select rolname, rolpassword from pg_authid where rolname = who and rolcanlogin $$",
    );
    let config = over(&cluster).general("auth_user", "\"asker\"").general("workers", "2");
    let config = config.general("auth_query", "\"select * from user_lookup($1)\"");
    let config = config.general("auth_cache_ttl", "\"1h\"");
    let proxy = config.start();
    thread::scope(|scope| {
        let login = || (0..10).for_each(|_| assert!(who(&proxy, "ann", "secret").is_ok()));
        let storm: Vec<_> = (0..20).map(|_| scope.spawn(login)).collect();
        storm.into_iter().for_each(|part| part.join().unwrap());
    });
    assert_eq!(runs_there("select count(*) from asked").trim(), "1");
}

#[test]
fn known_users_log_in_while_the_database_that_knows_them_is_down() {
    let (mut users, data) = (new_cluster(Version::V15), new_cluster(Version::V15));
    for cluster in [&users, &data] {
        cluster.psql("postgres", "create role ann login password 'secret'").unwrap();
    }
    let place = format!("[databases.users]\nhost = {:?}\nport = {}\n", users.host(), users.port());
    let config = over(&data).general("auth_dbname", "\"users\"").more(&place);
    let config = config.more("dbname = \"postgres\"\n").general("auth_cache_ttl", "\"0s\"");
    let proxy = config.start();
    assert_eq!(who(&proxy, "ann", "secret").as_deref(), Ok("ann"));
    users.stop();
    assert_eq!(who(&proxy, "ann", "secret").as_deref(), Ok("ann"));
    let told = who(&proxy, "bob", "secret").unwrap_err();
    assert!(told.contains("could not look up the user"), "{told}");
    order(&proxy, "flush auth");
    let told = who(&proxy, "ann", "secret").unwrap_err();
    assert!(told.contains("could not look up the user"), "{told}");
    users.resume().unwrap();
    eventually("it can be asked again", || who(&proxy, "ann", "secret").is_ok());
}

#[test]
fn known_users_are_told_or_wait_while_their_own_database_is_down() {
    for waits in [false, true] {
        let mut cluster = new_cluster(Version::V15);
        cluster.psql("postgres", "create role ann login password 'secret'").unwrap();
        let choice = if waits { "\"wait\"" } else { "\"refuse\"" };
        let config = over(&cluster).general("auth_cache_ttl", "\"0s\"");
        let config = config.pool("server_login_retry", "\"10ms\"");
        let config = config.general("log_level", "\"debug\"");
        let proxy = config.pool("server_unavailable", choice).start();
        assert_eq!(who(&proxy, "ann", "secret").as_deref(), Ok("ann"));
        cluster.stop();
        // Nobody waits who cannot prove who it is.
        is_refused(&proxy, "ann", "other");
        if !waits {
            let told = who(&proxy, "ann", "secret").unwrap_err();
            assert!(told.contains("could not connect to server"), "{told}");
            continue;
        }
        thread::scope(|scope| {
            let login = scope.spawn(|| who(&proxy, "ann", "secret"));
            let of_ann = || proxy.log().matches("could not connect to server").count() >= 5;
            eventually("it is tried several times", of_ann);
            cluster.resume().unwrap();
            assert_eq!(login.join().unwrap().as_deref(), Ok("ann"));
        });
    }
}

#[test]
fn a_userlist_is_read_again_at_a_reload() {
    let cluster = new_cluster(Version::V15);
    cluster.psql("postgres", "create role ann login; create role bob login").unwrap();
    let list = std::env::temp_dir().join(format!("refrain-it-userlist-{}", std::process::id()));
    fs::write(&list, "; users\n\"ann\" \"one\"\n\"postgres\" \"secret\"\n").unwrap();
    let config = Config::over(&cluster).general("auth", "\"scram\"");
    let proxy = config.general("auth_file", &format!("{list:?}")).start();
    assert_eq!(who(&proxy, "ann", "one").as_deref(), Ok("ann"));
    is_refused(&proxy, "bob", "two");
    fs::write(&list, "\"ann\" \"other\"\n\"bob\" \"two\" rest\n\"postgres\" \"secret\"\n").unwrap();
    order(&proxy, "reload");
    assert_eq!(who(&proxy, "bob", "two").as_deref(), Ok("bob"));
    is_refused(&proxy, "ann", "one");
    fs::write(&list, "\"ann\" other\n").unwrap();
    let told = runs(&proxy, ("postgres", PASSWORD), "refrain", "reload").unwrap_err();
    assert!(told.contains(&format!("{}: line 1: expected", list.display())), "{told}");
    assert_eq!(who(&proxy, "ann", "other").as_deref(), Ok("ann"));
    fs::remove_file(&list).unwrap();
}
