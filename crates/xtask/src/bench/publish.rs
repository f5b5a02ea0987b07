//! Putting figures into `BENCHMARKS.md`, between two comments that name them.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace;

/// Where figures are kept, from the root.
const PAGE: &str = "BENCHMARKS.md";

/// Replaces a section of the page, or appends it under "Raw figures" where there is none yet.
pub(super) fn publish(section: &str, text: &str) -> Result<()> {
    let page = workspace::root().join(PAGE);
    let before = fs::read_to_string(&page).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
    fs::write(&page, replaced(&before, section, text)).with_context(|| format!("writing {PAGE}"))
}

fn replaced(page: &str, section: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {section}:begin -->"), format!("<!-- {section}:end -->"));
    let inside = format!("{begin}\n\n{}\n\n{end}", text.trim());
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

#[cfg(test)]
mod tests {
    use super::*;

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
