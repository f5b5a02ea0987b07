//! The kinds of values: how each is written, read, shown and bounded.
//!
//! The row of an option names a Rust type. Everything that depends on the type is in this file, so
//! that two options of one kind accept the same values. A quantity carries its unit in the text
//! (`"15s"`, `"64MiB"`), and the absence of a limit is a word (`"never"`, `"unlimited"`, `"off"`),
//! never a number.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::secret::{Secret, UserSecret};

/// A value as the user wrote it, before Refrain knows which option it is for.
///
/// In a URL every value is `Text`, so numbers and booleans are also read from a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Text(String),
    Whole(i64),
    Truth(bool),
    List(Vec<Given>),
    Table(Vec<Entry>),
    /// A kind of value that no option has, a float or a date, with the name of the kind.
    Strange(&'static str),
}

/// A name with its value, as the user wrote them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The line in the file, from 1; `None` if the entry is not from a file.
    pub(crate) line: Option<usize>,
    pub(crate) given: Given,
}

impl Given {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => u64::try_from(*number).ok(),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Describes the value for an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Whole(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Strange(kind) => format!("a {kind}"),
        }
    }
}

/// The least and the greatest value of an option, as a user would write them.
pub(crate) type Bounds = Option<(&'static str, &'static str)>;

/// A type that an option may have.
pub(crate) trait Value: Sized {
    /// The unit of the number, for `SHOW CONFIG`.
    const UNIT: &str = "";
    /// Words that mean `None` for an `Option<Self>`; the first is the one that is shown.
    const ABSENT: &[&str] = &[];
    /// The words that mean `None`, where `Self` is an `Option`.
    const OR: &[&str] = &[];
    /// True if the value is hidden wherever it would be shown.
    const SECRET: bool = false;

    /// Describes the accepted values for an error message and the reference.
    fn what() -> String;
    fn read(given: &Given) -> Option<Self>;
    fn show(&self) -> String;
    /// Returns the size that is checked against the bounds; `None` for values without a size and
    /// for "no limit".
    fn measure(&self) -> Option<u64> {
        None
    }
}

/// Reads a value and checks its bounds; the error says which value was expected and which found.
pub(crate) fn read<T: Value>(given: &Given, bounds: Bounds) -> Result<T, String> {
    T::read(given).filter(|value| within(value, bounds)).ok_or_else(|| {
        let found = if T::SECRET { "something else".to_owned() } else { given.describe() };
        format!("expected {}, found {found}", expected::<T>(bounds))
    })
}

fn within<T: Value>(value: &T, bounds: Bounds) -> bool {
    let (Some((least, greatest)), Some(size)) = (bounds, value.measure()) else { return true };
    let bound = |text: &str| T::read(&Given::Text(text.to_owned())).and_then(|v| v.measure());
    bound(least).is_none_or(|least| least <= size)
        && bound(greatest).is_none_or(|greatest| size <= greatest)
}

/// Describes the values that an option of this type and these bounds accepts.
pub(crate) fn expected<T: Value>(bounds: Bounds) -> String {
    let mut text = T::what();
    if let Some((least, greatest)) = bounds {
        text += &format!(" from {least} to {greatest}");
    }
    if let Some(word) = T::OR.first() {
        text += &format!(", or \"{word}\"");
    }
    text
}

/// Returns a value as `SHOW CONFIG` shows it.
pub(crate) fn show<T: Value>(value: &T) -> String {
    if T::SECRET { "***".to_owned() } else { value.show() }
}

impl<T: Value> Value for Option<T> {
    const UNIT: &str = T::UNIT;
    const OR: &[&str] = T::ABSENT;
    const SECRET: bool = T::SECRET;

    fn what() -> String {
        T::what()
    }

    fn read(given: &Given) -> Option<Self> {
        match given.text() {
            Some(word) if T::ABSENT.contains(&word) => Some(None),
            _ => T::read(given).map(Some),
        }
    }

    fn show(&self) -> String {
        match self {
            Some(value) => value.show(),
            None => T::ABSENT.first().copied().unwrap_or_default().to_owned(),
        }
    }

    fn measure(&self) -> Option<u64> {
        self.as_ref().and_then(T::measure)
    }
}

impl Value for bool {
    fn what() -> String {
        "true or false".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        match given {
            Given::Truth(truth) => Some(*truth),
            Given::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Whole numbers: a count, or a port.
macro_rules! whole {
    ($($type:ty)*) => {$(
        impl Value for $type {
            const ABSENT: &[&str] = &["unlimited"];

            fn what() -> String {
                "a whole number".to_owned()
            }

            fn read(given: &Given) -> Option<Self> {
                given.whole()?.try_into().ok()
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn measure(&self) -> Option<u64> {
                Some(u64::from(*self))
            }
        }
    )*};
}

whole!(u16 u32);

/// A size in bytes.
impl Value for usize {
    const UNIT: &str = "bytes";
    const ABSENT: &[&str] = &["unlimited"];

    fn what() -> String {
        "a size such as \"64KiB\" or \"16MiB\"".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        let scaled = given.text().and_then(|text| scaled(text, SIZES));
        scaled.or_else(|| given.whole())?.try_into().ok()
    }

    fn show(&self) -> String {
        unscaled(*self as u64, SIZES)
    }

    fn measure(&self) -> Option<u64> {
        u64::try_from(*self).ok()
    }
}

/// A time in milliseconds.
impl Value for Duration {
    const UNIT: &str = "time";
    const ABSENT: &[&str] = &["never", "off"];

    fn what() -> String {
        "a time with its unit, such as \"500ms\", \"15s\", \"10min\", \"1h\" or \"2d\",".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        time(given.text()?)
    }

    fn show(&self) -> String {
        unscaled(self.measure().unwrap_or(u64::MAX), TIMES)
    }

    fn measure(&self) -> Option<u64> {
        u64::try_from(self.as_millis()).ok()
    }
}

type Scale = &'static [(&'static str, u64)];
const SIZES: Scale = &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const TIMES: Scale =
    &[("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a time with its unit, such as `10min`; `None` if it is none.
pub fn time(text: &str) -> Option<Duration> {
    scaled(text, TIMES).map(Duration::from_millis)
}

/// Reads digits followed by one of the units.
fn scaled(text: &str, scale: Scale) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[digits.len()..].trim_start();
    let (_, factor) = scale.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Writes a number in the largest unit that divides it.
fn unscaled(number: u64, scale: Scale) -> String {
    let fits = |&&(_, factor): &&(&str, u64)| number >= factor && number.is_multiple_of(factor);
    let (unit, factor) = scale.iter().find(fits).or(scale.last()).copied().unwrap_or(("", 1));
    format!("{}{unit}", number / factor)
}

/// A part of a whole, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u8);

impl Percent {
    /// Returns this part of a duration.
    pub fn of(self, whole: Duration) -> Duration {
        whole * u32::from(self.0) / 100
    }
}

impl Value for Percent {
    const UNIT: &str = "percent";

    fn what() -> String {
        "a part such as \"10%\"".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        given.text()?.strip_suffix('%')?.trim_end().parse().ok().map(Self)
    }

    fn show(&self) -> String {
        format!("{}%", self.0)
    }

    fn measure(&self) -> Option<u64> {
        Some(u64::from(self.0))
    }
}

impl Value for String {
    fn what() -> String {
        "a string".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        given.text().filter(|text| !text.contains('\0')).map(str::to_owned)
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    const ABSENT: &[&str] = &["off"];

    fn what() -> String {
        "an absolute path".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        given.text().map(Self::from).filter(|path| path.is_absolute())
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Value for SocketAddr {
    const ABSENT: &[&str] = &["off"];

    fn what() -> String {
        "an address and port such as \"127.0.0.1:6432\" or \"[::1]:6432\"".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        given.text()?.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for Secret {
    const SECRET: bool = true;

    fn what() -> String {
        "a string".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        String::read(given).map(Self::new)
    }

    fn show(&self) -> String {
        "***".to_owned()
    }
}

impl Value for UserSecret {
    const SECRET: bool = true;

    fn what() -> String {
        "a password, \"md5…\", a whole \"SCRAM-SHA-256$…\" verifier or \"*\" and 40 digits"
            .to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        Self::parse(&String::read(given)?)
    }

    fn show(&self) -> String {
        "***".to_owned()
    }
}

/// A list; in a URL it is one text with commas between the items.
impl<T: Value> Value for Vec<T> {
    fn what() -> String {
        format!("a list; each item is {}", T::what())
    }

    fn read(given: &Given) -> Option<Self> {
        match given {
            Given::List(items) => items.iter().map(T::read).collect(),
            Given::Text(text) if text.is_empty() => Some(Self::new()),
            Given::Text(text) => {
                text.split(',').map(|item| T::read(&Given::Text(item.trim().to_owned()))).collect()
            }
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.iter().map(T::show).collect::<Vec<_>>().join(", ")
    }
}

/// Names with values, in the order in which they are written.
impl Value for Vec<(String, String)> {
    fn what() -> String {
        "a table of strings such as { search_path = \"app\" }".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        let Given::Table(entries) = given else { return None };
        let pair = |entry: &Entry| Some((entry.name.clone(), String::read(&entry.given)?));
        entries.iter().map(pair).collect()
    }

    fn show(&self) -> String {
        self.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    }
}

/// Lists quoted words: `"a", "b" or "c"`.
pub(crate) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

/// An enum whose variants are written as words.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Returns the word of the option.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl crate::value::Value for $name {
            fn what() -> String {
                crate::value::one_of(&[$($word),+])
            }

            fn read(given: &crate::value::Given) -> Option<Self> {
                match given.text()? {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn show(&self) -> String {
                self.word().to_owned()
            }
        }
    };
}
pub(crate) use choice;
