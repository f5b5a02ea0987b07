//! Types that CREATE TYPE … AS ENUM has made.
//!
//! Such a type is a table without rows, whose CREATE statement has the OID and the labels in a
//! comment. A value is stored as its label, so the file can be read without Refrain; the order of
//! the labels is written into the SQL of each comparison (`docs/decisions/0129`).
//!
//! A definition that was read once is kept until the process ends: [`Type`](crate::types::Type) is
//! copied from one part of a translation to the next, and its names stand in errors. A definition
//! that is read again is the same one, so what is kept grows with the changes of types alone, and
//! types change no more once the definitions have [`KEPT_BYTES_MAX`].

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::{self, Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::failure::{Failure, state};
use crate::sql_text::identifier;

/// The beginning of the comment that makes a table an enum.
pub(crate) const MARK: &str = "/*refrain enum ";
/// The beginning of the declaration of a column of an enum, before its OID.
const DECLARED: &str = "ENUM TEXT(";
/// The beginning of the declaration of a column of arrays of an enum.
const DECLARED_ARRAY: &str = "_ENUM TEXT(";

/// The number of OIDs of an enum: its own, that of the type of its arrays, and those of labels.
pub(crate) const OIDS_EACH: u32 = 1024;
/// The most labels of an enum.
pub(crate) const LABELS_MAX: usize = OIDS_EACH as usize - 2;
/// The bytes of definitions past which types change no more.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A definition: a name, and labels in their order.
#[derive(PartialEq, Eq, Hash)]
struct Definition {
    oid: u32,
    /// Its name in the file, with its schema in front.
    called: String,
    /// Its name as the server prints it.
    name: String,
    /// The name of the type of its arrays.
    array_name: String,
    labels: Vec<String>,
}

/// An enum. Two are the same type if they have the same OID, even if one has more labels.
#[derive(Clone, Copy)]
pub(crate) struct EnumType(&'static Definition);

/// The beginning of the word for a column of a view, before the OID.
const WORD: &str = "enum=";

/// The function that converts a text to a label.
pub(crate) const LABEL: &str = "refrain_label";

/// Definitions, and about how many bytes they have.
#[derive(Default)]
struct KeptDefinitions {
    all: HashSet<&'static Definition>,
    bytes: usize,
}

/// The definitions that were read so far.
static KEPT: LazyLock<Mutex<KeptDefinitions>> = LazyLock::new(Mutex::default);

fn kept() -> MutexGuard<'static, KeptDefinitions> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if a definition of this name is kept.
#[cfg(test)]
pub(crate) fn is_kept(called: &str) -> bool {
    kept().all.iter().any(|known| known.called == called)
}

/// Checks that another definition may be kept.
///
/// # Errors
/// 53200.
pub(crate) fn has_room() -> Result<(), Failure> {
    match kept().bytes < KEPT_BYTES_MAX {
        true => Ok(()),
        false => {
            let failure = Failure::new("53200", "there were too many changes of types");
            Err(failure.hint("restart Refrain"))
        }
    }
}

impl PartialEq for EnumType {
    fn eq(&self, other: &Self) -> bool {
        self.0.oid == other.0.oid
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.oid.hash(state);
    }
}

impl Debug for EnumType {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.0.called, self.words())
    }
}

impl EnumType {
    /// Returns the enum of this name, with its labels in their order.
    pub(crate) fn new(called: &str, oid: u32, labels: Vec<String>) -> Self {
        let name = shown(called);
        let (called, array_name) = (called.to_owned(), format!("{name}[]"));
        let made = Definition { oid, called, name, array_name, labels };
        let mut kept = kept();
        if let Some(known) = kept.all.get(&made) {
            return Self(known);
        }
        let made: &'static Definition = Box::leak(Box::new(made));
        let of_labels: usize = made.labels.iter().map(|it| size_of::<String>() + it.len()).sum();
        kept.bytes += size_of::<Definition>() + 3 * made.array_name.len() + of_labels;
        kept.all.insert(made);
        Self(made)
    }

    /// Reads an enum from the CREATE statement of its table; none if the table is no enum.
    pub(crate) fn read(called: &str, sql: &str) -> Option<Self> {
        let (_, rest) = sql.split_once(MARK)?;
        Self::of_words(called, rest.split_once("*/")?.0)
    }

    /// Reads the OID and the labels, as [`EnumType::words`] writes them.
    pub(crate) fn of_words(called: &str, words: &str) -> Option<Self> {
        let (oid, mut rest) = words.split_once(' ').unwrap_or((words, ""));
        let mut labels = Vec::new();
        while let Some(inside) = rest.strip_prefix('\'') {
            let (label, behind) = inside.split_once('\'')?;
            labels.push(unescaped(label));
            rest = behind.strip_prefix(',').unwrap_or(behind);
        }
        Some(Self::new(called, own_oid(oid)?, labels))
    }

    /// Writes the OID and the labels.
    pub(crate) fn words(self) -> String {
        words(self.0.oid, &self.0.labels)
    }

    /// True if it has the same name and the same labels in the same order.
    pub(crate) fn is_unchanged(self, other: Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }

    pub(crate) fn oid(self) -> u32 {
        self.0.oid
    }

    /// Returns the OID of the type of its arrays.
    pub(crate) fn array_oid(self) -> u32 {
        self.0.oid + 1
    }

    /// Returns its name in the file.
    pub(crate) fn called(self) -> &'static str {
        &self.0.called
    }

    /// Returns its name without its schema.
    pub(crate) fn own_name(self) -> &'static str {
        self.0.called.split_once('.').map_or(&self.0.called, |(_, own)| own)
    }

    /// Returns its schema.
    pub(crate) fn schema(self) -> &'static str {
        self.0.called.split_once('.').map_or("public", |(schema, _)| schema)
    }

    /// Returns its name as the server prints it.
    pub(crate) fn name(self) -> &'static str {
        &self.0.name
    }

    pub(crate) fn array_name(self) -> &'static str {
        &self.0.array_name
    }

    pub(crate) fn labels(self) -> &'static [String] {
        &self.0.labels
    }

    /// Returns the declaration of a column: [`declared_oid`] reads it.
    pub(crate) fn declaration(self, array: bool) -> String {
        format!("{}{})", if array { DECLARED_ARRAY } else { DECLARED }, self.0.oid)
    }

    /// Returns the word for a column of a view: [`word_oid`] reads it.
    pub(crate) fn word(self, array: bool) -> String {
        format!("{}{WORD}{}", if array { "_" } else { "" }, self.0.oid)
    }

    /// Writes the place of a value among the labels, by which values are ordered.
    pub(crate) fn place(self, sql: &str) -> String {
        self.chosen(sql, |place, label| format!("{label} THEN {place}"))
    }

    /// Writes the label at a place.
    pub(crate) fn label_at(self, sql: &str) -> String {
        self.chosen(sql, |place, label| format!("{place} THEN {label}"))
    }

    fn chosen(self, sql: &str, one: impl Fn(usize, &str) -> String) -> String {
        format!("(CASE {sql} {}", self.choices(one))
    }

    /// Writes the choices of a CASE, up to its end.
    fn choices(self, one: impl Fn(usize, &str) -> String) -> String {
        let mut all = String::new();
        for (place, label) in self.quoted_labels().iter().enumerate() {
            all.push_str(" WHEN ");
            all.push_str(&one(place + 1, label));
        }
        // CASE needs one part at least.
        let all = if all.is_empty() { " WHEN NULL THEN NULL".to_owned() } else { all };
        format!("{}{all} END)", self.listed_mark())
    }

    /// Returns the labels as SQL.
    fn quoted_labels(self) -> Vec<String> {
        self.0.labels.iter().map(|label| format!("'{}'", label.replace('\'', "''"))).collect()
    }

    /// Writes the comment of SQL that has the labels.
    pub(crate) fn listed_mark(self) -> String {
        format!("/*labels of {}*/", self.0.oid)
    }

    /// Writes the comment behind a label, or an array of labels, in SQL.
    pub(crate) fn single_mark(self) -> String {
        format!("/*label of {}*/", self.0.oid)
    }

    /// Writes the first label, or NULL.
    pub(crate) fn first(self) -> String {
        let first = self.quoted_labels().into_iter().next();
        format!("{}/*first*/{}", self.listed_mark(), first.unwrap_or_else(|| "NULL".to_owned()))
    }

    /// Writes the last label, or NULL.
    pub(crate) fn last(self) -> String {
        let last = self.quoted_labels().pop();
        format!("{}/*last*/{}", self.listed_mark(), last.unwrap_or_else(|| "NULL".to_owned()))
    }

    /// Writes the labels, between commas.
    pub(crate) fn all(self) -> String {
        format!("{}/*all*/{}", self.listed_mark(), self.quoted_labels().join(", "))
    }

    /// Writes the number of labels.
    pub(crate) fn count(self) -> String {
        format!("{}/*count*/{}", self.listed_mark(), self.0.labels.len())
    }

    /// Returns all forms in which SQL has the labels, each from its comment on.
    pub(crate) fn listed(self) -> [String; 7] {
        [
            self.choices(|place, label| format!("{label} THEN {place}")),
            self.choices(|place, label| format!("{place} THEN {label}")),
            self.words_as_sql(),
            self.first(),
            self.last(),
            self.all(),
            self.count(),
        ]
    }

    /// Writes the OID and the labels as SQL.
    fn words_as_sql(self) -> String {
        format!("{}'{}'", self.listed_mark(), self.words().replace('\'', "''"))
    }

    /// Writes the conversion of a text: an error for one that is no label. `$` stands for the text.
    pub(crate) fn of_text(self) -> String {
        let called = format!("'{}'", escaped(&self.0.called));
        format!("{LABEL}({}, {called}, $)", self.words_as_sql())
    }

    /// Returns a text that is a label.
    ///
    /// # Errors
    /// 22P02.
    pub(crate) fn label(self, text: &str) -> Result<&str, Failure> {
        if self.0.labels.iter().any(|known| known == text) {
            is_committed(self.0.oid, &self.0.name, text)?;
            return Ok(text);
        }
        Err(no_label(&self.0.name, text))
    }
}

/// Labels that ALTER TYPE has added in a transaction, with the OIDs of their types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewLabels(Vec<(u32, String)>);

thread_local! {
    /// The new labels of the session that this thread runs.
    static NEW_LABELS: RefCell<NewLabels> = const { RefCell::new(NewLabels(Vec::new())) };
}

impl NewLabels {
    /// Notes a label that was added.
    pub(crate) fn add(&mut self, of: EnumType, label: &str) {
        self.0.push((of.oid(), label.to_owned()));
        self.note();
    }

    /// Notes another name of a label.
    pub(crate) fn rename(&mut self, of: EnumType, old: &str, new: &str) {
        self.0.retain(|(oid, label)| *oid != of.oid() || label != new);
        for (oid, label) in &mut self.0 {
            if *oid == of.oid() && label == old {
                new.clone_into(label);
            }
        }
        self.note();
    }

    /// Forgets the labels: the transaction is over.
    pub(crate) fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
            self.note();
        }
    }

    /// Makes them those of the session that this thread runs.
    pub(crate) fn note(&self) {
        NEW_LABELS.with_borrow_mut(|known| {
            if known != self {
                known.clone_from(self);
            }
        });
    }
}

/// Checks that a label was not added in this transaction.
///
/// # Errors
/// 55P04.
fn is_committed(oid: u32, name: &str, text: &str) -> Result<(), Failure> {
    let is_new = |(of, label): &(u32, String)| *of == oid && label == text;
    if !NEW_LABELS.with_borrow(|known| known.0.iter().any(is_new)) {
        return Ok(());
    }
    let message = format!("unsafe use of new value \"{text}\" of enum type {name}");
    let hint = "New enum values must be committed before they can be used.";
    Err(Failure::new("55P04", message).hint(hint))
}

fn no_label(name: &str, text: &str) -> Failure {
    let message = format!("invalid input value for enum {name}: \"{text}\"");
    Failure::new(state::BAD_TEXT, message)
}

/// Returns the name of an enum as the server prints it.
fn shown(called: &str) -> String {
    match called.split_once('.') {
        Some((schema, own)) => format!("{}.{}", identifier(schema), identifier(own)),
        None => identifier(called),
    }
}

/// Writes an OID and labels. The text has no `*/`, no `$`, and quotes only around labels.
fn words(oid: u32, labels: &[String]) -> String {
    let labels: Vec<String> = labels.iter().map(|label| format!("'{}'", escaped(label))).collect();
    format!("{oid} {}", labels.join(","))
}

/// Writes the comment that makes a table an enum. Nothing is kept of it.
pub(crate) fn mark(oid: u32, labels: &[String]) -> String {
    format!("{MARK}{}*/", words(oid, labels))
}

/// Checks that a text is a label; the words and the name are those of a call of [`LABEL`]. It runs
/// for each row.
///
/// # Errors
/// 22P02.
pub(crate) fn is_label(words: &str, called: &str, text: &str) -> Result<(), Failure> {
    let written = escaped(text);
    // No label has a quote in it, so every second part is a label.
    let name = || shown(&unescaped(called));
    if !words.split('\'').skip(1).step_by(2).any(|label| label == written) {
        return Err(no_label(&name(), text));
    }
    match words.split(' ').next().and_then(own_oid) {
        Some(oid) if NEW_LABELS.with_borrow(|known| !known.0.is_empty()) => {
            is_committed(oid, &name(), text)
        }
        _ => Ok(()),
    }
}

/// Returns the name of the enum of whose arrays a name is the type's: `_mood` is that of `mood`.
pub(crate) fn element_name(called: &str) -> Option<String> {
    match called.split_once('.') {
        Some((schema, own)) => Some(format!("{schema}.{}", own.strip_prefix('_')?)),
        None => called.strip_prefix('_').map(str::to_owned),
    }
}

/// Reads the OID of an enum, behind which there are those of its arrays and labels.
fn own_oid(text: &str) -> Option<u32> {
    text.parse().ok().filter(|oid: &u32| oid.checked_add(OIDS_EACH).is_some())
}

/// Returns the OID of the enum in the word for a column of a view, and whether its values are
/// arrays.
pub(crate) fn word_oid(word: &str) -> Option<(u32, bool)> {
    let plain = word.strip_prefix('_');
    let oid = own_oid(plain.unwrap_or(word).strip_prefix(WORD)?)?;
    Some((oid, plain.is_some()))
}

/// Returns the OID of the enum in the declaration of a column, and whether its values are arrays.
pub(crate) fn declared_oid(declaration: &str) -> Option<(u32, bool)> {
    let of = |start| own_oid(declaration.strip_prefix(start)?.strip_suffix(')')?);
    of(DECLARED).map(|oid| (oid, false)).or_else(|| Some((of(DECLARED_ARRAY)?, true)))
}

/// Letters that a comment, the SQL of a conversion, or a label in quotes cannot have.
const ESCAPED: [(char, &str); 4] = [('\\', "\\\\"), ('/', "\\s"), ('$', "\\d"), ('\'', "\\q")];

fn escaped(label: &str) -> String {
    let mut made = String::new();
    for letter in label.chars() {
        match ESCAPED.iter().find(|(known, _)| *known == letter) {
            Some((_, word)) => made.push_str(word),
            None => made.push(letter),
        }
    }
    made
}

fn unescaped(text: &str) -> String {
    let (mut made, mut rest) = (String::new(), text);
    while let Some(letter) = rest.chars().next() {
        let known = ESCAPED.iter().find(|(_, word)| rest.starts_with(word));
        let (meant, length) =
            known.map_or((letter, letter.len_utf8()), |(meant, word)| (*meant, word.len()));
        made.push(meant);
        rest = rest.get(length..).unwrap_or_default();
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read_as_they_are_written() {
        let labels =
            ["sad", "it's", "*/", "a,b", "$1\\s", "", "\u{e4}"].map(str::to_owned).to_vec();
        let made = EnumType::new("app.mood", 1_000_448, labels.clone());
        let mark = mark(made.oid(), made.labels());
        let sql = format!("CREATE TABLE \"app.mood\" (\"label\" {mark} TEXT)");
        let read = EnumType::read("app.mood", &sql).expect("an enum");
        assert!(read.is_unchanged(made));
        assert_eq!(read.labels(), labels);
        assert!(!made.words().contains('$'), "{made:?}");
        let longer = EnumType::new("app.mood", 1_000_448, vec!["sad".to_owned()]);
        assert!(longer == made && !longer.is_unchanged(made));
        assert_eq!(longer.place("x"), "(CASE x /*labels of 1000448*/ WHEN 'sad' THEN 1 END)");
        assert_eq!(longer.label_at("x"), "(CASE x /*labels of 1000448*/ WHEN 1 THEN 'sad' END)");
        let none = EnumType::new("app.mood", 1_000_448, Vec::new());
        assert!(
            EnumType::of_words("app.mood", &none.words()).is_some_and(|it| it.is_unchanged(none))
        );
        assert_eq!(declared_oid(&made.declaration(false)), Some((1_000_448, false)));
        assert_eq!(declared_oid(&made.declaration(true)), Some((1_000_448, true)));
        assert_eq!(declared_oid("ENUM"), None);
        assert_eq!(declared_oid("_ENUM TEXT(4294967295)"), None);
        assert_eq!(word_oid("_enum=4294967295"), None);
        assert_eq!(EnumType::of_words("mood", "4294967295 'sad'"), None);
        assert_eq!(word_oid(&made.word(true)), Some((1_000_448, true)));
        assert_eq!(word_oid(&made.word(false)), Some((1_000_448, false)));
        assert_eq!(EnumType::read("t", "CREATE TABLE t (a)"), None);
    }
    #[test]
    fn a_label_is_found_in_the_words_of_its_type() {
        let labels = ["sad", "it's", ",", "a,b", "$1\\s", ""].map(str::to_owned).to_vec();
        let made = words(7, &labels);
        for label in &labels {
            assert_eq!(is_label(&made, "app.mood", label), Ok(()), "{label}");
        }
        for other in ["sa", "','", "7 ", "\\q", "sad,"] {
            let failure = is_label(&made, "app.my mood", other).expect_err(other);
            assert!(failure.message.starts_with("invalid input value for enum app.\"my mood\""));
        }
        assert!(is_label("7 ", "mood", "").is_err());
    }
}
