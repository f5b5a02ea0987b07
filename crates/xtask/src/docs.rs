//! Pages of `docs/` that are written by the code they describe.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::workspace;

/// A page and the function that writes its text.
struct Page {
    name: &'static str,
    text: fn() -> String,
}

const PAGES: &[Page] = &[Page { name: "config.md", text: refrain_config::reference }];

fn path(page: &Page) -> PathBuf {
    workspace::root().join("docs").join(page.name)
}

/// Writes every generated page.
pub fn write() -> Result<()> {
    for page in PAGES {
        fs::write(path(page), (page.text)()).with_context(|| format!("docs/{}", page.name))?;
        println!("wrote docs/{}", page.name);
    }
    Ok(())
}

/// Names of the generated pages whose text is not what the code would write now.
pub fn outdated() -> Vec<&'static str> {
    let current = |page: &Page| fs::read_to_string(path(page)).is_ok_and(|at| at == (page.text)());
    PAGES.iter().filter(|page| !current(page)).map(|page| page.name).collect()
}
