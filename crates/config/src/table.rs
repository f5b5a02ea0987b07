//! The table of options: one row defines everything about an option.
//!
//! `table!` takes a struct whose fields carry their default, bounds and examples. It generates the
//! struct, its `Default` and its rows. All other code walks the rows: reading a file or a URL, the
//! comparison at a reload, the reference, and the tests, which try the examples of every row. The
//! console shows the rows of the program, of pools and of the cache (`SHOW CONFIG`, `SHOW
//! OPTIONS`). A new option is a new row. One of a database's or a user's own keys also needs a
//! field where the checked options have it (`build.rs`, `places.rs`, `user.rs`).
//!
//! ```text
//! /// First sentence: what it is. (Also in SHOW OPTIONS, but for databases' and users' own.)
//! ///
//! /// More, for the reference.
//! name: Type = "default" ["least" to "greatest"], When, takes ["…"], not ["…"];
//! ```
//!
//! Default, bounds and examples are written as an operator would write them. Without a default the
//! option is unset; without bounds every value of the type is valid.

use crate::value::{Bounds, Given};

/// When a changed option takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At the reload, for all connections.
    Reload,
    /// At the reload, for new connections only.
    NewConnections,
    /// When the program is restarted.
    Restart,
}

impl When {
    /// Returns the words for the reference and for reload reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Reload => "on reload",
            Self::NewConnections => "on reload, for new connections",
            Self::Restart => "on restart",
        }
    }
}

/// One option of the table `T`.
pub(crate) struct Row<T> {
    pub(crate) name: &'static str,
    pub(crate) default: Option<&'static str>,
    pub(crate) bounds: Bounds,
    pub(crate) when: When,
    pub(crate) unit: &'static str,
    /// Lines of Markdown; `SHOW OPTIONS` shows the first paragraph.
    pub(crate) doc: &'static [&'static str],
    pub(crate) expected: fn(Bounds) -> String,
    pub(crate) show: fn(&T) -> String,
    /// Whether two tables have the same value; for secrets too, which are shown alike.
    pub(crate) same: fn(&T, &T) -> bool,
    /// Copies the option's value from another table.
    pub(crate) copy: fn(&mut T, &T),
    /// Stores a value. Use [`Row::set`], which passes the bounds.
    pub(crate) store: fn(&mut T, &Given, Bounds) -> Result<(), String>,
    #[cfg(test)]
    pub(crate) takes: &'static [&'static str],
    #[cfg(test)]
    pub(crate) refuses: &'static [&'static str],
}

impl<T> Row<T> {
    /// Reads, checks and stores a value.
    pub(crate) fn set(&self, into: &mut T, given: &Given) -> Result<(), String> {
        (self.store)(into, given, self.bounds)
    }

    /// Returns the first paragraph of the documentation, on one line.
    pub(crate) fn summary(&self) -> String {
        let first = self.doc.iter().map(|line| line.trim()).take_while(|line| !line.is_empty());
        first.collect::<Vec<_>>().join(" ")
    }
}

/// A struct whose fields are options.
pub(crate) trait Table: Default + 'static {
    const ROWS: &'static [Row<Self>];

    fn row(name: &str) -> Option<&'static Row<Self>> {
        Self::ROWS.iter().find(|row| row.name == name)
    }
}

macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis struct $table:ident;
        $(
            $(#[doc = $doc:literal])+
            $name:ident: $type:ty $(= $default:literal)? $([$least:literal to $greatest:literal])?,
                $when:ident, takes [$($takes:literal),*], not [$($refuses:literal),*];
        )+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $table {
            $(
                $(#[doc = $doc])+
                $(#[doc = concat!("\n\nDefault: `", $default, "`.")])?
                $vis $name: $type,
            )+
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($name: $crate::table::default_of!($type $(, $default)?),)+ }
            }
        }

        impl $crate::table::Table for $table {
            const ROWS: &'static [$crate::table::Row<Self>] = &[$($crate::table::Row {
                name: stringify!($name),
                default: $crate::table::maybe!($($default)?),
                bounds: $crate::table::maybe!($(($least, $greatest))?),
                when: $crate::table::When::$when,
                unit: <$type as $crate::value::Value>::UNIT,
                doc: &[$($doc),+],
                expected: $crate::value::expected::<$type>,
                show: |table| $crate::value::show(&table.$name),
                same: |one, other| one.$name == other.$name,
                copy: |into, from| into.$name.clone_from(&from.$name),
                store: |table, given, bounds| {
                    table.$name = $crate::value::read(given, bounds)?;
                    Ok(())
                },
                #[cfg(test)]
                takes: &[$($takes),*],
                #[cfg(test)]
                refuses: &[$($refuses),*],
            },)+];
        }
    };
}
pub(crate) use table;

/// The table without options: `[pool]` has only pool options.
impl Table for () {
    const ROWS: &'static [Row<Self>] = &[];
}

macro_rules! maybe {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use maybe;

macro_rules! default_of {
    ($type:ty) => {
        <$type>::default()
    };
    ($type:ty, $text:literal) => {
        $crate::table::parse_default::<$type>($text)
    };
}
pub(crate) use default_of;

/// Parses the default of a row. A test parses all of them, so this cannot fail.
pub(crate) fn parse_default<T: crate::value::Value>(text: &str) -> T {
    T::read(&Given::Text(text.to_owned())).expect("a row's default is a value of its type")
}
