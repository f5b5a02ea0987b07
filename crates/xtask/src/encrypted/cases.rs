//! The connections that each library tries, and what has to come of them.

use super::library::{Ability, Library, Refusal};
use super::middle::Trick;
use super::mode::{Checks, Mode};
use super::world::{CERTIFIED, DATABASES, Door, USER};
use crate::postgres::PASSWORD;

/// A connection.
pub(super) struct Case {
    /// What it is, for reports.
    pub(super) name: String,
    /// Where the driver connects to.
    pub(super) door: Door,
    /// The driver's options. The values of `root`, `cert` and `key` are names of files.
    pub(super) options: Vec<(&'static str, &'static str)>,
    /// What has to come of it.
    pub(super) due: Due,
    /// What Refrain has to log beside the client's address.
    pub(super) logged: Option<&'static str>,
}

/// What has to come of a connection.
#[derive(Debug)]
pub(super) enum Due {
    /// The client is in, and the server has this version.
    In { is_encrypted: bool, version: u32 },
    /// Refrain refuses it with this SQLSTATE and these words, which are PostgreSQL's.
    Told(&'static str, &'static str),
    /// The driver refuses with these words.
    Said(&'static str),
}

const HANDSHAKE: &str = "could not accept SSL connection";
const NO_ENTRY: &str = "no pg_hba.conf entry for host";

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
        let due = Due::Told("28000", NO_ENTRY);
        let case = case(&to_encrypted, Door::Encrypted, options, due);
        cases.push(Case { logged: Some(NO_ENTRY), ..case });
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
        // libpq looks at the name when the handshake is over, and says goodbye in good order.
        let logged = (refusal != Refusal::WrongName).then_some(HANDSHAKE);
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
    for (name, options, state, words) in [
        (
            "a login by certificate without one",
            without,
            "28000",
            "connection requires a valid client certificate",
        ),
        (
            "a login by the certificate of another",
            show(CERTIFIED, "bob.crt", "bob.key"),
            "28000",
            "certificate authentication failed for user \"ann\"",
        ),
    ] {
        let case = case(name, Door::Either, options, Due::Told(state, words));
        cases.push(Case { logged: Some(words), ..case });
    }
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
    let words = "received unencrypted data after SSL request";
    let request = case(
        "bytes behind the request",
        Door::Middle(Trick::Request),
        login(mode),
        Due::Told("08P01", words),
    );
    cases.push(Case { logged: Some(words), ..request });
    let (name, door) = ("bytes behind the answer", Door::Middle(Trick::Answer));
    match library.words(Refusal::Injected) {
        Some(words) => cases.push(case(name, door, login(mode), Due::Said(words))),
        None => cases.extend(lets_in(name, door, &login(mode), true)),
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

/// Adds logins that are bound to the server's certificate, and men in the middle.
fn bound(library: &Library, mode: &Mode, cases: &mut Vec<Case>) {
    let check = "SCRAM channel binding check failed";
    let negotiation = "SCRAM channel binding negotiation error";
    let between = ("a man in the middle", Door::Middle(Trick::Between));
    let strip = ("a man in the middle who hides the binding", Door::Middle(Trick::Strip));
    let plain = login(mode);
    if library.has(Ability::BindingByItself) {
        for ((name, door), words) in [(between, check), (strip, negotiation)] {
            let case = case(name, door, plain.clone(), Due::Told("28000", words));
            cases.push(Case { logged: Some(words), ..case });
        }
    } else {
        cases.extend(lets_in(between.0, between.1, &plain, true));
        cases.extend(lets_in(strip.0, strip.1, &plain, true));
    }
    if !library.has(Ability::Binding) {
        return;
    }
    let mut options = login(mode);
    options.push(("binding", "require"));
    cases.extend(lets_in("a bound login", Door::Either, &options, true));
    let name = format!("a bound login and {}", between.0);
    let case_between = case(&name, between.1, options.clone(), Due::Told("28000", check));
    cases.push(Case { logged: Some(check), ..case_between });
    let name = format!("a bound login and {}", strip.0);
    let case_strip = match library.words(Refusal::BindingStripped) {
        Some(words) => case(&name, strip.1, options, Due::Said(words)),
        None => Case {
            logged: Some(negotiation),
            ..case(&name, strip.1, options, Due::Told("28000", negotiation))
        },
    };
    cases.push(case_strip);
    if let Some(clear) = library.modes.iter().find(|mode| mode.begins_clear) {
        let mut options = login(clear);
        options.push(("binding", "require"));
        match library.words(Refusal::BindingInClear) {
            Some(words) => {
                cases.push(case(
                    "a bound login in the clear",
                    Door::Either,
                    options,
                    Due::Said(words),
                ));
            }
            None => {
                cases.extend(lets_in("a bound login in the clear", Door::Either, &options, false))
            }
        }
    }
}

/// Returns what is due where a driver has to refuse in its own words. Without words nothing fits, so
/// that a gap in the table is seen.
fn due(library: &Library, refusal: Refusal) -> Due {
    Due::Said(library.words(refusal).unwrap_or("(no words in the table)"))
}
