//! Rules of the cache that depend on all commits, and what their databases need.

use std::time::Duration;

use refrain_config::{Changes, Consistency, Options};

const SHOP: &str = "[databases.shop]\nhost = \"db\"\nuser = \"app\"\nchanges = \"replication\"\n";

fn rule(more: &str) -> String {
    format!("[[cache.rules]]\nconsistency = \"commits\"\n{more}\n")
}

fn read(text: &str) -> Result<Options, String> {
    Options::from_toml(&format!("auth = \"trust\"\n{text}")).map_err(|errors| errors.to_string())
}

#[test]
fn a_rule_depends_on_the_changes_of_its_database() {
    let text = SHOP.to_owned() + "publications = [\"a\", \"b\"]\nchanges_user = \"reader\"\n";
    let options = read(&(text + &rule("database = \"shop\"\nfallback_ttl = \"5s\""))).unwrap();
    let own = &options.cache.rules[0];
    assert_eq!(own.consistency, Consistency::Commits);
    assert_eq!(own.max_staleness, Duration::from_secs(1));
    assert_eq!(own.fallback_ttl, Some(Duration::from_secs(5)));
    let changes = &options.databases[0].server.changes;
    assert_eq!((changes.by, changes.user.as_deref()), (Changes::Replication, Some("reader")));
    assert_eq!(changes.publications, ["a", "b"]);
    assert!(options.cache.of("shop", "any").follows_changes());
    assert_eq!(options.cache.max_staleness("shop"), Some(Duration::from_secs(1)));
    assert_eq!(options.cache.max_staleness("other"), None);
    let usual = read(SHOP).unwrap();
    assert_eq!(usual.databases[0].server.changes.publications, ["refrain"]);
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let other = "[databases.other]\nhost = \"db\"\n";
    let any = "[databases.\"*\"]\nhost = \"db\"\n";
    let sqlite =
        "[databases.f]\nbackend = \"sqlite\"\npath = \"f.db\"\nchanges = \"replication\"\n";
    let mysql = "[databases.m]\nbackend = \"mysql\"\nhost = \"db\"\nchanges = \"replication\"\n";
    for (text, line, why) in [
        (SHOP.to_owned() + other + &rule(""), "cache.rules.consistency", "[databases.other]"),
        (other.to_owned() + &rule(""), "cache.rules.consistency", "changes = \"replication\""),
        (any.to_owned() + &rule(""), "cache.rules.consistency", "name a database in the rule"),
        (
            any.to_owned() + &rule("database = \"shop\""),
            "cache.rules.consistency",
            "under [databases.shop]",
        ),
        (
            other.to_owned() + "[[cache.rules]]\nmax_staleness = \"2s\"\n",
            "cache.rules.max_staleness",
            "consistency = \"commits\"",
        ),
        (
            other.to_owned() + "[[cache.rules]]\nfallback_ttl = \"2s\"\n",
            "cache.rules.fallback_ttl",
            "consistency = \"commits\"",
        ),
        (SHOP.replace("\"db\"", "\"a,b\""), "databases.shop.changes", "one server"),
        (SHOP.replace("user = \"app\"\n", ""), "databases.shop.changes_user", "is missing"),
        (SHOP.to_owned() + "publications = []\n", "databases.shop.publications", "at least one"),
        (SHOP.replace(".shop", ".\"*\""), "databases.*.changes", "for one database"),
        (sqlite.to_owned(), "databases.f.changes", "PostgreSQL only"),
        (mysql.to_owned(), "databases.m.changes", "for PostgreSQL"),
        (SHOP.replace("changes =", "change ="), "databases.shop.change", "changes"),
        (SHOP.to_owned() + &rule("max_stalenes = \"1s\""), "max_stalenes", "max_staleness"),
        (SHOP.replace("replication", "strict"), "databases.shop.changes", "expected"),
        (SHOP.to_owned() + &rule("").replace("commits", "strict"), "consistency", "commits"),
    ] {
        let errors = read(&text).unwrap_err();
        assert!(errors.contains(line) && errors.contains(why), "{text}\n{errors}");
    }
}
