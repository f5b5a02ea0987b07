//! The parameters that a text sets.
//!
//! What: the target of a SET, RESET or `set_config(…)`, and [`set_names`], the names of all
//! parameters that a text sets for the session.
//!
//! Why: a parameter that a client sets must have the same value on its next server. For this the
//! proxy asks the server for the value, by name.
//!
//! What always holds: a text without [`Traits::SET`], [`Traits::SET_REPORTED`] and [`Traits::ROLE`]
//! has no names here. Settings that end with the transaction (SET LOCAL, SET TRANSACTION,
//! `set_config(…, true)`) have none.
//!
//! What it does not do: read values, or know the settings made inside a function or DO.

use std::borrow::Cow;

use crate::ahead::Ahead;
use crate::lex::{Lexer, Token, TokenKind};
use crate::name::{Name, fold, unquoted};
use crate::rules::{
    DEFAULTS, FORMS, Mention, UNKNOWN_PARAMETER, UNREAD_CALL, is_word, mention, parameter_traits,
};
use crate::traits::Traits;

/// The name in [`set_names`] that stands for any parameter.
pub const ANY_PARAMETER: &[u8] = b"ALL";

/// How many tokens of a `set_config(…)` are read. A longer call counts as one that sets any
/// parameter for the session.
const CALL_TOKENS: usize = 64;

/// The target of a SET or RESET.
pub(crate) struct Target {
    /// The words of the target, as far as they can be read.
    pub(crate) span: Option<Name>,
    /// True for a SET LOCAL, which ends with the transaction.
    pub(crate) local: bool,
    /// The names, if the words are a special form.
    form: Option<&'static [&'static str]>,
}

impl Target {
    /// Reads the tokens after SET or RESET.
    pub(crate) fn read(mut ahead: Ahead<'_>) -> Target {
        let local = ahead.take_word(&["local"]);
        if let Some(target) = Target::form(&ahead, local) {
            return target;
        }
        if !local && ahead.take_word(&["session"]) {
            return Target::form(&ahead, local).unwrap_or_else(|| Target::named(ahead, local));
        }
        Target::named(ahead, local)
    }

    fn form(ahead: &Ahead<'_>, local: bool) -> Option<Target> {
        FORMS.iter().find_map(|(words, names)| {
            let mut ahead = ahead.clone();
            let mut span: Option<Name> = None;
            for word in *words {
                let token = ahead.peek().filter(|_| ahead.at_word(&[word]))?;
                span = Some(Name {
                    start: span.map_or(token.start, |span| span.start),
                    end: token.end,
                });
                ahead.take();
            }
            // `names.x` is a custom parameter.
            let form = Target { span, local, form: Some(names) };
            (!ahead.at(TokenKind::Dot)).then_some(form)
        })
    }

    fn named(mut ahead: Ahead<'_>, local: bool) -> Target {
        let mut span = ahead.take_name().map(|token| Name { start: token.start, end: token.end });
        while span.is_some() && ahead.at(TokenKind::Dot) {
            ahead.take();
            let more = ahead.take_name();
            span = span.zip(more).map(|(span, more)| Name { start: span.start, end: more.end });
        }
        Target { span, local, form: None }
    }

    /// Returns its effects on the session.
    pub(crate) fn traits(&self, text: &[u8]) -> Traits {
        let traits = match (self.form, self.span) {
            (Some(names), _) => names
                .iter()
                .fold(Traits::NONE, |traits, name| traits | parameter_traits(name.as_bytes())),
            (_, Some(span)) => {
                let written = span.of(text);
                parameter_traits(unquoted(written).unwrap_or(written))
            }
            _ => UNKNOWN_PARAMETER,
        };
        for_transaction(self.local, traits)
    }
}

/// A call of `set_config`.
pub(crate) struct Call<'a> {
    /// The parameter, if it is a plain constant.
    name: Option<&'a [u8]>,
    /// True if it ends with the transaction.
    local: bool,
    /// True if the value may be NULL.
    resets: bool,
}

impl<'a> Call<'a> {
    /// Reads the tokens after the word `set_config`; `None` if that is no call.
    pub(crate) fn read(mut ahead: Ahead<'a>) -> Option<Call<'a>> {
        if !ahead.at(TokenKind::Open) {
            return None;
        }
        ahead.take();
        let mut arguments = ahead.clone();
        let first = arguments.take().filter(|_| arguments.at(TokenKind::Comma));
        let name = first.and_then(|token| plain(ahead.of(token)));
        let resets = name.is_none() || !Call::has_constant(arguments);
        let local = Call::is_local(ahead);
        Some(Call { name, local, resets })
    }

    /// True if the second argument, in front of which `arguments` has a comma, is just a string.
    fn has_constant(mut arguments: Ahead<'_>) -> bool {
        arguments.take();
        let value = arguments.take().filter(|_| arguments.at(TokenKind::Comma));
        value.is_some_and(|token| plain(arguments.of(token)).is_some())
    }

    /// True if the third and last argument is just `true`.
    fn is_local(mut ahead: Ahead<'a>) -> bool {
        let mut depth = 0_usize;
        let mut commas = 0;
        for _ in 0..CALL_TOKENS {
            let Some(token) = ahead.take() else { break };
            match token.kind {
                TokenKind::Open | TokenKind::OpenBracket => depth += 1,
                TokenKind::Close | TokenKind::CloseBracket if depth == 0 => break,
                TokenKind::Close | TokenKind::CloseBracket => depth -= 1,
                TokenKind::Comma if depth == 0 => {
                    commas += 1;
                    if commas == 2 {
                        return ahead.take_word(&["true"]) && ahead.at(TokenKind::Close);
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// Returns its effects on the session.
    pub(crate) fn traits(&self) -> Traits {
        for_transaction(self.local, self.name.map_or(UNKNOWN_PARAMETER, parameter_traits))
    }
}

/// Returns the effects of setting a parameter, without those that end with the transaction if it is
/// `local`.
fn for_transaction(local: bool, traits: Traits) -> Traits {
    match local {
        true if traits.contains(Traits::READING) => Traits::READING.union(Traits::LOCAL),
        true => Traits::LOCAL,
        false => traits,
    }
}

/// True if an effect of setting a parameter outlives the transaction.
fn outlives(traits: Traits) -> bool {
    !traits.without(Traits::READING.union(Traits::LOCAL)).is_empty()
}

/// Returns the bytes between the quotes of a string constant, if they are its value.
fn plain(written: &[u8]) -> Option<&[u8]> {
    let inside = written.strip_prefix(b"'")?.strip_suffix(b"'")?;
    (!inside.iter().any(|byte| matches!(byte, b'\'' | b'\\'))).then_some(inside)
}

/// Returns the name of a parameter as written, with dots between its parts.
fn parameter_name(written: &[u8]) -> Cow<'_, [u8]> {
    let mut parts = Lexer::new(written, false)
        .filter(|token| !token.kind.is_trivia())
        .map(|part| part.of(written));
    let first = parts.next().map_or(Cow::Borrowed(&b""[..]), fold);
    parts.fold(first, |mut name, part| {
        name.to_mut().extend_from_slice(&fold(part));
        name
    })
}

/// Iterates over the names of the parameters that `text` sets or resets for the session, in its
/// order, with unquoted names in lower case. [`ANY_PARAMETER`] stands for RESET ALL and for names
/// that cannot be read from the text. A name may occur twice.
///
/// SET ROLE is `role`, SET SESSION AUTHORIZATION is `session_authorization`, SET TIME ZONE is
/// `TimeZone`, SET NAMES is `client_encoding`, SET SCHEMA is `search_path`. DISCARD ALL has no name
/// here, but a trait of its own.
///
/// `backslash` is true in a session whose `standard_conforming_strings` is off.
pub fn set_names(text: &[u8], backslash: bool) -> SetNames<'_> {
    SetNames { lexer: Lexer::new(text, backslash), first: true, form: &[] }
}

/// Returns the names of the parameters to which a statement gives their values at the start of the
/// session until the transaction ends (`SET LOCAL … TO DEFAULT`), spelled as [`set_names`] does.
pub fn reset_locally(text: &[u8], backslash: bool) -> Vec<Cow<'_, [u8]>> {
    let mut lexer = Lexer::new(text, backslash);
    let first = lexer.significant().filter(|token| is_word(token.of(text), "set"));
    let ahead = Ahead::new(&lexer);
    let resets = DEFAULTS.iter().any(|steps| ahead.clone().walk(steps, &mut None).is_some());
    let target = Target::read(ahead);
    match (target.form, target.span) {
        _ if first.is_none() || !resets || !target.local => Vec::new(),
        (Some(names), _) => names.iter().map(|name| Cow::Borrowed(name.as_bytes())).collect(),
        (_, Some(span)) => vec![parameter_name(span.of(text))],
        _ => Vec::new(),
    }
}

/// Returns the names of the parameters that a call of `set_config` in `text` may reset for the
/// session, since its value is more than a constant and may be NULL. [`ANY_PARAMETER`] stands for
/// names that cannot be read from the text.
pub fn reset_by_call(text: &[u8], backslash: bool) -> Vec<&[u8]> {
    let mut lexer = Lexer::new(text, backslash);
    let mut names = Vec::new();
    while let Some(token) = lexer.significant() {
        if let Some(Mention::SetConfig) = mention_of(token, text)
            && let Some(call) = Call::read(Ahead::new(&lexer))
            && call.resets
            && !call.local
        {
            names.push(call.name.unwrap_or(ANY_PARAMETER));
        }
    }
    names
}

/// The iterator of [`set_names`].
#[derive(Clone, Debug)]
pub struct SetNames<'a> {
    lexer: Lexer<'a>,
    /// True if the next token is the first of a statement.
    first: bool,
    /// The remaining names of a special form.
    form: &'static [&'static str],
}

impl<'a> Iterator for SetNames<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        loop {
            if let Some((name, rest)) = self.form.split_first() {
                self.form = rest;
                return Some(Cow::Borrowed(name.as_bytes()));
            }
            let token = self.lexer.significant()?;
            let first = std::mem::replace(&mut self.first, token.kind == TokenKind::Semicolon);
            let found = if first { self.statement(token) } else { Found::Nothing };
            let found = if found == Found::Nothing { self.mention(token) } else { found };
            match found {
                Found::Nothing => {}
                Found::Form(names) => self.form = names,
                Found::Name(name) => return Some(name),
                Found::Any => return Some(Cow::Borrowed(ANY_PARAMETER)),
            }
        }
    }
}

/// The finding of [`SetNames`] at a token.
#[derive(PartialEq, Eq)]
enum Found<'a> {
    Nothing,
    Form(&'static [&'static str]),
    Name(Cow<'a, [u8]>),
    Any,
}

impl<'a> SetNames<'a> {
    /// Returns the parameters set by a statement that begins with `token`.
    fn statement(&self, token: Token) -> Found<'a> {
        let text = self.lexer.text();
        let word = token.of(text);
        if token.kind != TokenKind::Word || !(is_word(word, "set") || is_word(word, "reset")) {
            return Found::Nothing;
        }
        let target = Target::read(Ahead::new(&self.lexer));
        match (target.form, target.span) {
            _ if !outlives(target.traits(text)) => Found::Nothing,
            (Some(names), _) => Found::Form(names),
            (_, Some(span)) => Found::Name(parameter_name(span.of(text))),
            _ => Found::Any,
        }
    }

    /// Returns the parameters set by `token` inside a statement.
    fn mention(&self, token: Token) -> Found<'a> {
        let ahead = || Ahead::new(&self.lexer);
        match mention_of(token, self.lexer.text()) {
            Some(Mention::SetConfig) => match Call::read(ahead()) {
                Some(call) if !outlives(call.traits()) => Found::Nothing,
                Some(Call { name: Some(name), .. }) => Found::Name(Cow::Borrowed(name)),
                Some(_) => Found::Any,
                None => Found::Nothing,
            },
            Some(Mention::Update) if updates_settings(ahead()) => Found::Any,
            Some(Mention::Call(traits))
                if traits.intersects(UNKNOWN_PARAMETER) && ahead().at(TokenKind::Open) =>
            {
                Found::Any
            }
            _ => Found::Nothing,
        }
    }
}

/// Iterates over the custom parameters that code within `text` may set, even inside quotes: the
/// names after SET and `set_config(` that contain a dot.
pub fn set_names_within(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    custom_within(text, &["session"])
}

/// Iterates over the same, and those that code may set until its transaction ends.
pub fn placeholders_within(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    custom_within(text, &["session", "local"])
}

fn custom_within<'a>(
    text: &'a [u8],
    scopes: &'static [&'static str],
) -> impl Iterator<Item = &'a [u8]> {
    let starts = |at: usize| at == 0 || !crate::lex::is_word(text[at - 1]);
    let at = (0..text.len()).filter(move |at| {
        text[*at..].get(..3).is_some_and(|word| is_word(word, "set")) && starts(*at)
    });
    at.filter_map(|at| parameter_behind(&text[at + 3..], scopes))
}

/// Returns the name after the word SET and one of the scopes, or after the beginning of
/// `set_config`.
fn parameter_behind<'a>(rest: &'a [u8], scopes: &[&str]) -> Option<&'a [u8]> {
    let rest = match rest.get(..7).filter(|word| is_word(word, "_config")) {
        Some(_) => {
            let arguments = rest[7..].trim_ascii_start().strip_prefix(b"(")?.trim_ascii_start();
            let name = arguments.iter().position(|byte| *byte != b'\'')?;
            &arguments[name..]
        }
        None => {
            let rest = rest.first().filter(|byte| byte.is_ascii_whitespace()).map(|_| rest)?;
            let rest = rest.trim_ascii_start();
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            match scopes.iter().any(|scope| is_word(&rest[..end], scope)) {
                true => rest[end..].trim_ascii_start(),
                false => rest,
            }
        }
    };
    let end = rest.iter().position(|byte| !crate::lex::is_word(*byte) && *byte != b'.');
    let name = &rest[..end.unwrap_or(rest.len())];
    name.contains(&b'.').then_some(name)
}

/// A custom parameter that bytes may set, in a string or not.
pub(crate) enum Custom<'a> {
    /// None.
    Nothing,
    /// The parameter of this name.
    Name(Cow<'a, [u8]>),
    /// One whose name cannot be read.
    Unreadable,
}

/// Returns the custom parameter that the beginning of `text` may set: SET or `set_config`. What
/// stands behind the text is not known unless `is_whole`.
pub(crate) fn custom_behind(text: &[u8], is_whole: bool) -> Custom<'_> {
    let end = text.iter().position(|byte| !crate::lex::is_word(*byte)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    // Bytes that are missing may belong to the name.
    let cut = || if is_whole { Custom::Nothing } else { Custom::Unreadable };
    if is_word(word, "set") {
        custom_target(rest).unwrap_or_else(cut)
    } else if is_word(word, "set_config") {
        custom_argument(rest.strip_prefix(b"\"").unwrap_or(rest)).unwrap_or_else(cut)
    } else {
        Custom::Nothing
    }
}

/// Returns the custom parameter behind the word SET; `None` if the bytes end before that is known.
fn custom_target(rest: &[u8]) -> Option<Custom<'_>> {
    let mut lexer = Lexer::new(rest, false);
    let (mut start, mut dotted) = (None, false);
    loop {
        let token = lexer.significant()?;
        match token.kind {
            TokenKind::Word | TokenKind::Quoted => {}
            TokenKind::UnicodeQuoted => return Some(Custom::Unreadable),
            TokenKind::Unterminated => return None,
            _ => return Some(Custom::Nothing),
        }
        let begin = *start.get_or_insert(token.start as usize);
        let mut more = lexer.clone();
        let behind = more.significant()?;
        let scopes = [&b"session"[..], b"local"];
        let is_scope = scopes.iter().any(|scope| token.of(rest).eq_ignore_ascii_case(scope));
        if behind.kind == TokenKind::Dot {
            dotted = true;
            lexer = more;
        } else if is_scope && !dotted {
            start = None;
        } else if dotted {
            return Some(Custom::Name(parameter_name(&rest[begin..token.end as usize])));
        } else {
            return Some(Custom::Nothing);
        }
    }
}

/// Returns the custom parameter in the arguments of `set_config`; `None` if the bytes end before
/// that is known.
fn custom_argument(rest: &[u8]) -> Option<Custom<'_>> {
    let mut lexer = Lexer::new(rest, false);
    if lexer.significant()?.kind != TokenKind::Open {
        return Some(Custom::Nothing);
    }
    let arguments = rest[lexer.position()..].trim_ascii_start();
    // Within a string the quotes are doubled.
    let quotes = arguments.iter().position(|byte| *byte != b'\'')?;
    let name = &arguments[quotes..];
    let end = name.iter().position(|byte| !crate::lex::is_word(*byte) && *byte != b'.')?;
    let (name, after) = name.split_at(end);
    let after = after.strip_prefix(&arguments[..quotes]).unwrap_or_default().trim_ascii_start();
    Some(match after.first()? {
        b',' if quotes == 0 || name.is_empty() => Custom::Unreadable,
        b',' if name.contains(&b'.') => Custom::Name(Cow::Owned(name.to_ascii_lowercase())),
        b',' => Custom::Nothing,
        _ => Custom::Unreadable,
    })
}

/// Returns the meaning of a token by the table of mentions.
pub(crate) fn mention_of(token: Token, text: &[u8]) -> Option<Mention> {
    let written = token.of(text);
    match token.kind {
        TokenKind::Word => mention(written),
        TokenKind::Quoted => quoted_mention(unquoted(written)?),
        TokenKind::UnicodeQuoted => Some(Mention::Call(UNREAD_CALL)),
        _ => None,
    }
}

/// Returns the meaning of a quoted name. A function's name in quotes is the same name if it is in
/// lower case; a key word in quotes is no key word.
#[cold]
fn quoted_mention(name: &[u8]) -> Option<Mention> {
    mention(name)
        .filter(|_| !name.iter().any(u8::is_ascii_uppercase))
        .filter(|mention| matches!(mention, Mention::Call(_) | Mention::SetConfig))
}

/// True if the table after UPDATE is the view `pg_settings`.
pub(crate) fn updates_settings(mut ahead: Ahead<'_>) -> bool {
    ahead.take_word(&["only"]);
    let mut name = ahead.take_name();
    if ahead.at(TokenKind::Dot) {
        ahead.take();
        name = ahead.take_name();
    }
    name.is_some_and(|name| {
        is_word(unquoted(ahead.of(name)).unwrap_or(ahead.of(name)), "pg_settings")
    })
}
