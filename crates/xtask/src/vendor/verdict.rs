//! The suite's output: a verdict on each test.

use std::collections::BTreeMap;

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The result is the expected one.
    Passed,
    /// The test does not run with this server, or in this protocol.
    Skipped,
    /// The result is another one. These are the first words that say how.
    Failed(String),
}

/// Returns the verdicts in the suite's output, by test. It may miss tests behind one that failed.
pub(super) fn verdicts(output: &str) -> BTreeMap<String, Verdict> {
    let mut found = BTreeMap::new();
    for (index, line) in output.lines().enumerate() {
        let Some((name, verdict)) = line.split_once('[') else { continue };
        let Some(name) = name.split_whitespace().next() else { continue };
        let verdict = match verdict.split(']').next().unwrap_or_default().trim() {
            "pass" => Verdict::Passed,
            "skipped" | "disabled" => Verdict::Skipped,
            "fail" => Verdict::Failed(first_words(output.lines().skip(index + 1))),
            _ => continue,
        };
        if name.contains('.') {
            found.entry(name.to_owned()).or_insert(verdict);
        }
    }
    found
}

/// Returns the first lines of a failure that tell it from others.
fn first_words<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut of_diff = Vec::new();
    let mut is_diff = false;
    for line in lines {
        if line.starts_with("mysqltest: ") || line.contains("Test case timeout") {
            return line.to_owned();
        }
        if line.starts_with("@@") {
            if !of_diff.is_empty() {
                break;
            }
            is_diff = true;
        } else if is_diff && line.starts_with(['-', '+']) {
            of_diff.push(line);
        } else if !of_diff.is_empty() {
            break;
        }
    }
    of_diff.truncate(4);
    of_diff.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_test_is_its_verdict() {
        let output = "\
            main.ps                                  [ skipped ]  Test requires: 'have_log_bin'\n\
            main.select 'x,y'                        [ pass ]    900\n\
            worker[01] Using MTR_BUILD_THREAD 300\n\
            main.union                               [ fail ]\n\
            \x20       Test ended at 2026-11-27 23:16:39\n\n\
            --- a.result\n+++ a.reject\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n 4\n-5\n";
        let found = verdicts(output);
        let expected = [
            ("main.ps", Verdict::Skipped),
            ("main.select", Verdict::Passed),
            ("main.union", Verdict::Failed("-2\n+3".to_owned())),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (name, verdict) in expected {
            assert_eq!(found[name], verdict);
        }
        let failed = "main.x [ fail ]\n\nmysqltest: At line 24: query 'x' failed\n";
        let words = "mysqltest: At line 24: query 'x' failed".to_owned();
        assert_eq!(verdicts(failed)["main.x"], Verdict::Failed(words));
    }
}
