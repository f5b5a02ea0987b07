//! The text of SQL: names, and what stands in parentheses.

use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::keywords::needs_quotes;

/// Writes a name as an identifier, in quotes if it needs them (`quote_ident`).
pub(crate) fn identifier(name: &str) -> String {
    let letter = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let plain = name.starts_with(letter)
        && name.chars().all(|one| letter(one) || one.is_ascii_digit())
        && !needs_quotes(name);
    if plain { name.to_owned() } else { quoted(name) }
}

/// Writes a name in quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the parts of a name that may be qualified, as a `regclass` has it; none if the text is
/// no name.
pub(crate) fn name_parts(text: &str) -> Option<Vec<String>> {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let mut parts = Vec::new();
    while let Some(token) = lexer.significant() {
        match token.kind {
            TokenKind::Word => parts.push(token_text(text, &token).to_lowercase()),
            TokenKind::Quoted => parts.push(name_of(text, &token)),
            TokenKind::Dot => {}
            _ => return None,
        }
    }
    Some(parts)
}

/// Writes SQL of the file with names as PostgreSQL prints them.
pub(crate) fn printed(sql: &str) -> String {
    let mut lexer = Lexer::new(sql.as_bytes(), false);
    let (mut out, mut at) = (String::new(), 0);
    while let Some(token) = lexer.significant() {
        let (start, end) = (token.start as usize, token.end as usize);
        out.push_str(sql.get(at..start).unwrap_or_default());
        match token.kind {
            TokenKind::Quoted => out.push_str(&identifier(&name_of(sql, &token))),
            _ => out.push_str(token_text(sql, &token)),
        }
        at = end;
    }
    out.push_str(sql.get(at..).unwrap_or_default());
    out
}

/// Returns the text within the first parentheses at or behind an offset, and the offset behind.
pub(crate) fn within(sql: &str, from: usize) -> Option<(&str, usize)> {
    let mut lexer = Lexer::new(sql.get(from..)?.as_bytes(), false);
    let (mut depth, mut start) = (0_usize, 0);
    while let Some(token) = lexer.significant() {
        match token.kind {
            TokenKind::Open => {
                if depth == 0 {
                    start = token.end as usize;
                }
                depth += 1;
            }
            TokenKind::Close if depth == 1 => {
                let inside = sql.get(from + start..from + token.start as usize)?;
                return Some((inside, from + token.end as usize));
            }
            TokenKind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Splits the parentheses of CREATE TABLE at its commas: tokens with their depth, without closing
/// parentheses.
pub(crate) fn elements(sql: &str) -> Vec<Vec<(Token, usize)>> {
    let mut lexer = Lexer::new(sql.as_bytes(), false);
    let (mut depth, mut all) = (0_usize, Vec::new());
    while let Some(token) = lexer.significant() {
        match token.kind {
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Open if depth == 0 => all.push(Vec::new()),
            TokenKind::Comma if depth == 1 => all.push(Vec::new()),
            _ if depth > 0 => {
                all.last_mut().into_iter().for_each(|last| last.push((token, depth - 1)))
            }
            _ => {}
        }
        depth += usize::from(token.kind == TokenKind::Open);
    }
    all
}

pub(crate) fn token_text<'a>(sql: &'a str, token: &Token) -> &'a str {
    sql.get(token.start as usize..token.end as usize).unwrap_or_default()
}

/// Returns a name without its quotes.
pub(crate) fn name_of(sql: &str, token: &Token) -> String {
    let text = token_text(sql, token);
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inside.map_or(text.to_owned(), |inside| inside.replace("\"\"", "\""))
}

/// The most bytes of a name.
const NAME_MAX: usize = 63;

/// Makes a name of those of a table and of columns, of which the longer one is cut
/// (`makeObjectName` of the server). A schema in front of the table's name stays in front.
pub(crate) fn object_name(table: &str, columns: &str, ending: &str) -> String {
    let (schema, table) = table.split_at(table.find('.').map_or(0, |dot| dot + 1));
    let between = if columns.is_empty() { "" } else { "_" };
    let room = NAME_MAX.saturating_sub(ending.len() + 1 + between.len());
    let (mut first, mut second) = (table.len(), columns.len());
    while first + second > room {
        if first > second { first -= 1 } else { second -= 1 }
    }
    let cut =
        |text: &str, length: usize| text.get(..text.floor_char_boundary(length)).map(str::to_owned);
    let (table, columns) =
        (cut(table, first).unwrap_or_default(), cut(columns, second).unwrap_or_default());
    format!("{schema}{table}{between}{columns}_{ending}")
}
