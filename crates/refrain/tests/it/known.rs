//! What is known to fail.
//!
//! A script listed here runs all the same. It may fail, which is printed; once it passes, that is printed,
//! and its row has to go.

/// How often a known failure shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Each time: once the test passes, its row has to go.
    Always,
    /// Depending on what comes first.
    Sometimes,
}

use Shows::{Always, Sometimes};

/// Name of a script, with `@15` or `@18` if it fails with that version only;
/// whether it always fails; what differs from what should be.
const KNOWN_FAILURES: &[(&str, Shows, &str)] = &[
    ("e24_eviction_skipped_by_an_error", Always, EVICTION_SKIPPED),
    ("e24_close_to_make_room_is_skipped", Always, EVICTION_SKIPPED),
    (
        "e67_a_new_shape_is_not_shown_unannounced",
        Always,
        "rows of the new shape, in place of 0A000, where another server has no stale plan",
    ),
    ("e58_right_after_a_set", Always, SET_AND_PARSE),
    ("e56_search_path_of_each_client@15", Sometimes, SET_AND_PARSE),
    ("e58_how_strings_are_read", Sometimes, SET_AND_PARSE),
    ("e59_settings_that_change_the_meaning", Sometimes, SET_AND_PARSE),
    ("e38_query_without_sync_and_the_next_client@18", Always, NEXT_COMMAND),
    ("e38_function_call_without_sync@18", Always, NEXT_COMMAND),
];

const EVICTION_SKIPPED: &str = "42P05 from a Parse that the program puts in front: the Close that \
                                was to make room was skipped by an error";
const NEXT_COMMAND: &str = "PostgreSQL 18 answers the next command of such a session with XX000, \
                            and the next command is another client's";
const SET_AND_PARSE: &str = "a Parse that comes while the settings are being asked for after a SET \
                             belongs to the old ones: its next use means something else";

/// What is known about this test, if it is known to fail.
pub(crate) fn failure(name: &str) -> Option<(Shows, &'static str)> {
    let found = KNOWN_FAILURES.iter().find(|(known, ..)| *known == name);
    found.map(|(_, shows, what)| (*shows, *what))
}

/// What a test has to say for itself, if it is to be green: `outcome` is its own.
pub(crate) fn judge(name: &str, outcome: Result<(), String>) -> Result<String, String> {
    match (outcome, failure(name)) {
        (Ok(()), None) => Ok("ok".to_owned()),
        (Ok(()), Some((Sometimes, _))) => Ok("ok this time".to_owned()),
        (Ok(()), Some((Always, _))) => Ok("passes now: take it off KNOWN_FAILURES".to_owned()),
        (Err(_), Some((_, what))) => Ok(format!("known failure: {what}")),
        (Err(why), None) => Err(why),
    }
}
