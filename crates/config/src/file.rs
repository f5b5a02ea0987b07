//! The text of a configuration file, as entries with their lines.

use toml::de::{DeArray, DeTable, DeValue};

use crate::error::Error;
use crate::value::{Entry, Given};

/// Parses TOML into entries, without interpreting them.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, Vec<Error>> {
    let lines = Lines { text };
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(lines.table(root.get_ref()));
    }
    let error = |error: &toml::de::Error| Error {
        line: error.span().map(|span| lines.at(span.start)),
        option: String::new(),
        message: error.message().to_owned(),
        file: None,
    };
    Err(errors.iter().map(error).collect())
}

/// Turns offsets in the text into line numbers.
struct Lines<'a> {
    text: &'a str,
}

impl Lines<'_> {
    fn at(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }

    /// Returns the entries of a table in the order in which they are written.
    fn table(&self, table: &DeTable<'_>) -> Vec<Entry> {
        let mut pairs: Vec<_> = table.iter().collect();
        pairs.sort_by_key(|(name, _)| name.span().start);
        let entry = |(name, value): (&toml::Spanned<_>, &toml::Spanned<_>)| Entry {
            name: ToString::to_string(name.get_ref()),
            line: Some(self.at(name.span().start)),
            given: self.value(value.get_ref()),
        };
        pairs.into_iter().map(entry).collect()
    }

    fn list(&self, items: &DeArray<'_>) -> Vec<Given> {
        items.iter().map(|item| self.value(item.get_ref())).collect()
    }

    fn value(&self, value: &DeValue<'_>) -> Given {
        match value {
            DeValue::String(text) => Given::Text(text.to_string()),
            DeValue::Boolean(truth) => Given::Truth(*truth),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Given::Strange("number beyond 64 bits"), Given::Whole),
            DeValue::Array(items) => Given::List(self.list(items)),
            DeValue::Table(table) => Given::Table(self.table(table)),
            DeValue::Float(_) => Given::Strange("number with a fraction"),
            DeValue::Datetime(_) => Given::Strange("date"),
        }
    }
}
