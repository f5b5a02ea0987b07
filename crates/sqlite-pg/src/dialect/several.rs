//! Statements of PostgreSQL's that are several of SQLite's: the first runs in the statement's
//! place, the others follow it in its transaction ([`FollowUp`]).
//!
//! The parts of such a statement are written in PostgreSQL's dialect, and each is translated when
//! the ones before it have run: so it sees the schema that they made.

use refrain_grammar::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType, CommentStmt, DoStmt, DropBehavior, Node,
    ObjectType, RangeVar, TruncateStmt,
};
use refrain_grammar::{NodeEnum, statement};
use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::failure::Failure;

use super::edits::{Edits, FollowUp, NOTHING, SchemaChange};
use super::scope::Catalog;
use super::sequences::sequences_of;
use super::value::name;
use super::{NotTranslated, Translated, hints, string, strings, text_of, translate};

impl Edits<'_> {
    /// Translates the first of several statements; the others follow it.
    pub(super) fn sequence(&mut self, statements: Vec<String>) -> Translated<String> {
        let mut statements = statements.into_iter();
        let first = statements.next().ok_or_else(hints::unknown)?;
        let made = translate(&first, self.basis.catalog, &[], &[]).map_err(without_position)?;
        self.follow_ups.extend(made.follow_ups);
        self.follow_ups.extend(statements.map(FollowUp::Statement));
        Ok(made.sql)
    }

    /// Translates the one block of DO that migrations of tools have: a definition that may be there
    /// already.
    pub(super) fn guarded(&mut self, it: &DoStmt) -> Translated<String> {
        let body = it.args.iter().find_map(|node| match &node.node {
            Some(NodeEnum::DefElem(option)) if option.defname == "as" => {
                option.arg.as_deref().and_then(string)
            }
            _ => None,
        });
        let refused = || hints::refuse("CREATE FUNCTION");
        let body = body.ok_or_else(refused)?;
        let inside = guarded_statement(&body).ok_or_else(refused)?;
        match statement(inside).map_err(|_| refused())?.node {
            Some(NodeEnum::CreateEnumStmt(_) | NodeEnum::AlterTableStmt(_)) => {}
            _ => return Err(refused().into()),
        }
        match translate(inside, self.basis.catalog, &[], &[]) {
            Ok(made) => {
                self.follow_ups.extend(made.follow_ups);
                Ok(made.sql)
            }
            Err(NotTranslated::Refused(failure)) if failure.sqlstate == "42710" => {
                Ok(NOTHING.to_owned())
            }
            Err(stop) => Err(without_position(stop)),
        }
    }

    /// Translates ALTER TABLE with several changes: each becomes a statement. As in the server
    /// (`ATPrepCmd`), what is dropped goes first, and constraints are added last.
    pub(super) fn changes(&mut self, alter: &AlterTableStmt) -> Translated<String> {
        let parts = split_changes(self.basis.text)
            .filter(|parts| parts.len() == alter.cmds.len())
            .ok_or_else(hints::unknown)?;
        let pass = |node: &Node| match &node.node {
            Some(NodeEnum::AlterTableCmd(command)) => pass_of(command),
            _ => 0,
        };
        let mut ordered: Vec<_> = alter.cmds.iter().map(pass).zip(parts).collect();
        ordered.sort_by_key(|(pass, _)| *pass);
        self.sequence(ordered.into_iter().map(|(_, part)| part).collect())
    }

    /// Translates TRUNCATE: the rows of each table are deleted, those that refer to others first.
    pub(super) fn truncate(&mut self, truncate: &TruncateStmt) -> Translated<String> {
        let cascade = truncate.behavior() == DropBehavior::DropCascade;
        let mut tables = Vec::new();
        for node in &truncate.relations {
            let Some(NodeEnum::RangeVar(relation)) = &node.node else {
                return Err(hints::unknown().into());
            };
            let (written, columns) = self.basis.table(relation)?;
            if columns.iter().any(|column| !column.writable) {
                let message = format!("\"{}\" is not a table", relation.relname);
                return Err(Failure::new("42809", message).into());
            }
            tables.push((relation.relname.clone(), written));
        }
        let mut at = 0;
        while let Some((table, _)) = tables.get(at).cloned() {
            for other in self.basis.catalog.referrers(&table) {
                if tables.iter().any(|(known, _)| *known == other) {
                    continue;
                }
                if !cascade {
                    return Err(referred(&table, &other).into());
                }
                let written = name(&other);
                tables.push((other, written));
            }
            at += 1;
        }
        let names: Vec<String> = tables.iter().map(|(table, _)| table.clone()).collect();
        let order = dependents_first(self.basis.catalog, names);
        let written = |table: &String| tables.iter().find(|(known, _)| known == table);
        let mut all = order.iter().filter_map(written).map(|(_, sql)| sql);
        let first = all.next().ok_or_else(hints::unknown)?;
        self.follow_ups.extend(all.map(|sql| FollowUp::Sqlite(format!("DELETE FROM {sql}"))));
        for table in order.iter().filter(|_| truncate.restart_seqs) {
            for (sequence, _) in sequences_of(self.basis.catalog, table) {
                let text = format!("ALTER SEQUENCE {} RESTART", name(&sequence));
                self.follow_ups.push(FollowUp::Statement(text));
            }
        }
        for table in order.iter().filter(|_| truncate.restart_seqs) {
            let is_temporary = self.basis.catalog.table(Some("temp"), table).is_some();
            let schema = if is_temporary { "temp" } else { "main" };
            if self.basis.catalog.table(Some(schema), "sqlite_sequence").is_some() {
                let literal = super::value::text_literal(table);
                let sql = format!("DELETE FROM {schema}.sqlite_sequence WHERE name = {literal}");
                self.follow_ups.push(FollowUp::Sqlite(sql));
            }
        }
        Ok(format!("DELETE FROM {first}"))
    }

    /// Translates COMMENT: it is kept in the table's definition.
    pub(super) fn comment(&mut self, it: &CommentStmt) -> Translated<String> {
        let names = match it.object.as_ref().and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::List(list)) => strings(&list.items),
            _ => Vec::new(),
        };
        let (table, column) = match (it.objtype(), &names[..]) {
            (ObjectType::ObjectTable, [.., table]) => (table, None),
            (ObjectType::ObjectColumn, [.., table, column]) => (table, Some(column.clone())),
            _ => return Err(hints::refuse("COMMENT").into()),
        };
        let relation = RangeVar { relname: table.clone(), ..RangeVar::default() };
        if let Some(column) = &column {
            self.basis.column_of(column, &relation)?;
        }
        let change = SchemaChange::Comment { column, text: it.comment.clone() };
        self.edit(&relation, None, change, "COMMENT")
    }
}

/// Returns the statement of a block that passes over what is there already:
/// `BEGIN …; EXCEPTION WHEN duplicate_object THEN null; END`.
fn guarded_statement(body: &str) -> Option<&str> {
    const AROUND: [&str; 7] =
        ["begin", "exception", "when", "duplicate_object", "then", "null", "end"];
    let mut lexer = Lexer::new(body.as_bytes(), false);
    let tokens: Vec<Token> = std::iter::from_fn(|| lexer.significant()).collect();
    let is = |token: &Token, word: &str| text_of(body, token).eq_ignore_ascii_case(word);
    let begin = tokens.first().filter(|token| is(token, AROUND[0]))?;
    let start = tokens.iter().position(|token| is(token, AROUND[1]))?;
    let (statement, end) = tokens[1..start].split_last().map(|(end, all)| (all, end))?;
    let behind = tokens[start..].iter().filter(|token| token.kind != TokenKind::Semicolon);
    let around = behind.map(|token| text_of(body, token).to_ascii_lowercase());
    let one = statement.iter().all(|token| token.kind != TokenKind::Semicolon);
    let plain = end.kind == TokenKind::Semicolon && one && around.eq(AROUND[1..].iter().copied());
    body.get(begin.end as usize..end.start as usize).filter(|_| plain)
}

/// Orders tables and views so that each stands in front of those that it reads or refers to.
pub(super) fn dependents_first(catalog: &dyn Catalog, mut names: Vec<String>) -> Vec<String> {
    let mut ordered = Vec::new();
    while !names.is_empty() {
        let is_free = |called: &String| {
            let mut dependents = catalog.referrers(called);
            dependents.extend(catalog.readers(called));
            !names.iter().any(|other| other != called && dependents.contains(other))
        };
        let place = names.iter().position(is_free).unwrap_or(0);
        ordered.push(names.remove(place));
    }
    ordered
}

/// Takes away an error's position, which is that in a part of the text.
fn without_position(stop: NotTranslated) -> NotTranslated {
    match stop {
        NotTranslated::Refused(failure) => Failure { position: 0, ..failure }.into(),
        stop => stop,
    }
}

fn referred(table: &str, by: &str) -> Failure {
    Failure::unsupported("cannot truncate a table referenced in a foreign key constraint")
        .detail(format!("Table \"{by}\" references \"{table}\"."))
        .hint(format!("Truncate table \"{by}\" at the same time, or use TRUNCATE ... CASCADE."))
}

/// Returns the pass in which the server makes a change.
fn pass_of(command: &AlterTableCmd) -> u8 {
    match command.subtype() {
        AlterTableType::AtDropColumn
        | AlterTableType::AtDropConstraint
        | AlterTableType::AtDropNotNull => 0,
        AlterTableType::AtColumnDefault if command.def.is_none() => 0,
        AlterTableType::AtAlterColumnType => 1,
        AlterTableType::AtAddColumn => 2,
        AlterTableType::AtAddConstraint => 4,
        _ => 3,
    }
}

/// Splits an ALTER TABLE at the commas between its changes: each part is a statement of its own.
fn split_changes(text: &str) -> Option<Vec<String>> {
    let mut lexer = Lexer::new(text.as_bytes(), false);
    let mut tokens = std::iter::from_fn(|| lexer.significant()).peekable();
    let is = |token: &Token, word: &str| text_of(text, token).eq_ignore_ascii_case(word);
    tokens.next().filter(|token| is(token, "alter"))?;
    tokens.next()?;
    if tokens.next_if(|token| is(token, "if")).is_some() {
        tokens.next()?;
    }
    tokens.next_if(|token| is(token, "only"));
    let mut end = tokens.next()?.end as usize;
    while tokens.next_if(|token| token.kind == TokenKind::Dot).is_some() {
        end = tokens.next()?.end as usize;
    }
    if let Some(star) = tokens.next_if(|token| is(token, "*")) {
        end = star.end as usize;
    }
    let head = text.get(..end)?;
    let (mut depth, mut start, mut parts) = (0_usize, end, Vec::new());
    let mut stop = text.len();
    for token in tokens {
        match token.kind {
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Comma if depth == 0 => {
                parts.push(format!("{head} {}", text.get(start..token.start as usize)?.trim()));
                start = token.end as usize;
            }
            TokenKind::Semicolon => stop = token.start as usize,
            _ => {}
        }
    }
    parts.push(format!("{head} {}", text.get(start..stop)?.trim()));
    parts.iter().all(|part| statement(part).is_ok()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_split_at_their_commas() {
        let parts = split_changes(
            "ALTER TABLE IF EXISTS ONLY a.\"b,c\" ADD x int DEFAULT f(1, 2), DROP y;",
        );
        let head = "ALTER TABLE IF EXISTS ONLY a.\"b,c\"";
        let expected = [format!("{head} ADD x int DEFAULT f(1, 2)"), format!("{head} DROP y")];
        assert_eq!(parts.as_deref(), Some(&expected[..]));
    }
}
