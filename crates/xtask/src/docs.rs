//! Files that the code generates: pages of `docs/`, and what watches the metrics.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::watching;
use crate::workspace;

/// A file and the function that writes its text.
struct Page {
    name: &'static str,
    text: fn() -> String,
}

const PAGES: &[Page] = &[
    Page { name: "docs/config.md", text: refrain_config::reference },
    Page { name: "docs/pgbouncer.md", text: refrain_config::pgbouncer_page },
    Page { name: "contrib/grafana/refrain.json", text: watching::dashboard },
    Page { name: "contrib/prometheus/alerts.yml", text: watching::alerts },
];

fn path(page: &Page) -> PathBuf {
    workspace::root().join(page.name)
}

/// Writes every generated page.
pub fn write() -> Result<()> {
    for page in PAGES {
        fs::write(path(page), (page.text)()).with_context(|| page.name)?;
        println!("wrote {}", page.name);
    }
    Ok(())
}

/// Returns the names of the pages whose text differs from what the code would generate.
pub fn outdated() -> Vec<&'static str> {
    let current = |page: &Page| fs::read_to_string(path(page)).is_ok_and(|at| at == (page.text)());
    PAGES.iter().filter(|page| !current(page)).map(|page| page.name).collect()
}
