//! Rules and maps as PostgreSQL reads them.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::*;
use crate::machine::{Machine, Network, NoMachine};

/// A machine with these files, and one network interface.
struct Files(Vec<(&'static str, &'static str)>);

impl Machine for Files {
    fn read(&self, path: &Path) -> io::Result<String> {
        let file = self.0.iter().find(|(name, _)| Path::new(name) == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn files_in(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let paths = self.0.iter().map(|(name, _)| PathBuf::from(name));
        let found: Vec<_> = paths.filter(|path| path.parent() == Some(directory)).collect();
        if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }

    fn networks(&self) -> io::Result<Vec<Network>> {
        Ok(vec![Network { address: ip("192.0.2.7"), mask: ip("255.255.255.0") }])
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn groups() -> Groups {
    let members = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Groups(BTreeMap::from([
        ("staff".to_owned(), members(&["ann", "admins"])),
        ("admins".to_owned(), members(&["bob"])),
    ]))
}

fn source(file: Option<&str>, text: &str) -> Option<Source> {
    Some(Source { file: file.map(|file| Path::new(file).into()), text: text.to_owned() })
}

fn rules(text: &str, machine: &dyn Machine) -> Result<Hba, Vec<String>> {
    let texts = Texts { rules: source(None, text), maps: source(None, "m x x") };
    read(&texts, &groups(), machine).map_err(|(of_rules, of_maps)| [of_rules, of_maps].concat())
}

/// Returns the number of the line that is for a client: `address database user`, with `+` before
/// the address of a client with TLS, and `-` for the database of one that replicates the server.
fn line_for(hba: &Hba, client: &str) -> Option<usize> {
    let mut words = client.split(' ');
    let (address, database, user) = (words.next()?, words.next()?, words.next()?);
    let newcomer = Newcomer {
        address: address.trim_start_matches('+').parse().ok(),
        encrypted: address.starts_with('+'),
        database: Some(database).filter(|database| *database != "-"),
        user,
    };
    hba.find(&newcomer).map(|(_, rule)| rule.line())
}

#[test]
fn the_first_line_that_is_for_a_client_counts() {
    let text = "local d u reject\n\
                hostssl d u all trust\n\
                hostnossl d u 10.0.0.0/8 reject\n\
                hostgssenc all all all trust\n\
                host sameuser all 10.0.0.0 255.0.0.0 trust\n\
                host samerole,extra all ::1/128 trust\n\
                host \"/^db\\d{1,2}$\" +staff 0.0.0.0/0 trust\n\
                host /^x /b$ samehost trust\n\
                host all \"all\",\"+staff\" samenet trust\n\
                host replication all all trust\n\
                local \"sameuser\",all \"u,v\" peer map=m\n";
    let hba = rules(text, &Files(Vec::new())).unwrap();
    for (client, line) in [
        ("local d u", Some(1)),
        ("local e u", None),
        ("local e u,v", Some(11)),
        ("+9.9.9.9 d u", Some(2)),
        ("10.9.9.9 d u", Some(3)),
        ("::ffff:10.9.9.9 d u", Some(3)),
        ("11.9.9.9 d u", None),
        ("10.0.0.1 w w", Some(5)),
        ("11.0.0.1 w w", None),
        ("10.0.0.1 w W", None),
        ("::1 staff bob", Some(6)),
        ("::1 admins ann", None),
        ("::1 extra ann", Some(6)),
        ("::2 extra ann", None),
        ("9.9.9.9 db12 bob", Some(7)),
        ("9.9.9.9 db12 cid", None),
        ("9.9.9.9 db123 bob", None),
        ("192.0.2.7 xy bob", Some(8)),
        ("192.0.2.8 xy bob", None),
        ("192.0.2.8 d all", Some(9)),
        ("192.0.2.8 d +staff", Some(9)),
        ("192.0.3.8 d all", None),
        ("9.9.9.9 replication u", None),
        ("9.9.9.9 - u", Some(10)),
        ("10.9.9.9 - u", Some(10)),
        ("192.0.2.8 - all", Some(10)),
        ("local - u", None),
    ] {
        assert_eq!(line_for(&hba, client), line, "{client}");
    }
}

#[test]
fn options_are_read() {
    let text = "hostssl all all all cert map=m clientname=DN\n\
                hostssl all all all scram-sha-256 clientcert=verify-full\n\
                hostssl all all all md5 clientcert=verify-ca\n\
                local all all ident\n\
                local all all \"password\"\n";
    let hba = rules(text, &NoMachine).unwrap();
    let found: Vec<_> = hba
        .rules()
        .iter()
        .map(|rule| (rule.method, rule.certificate, rule.name, rule.map.as_deref()))
        .collect();
    use CertificateName::{CommonName, Subject};
    use ClientCertificate::{NotAsked, OfUser, Signed};
    assert_eq!(
        found,
        [
            (HbaMethod::Cert, OfUser, Subject, Some("m")),
            (HbaMethod::Scram, OfUser, CommonName, None),
            (HbaMethod::Md5, Signed, CommonName, None),
            (HbaMethod::Peer, NotAsked, CommonName, None),
            (HbaMethod::Password, NotAsked, CommonName, None),
        ]
    );
    assert_eq!(hba.rules()[3].text(), "local all all ident");
}

#[test]
fn each_mistake_is_named_with_its_line() {
    for (line, problem) in [
        ("lokal all all trust", "invalid connection type \"lokal\": expected local, host"),
        ("local,host all all trust", "multiple values specified for connection type"),
        ("local", "end-of-line before database specification"),
        ("local all", "end-of-line before role specification"),
        ("local all all", "end-of-line before authentication method"),
        ("host all all", "end-of-line before IP address specification"),
        ("host all all 10.0.0.1", "end-of-line before netmask specification"),
        ("host all all 10.0.0.1 trust", "invalid IP mask \"trust\""),
        ("host all all 10.0.0.1 ::1 trust", "IP address and mask do not match"),
        ("host all all 10.0.0.1 255.0.0.0,1 trust", "multiple values specified for netmask"),
        ("host all all 10.0.0.0/33 trust", "invalid CIDR mask in address \"10.0.0.0/33\""),
        ("host all all ::/129 trust", "invalid CIDR mask in address"),
        ("host all all 10.0.0.0/ trust", "invalid CIDR mask in address"),
        ("host all all a,b trust", "multiple values specified for host address"),
        ("host all all db.example trust", "invalid IP address \"db.example\": expected an address"),
        ("host all all .example/8 trust", "invalid IP address \".example\""),
        ("local all all trust,md5", "multiple values specified for authentication type"),
        ("local all all scram", "invalid authentication method \"scram\": expected one of trust,"),
        ("local all all ldap", "invalid authentication method \"ldap\": not supported by Refrain"),
        ("host all all all ident", "invalid authentication method \"ident\": not supported"),
        ("host all all all peer", "peer authentication is only supported on local sockets"),
        ("host all all all cert", "cert authentication is only supported on hostssl connections"),
        ("local all all peer map", "authentication option not in name=value format: map"),
        ("local all all peer x=1", "unrecognized authentication option name: \"x\""),
        ("local all all peer map=n", "no line of ident or ident_file has the map \"n\""),
        ("local all all md5 map=m", "authentication option \"map\" is only valid for"),
        ("host all all all md5 clientcert=verify-ca", "clientcert can only be configured for"),
        ("hostssl all all all md5 clientcert=1", "invalid value for clientcert: \"1\""),
        (
            "hostssl all all all cert clientcert=verify-ca",
            "clientcert only accepts \"verify-full\"",
        ),
        ("hostssl all all all cert clientname=X", "invalid value for clientname: \"X\""),
        ("local /( all trust", "invalid regular expression \"(\": unclosed group"),
        ("local all +nobody trust", "expected a group of [groups], found \"nobody\""),
        ("local all @names trust", "expected an absolute path, found \"names\""),
        ("local @/names all trust", "could not open file \"/names\": "),
        ("include /names", "could not open file \"/names\": "),
        ("include_dir /names", "could not open directory \"/names\": "),
        ("host all all samenet trust", "error enumerating network interfaces: "),
    ] {
        let text = format!("# a comment\n{line}\nlocal all all trust");
        let problems = rules(&text, &NoMachine).unwrap_err();
        let expected = format!("line 2: {problem}");
        assert_eq!(problems.len(), 1, "{line}");
        assert!(problems[0].starts_with(&expected), "{line}: {}", problems[0]);
    }
}

#[test]
fn all_mistakes_are_named_at_once() {
    let problems = rules("local\nlocal all all trust\nhost", &NoMachine).unwrap_err();
    assert_eq!(problems.len(), 2);
    assert!(problems[1].starts_with("line 3: end-of-line before database"), "{problems:?}");
}

#[test]
fn files_are_included() {
    let files = Files(vec![
        ("/etc/more.conf", "local @names all trust\ninclude sub/deep.conf\n"),
        ("/etc/names", "a, b\n# c\n\"d e\" f"),
        ("/etc/sub/deep.conf", "local deep all trust"),
        ("/etc/conf.d/2.conf", "local two all trust"),
        ("/etc/conf.d/1.conf", "\nlocal one all trust"),
        ("/etc/conf.d/.3.conf", "nonsense"),
        ("/etc/conf.d/4.txt", "nonsense"),
        ("/etc/loop.conf", "include loop.conf"),
        ("/etc/bad.conf", "\nlocal bad"),
    ]);
    let text = "include /etc/more.conf\n\
                include_if_exists /etc/missing.conf\n\
                include_dir /etc/conf.d\n";
    let hba = rules(text, &files).unwrap();
    let places: Vec<_> = hba.rules().iter().map(|rule| (rule.file(), rule.line())).collect();
    let expected =
        [("more.conf", 1), ("sub/deep.conf", 1), ("conf.d/1.conf", 2), ("conf.d/2.conf", 1)];
    assert_eq!(places, expected.map(|(file, line)| (format!("/etc/{file}"), line)));
    for (database, found) in [("b", true), ("f", true), ("d", false), ("c", false)] {
        assert_eq!(line_for(&hba, &format!("local {database} u")).is_some(), found, "{database}");
    }
    let problems = rules("include /etc/loop.conf", &files).unwrap_err();
    assert!(problems[0].ends_with("maximum nesting depth exceeded"), "{problems:?}");
    let problems = rules("include /etc/bad.conf", &files).unwrap_err();
    assert_eq!(problems, ["/etc/bad.conf, line 2: end-of-line before role specification"]);
}

#[test]
fn names_of_the_system_are_mapped() {
    let maps = "m root postgres\n\
                m root admin # and another\n\
                mail /^(.*)@example\\.com$ \\1\n\
                mail /^(.*)@example\\.org$ \"x_\\1_y\"\n\
                any /^a all\n\
                any b /^b\n\
                any c +staff\n\
                any d \"+staff\"\n\
                any e \"all\"\n\
                opt /^(x)?z \\1u\n";
    let texts = Texts { rules: None, maps: source(None, maps) };
    let hba = read(&texts, &groups(), &NoMachine).unwrap();
    for (map, system, user, maps) in [
        (None, "u", "u", true),
        (None, "u", "v", false),
        (Some("m"), "root", "postgres", true),
        (Some("m"), "root", "admin", true),
        (Some("m"), "root", "root", false),
        (Some("m"), "Root", "admin", false),
        (Some("mail"), "ann@example.com", "ann", true),
        (Some("mail"), "ann@example.com", "bob", false),
        (Some("mail"), "ann@example.comx", "ann", false),
        (Some("mail"), "ann@example.org", "x_ann_y", true),
        (Some("mail"), "ann@example.org", "ann", false),
        (Some("mail"), "all@example.com", "cid", false),
        (Some("any"), "a", "anybody", true),
        (Some("any"), "b", "bob", true),
        (Some("any"), "b", "ann", false),
        (Some("any"), "c", "bob", true),
        (Some("any"), "d", "bob", false),
        (Some("any"), "d", "+staff", true),
        (Some("any"), "e", "bob", false),
        (Some("opt"), "xz", "xu", true),
        (Some("opt"), "z", "u", false),
        (Some("nowhere"), "u", "u", false),
    ] {
        assert_eq!(hba.maps(map, system, user), maps, "{map:?} {system} {user}");
    }
}

#[test]
fn mistakes_in_maps_are_named() {
    for (line, problem) in [
        ("m", "missing entry at end of line"),
        ("m a", "missing entry at end of line"),
        ("m a,b c", "multiple values in ident field"),
        ("m /( c", "invalid regular expression \"(\": "),
        ("m /a \\1", "regular expression \"a\" has no subexpressions as requested by backrefere"),
        ("m a +nobody", "expected a group of [groups], found \"nobody\""),
    ] {
        // The missing map of the rule is no problem of its own.
        let rules = source(None, "local all all peer map=other");
        let texts = Texts { rules, maps: source(Some("/i.conf"), line) };
        let (of_rules, of_maps) = read(&texts, &groups(), &NoMachine).unwrap_err();
        assert_eq!(of_rules, Vec::<String>::new());
        let expected = format!("/i.conf, line 1: {problem}");
        assert!(of_maps[0].starts_with(&expected), "{line}: {of_maps:?}");
    }
}

#[test]
fn lines_that_let_in_strangers_are_known() {
    for (line, trusts) in [
        ("local all all trust", false),
        ("host all all all md5", false),
        ("host all all all trust", true),
        ("hostssl all all all trust clientcert=verify-ca", false),
        ("host all all 127.0.0.1/32 trust", false),
        ("host all all 127.0.0.0/8 trust", false),
        ("host all all 127.0.0.0/7 trust", true),
        ("host all all ::1/128 trust", false),
        ("host all all ::1/127 trust", true),
        ("host all all samehost trust", false),
        ("host all all samenet trust", true),
        ("hostgssenc all all all trust", false),
    ] {
        let hba = rules(line, &Files(Vec::new())).unwrap();
        assert_eq!(hba.rules()[0].trusts_strangers(), trusts, "{line}");
    }
}
