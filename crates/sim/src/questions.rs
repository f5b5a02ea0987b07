//! The answers to the questions that the engine asks of its own.

use crate::item::is_volatile;
use crate::rows;
use crate::session::{Catalog, Session};
use crate::state::REPORTED;

type Row = Vec<String>;

impl Session {
    /// Returns the settings of the session, of which these are named in addition.
    pub(crate) fn probe(&self, names: &[String]) -> Vec<Row> {
        let plain = |(name, _): &(&String, &String)| !name.contains('.');
        let listed = self.state.set.iter().filter(plain);
        let mut rows: Vec<Row> = listed.map(|(n, v)| vec![n.clone(), v.clone()]).collect();
        let reported = REPORTED.iter().map(|(name, _)| *name);
        let reported = reported.filter(|name| !name.starts_with("server_"));
        for name in reported {
            let unset = if self.state.is_set(name) { "" } else { "=" };
            rows.push(vec![format!("{name}{unset}"), self.setting(name)]);
        }
        let (others, names): (Vec<_>, Vec<_>) =
            names.iter().partition(|name| name.starts_with('='));
        for name in others.into_iter().filter(|name| self.has_left(name)) {
            rows.push(vec![name.clone(), String::new()]);
        }
        for name in names {
            if let Some(value) = self.state.value(&self.base, name) {
                rows.push(vec![name.to_owned(), value]);
            }
        }
        rows
    }

    /// Returns the findings of the catalog about statements that mention these names. Relations are
    /// temporary, except those with rows.
    pub(crate) fn findings(&self, names: &[[String; 3]]) -> Vec<Row> {
        let objects = self.catalog != Catalog::Blind;
        let finding = |kind: &str, name: &str| match (kind, rows::oid(name)) {
            ("f", _) if is_volatile(name) && objects => Some("volatile".to_owned()),
            ("r", None) if objects => Some("temporary".to_owned()),
            ("r", Some(oid)) => Some(format!("reads {oid} public.{name}")),
            ("u", _) if self.catalog == Catalog::NoTargets => None,
            ("u", None) => Some("anything".to_owned()),
            ("u", Some(oid)) => Some(format!("writes {oid} public.{name}")),
            _ => None,
        };
        let row = |[number, kind, name]: &[String; 3]| {
            let found = finding(kind, name.trim_matches('"'))?;
            Some(vec![format!("{number} {found}")])
        };
        names.iter().filter_map(row).collect()
    }

    /// Whether the session has the state that the engine's question names.
    fn has_left(&self, name: &str) -> bool {
        match name {
            "=temp" => !self.state.temps.is_empty(),
            "=advisory" => self.locks > 0,
            "=listen" => !self.state.listens.is_empty(),
            "=prepared" => self.statements.values().any(|prepared| prepared.by_sql),
            "=hold" => !self.holds.is_empty(),
            _ => false,
        }
    }
}
