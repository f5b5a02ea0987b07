//! Answers the dashboard: the tables of one moment, by a look at as little of each core as they
//! need.

use refrain_pool::snapshot::Extent;
use refrain_sql::literals::without_literals;

use super::Desk;
use super::pg::why;
use super::show::LISTINGS;
use super::view::View;
use crate::console::{Glance, Sight, Table};

/// The listings that the dashboard may ask for, and what they need of a core.
pub(crate) const SHOWN: &[(&str, Extent)] = &[
    ("autoprepare", Extent::TEXTS),
    ("cache", Extent::OUTLINE),
    ("cache advice", Extent::TEXTS),
    ("cache bypass", Extent::OUTLINE),
    ("cache memory", Extent::OUTLINE),
    ("cache rules", Extent::OUTLINE),
    ("hosts", Extent::OUTLINE),
    ("overview", Extent::OUTLINE),
    ("pins", Extent::NOTABLE),
    ("pools", Extent::NOTABLE),
    ("prepared", Extent::OUTLINE),
    ("servers_extended", Extent::OUTLINE),
    ("sharing", Extent::OUTLINE),
    ("statements", Extent::OUTLINE),
    ("stats", Extent::OUTLINE),
    #[cfg(feature = "sqlite")]
    ("stmt_cache_texts", Extent::OUTLINE),
    ("times", Extent::OUTLINE),
    ("waits", Extent::OUTLINE),
    ("warnings", Extent::OUTLINE),
];

/// Most characters of a text of a client.
const TEXT_MAX: usize = 4000;

/// Returns a text of a client as the dashboard shows it: without its literals, and cut.
pub(crate) fn shown_text(text: &str) -> String {
    let bytes = without_literals(text.as_bytes());
    let shown = String::from_utf8_lossy(&bytes);
    match shown.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}

/// Whether a query is shown as this text.
fn is_shown_as(query: &str, text: &str) -> bool {
    shown_text(query) == text
}

/// Answers the dashboard.
pub(super) fn answer(desk: &Desk, glance: Glance) {
    let view = |extent| desk.view_of(extent);
    let tables = match glance.at {
        Sight::Listings(names) => {
            let extents = SHOWN.iter().filter(|(name, _)| names.contains(name));
            let view = view(extents.fold(Extent::OUTLINE, |all, (_, one)| all.with(*one)));
            names.iter().map(|name| listing(&view, name)).collect()
        }
        Sight::Text(text) => vec![why::of_text(&view(Extent::OUTLINE), &text)],
        Sight::Template(text) => {
            vec![why::of_template(&view(Extent::TEXTS), |query| is_shown_as(query, &text))]
        }
        Sight::Statement(id) => vec![why::of_statement(&view(Extent::OUTLINE), id)],
    };
    (glance.answer)(tables);
}

fn listing(view: &View<'_>, name: &str) -> Table {
    let found = LISTINGS.iter().find(|(listing, _)| *listing == name);
    found.map_or_else(Table::default, |(_, listing)| listing.show(view))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_shown_is_there() {
        for (name, _) in SHOWN {
            assert!(LISTINGS.iter().any(|(listing, _)| listing == name), "{name}");
        }
        assert!(SHOWN.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn a_query_is_found_by_the_text_that_is_shown_of_it() {
        let long = format!("select {} 'ann'", "a, ".repeat(TEXT_MAX));
        let shown = shown_text(&long);
        assert_eq!(shown.chars().count(), TEXT_MAX + 1);
        assert!(is_shown_as(&long, &shown) && is_shown_as("select 'ann'", "select ''"));
        assert!(!is_shown_as("select 'ann'", &shown) && !is_shown_as("select 1", "select ''"));
    }
}
