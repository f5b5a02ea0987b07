//! `BENCHMARKS.md`: figures stand between two comments that name their section.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace;

/// The page, relative to the root.
const PAGE: &str = "BENCHMARKS.md";
/// The widest line of a paragraph, in columns, as the house rule has it for all pages.
const WIDTH_MAX: usize = 100;

/// Replaces a section of the page, or appends it under "Raw figures" if the page has none.
pub(super) fn publish(section: &str, text: &str) -> Result<()> {
    let page = workspace::root().join(PAGE);
    let before = fs::read_to_string(&page).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
    fs::write(&page, replaced(&before, section, text)).with_context(|| format!("writing {PAGE}"))
}

fn replaced(page: &str, section: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {section}:begin -->"), format!("<!-- {section}:end -->"));
    let inside = format!("{begin}\n\n{}\n\n{end}", wrapped(text.trim()));
    let around = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    match around {
        Some((before, after)) => format!("{before}{inside}{after}"),
        None => {
            let headed = page.lines().any(|line| line == "## Raw figures");
            let heading = if headed { "" } else { "## Raw figures\n\n" };
            format!("{}\n\n{heading}{inside}\n", page.trim_end())
        }
    }
}

/// Returns a text whose paragraphs have lines of at most [`WIDTH_MAX`] columns. Rows of tables,
/// items of lists and CSV, which has no spaces, stay as they are.
fn wrapped(text: &str) -> String {
    let wraps = |line: &str| !line.starts_with(['|', '-']);
    let lines = text.lines().map(|line| if wraps(line) { broken(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a line of words with a line break wherever the next word does not fit.
fn broken(line: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for word in line.split(' ') {
        let length = word.chars().count();
        if width > 0 {
            let fits = width + 1 + length <= WIDTH_MAX;
            text.push(if fits { ' ' } else { '\n' });
            width = if fits { width + 1 } else { 0 };
        }
        text.push_str(word);
        width += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_wrap_and_tables_do_not() {
        let (words, row) = ("word ".repeat(30), format!("| {} |", "x".repeat(WIDTH_MAX)));
        let text = wrapped(&format!("{}\n\n{row}\nshort", words.trim()));
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(first.len(), 99);
        assert_eq!(rest, format!("{}\n\n{row}\nshort", "word ".repeat(10).trim()));
    }

    #[test]
    fn a_section_is_appended_once_and_then_replaced() {
        let first = replaced("# Benchmarks\n", "bench", "one");
        let expected = "# Benchmarks\n\n## Raw figures\n\n\
                        <!-- bench:begin -->\n\none\n\n<!-- bench:end -->\n";
        assert_eq!(first, expected);
        assert_eq!(replaced(&first, "bench", "two"), expected.replace("one", "two"));
        let second = replaced(&first, "bench-idle", "three");
        assert!(second.starts_with(expected.trim_end()) && second.contains("three"));
        assert_eq!(second.matches("## Raw figures").count(), 1);
    }
}
