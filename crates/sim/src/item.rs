//! The columns of a SELECT in the tiny language: constants, parameters and functions.

/// A column of a SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `'text'`
    Text(String),
    /// `$1`, from one.
    Param(usize),
    /// `$1::date`: the settings at the Bind decide its meaning.
    Dated(usize),
    /// `pg_sleep(500)`, in microseconds here.
    Sleep(u64),
    /// `current_setting('name')`
    Setting(String),
    /// `'x'::date`: the settings at the Parse decide its meaning.
    Frozen(String),
    /// `generate_series(1,n)`: n rows.
    Series(u64),
    /// `repeat('x',n)`
    Repeat(String, usize),
    /// `set_config('name','value',false)`; a null value is the default.
    SetConfig(String, Option<String>, bool),
    /// `fail('tag')`: an error when it runs.
    Fail(String),
    /// `pg_advisory_lock(n)`
    Lock,
    /// `pg_advisory_unlock_all()`
    Unlock,
    /// `nextval('name')`: a change of the database, whose value nobody sees here.
    Next,
    /// `leave_lock()` and the like: a function that leaves state in the session.
    Leave(Left),
    /// `version`, of the row of this table with this key.
    Version(String, Argument),
    /// A function with parameters. Their values decide which item it is.
    Late(String, Vec<Argument>),
}

/// The state that a function leaves in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// An advisory lock.
    Lock,
    /// A temporary table.
    Temp,
    /// A LISTEN.
    Listen,
    /// A setting that the server does not report.
    Setting,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A value.
    Known(String),
    /// `$1`, from one.
    Param(usize),
}

impl Argument {
    /// Returns the number of a parameter; zero for a value.
    pub(crate) fn param(&self) -> usize {
        if let Self::Param(number) = self { *number } else { 0 }
    }

    /// Returns the argument with these values for parameters.
    pub(crate) fn with(&self, values: &[String]) -> Self {
        self.value(values).map_or_else(|| self.clone(), Self::Known)
    }

    pub(crate) fn value(&self, values: &[String]) -> Option<String> {
        match self {
            Self::Known(text) => Some(text.clone()),
            Self::Param(number) => values.get(number.checked_sub(1)?).cloned(),
        }
    }
}

impl Item {
    /// Whether the item changes the session or the database.
    pub(crate) fn is_volatile(&self) -> bool {
        match self {
            Self::Late(name, _) => is_volatile(name),
            Self::SetConfig(..) | Self::Lock | Self::Unlock | Self::Leave(_) | Self::Next => true,
            _ => false,
        }
    }

    /// Returns the item's highest parameter; zero if there is none.
    pub(crate) fn params(&self) -> usize {
        match self {
            Self::Param(number) | Self::Dated(number) => *number,
            Self::Version(_, key) => key.param(),
            Self::Late(_, arguments) => arguments.iter().map(Argument::param).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the item with these values for its parameters.
    pub(crate) fn with(&self, values: &[String]) -> Self {
        if let Self::Version(table, key) = self {
            return Self::Version(table.clone(), key.with(values));
        }
        let Self::Late(name, arguments) = self else { return self.clone() };
        let known: Option<Vec<_>> = arguments.iter().map(|it| it.value(values)).collect();
        let item = known.and_then(|known| function(name, &known));
        item.unwrap_or_else(|| Self::Fail(format!("{name} of {values:?}")))
    }
}

/// Whether the catalog says that a function is volatile. Here `pg_sleep` is not: it stands for a
/// read that takes long.
pub(crate) fn is_volatile(name: &str) -> bool {
    matches!(name, "nextval" | "set_config")
        || name.starts_with("pg_advisory_")
        || name.starts_with("leave_")
}

/// Returns the item of a function with these values.
pub(crate) fn function(name: &str, arguments: &[String]) -> Option<Item> {
    let text = |index: usize| arguments.get(index).cloned();
    let number = |index: usize| text(index)?.parse::<u64>().ok();
    Some(match name {
        "pg_sleep" => Item::Sleep(number(0)?),
        "current_setting" => Item::Setting(text(0)?),
        "generate_series" => Item::Series(number(1)?),
        "repeat" => Item::Repeat(text(0)?, usize::try_from(number(1)?).ok()?),
        "set_config" => {
            let value = text(1)?;
            let value = (value != "null").then_some(value);
            Item::SetConfig(text(0)?, value, text(2)? == "true")
        }
        "fail" => Item::Fail(text(0)?),
        "nextval" => Item::Next,
        "pg_advisory_lock" => Item::Lock,
        "pg_advisory_unlock_all" => Item::Unlock,
        "leave_nothing" => Item::Leave(Left::Nothing),
        "leave_lock" => Item::Leave(Left::Lock),
        "leave_temp" => Item::Leave(Left::Temp),
        "leave_listen" => Item::Leave(Left::Listen),
        "leave_setting" => Item::Leave(Left::Setting),
        _ => return None,
    })
}
