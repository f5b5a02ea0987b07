//! The parameters of a request, behind its question mark.

use crate::admin::SHOWN;
use crate::console::Sight;

/// Most listings of a request.
const LISTINGS_MAX: usize = 16;
/// Rows of a listing that come unless the request says how many, and that come at most.
const ROWS: usize = 200;
const ROWS_MAX: usize = 1000;
/// Most bytes of a text to explain.
const TEXT_BYTES_MAX: usize = 4096;

/// The listings that are wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) choices: Vec<RowsWanted>,
}

/// The rows of a listing that are wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowsWanted {
    pub(super) listing: &'static str,
    /// The column by which rows are sorted, unless they stay in the listing's own order.
    pub(super) sort: Option<String>,
    pub(super) descending: bool,
    /// A part of a text that rows have.
    pub(super) find: String,
    pub(super) offset: usize,
    pub(super) limit: usize,
}

impl Query {
    /// Reads the parameters `show`, each with the `sort`, `find`, `offset` and `limit` behind it.
    ///
    /// # Errors
    /// The reason why they cannot be understood.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut choices: Vec<RowsWanted> = Vec::new();
        for (name, value) in parameters(text)? {
            if name == "show" {
                let listing = SHOWN.iter().find(|(listing, _)| *listing == value);
                let (listing, _) = listing.ok_or_else(|| format!("no listing {value:?}"))?;
                choices.push(RowsWanted::new(listing));
                continue;
            }
            let choice = choices.last_mut().ok_or_else(|| format!("{name} before a show"))?;
            let number = || value.parse().map_err(|_| format!("{name} is no number"));
            match &*name {
                "sort" => {
                    choice.descending = value.starts_with('-');
                    choice.sort = Some(value.trim_start_matches('-').to_owned());
                }
                "find" => choice.find = value.to_lowercase(),
                "offset" => choice.offset = number()?,
                "limit" => choice.limit = number()?.min(ROWS_MAX),
                _ => return Err(format!("no parameter {name:?}")),
            }
        }
        match choices.len() {
            0 => Err("no listing is named (show=pools)".to_owned()),
            1..=LISTINGS_MAX => Ok(Self { choices }),
            _ => Err(format!("more than {LISTINGS_MAX} listings")),
        }
    }
}

impl RowsWanted {
    pub(super) fn new(listing: &'static str) -> Self {
        let (sort, descending, find) = (None, false, String::new());
        Self { listing, sort, descending, find, offset: 0, limit: ROWS }
    }
}

/// Reads what is to be explained: a text (`sql`), a normalized query by the text that is shown of
/// it (`template`), or a shared statement by its number.
///
/// # Errors
/// The reason why it cannot be understood.
pub(super) fn explained(text: &str) -> Result<Sight, String> {
    let parameters = parameters(text)?;
    match &parameters[..] {
        [(name, sql)] if name == "sql" && sql.len() > TEXT_BYTES_MAX => {
            Err(format!("a text of more than {TEXT_BYTES_MAX} bytes"))
        }
        [(name, sql)] if name == "sql" && !sql.trim().is_empty() => Ok(Sight::Text(sql.clone())),
        [(name, template)] if name == "template" => Ok(Sight::Template(template.clone())),
        [(name, id)] if name == "statement" => {
            id.parse().map(Sight::Statement).map_err(|_| "statement is no number".to_owned())
        }
        _ => Err("expected sql=TEXT, template=TEXT or statement=ID".to_owned()),
    }
}

fn parameters(text: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let decoded = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    };
    let decoded: Option<Vec<_>> = pairs.map(decoded).collect();
    decoded.ok_or_else(|| "a parameter is not encoded as in a URL".to_owned())
}

/// Returns a parameter without its encoding; `None` if that is broken, or is no UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let value = 16 * digit(rest.next()?)? + digit(rest.next()?)?;
                u8::try_from(value).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_belong_to_the_listing_before_them() {
        let query =
            Query::read("show=pools&sort=-cl_waiting&limit=9999&show=cache+rules&find=A%41");
        let mut pools = RowsWanted::new("pools");
        (pools.sort, pools.descending) = (Some("cl_waiting".to_owned()), true);
        pools.limit = ROWS_MAX;
        let rules = RowsWanted { find: "aa".to_owned(), ..RowsWanted::new("cache rules") };
        assert_eq!(query, Ok(Query { choices: vec![pools, rules] }));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let many = "show=pools&".repeat(LISTINGS_MAX + 1);
        let long = format!("sql={}", "x".repeat(TEXT_BYTES_MAX + 1));
        let wrong = [
            "",
            "show",
            "show=clients",
            "sort=x",
            "show=pools&limit=x",
            "show=pools&x=1",
            "show=%",
            "show=%zz",
            "show=%ff",
            &many,
        ];
        for text in wrong {
            assert!(Query::read(text).is_err(), "{text:?}");
        }
        for text in ["", "sql=", "sql=%00", "statement=x", "sql=a&sql=b", &long] {
            assert!(explained(text).is_err(), "{text:?}");
        }
        assert!(
            matches!(explained("sql=select%20'é'+"), Ok(Sight::Text(it)) if it == "select 'é' ")
        );
        assert!(matches!(explained("statement=7"), Ok(Sight::Statement(7))));
    }
}
