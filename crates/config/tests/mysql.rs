//! Databases of MySQL and MariaDB: files and URLs in, options or messages out.

use refrain_config::{AuthMethod, Backend, Host, Options, UserSecret};

fn read(text: &str) -> Options {
    Options::from_toml(text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> String {
    Options::from_toml(text).expect_err(text).to_string()
}

fn host(options: &Options) -> String {
    options.databases[0].server.host.to_string()
}

#[test]
fn a_url_serves_every_schema() {
    let options = Options::from_url("mysql://app:secret@db/").expect("it is sound");
    let pool = options.pool("shop", "app").expect("every name has a pool");
    assert_eq!((pool.server.backend, host(&options).as_str()), (Backend::Mysql, "db:3306"));
    assert_eq!(pool.server.dbname.as_deref(), Some("shop"));
    assert_eq!(options.general.auth, AuthMethod::Scram);
    assert!(matches!(options.secret("app"), Some(UserSecret::Plain(_))));
    let addresses: Vec<_> = options.addresses().iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["127.0.0.1:6432", "127.0.0.1:6033"]);
}

#[test]
fn forms_of_a_place() {
    for (url, expected) in [
        ("mysql://root@h:3307/", "h:3307"),
        ("mariadb://root@[::1]/", "[::1]:3306"),
        ("mysql://root@%2Frun%2Fmysqld%2Fmysqld.sock/", "/run/mysqld/mysqld.sock"),
        ("postgres://h", "h:5432"),
    ] {
        let options = Options::from_url(url).unwrap_or_else(|errors| panic!("{url}: {errors}"));
        assert_eq!(host(&options), expected, "{url}");
    }
    let keys = read("auth = \"trust\"\n[databases.d]\nbackend = \"mysql\"\nhost = \"h\"\n");
    assert_eq!(host(&keys), "h:3306");
    let keys = read("auth = \"trust\"\n[databases.d]\nbackend = \"mysql\"\nhost = \"/a/b.sock\"\n");
    assert_eq!(keys.databases[0].server.host, Host::Socket("/a/b.sock".into()));
}

#[test]
fn each_protocol_has_its_databases() {
    let options = read(
        "auth = \"trust\"\n[databases.one]\nurl = \"postgres://h\"\n\
         [databases.two]\nurl = \"mysql://h\"\n[databases.three]\nurl = \"sqlite:x.db\"\n",
    );
    let options = std::sync::Arc::new(options);
    let names = |serves| {
        let own = options.of_backends(serves);
        own.databases.iter().map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(|backend| backend == Backend::Mysql), ["two"]);
    assert_eq!(names(|backend| backend != Backend::Mysql), ["one", "three"]);
    assert!(options.has_mysql() && !options.of_backends(|it| it != Backend::Mysql).has_mysql());
}

#[test]
fn a_database_of_mysql_refuses_what_it_cannot_have() {
    for (option, allowed) in [
        ("autoprepare = \"on\"", "autoprepare = \"off\""),
        ("share_servers = \"reads\"", "share_servers = \"off\""),
        ("application_name = \"x\"", ""),
        ("channel_binding = \"require\"", "channel_binding = \"disable\""),
        ("sslnegotiation = \"direct\"", "sslnegotiation = \"postgres\""),
        ("auth_query = \"SELECT 1\"", ""),
        ("sqlite_readers = 3", ""),
    ] {
        let file = |line: &str| {
            format!(
                "auth = \"trust\"\n[databases.d]\nurl = \"mysql://h?sslmode=require\"\n{line}\n"
            )
        };
        let name = option.split(' ').next().expect("it has a name");
        let told = errors(&file(option));
        assert!(told.starts_with(&format!("line 4: databases.d.{name}: is for ")), "{told}");
        read(&file(allowed));
    }
    let told = Options::from_url("mysql://h?autoprepare=on").expect_err("it is refused");
    assert!(told.to_string().starts_with("autoprepare: is for PostgreSQL"), "{told}");
}

#[test]
fn rules_of_the_cache_are_for_postgresql() {
    let rule = "auth = \"trust\"\n[databases.d]\nurl = \"mysql://h\"\n[[cache.rules]]\n\
                name = \"r\"\ndatabase = \"d\"\nttl = \"1s\"\n";
    let told = errors(rule);
    assert!(told.contains("line 6: cache.rules.database: applies to databases of"), "{told}");
}

#[test]
fn users_are_not_looked_up_in_mysql() {
    let top = "auth_user = \"u\"\nauth_dbname = \"d\"\n[databases.d]\nurl = \"mysql://h\"\n";
    let told = errors(&format!("{top}[databases.e]\nurl = \"postgres://h\"\n"));
    assert!(told.contains("auth_dbname: is a database of MySQL"), "{told}");
    let told = errors(top);
    assert!(told.contains("line 1: auth_user: is for PostgreSQL"), "{told}");
}

#[test]
fn a_hash_is_for_clients_of_one_protocol() {
    let file = |urls: &[&str], secret: &str| {
        let database = |(at, url): (usize, &&str)| format!("[databases.d{at}]\nurl = \"{url}\"\n");
        let databases: String = urls.iter().enumerate().map(database).collect();
        format!("auth = \"md5\"\n{databases}[users.u]\npassword = \"{secret}\"\n")
    };
    let native = "*7FC8780E9200B93A9AC7A3AB87FDA9C8DC9A4D9A";
    let md5 = "md5d41d8cd98f00b204e9800998ecf8427e";
    let options = read(&file(&["mysql://h", "postgres://h"], native));
    assert!(matches!(options.secret("u"), Some(UserSecret::Native(_))));
    read(&file(&["mysql://h", "postgres://h"], md5));
    assert!(errors(&file(&["postgres://h"], native)).contains("is a hash of MySQL's"));
    assert!(errors(&file(&["mysql://h"], md5)).contains("is a hash of PostgreSQL's"));
}
