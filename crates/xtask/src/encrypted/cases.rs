//! The connections that each library tries, and what has to come of them.

use crate::postgres::PASSWORD;

use super::library::{Ability, Library, Refusal};
use super::middle::Trick;
use super::mode::{Checks, Mode};
use super::world::{CERTIFIED, DATABASES, Door, USER};

/// A connection.
pub(super) struct Case {
    /// The name in reports.
    pub(super) name: String,
    /// Where the driver connects to.
    pub(super) door: Door,
    /// The driver's options. The values of `root`, `cert` and `key` are names of files.
    pub(super) options: Vec<(&'static str, &'static str)>,
    /// The result that it has to have.
    pub(super) due: Due,
    /// Words that Refrain has to log, beside the client's address.
    pub(super) logged: Option<&'static str>,
}

/// The result that a connection has to have.
#[derive(Debug)]
pub(super) enum Due {
    /// The client is in, and the server has this version.
    In { is_encrypted: bool, version: u32 },
    /// Refrain refuses it with this SQLSTATE and these words, which are PostgreSQL's.
    Told(&'static str, &'static str),
    /// The driver refuses with words of these.
    Said(Vec<&'static str>),
}

const HANDSHAKE: &str = "could not accept SSL connection";
const NO_ENTRY: &str = "no pg_hba.conf entry for host";
const CHECK: &str = "SCRAM channel binding check failed";
const NEGOTIATION: &str = "SCRAM channel binding negotiation error";
const UNENCRYPTED: &str = "received unencrypted data after SSL request";
const BETWEEN: Door = Door::Middle(Trick::Between);
const STRIP: Door = Door::Middle(Trick::Strip);

/// Returns every connection that a library tries.
pub(super) fn of(library: &Library) -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in library.modes {
        modes(library, mode, &mut cases);
        certificates(library, mode, &mut cases);
    }
    let Some(strict) = library.modes.last() else { return cases };
    clients(library, strict, &mut cases);
    injected(library, strict, &mut cases);
    if library.has(Ability::Direct) {
        direct(library, strict, &mut cases);
    }
    bound(library, strict, &mut cases);
    cases
}

/// Returns the options of a login by password in this mode. The file of the authority goes with
/// modes that check: in libpq, a file turns `require` into `verify-ca`.
fn login(mode: &Mode) -> Vec<(&'static str, &'static str)> {
    let mut options = vec![("mode", mode.word), ("user", USER), ("password", PASSWORD)];
    if mode.checks > Checks::Nothing {
        options.push(("root", "root.crt"));
    }
    options
}

fn case(name: &str, door: Door, options: Vec<(&'static str, &'static str)>, due: Due) -> Case {
    Case { name: name.to_owned(), door, options, due, logged: None }
}

/// Returns a connection that is let in, to each version of the server.
fn lets_in(
    name: &str,
    door: Door,
    options: &[(&'static str, &'static str)],
    is_encrypted: bool,
) -> impl Iterator<Item = Case> {
    DATABASES
        .map(|(database, version)| {
            let options = [options, &[("database", database)]].concat();
            let name = format!("{name}, PostgreSQL {version}");
            Case { name, door, options, due: Due::In { is_encrypted, version }, logged: None }
        })
        .into_iter()
}

/// Adds what each mode does where Refrain refuses TLS, leaves it to the client, and insists.
fn modes(library: &Library, mode: &Mode, cases: &mut Vec<Case>) {
    let options = login(mode);
    let name = |door| format!("{} {door}", mode.word);
    let to_clear = name("where there is no TLS");
    if mode.insists() {
        let due = due(library, Refusal::NoTls);
        cases.push(case(&to_clear, Door::Clear, options.clone(), due));
    } else {
        cases.extend(lets_in(&to_clear, Door::Clear, &options, false));
    }
    let to_either = name("where there is TLS");
    cases.extend(lets_in(&to_either, Door::Either, &options, !mode.begins_clear));
    let to_encrypted = name("where TLS is required");
    if mode.begins_clear && !mode.may_change {
        cases.push(told(&to_encrypted, Door::Encrypted, options, NO_ENTRY));
    } else {
        cases.extend(lets_in(&to_encrypted, Door::Encrypted, &options, true));
    }
}

/// Adds what each mode says to certificates of Refrain that are no good.
fn certificates(library: &Library, mode: &Mode, cases: &mut Vec<Case>) {
    if mode.begins_clear {
        return;
    }
    let mut with_stranger = login(mode);
    for (name, value) in &mut with_stranger {
        if *name == "root" {
            *value = "stranger.crt";
        }
    }
    for (what, door, needs, refusal, options) in [
        ("another name", Door::Elsewhere, Checks::Name, Refusal::WrongName, login(mode)),
        ("an expired certificate", Door::Expired, Checks::Authority, Refusal::Expired, login(mode)),
        (
            "an unknown authority",
            Door::Either,
            Checks::Authority,
            Refusal::UnknownAuthority,
            with_stranger,
        ),
    ] {
        let name = format!("{} and {what}", mode.word);
        if mode.checks < needs {
            cases.extend(lets_in(&name, door, &options, true));
            continue;
        }
        let case = case(&name, door, options, due(library, refusal));
        let is_seen = refusal != Refusal::WrongName || library.has(Ability::NameInHandshake);
        let logged = is_seen.then_some(HANDSHAKE);
        cases.push(Case { logged, ..case });
    }
}

/// Adds certificates of clients.
fn clients(library: &Library, mode: &Mode, cases: &mut Vec<Case>) {
    let show = |user, certificate, key| {
        let mut options = login(mode);
        options.retain(|(name, _)| !matches!(*name, "user" | "password"));
        options.extend([("user", user), ("cert", certificate), ("key", key)]);
        options
    };
    let ann = show(CERTIFIED, "ann.crt", "ann.key");
    cases.extend(lets_in("a login by certificate", Door::Either, &ann, true));
    let mut both = login(mode);
    both.extend([("cert", "bob.crt"), ("key", "bob.key")]);
    cases.extend(lets_in("a password and a certificate", Door::Certified, &both, true));
    let mut without = login(mode);
    without.retain(|(name, _)| !matches!(*name, "user" | "password"));
    without.push(("user", CERTIFIED));
    let words = "connection requires a valid client certificate";
    cases.push(told("a login by certificate without one", Door::Either, without, words));
    let words = "certificate authentication failed for user \"ann\"";
    let bob = show(CERTIFIED, "bob.crt", "bob.key");
    cases.push(told("a login by the certificate of another", Door::Either, bob, words));
    for (name, options, refusal) in [
        ("no certificate where one is required", login(mode), Refusal::NoCertificate),
        (
            "a certificate of an unknown authority",
            show(CERTIFIED, "unknown.crt", "unknown.key"),
            Refusal::UnknownCertificate,
        ),
    ] {
        let case = case(name, Door::Certified, options, due(library, refusal));
        cases.push(Case { logged: Some(HANDSHAKE), ..case });
    }
}

/// Adds bytes in the clear behind the request for TLS, and behind its answer.
fn injected(library: &Library, mode: &Mode, cases: &mut Vec<Case>) {
    let door = Door::Middle(Trick::Request);
    let due_told = Due::Told("08P01", UNENCRYPTED);
    let request = case("bytes behind the request", door, login(mode), due_told);
    cases.push(Case { logged: Some(UNENCRYPTED), ..request });
    let (name, door) = ("bytes behind the answer", Door::Middle(Trick::Answer));
    if library.has(Ability::Injected) {
        cases.push(case(name, door, login(mode), due(library, Refusal::Injected)));
    } else {
        cases.extend(lets_in(name, door, &login(mode), true));
    }
}

/// Adds TLS without a request.
fn direct(library: &Library, mode: &Mode, cases: &mut Vec<Case>) {
    let mut options = login(mode);
    options.push(("negotiation", "direct"));
    cases.extend(lets_in("direct TLS", Door::Either, &options, true));
    cases.extend(lets_in("direct TLS where TLS is required", Door::Encrypted, &options, true));
    let due = due(library, Refusal::NoDirectTls);
    cases.push(case("direct TLS where there is no TLS", Door::Clear, options, due));
}

/// Adds men in the middle whose certificate is trusted, and logins that are bound to the server's.
fn bound(library: &Library, mode: &Mode, cases: &mut Vec<Case>) {
    if library.has(Ability::BindingByItself) {
        cases.push(told("a man in the middle", BETWEEN, login(mode), CHECK));
        let name = "a man in the middle who hides the binding";
        cases.push(told(name, STRIP, login(mode), NEGOTIATION));
    } else {
        cases.extend(lets_in("a man in the middle", BETWEEN, &login(mode), true));
    }
    if !library.has(Ability::Binding) {
        return;
    }
    let binding = |mode| [login(mode), vec![("binding", "require")]].concat();
    let options = binding(mode);
    cases.extend(lets_in("a bound login", Door::Either, &options, true));
    let name = "a bound login and a man in the middle";
    cases.push(told(name, BETWEEN, options.clone(), CHECK));
    let hides = "a bound login and a man in the middle who hides the binding";
    let clear = library.modes.iter().find(|mode| mode.begins_clear);
    if library.has(Ability::BindingInsisted) {
        cases.push(case(hides, STRIP, options, due(library, Refusal::BindingStripped)));
        let due = || due(library, Refusal::BindingInClear);
        let name = "a bound login in the clear";
        cases.extend(clear.map(|clear| case(name, Door::Either, binding(clear), due())));
    } else {
        cases.push(told(hides, STRIP, options, NEGOTIATION));
    }
}

/// Returns a connection that Refrain refuses in PostgreSQL's words, which it logs.
fn told(
    name: &str,
    door: Door,
    options: Vec<(&'static str, &'static str)>,
    words: &'static str,
) -> Case {
    let case = case(name, door, options, Due::Told("28000", words));
    Case { logged: Some(words), ..case }
}

/// Returns what is due where a driver has to refuse in its own words.
fn due(library: &Library, refusal: Refusal) -> Due {
    Due::Said(library.words(refusal))
}
