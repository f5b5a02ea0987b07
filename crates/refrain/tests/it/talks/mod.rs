//! All conversations, with each version of PostgreSQL.

mod tls;
mod coverage;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::known;
use crate::talk::{self, Scene};
use crate::world::{Version, cluster};

/// Returns name and text of each conversation. `REFRAIN_TALK` is a text that the name has to
/// contain.
pub(crate) fn all() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/talks");
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let talk = |file: &Path| file.extension().is_some_and(|extension| extension == "talk");
    let named = files.filter(|file| talk(file)).map(|file| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(file).unwrap())
    });
    let mut talks: Vec<_> = named.collect();
    talks.sort();
    talks
}

/// Holds the conversations that `chosen` lets through, one after the other. `version` is
/// PostgreSQL's.
pub(crate) fn hold_all(scene: &Scene, version: Version, chosen: impl Fn(&str) -> bool) {
    let part = std::env::var("REFRAIN_TALK").unwrap_or_default();
    let mut talks = all();
    talks.retain(|(name, _)| name.contains(&part));
    assert!(!talks.is_empty(), "no file in tests/it/talks has a name that contains {part:?}");
    talks.retain(|(name, _)| chosen(name));
    let mut failed = Vec::new();
    for (name, text) in talks {
        let outcome = catch_unwind(AssertUnwindSafe(|| talk::hold(scene, &text)));
        let outcome = outcome.unwrap_or_else(|_| Err("a panic, told above".to_owned()));
        let here = format!("{name}@{}", version.number());
        let known = if known::is_listed(&here) { &here } else { &name };
        match known::judge(known, outcome) {
            Ok(said) => println!("{name}: {said}"),
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    assert!(failed.is_empty(), "{} fail:\n{}", failed.len(), failed.join("\n"));
}

fn hold_all_in_the_clear(version: Version) {
    let scene = Scene::over(cluster(version));
    scene.prepare();
    hold_all(&scene, version, |_| true);
}

#[test]
fn conversations_with_postgresql_15() {
    hold_all_in_the_clear(Version::V15);
}

#[test]
fn conversations_with_postgresql_18() {
    hold_all_in_the_clear(Version::V18);
}
