//! The rule on retired words: the code has one word for a thing, and no file has its former words.
//!
//! The list has words that differ from plain English and that no file has any more. A word that the
//! code gives up comes into the list, so that a change that was begun before does not bring it
//! back.

use super::{Source, Tree};

/// A word that the code no longer has, and the word in its place.
struct Retired {
    word: &'static str,
    instead: &'static str,
}

const fn retired(word: &'static str, instead: &'static str) -> Retired {
    Retired { word, instead }
}

/// All retired words. PostgreSQL's or PgBouncer's word is in their place if there is one.
const RETIRED: &[Retired] = &[
    retired("Census", "ClientCounts"),
    retired("Crowded", "LimitReached"),
    retired("Custody", "ServerState"),
    retired("Entrant", "LoginRequest"),
    retired("Exemplar", "Sample"),
    retired("Fate", "ReplyAction"),
    retired("Hub", "CoreState"),
    retired("MadeUp", "Fake"),
    retired("Parcel", "Transfer"),
    retired("Profiles", "InternedSettings"),
    retired("Roles", "Connections"),
    retired("Seat", "WorkerState"),
    retired("Standing", "SettingsKnowledge"),
    retired("Surprise", "UnexpectedMessage"),
    retired("Swallow", "Skip"),
    retired("Talk", "Link"),
    retired("Vacating", "DatabaseDrain"),
    retired("crates/engine", "crates/pg"),
    retired("crates/lite", "crates/sqlite or crates/sqlite-pg"),
    retired("curious", "waiting for the analysis"),
    retired("exemplar", "sample"),
    retired("generalise", "normalize"),
    retired("hush", "skip the follow-up error"),
    retired("made_up", "fake"),
    retired("refrain_engine", "refrain_pg"),
    retired("refrain_lite", "refrain_sqlite or refrain_sqlite_pg"),
    retired("run_aside", "run_internal"),
    retired("starving", "waits for room"),
    retired("upheaval", "schema change"),
    retired("upheavals", "schema changes"),
    retired("vacate", "drain"),
    retired("vacated", "drained"),
];

/// The file that has to spell the words.
const LIST: &str = "crates/xtask/src/tidy/retired.rs";

/// Finds every retired word in the Rust sources, with the word to use instead.
pub(super) fn words(tree: &Tree) -> Vec<String> {
    tree.sources().filter(|source| !source.path.ends_with(LIST)).flat_map(found_in).collect()
}

fn found_in(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (line, number) in source.text.lines().zip(1..) {
        for Retired { word, instead } in RETIRED.iter().filter(|it| has_word(line, it.word)) {
            found.push(format!("{}: {word} is now {instead}", source.at(number)));
        }
    }
    found
}

/// Whether a line has a whole word: no letter, digit or underscore stands before or after it.
fn has_word(line: &str, word: &str) -> bool {
    let goes_on = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(goes_on) && !after.starts_with(goes_on)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_word_is_found_as_a_whole() {
        let text = "//! The hub.\nfn talks(hub: &Hub) -> u8 {\n    hub.parcels(\"a Parcel\")\n}\n";
        let syntax = syn::parse_file(text).unwrap();
        let source = Source { path: "crates/x/src/y.rs".into(), text: text.into(), syntax };
        let places = [
            "crates/x/src/y.rs:2: Hub is now CoreState",
            "crates/x/src/y.rs:3: Parcel is now Transfer",
        ];
        assert_eq!(found_in(&source), places);
        assert!(has_word("use refrain_lite::x;", "refrain_lite"));
        assert!(!has_word("let refrain_lites = 1;", "refrain_lite"));
    }
}
