//! Values about the operating system.

use std::path::PathBuf;

use crate::value::{Given, Value};

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub u16);

impl Value for Port {
    const ABSENT: &[&str] = &["listen"];

    fn what() -> String {
        "a port".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        u16::read(given).map(Self)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// The permissions of a file, in octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl Value for FileMode {
    fn what() -> String {
        "permissions in octal digits, such as \"0770\"".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        let mode = u32::from_str_radix(given.text()?, 8).ok()?;
        (mode <= 0o777).then_some(Self(mode))
    }

    fn show(&self) -> String {
        format!("{:04o}", self.0)
    }
}

/// A value, or the one that the operating system has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrSystem<T>(pub Option<T>);

impl<T> OrSystem<T> {
    const SYSTEM: &str = "system";
}

impl<T: Value> Value for OrSystem<T> {
    const UNIT: &str = T::UNIT;
    const OR: &[&str] = &["system"];

    fn what() -> String {
        T::what()
    }

    fn read(given: &Given) -> Option<Self> {
        match given.text() {
            Some(Self::SYSTEM) => Some(Self(None)),
            _ => T::read(given).map(|value| Self(Some(value))),
        }
    }

    fn show(&self) -> String {
        self.0.as_ref().map_or_else(|| Self::SYSTEM.to_owned(), T::show)
    }

    fn measure(&self) -> Option<u64> {
        self.0.as_ref().and_then(T::measure)
    }
}

/// A path, none at all, or the one that follows from other options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OrBeside {
    /// The path that follows from other options.
    #[default]
    Auto,
    /// None.
    Off,
    /// This one.
    At(PathBuf),
}

impl OrBeside {
    const AUTO: &str = "auto";
    const OFF: &str = "off";
}

impl Value for OrBeside {
    const OR: &[&str] = &[Self::OFF];

    fn what() -> String {
        format!("{}, \"{}\"", PathBuf::what(), Self::AUTO)
    }

    fn read(given: &Given) -> Option<Self> {
        match given.text() {
            Some(Self::AUTO) => Some(Self::Auto),
            Some(Self::OFF) => Some(Self::Off),
            _ => PathBuf::read(given).map(Self::At),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Auto => Self::AUTO.to_owned(),
            Self::Off => Self::OFF.to_owned(),
            Self::At(path) => path.show(),
        }
    }
}
