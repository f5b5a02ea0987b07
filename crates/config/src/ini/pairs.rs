//! Connection strings: `host=db port=5432 password='it''s'`.

/// Reads the pairs of a connection string.
///
/// # Errors
/// What was expected, if it is none. Never contains a value, which may be a password.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = spaceless(text);
    while !rest.is_empty() {
        let end = rest.find([' ', '=']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let value = spaceless(behind).strip_prefix('=').filter(|_| !name.is_empty());
        let value = value.ok_or_else(|| format!("expected key=value at {name:?}"))?;
        let (value, behind) = value_of(spaceless(value), name)?;
        if value.is_empty() {
            return Err(format!("{name} has no value"));
        }
        pairs.push((name.to_owned(), value));
        rest = spaceless(behind);
    }
    Ok(pairs)
}

fn spaceless(text: &str) -> &str {
    text.trim_start_matches(' ')
}

/// Reads the value of a key. Returns it and what follows it.
fn value_of<'a>(text: &'a str, name: &str) -> Result<(String, &'a str), String> {
    let Some(mut rest) = text.strip_prefix('\'') else {
        let (value, rest) = text.split_once(' ').unwrap_or((text, ""));
        return Ok((value.to_owned(), rest));
    };
    let mut value = String::new();
    loop {
        let split = rest.split_once('\'');
        let (part, behind) = split.ok_or_else(|| format!("{name}: expected another quote"))?;
        value.push_str(part);
        match behind.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None if behind.is_empty() || behind.starts_with(' ') => return Ok((value, behind)),
            None => return Err(format!("{name}: expected a space behind the quote")),
        }
    }
}
