//! Conversations over TLS on both sides: with records of all kinds, and byte by byte.

use std::fs;
use std::sync::OnceLock;

use xtask::postgres::Cluster;
use xtask::records::{self, TLS12, TLS13};

use crate::talk::Scene;
use crate::talks::hold_all;
use crate::tls::{files, to_both};
use crate::transport::{Sealing, Way};
use crate::world::Version;

/// Conversations with so many bytes that they are left out where each byte costs a write or a
/// record. They pass in whole records.
const LARGE: &[&str] = &["e21_large_rows_in_the_middle"];
/// Conversations of autoprepare that need a Parse to come with all messages up to its Sync:
/// otherwise Refrain does not look at it.
const TOGETHER: &[&str] =
    &["e19_autoprepare_runs_unnamed_by_name", "e67_an_unnamed_statement_by_name_is_stale"];
/// Conversations that are held where each byte costs a write and a record: transactions, errors
/// amid pipelines, COPY, statements that are made again, messages that come unasked.
const FEW: &[&str] =
    &["e27", "e28", "e33", "e40", "e41", "e42", "e46_discard_all", "e63", "e67_unn"];

/// Returns a server for conversations, which takes clients with TLS and without.
fn server(version: Version) -> &'static Cluster {
    static V15: OnceLock<Cluster> = OnceLock::new();
    static V18: OnceLock<Cluster> = OnceLock::new();
    let place = if version == Version::V15 { &V15 } else { &V18 };
    place.get_or_init(|| {
        let hba = "host all postgres all trust\n";
        let settings = [("max_prepared_transactions", "5")];
        let authority = &files().authority;
        Cluster::start_encrypting_with(version, authority, hba, "", &settings).unwrap()
    })
}

/// Makes a scene with TLS on both sides.
fn scene(version: Version, sealing: Sealing) -> Scene {
    let cluster = server(version);
    let root = fs::read_to_string(files().path("root.crt")).unwrap();
    // Clients of the older version of PostgreSQL speak the older version of TLS.
    let tls = if version == Version::V15 { &TLS12 } else { &TLS13 };
    let way = Way::Tls(records::client(&root, tls).unwrap(), sealing);
    Scene { cluster, config: to_both(cluster), way, is_split: false }
}

/// Whether a conversation is held where messages come in pieces.
fn may_be_torn(name: &str) -> bool {
    !LARGE.contains(&name) && !TOGETHER.contains(&name)
}

fn conversations_over_tls(version: Version) {
    let whole = scene(version, Sealing::Whole);
    whole.prepare();
    hold_all(&whole, version, |_| true);
    for sealing in [Sealing::Bytes, Sealing::Empty] {
        println!("{sealing:?}");
        hold_all(&scene(version, sealing), version, may_be_torn);
    }
    let split = Scene { is_split: true, ..whole };
    println!("split");
    hold_all(&split, version, may_be_torn);
    let split = Scene { is_split: true, ..scene(version, Sealing::Bytes) };
    println!("split, and each byte in a record");
    hold_all(&split, version, |name| FEW.iter().any(|few| name.starts_with(few)));
}

#[test]
fn conversations_over_tls_with_postgresql_15() {
    conversations_over_tls(Version::V15);
}

#[test]
fn conversations_over_tls_with_postgresql_18() {
    conversations_over_tls(Version::V18Tls);
}
