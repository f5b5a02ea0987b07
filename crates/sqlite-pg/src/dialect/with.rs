//! Translates WITH, recursive or not.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{CommonTableExpr, Node, SelectStmt, SetOperation, WithClause};

use crate::failure::Failure;
use crate::types::Type;

use super::scope::{Cte, Scope, Scoped, Scopes};
use super::select::{ExpectedColumns, settled, unique};
use super::sequence_calls::computed_once;
use super::value::name;
use super::{Translated, Translator, hints, strings};

impl Translator<'_> {
    /// Translates WITH, with a blank behind it, and runs `make` for what sees its queries.
    pub(super) fn behind<T>(
        &mut self,
        with: Option<&WithClause>,
        make: impl FnOnce(&mut Self) -> Translated<T>,
    ) -> Translated<(Option<String>, T)> {
        let Some(with) = with else { return Ok((None, make(self)?)) };
        self.within(Scope::default(), |this| {
            let words = this.ctes(with)?;
            Ok((Some(words), make(this)?))
        })
    }

    /// Translates the queries of WITH, with a blank behind. From then on the scope has them.
    pub(super) fn ctes(&mut self, with: &WithClause) -> Translated<String> {
        let mut words = Vec::new();
        if with.recursive
            && let Some(scope) = self.scopes.open.last_mut()
        {
            scope.coming = with.ctes.iter().filter_map(cte_name).collect();
        }
        for node in &with.ctes {
            let Some(NodeEnum::CommonTableExpr(cte)) = &node.node else {
                return Err(hints::unknown().into());
            };
            words.push(self.cte(cte, with.recursive)?);
        }
        let word = if with.recursive { "WITH RECURSIVE" } else { "WITH" };
        Ok(format!("{word} {} ", words.join(", ")))
    }

    fn cte(&mut self, cte: &CommonTableExpr, recursive: bool) -> Translated<String> {
        if cte.search_clause.is_some() || cte.cycle_clause.is_some() {
            return Err(hints::refuse("SEARCH and CYCLE").into());
        }
        let Some(NodeEnum::SelectStmt(select)) =
            cte.ctequery.as_ref().and_then(|query| query.node.as_ref())
        else {
            return Err(hints::refuse("WITH of a statement that writes").into());
        };
        let names = strings(&cte.aliascolnames);
        let mut types = Vec::new();
        let before = self.scopes.levels.len();
        if recursive && select.op() == SetOperation::SetopUnion {
            let columns = self.beginning(select, &names)?;
            types = columns.iter().map(|(_, is)| Some(*is)).collect();
            self.scopes.enter(Cte { columns, open: true, ..Cte::of(&cte.ctename) });
        }
        let place = ExpectedColumns { types: &types, names: &names, ..ExpectedColumns::default() };
        let query = self.query(select, place)?;
        if self.scopes.is_read(&cte.ctename) {
            refuse_around_recursion(select)?;
        }
        if names.len() > query.columns.len() {
            let message = format!("WITH query \"{}\" has too few columns", cte.ctename);
            return Err(Failure::new("42P10", message).into());
        }
        let columns: Vec<_> = query.columns.iter().map(settled).collect();
        unique(columns.iter().map(|(name, _)| name.as_str()))?;
        let listed: Vec<String> = columns.iter().map(|(column, _)| name(column)).collect();
        let outer =
            self.scopes.levels[before..].iter().any(|level| *level < self.scopes.open.len());
        self.scopes.enter(Cte { columns, outer, ..Cte::of(&cte.ctename) });
        let sql = computed_once(query.sql);
        Ok(format!("{}({}) AS ({sql})", name(&cte.ctename), listed.join(", ")))
    }

    /// Returns the columns of the first part of a recursion, which sees the WITH of the whole.
    fn beginning(
        &mut self,
        select: &SelectStmt,
        names: &[String],
    ) -> Translated<Vec<(String, Type)>> {
        let left = select.larg.as_deref().ok_or_else(hints::unknown)?;
        let place = ExpectedColumns { names, ..ExpectedColumns::default() };
        let (_, made) = self.behind(select.with_clause.as_ref(), |this| this.query(left, place))?;
        Ok(made.columns.iter().map(settled).collect())
    }
}

impl Scopes {
    /// True if the query of this name that is being translated has read itself.
    fn is_read(&self, name: &str) -> bool {
        let scope = self.open.last();
        scope.is_some_and(|scope| {
            scope.ctes.iter().any(|cte| cte.read && cte.open && cte.name == name)
        })
    }

    /// Returns the query of WITH that a name means, the innermost first, and notes that it is read.
    ///
    /// # Errors
    /// If a table of the same name stands between. SQLite looks up a column of an enclosing query
    /// where the WITH is used, not where it is written, and would find that table.
    pub(super) fn with_query(&mut self, wanted: &str) -> Translated<Option<Cte>> {
        let has = |scope: &Scope| scope.ctes.iter().position(|cte| cte.name == wanted);
        let mut found = self.open.iter().enumerate().rev();
        let found = found.find_map(|(depth, scope)| Some((depth, has(scope)?)));
        let Some((depth, place)) = found else { return Ok(None) };
        let cte = &mut self.open[depth].ctes[place];
        cte.read = true;
        let cte = cte.clone();
        if cte.outer {
            let (around, within) = self.open.split_at(depth);
            let between = within.split_last().map_or(&[][..], |(_, between)| between);
            let sources = || around.iter().flat_map(|scope| &scope.sources);
            if between.iter().any(|scope| sources().any(|source| scope.has_source(&source.alias))) {
                return Err(hints::refuse("a WITH that reads a table named twice").into());
            }
            self.levels.push(depth.saturating_sub(1));
        }
        Ok(Some(cte))
    }

    fn enter(&mut self, cte: Cte) {
        if let Some(scope) = self.open.last_mut() {
            scope.ctes.retain(|known| known.name != cte.name);
            if !cte.open {
                scope.coming.retain(|known| *known != cte.name);
            }
            scope.ctes.push(cte);
        }
    }
}

fn cte_name(node: &Node) -> Option<String> {
    match &node.node {
        Some(NodeEnum::CommonTableExpr(cte)) => Some(cte.ctename.clone()),
        _ => None,
    }
}

/// Refuses clauses after the UNION of a recursion (`checkWellFormedRecursion` of the server).
fn refuse_around_recursion(select: &SelectStmt) -> Result<(), Failure> {
    let parts = [
        (!select.sort_clause.is_empty(), "ORDER BY in a recursive query"),
        (select.limit_offset.is_some(), "OFFSET in a recursive query"),
        (select.limit_count.is_some(), "LIMIT in a recursive query"),
    ];
    match parts.iter().find(|(is, _)| *is) {
        None => Ok(()),
        Some((_, form)) => Err(hints::refuse(form)),
    }
}
