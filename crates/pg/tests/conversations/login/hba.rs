//! Logins by the rules of `pg_hba.conf`. `docs/hba.md` names the test of each method.

use std::net::SocketAddr;

use refrain_pool::ids::Peer;
use refrain_pool::secured::Certificate;

use super::client::{proves, says};
use crate::talk::*;

/// Returns a file of options with these rules and maps, a user `u` with a password, and a group
/// `staff` of this user.
fn file(rules: &str, maps: &str) -> String {
    format!(
        "auth = \"hba\"\nhba = '''\n{rules}\n'''\nident = '''\n{maps}\n'''\n\
         admin_users = [\"u\"]\n[groups]\nstaff = [\"u\"]\n[users.u]\npassword = \"secret\"\n\
         [databases.\"*\"]\nurl = \"postgres://s@127.0.0.1:1\"\n"
    )
}

fn with_rules(rules: &str) -> Conversation {
    Conversation::new(file(rules, ""))
}

/// Connects a client from an address, or by the Unix socket as a user of the operating system.
fn from(talk: &Conversation, place: &str) -> Party {
    let peer = match place.strip_prefix("unix:") {
        Some("") => Peer::Unix { uid: None, is_own: false, name: None },
        Some(name) => Peer::Unix { uid: Some(7), is_own: false, name: Some(name.into()) },
        None => Peer::Tcp(SocketAddr::new(place.parse().expect("it is an address"), 5000)),
    };
    talk.newcomer_from(0, peer)
}

fn certificate(common_name: &str) -> Option<Certificate> {
    Some(Certificate {
        common_name: Some(common_name.into()),
        subject: format!("CN={common_name},O=Refrain").into(),
        names: Vec::new(),
    })
}

fn is_refused(client: &Party, sqlstate: &str, words: &str) {
    client.gets([fatal(sqlstate, words)]);
    assert!(client.is_closed());
}

#[test]
fn a_client_without_a_rule_is_refused_in_postgresqls_words() {
    let talk = with_rules("hostssl all all 10.0.0.0/8 trust\nlocal other all trust");
    for (place, secured, told) in [
        ("192.0.2.1", false, "host \"192.0.2.1\", user \"u\", database \"d\", no encryption"),
        ("192.0.2.1", true, "host \"192.0.2.1\", user \"u\", database \"d\", SSL encryption"),
        ("10.0.0.1", false, "host \"10.0.0.1\", user \"u\", database \"d\", no encryption"),
        ("::ffff:10.0.0.1", false, "host \"10.0.0.1\", user \"u\", database \"d\", no encryption"),
        ("2001:db8::1", true, "host \"2001:db8::1\", user \"u\", database \"d\", SSL encryption"),
        ("unix:", false, "host \"[local]\", user \"u\", database \"d\", no encryption"),
    ] {
        let client = from(&talk, place);
        if secured {
            client.is_secured(None);
        }
        client.asks_to_log_in(&[]);
        is_refused(&client, "28000", &format!("no pg_hba.conf entry for {told}"));
    }
    assert_eq!(talk.connections(), 0, "no server is asked");
}

#[test]
fn reject_refuses_before_a_password_is_asked_for() {
    let talk = with_rules("host all u all reject\nhost all all all scram-sha-256");
    let client = from(&talk, "192.0.2.1");
    client.asks_to_log_in(&[]);
    let told = "host \"192.0.2.1\", user \"u\", database \"d\", no encryption";
    is_refused(&client, "28000", &format!("pg_hba.conf rejects connection for {told}"));
    let replica = from(&talk, "192.0.2.1");
    replica.sends([startup(0, &[("user", "u"), ("replication", "true")])]);
    let told = "replication connection from host \"192.0.2.1\", user \"u\", no encryption";
    is_refused(&replica, "28000", &format!("no pg_hba.conf entry for {told}"));
    let stranger = from(&talk, "192.0.2.1");
    stranger.sends([startup(0, &[("user", "nobody"), ("database", "d")])]);
    stranger.gets([authentication(10, b"SCRAM-SHA-256\0\0")]);
}

#[test]
fn no_rule_and_a_rule_that_rejects_have_two_words_of_pgbouncer() {
    let options = file("host all u 192.0.2.0/24 reject", "");
    let talk = Conversation::new(format!("pooler_errors = \"pgbouncer\"\n{options}"));
    for (place, words) in
        [("192.0.2.1", "login rejected"), ("10.0.0.1", "no authentication method is found")]
    {
        let client = from(&talk, place);
        client.asks_to_log_in(&[]);
        is_refused(&client, "08P01", words);
    }
}

#[test]
fn trust_lets_in_users_without_an_entry() {
    let talk = with_rules("host d nobody all trust");
    let client = from(&talk, "192.0.2.1");
    client.sends([startup(0, &[("user", "nobody"), ("database", "d")])]);
    client.is_let_in();
}

#[test]
fn password_md5_and_scram_ask_as_the_option_auth_does() {
    let rules =
        "local all all password\nhost d all 127.0.0.0/8 md5\nhost all all all scram-sha-256";
    let talk = with_rules(rules);
    let alice = from(&talk, "unix:");
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(3, b"")]).sends([says("secret")]).is_let_in();
    let bob = from(&talk, "127.0.0.1");
    bob.asks_to_log_in(&[]);
    // The MD5 of that of "secretu" in hexadecimal digits and the salt, by md5sum.
    bob.gets([authentication(5, &[9; 4])]);
    bob.sends([says("md548c3cf271ba97d61e8c9c1e88621d966")]).is_let_in();
    let carol = from(&talk, "192.0.2.1");
    carol.asks_to_log_in(&[]);
    let got = proves(&carol, "secret");
    assert_eq!(got.last(), Some(&ready()));
}

#[test]
fn an_unknown_user_hears_what_a_wrong_password_hears() {
    let talk = with_rules("local all all password");
    for user in ["u", "nobody"] {
        let client = from(&talk, "unix:");
        client.sends([startup(0, &[("user", user), ("database", "d")])]);
        client.gets([authentication(3, b"")]).sends([says("wrong")]);
        let words = format!("password authentication failed for user \"{user}\"");
        is_refused(&client, "28P01", &words);
    }
    let log: Vec<_> = talk.log().into_iter().map(|(_, words)| words).collect();
    let rule = "(connection matched line 1: \"local all all password\")";
    assert!(log.iter().any(|words| words.ends_with(rule)), "{log:?}");
}

#[test]
fn peer_compares_the_name_of_the_operating_system() {
    let talk = Conversation::new(file(
        "local d all peer\nlocal all all peer map=m",
        "m root u\nm /^(.*)-app$ \\1",
    ));
    for (place, database, let_in) in [
        ("unix:u", "d", true),
        ("unix:root", "d", false),
        ("unix:", "d", false),
        ("unix:root", "e", true),
        ("unix:u-app", "e", true),
        ("unix:v-app", "e", false),
        ("unix:u", "e", false),
    ] {
        let client = from(&talk, place);
        client.sends([startup(0, &[("user", "u"), ("database", database)])]);
        match let_in {
            true => client.is_let_in(),
            false => is_refused(&client, "28000", "Peer authentication failed for user \"u\""),
        }
    }
    let log: Vec<_> = talk.log().into_iter().map(|(_, words)| words).collect();
    for detail in [
        "provided user name (u) and authenticated user name (root) do not match (connection",
        "there is no name to compare with (connection matched line 1: \"local d all peer\")",
        "no match in usermap \"m\" for user \"u\" authenticated as \"v-app\" (connection matched",
    ] {
        assert!(log.iter().any(|words| words.contains(detail)), "{detail}: {log:?}");
    }
}

#[test]
fn cert_compares_the_name_in_the_certificate() {
    let talk = Conversation::new(file(
        "hostssl d all all cert\nhostssl e all all cert map=m clientname=DN",
        "m \"CN=ann,O=Refrain\" u",
    ));
    let missing = "connection requires a valid client certificate";
    let wrong = "certificate authentication failed for user \"u\"";
    for (name, database, refusal) in [
        (certificate("u"), "d", None),
        (certificate("ann"), "d", Some(wrong)),
        (certificate(""), "d", Some(wrong)),
        (None, "d", Some(missing)),
        (certificate("ann"), "e", None),
        (certificate("u"), "e", Some(wrong)),
    ] {
        let client = from(&talk, "192.0.2.1");
        client.is_secured(name.clone());
        client.sends([startup(0, &[("user", "u"), ("database", database)])]);
        match refusal {
            None => client.is_let_in(),
            Some(words) => is_refused(&client, "28000", words),
        }
    }
}

#[test]
fn other_names_of_a_certificate_count_through_a_map() {
    let talk = Conversation::new(file(
        "hostssl d all all cert\nhostssl e all all cert map=m\n\
         hostssl f all all cert map=m clientname=DN\n\
         hostssl g all all password clientcert=verify-full",
        "m app.example.com u\nm /^(.*)@example\\.com$ \\1",
    ));
    let with = |names: &[&str]| {
        let names = names.iter().map(|&name| name.into()).collect();
        Some(Certificate { names, ..certificate("ann").unwrap() })
    };
    let wrong = "certificate authentication failed for user \"u\"";
    for (names, database, let_in) in [
        (&["app.example.com"][..], "e", true),
        (&["other.example.com", "u@example.com"], "e", true),
        (&["v@example.com"], "e", false),
        (&[""], "e", false),
        (&[], "e", false),
        // Without a map, and where the rule asks for the subject, they count for nothing.
        (&["u"], "d", false),
        (&["app.example.com", "u@example.com"], "f", false),
    ] {
        let client = from(&talk, "192.0.2.1");
        client.is_secured(with(names));
        client.sends([startup(0, &[("user", "u"), ("database", database)])]);
        match let_in {
            true => client.is_let_in(),
            false => is_refused(&client, "28000", wrong),
        }
    }
    let client = from(&talk, "192.0.2.1");
    client.is_secured(with(&["u"]));
    client.sends([startup(0, &[("user", "u"), ("database", "g")])]);
    client.gets([authentication(3, b"")]).sends([says("secret")]);
    is_refused(&client, "28P01", "password authentication failed for user \"u\"");
}

#[test]
fn a_certificate_may_be_asked_for_beside_a_password() {
    let talk = with_rules(
        "hostssl d all all password clientcert=verify-ca\n\
         hostssl e all all password clientcert=verify-full\n\
         hostssl t all all trust clientcert=verify-full",
    );
    let enters = |name: Option<&str>, database: &str| {
        let client = from(&talk, "192.0.2.1");
        client.is_secured(name.and_then(certificate));
        client.sends([startup(0, &[("user", "u"), ("database", database)])]);
        client
    };
    for (name, database) in [("ann", "d"), ("u", "e")] {
        let client = enters(Some(name), database);
        client.gets([authentication(3, b"")]).sends([says("secret")]).is_let_in();
    }
    let client = enters(None, "d");
    is_refused(&client, "28000", "connection requires a valid client certificate");
    let client = enters(Some("ann"), "e");
    client.gets([authentication(3, b"")]).sends([says("secret")]);
    is_refused(&client, "28P01", "password authentication failed for user \"u\"");
    let client = enters(Some("ann"), "t");
    is_refused(&client, "28000", "\"trust\" authentication failed for user \"u\"");
    enters(Some("u"), "t").is_let_in();
}

#[test]
fn a_password_in_clear_text_does_not_cross_a_network() {
    let words = "passwords in clear text need an encrypted connection";
    for auth in ["auth = \"password\"", "auth = \"hba\"\nhba = \"host all all all password\""] {
        let rest = "[users.u]\npassword = \"secret\"\n\
                    [databases.d]\nurl = \"postgres://u:u@127.0.0.1:1\"\n";
        let talk = Conversation::new(format!("{auth}\n{rest}"));
        for (place, secured, asked) in [
            ("192.0.2.1", false, false),
            ("::ffff:192.0.2.1", false, false),
            ("192.0.2.1", true, true),
            ("127.0.0.9", false, true),
            ("::1", false, true),
        ] {
            let client = from(&talk, place);
            if secured {
                client.is_secured(None);
            }
            client.asks_to_log_in(&[]);
            match asked {
                true => drop(client.gets([authentication(3, b"")])),
                false => {
                    client.gets([error_like(words)]);
                    assert!(client.is_closed());
                }
            }
        }
        let talk = Conversation::new(format!("insecure_password = true\n{auth}\n{rest}"));
        let client = from(&talk, "192.0.2.1");
        client.asks_to_log_in(&[]);
        client.gets([authentication(3, b"")]).sends([says("secret")]).is_let_in();
    }
}

#[test]
fn reject_has_words_of_its_own_for_a_replica() {
    let talk = with_rules("host replication u all reject\nhost all all all trust");
    let replica = from(&talk, "192.0.2.1");
    replica.sends([startup(0, &[("user", "u"), ("replication", "true")])]);
    let told = "host \"192.0.2.1\", user \"u\", no encryption";
    let words = format!("pg_hba.conf rejects replication connection for {told}");
    is_refused(&replica, "28000", &words);
}

#[test]
fn the_console_has_rules_as_a_database_has() {
    let talk = with_rules("local pgbouncer u trust\nlocal all all reject");
    let client = from(&talk, "unix:");
    client.sends([startup(0, &[("user", "u"), ("database", "pgbouncer")])]);
    assert_eq!(client.forgets().last(), Some(&ready()));
    let client = from(&talk, "unix:");
    client.sends([startup(0, &[("user", "u"), ("database", "refrain")])]);
    let told = "host \"[local]\", user \"u\", database \"refrain\", no encryption";
    is_refused(&client, "28000", &format!("pg_hba.conf rejects connection for {told}"));
}

/// Returns the counts of each rule: clients that it was for, and those of them that were refused.
fn counts(talk: &Conversation) -> Vec<(u64, u64)> {
    talk.hba_rules().iter().map(|row| (row.matched, row.refused)).collect()
}

#[test]
fn rules_are_counted_until_they_change() {
    let rules = "local d +staff password\nlocal d all reject";
    let talk = with_rules(rules);
    for (user, database, password) in
        [("u", "d", "secret"), ("u", "d", "wrong"), ("v", "d", ""), ("u", "e", "")]
    {
        let client = from(&talk, "unix:");
        client.sends([startup(0, &[("user", user), ("database", database)])]);
        if !password.is_empty() {
            client.sends([says(password)]);
        }
        client.forgets();
    }
    assert_eq!(counts(&talk), [(2, 1), (1, 1), (1, 1)]);
    let rows = talk.hba_rules();
    assert_eq!((rows[1].line, &*rows[1].text), (2, "local d all reject"));
    assert_eq!(rows[1].user.as_deref(), Some("v"));
    assert_eq!(rows[2].database.as_deref(), Some("e"));
    assert_eq!(rows[0].host.as_deref(), Some("[local]"));

    let waits = from(&talk, "unix:");
    waits.asks_to_log_in(&[]);
    waits.gets([authentication(3, b"")]);
    talk.reloads(&file("local d all trust", ""));
    assert_eq!(counts(&talk), [(0, 0), (0, 0)]);
    waits.sends([says("wrong")]);
    is_refused(&waits, "28P01", "password authentication failed for user \"u\"");
    assert_eq!(counts(&talk), [(0, 0), (0, 0)], "the rule that was for the client is gone");
    let client = from(&talk, "unix:");
    client.asks_to_log_in(&[]);
    client.is_let_in();
    assert_eq!(counts(&talk), [(1, 0), (0, 0)]);
}
