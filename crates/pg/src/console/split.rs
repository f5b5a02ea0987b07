//! The commands of a query string.

use refrain_sql::lex::{Lexer, TokenKind};

use super::block::BlockCommand;

/// Returns the commands of a query string, which `;` parts, without comments. What stands in quotes
/// is left as it is.
pub fn commands(text: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    for token in Lexer::new(text.as_bytes(), false) {
        let words = text.get(token.start as usize..token.end as usize).unwrap_or_default();
        let part = match token.kind {
            TokenKind::Semicolon => {
                commands.push(String::new());
                continue;
            }
            TokenKind::LineComment | TokenKind::BlockComment => " ",
            TokenKind::Unterminated if words.starts_with("/*") => " ",
            _ => words,
        };
        if let Some(command) = commands.last_mut() {
            *command += part;
        }
    }
    let trimmed = commands.iter().map(|command| command.trim().to_owned());
    trimmed.filter(|command| !command.is_empty()).collect()
}

/// Returns the tag of a command about transaction blocks; `None` for any other command.
pub fn block_tag(command: &str) -> Option<&'static str> {
    Some(BlockCommand::read(command.as_bytes())?.tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_split_into_commands() {
        assert_eq!(commands("show pools"), ["show pools"]);
        assert_eq!(commands(" ;reset all ;; close all;\n"), ["reset all", "close all"]);
        assert_eq!(
            commands("pause \"a;b\"; resume 'it''s;'"),
            ["pause \"a;b\"", "resume 'it''s;'"]
        );
        assert!(commands(" ; ").is_empty());
        assert_eq!(commands("pause 'é; é"), ["pause 'é; é"]);
    }

    #[test]
    fn what_a_comment_says_is_no_command() {
        assert_eq!(commands("select 1 -- it's; reload\n + 1"), ["select 1  \n + 1"]);
        assert_eq!(commands("/* a; /* b */ ; */ show pools /* c"), ["show pools"]);
        assert_eq!(commands("select '--' || '/*'; show x"), ["select '--' || '/*'", "show x"]);
        assert_eq!(commands("-- é"), [""; 0]);
    }
}
