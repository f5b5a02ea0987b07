//! Which replies answer which requests.

use refrain_pg_wire::tag::back;

use crate::pipeline::request_kinds::RequestKind;

/// The effect that a reply has on the request that it answers.
#[derive(Clone, Copy)]
pub(super) enum ReplyRule {
    /// Strikes the request off.
    Ends,
    /// Leaves the request there: more replies are to come.
    Goes,
    /// Never comes for such a request.
    Never,
}

/// The kinds of requests; for each of them the replies that leave a request there, and those that
/// strike it off. The table is from "Message Flow" in PostgreSQL's manual.
const REPLIES: [(RequestKind, &[u8], &[u8]); KINDS] = {
    use RequestKind::*;
    [
        (Parse, &[], &[back::PARSE_COMPLETE]),
        (Bind, &[], &[back::BIND_COMPLETE]),
        (
            DescribeStatement,
            &[back::PARAMETER_DESCRIPTION],
            &[back::ROW_DESCRIPTION, back::NO_DATA],
        ),
        (DescribePortal, &[], &[back::ROW_DESCRIPTION, back::NO_DATA]),
        (
            Execute,
            STREAM,
            &[back::COMMAND_COMPLETE, back::EMPTY_QUERY_RESPONSE, back::PORTAL_SUSPENDED],
        ),
        (Close, &[], &[back::CLOSE_COMPLETE]),
        (Sync, &[], &[back::READY_FOR_QUERY]),
        (Query, QUERY, &[back::READY_FOR_QUERY]),
        (FunctionCall, &[back::FUNCTION_CALL_RESPONSE], &[back::READY_FOR_QUERY]),
        (Syncs, &[back::READY_FOR_QUERY], &[back::CLOSE_COMPLETE]),
        (Readies, &[back::READY_FOR_QUERY], &[]),
        (Nothing, &[], &[]),
        (CopyEnd, &[], &[]),
    ]
};
const STREAM: &[u8] = &[
    back::DATA_ROW,
    back::COPY_DATA,
    back::COPY_OUT_RESPONSE,
    back::COPY_IN_RESPONSE,
    back::COPY_DONE,
    back::COPY_BOTH_RESPONSE,
];
const QUERY: &[u8] = &[
    back::DATA_ROW,
    back::COMMAND_COMPLETE,
    back::ROW_DESCRIPTION,
    back::EMPTY_QUERY_RESPONSE,
    back::COPY_DATA,
    back::COPY_OUT_RESPONSE,
    back::COPY_IN_RESPONSE,
    back::COPY_DONE,
    back::COPY_BOTH_RESPONSE,
];
/// The number of kinds of requests.
const KINDS: usize = RequestKind::CopyEnd as usize + 1;
/// The number of tags: PostgreSQL's are ASCII.
const TAGS: usize = 128;

/// [`REPLIES`] as rules by kind and tag: each reply needs one look-up.
static RULES: [[ReplyRule; TAGS]; KINDS] = {
    let mut rules = [[ReplyRule::Never; TAGS]; KINDS];
    let mut kind = 0;
    while kind < KINDS {
        let (it, goes, ends) = REPLIES[kind];
        assert!(it as usize == kind, "the rows stand in the order of the kinds");
        rules[kind] = ruled(ruled(rules[kind], goes, ReplyRule::Goes), ends, ReplyRule::Ends);
        kind += 1;
    }
    rules
};

/// Sets the rule for some tags.
const fn ruled(mut rules: [ReplyRule; TAGS], tags: &[u8], rule: ReplyRule) -> [ReplyRule; TAGS] {
    let mut at = 0;
    while at < tags.len() {
        rules[tags[at] as usize] = rule;
        at += 1;
    }
    rules
}

/// Returns the effect of a reply on a request.
#[inline]
pub(super) fn rule(kind: RequestKind, tag: u8) -> ReplyRule {
    RULES[kind as usize].get(usize::from(tag)).copied().unwrap_or(ReplyRule::Never)
}
