//! The commands of a query string.

use super::block::BlockCommand;

/// Returns the commands of a query string, which `;` parts, without comments. What stands in quotes
/// is left as it is.
pub fn commands(text: &str) -> Vec<String> {
    let (mut commands, mut command, mut rest) = (Vec::new(), String::new(), text);
    while let Some(first) = rest.chars().next() {
        let (length, kept) = match first {
            '\'' | '"' | '`' => {
                let length = rest[1..].find(first).map_or(rest.len(), |end| end + 2);
                (length, &rest[..length])
            }
            _ if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), " "),
            _ if rest.starts_with("/*") => (comment_bytes(rest), " "),
            ';' => {
                commands.push(std::mem::take(&mut command));
                (1, "")
            }
            _ => (first.len_utf8(), &rest[..first.len_utf8()]),
        };
        command += kept;
        rest = &rest[length..];
    }
    commands.push(command);
    let trimmed = commands.iter().map(|command| command.trim().to_owned());
    trimmed.filter(|command| !command.is_empty()).collect()
}

/// Returns the length of the comment at the front of a text. Comments nest, as in PostgreSQL.
fn comment_bytes(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(pair) = text.as_bytes().get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
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
