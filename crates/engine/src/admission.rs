//! Simple queries as prepared statements: what servers say.
//!
//! Before a template is used, a server outside any transaction prepares one of its texts twice, as it was sent and
//! with parameters, and describes both. Only if the columns are the same to the byte is the statement used. That is
//! a segment of our own, of which the client sees nothing.
//!
//! A text that was run as a statement and failed before its values were bound has done nothing. Outside a transaction
//! it is then run as it was sent, so that the client sees the very error, or none. Within one the error stands, and
//! says where in the client's text it lies.

use refrain_sql::template::{Plan, Span};
use refrain_wire::back::{Fields, field};
use refrain_wire::tag::back;
use refrain_wire::write;

use crate::guard::Turn;
use crate::ledger::{Entry, Fate, Owed, Purpose};
use crate::run::{Admission, Finding, Run, is_passing};
use crate::settings;
use crate::statement::is_stale;
use crate::talk::Talk;
use crate::template::{Place, Refused, Stage};

/// Type `interval`.
const INTERVAL: u32 = 1186;
/// Reruns that succeed after which a variant is refused.
const RERUNS_MAX: u32 = 3;

impl Talk<'_> {
    /// Asks the server about a template by one of its texts, in a segment of its own.
    pub(crate) fn ask(&mut self, place: Place, plan: &Plan, text: &[u8], spans: &[Span]) {
        let local = self.intern(&tail(plan, text, spans));
        let statement = local.statement.clone();
        let (shared, now) = (self.pool().shared.clone(), self.now);
        let epoch = shared.upheavals();
        let Some(variant) = self.pool().templates.at(place) else { return };
        // What servers have of it may be older than what is to be found out now.
        let aged = matches!(variant.stage, Stage::Ready { epoch: known, .. } if known == epoch);
        if statement.follow(epoch) || aged {
            statement.begin_generation(statement.generation(), shared.epoch());
        }
        variant.stage = Stage::Asked { since: now, local: local.clone() };
        self.describe_as_sent(text);
        if !plan.writes.is_empty() {
            self.run_aside(&rewritten(&plan.writes), Purpose::Admit);
        }
        let asks = Fate::Swallow(Purpose::Admit);
        if self.server.has(&statement).is_none() {
            self.send_parse_auto(&local, asks);
        }
        let mut name = Vec::new();
        statement.write_name(&mut name, statement.generation());
        write::describe_statement(self.out(), &name);
        self.owe(Entry::new(Owed::DescribeStatement, asks).about(statement.id));
        self.end_segment(Purpose::Admit);
        let admission = Admission {
            place,
            epoch,
            writes: !plan.writes.is_empty(),
            columns: None,
            same: false,
            finding: Finding::Fit,
        };
        self.server.admission = Some(Box::new(admission));
    }

    /// Has the server describe a text as it was sent, under a name that is gone when it has.
    fn describe_as_sent(&mut self, text: &[u8]) {
        let name = self.hub.shared.registry.aside();
        let out = self.ports.out(self.server.conn);
        write::close_statement(out, &name);
        write::parse(out, &name, &[text, &[0; 3]].concat());
        write::describe_statement(out, &name);
        write::close_statement(out, &name);
        for owed in [Owed::Close, Owed::Parse, Owed::DescribeStatement, Owed::Close] {
            self.owe_us(owed, Purpose::Admit, 0);
        }
    }

    /// The parameters of a statement that is asked about.
    pub(crate) fn asked_parameters(&mut self, entry: &Entry, body: &[u8]) {
        let Some(admission) = &mut self.server.admission else { return };
        let interval = |oid: &[u8; 4]| u32::from_be_bytes(*oid) == INTERVAL;
        let types = body.get(2..).unwrap_or_default();
        if entry.statement != 0 && admission.writes && types.as_chunks().0.iter().any(interval) {
            admission.finding = Finding::Refused(Refused::Interval);
        }
    }

    /// What a text writes to is no plain table.
    pub(crate) fn asked_row(&mut self) {
        if let Some(admission) = &mut self.server.admission {
            admission.finding = Finding::Refused(Refused::Rewritten);
        }
    }

    /// The columns of a text or a statement that is asked about.
    pub(crate) fn asked_columns(&mut self, entry: &Entry, tag: u8, body: &[u8]) {
        let hash = self.hub.shared.registry.hash_bytes(body) ^ u64::from(tag);
        let Some(admission) = &mut self.server.admission else { return };
        if entry.statement == 0 {
            admission.columns = Some(hash);
        } else {
            admission.same = admission.columns == Some(hash);
        }
    }

    /// The server refuses a text or a statement that is asked about.
    pub(crate) fn asked_in_vain(&mut self, entry: &Entry, fields: &Fields<'_>) {
        let Some(admission) = &mut self.server.admission else { return };
        // What the text is refused for as it was sent is not the template's fault.
        let passes = entry.statement == 0 || is_passing(fields);
        let sqlstate = fields.sqlstate().first_chunk().copied().unwrap_or_default();
        admission.finding = match passes {
            true => Finding::Unknown,
            false => Finding::Refused(Refused::Server(sqlstate)),
        };
        debug_assert!(entry.fate == Fate::Swallow(Purpose::Admit), "it was asked");
    }

    /// The server has said all.
    pub(crate) fn asked(&mut self) {
        let now = self.now;
        let Some(admission) = self.server.admission.take() else { return };
        let Admission { place, epoch, same, finding, .. } = *admission;
        let finding = match finding {
            Finding::Fit if !same => Finding::Refused(Refused::Shape),
            finding => finding,
        };
        let pool = self.hub.pool(self.server.pool);
        let bounds = pool.bounds();
        if let Some(variant) = pool.templates.at(place)
            && let Stage::Asked { local, .. } = &variant.stage
        {
            match finding {
                Finding::Fit => {
                    variant.stage = Stage::Ready { local: local.clone(), epoch, since: now };
                }
                Finding::Refused(why) => variant.stage = Stage::Never { why, epoch, since: now },
                Finding::Unknown => variant.recount(&bounds),
            }
        }
        match finding {
            Finding::Fit => pool.counters.auto_admissions += 1,
            Finding::Unknown | Finding::Refused(_) => pool.counters.auto_refusals += 1,
        }
        pool.wake();
    }

    /// The server has bound the values of a run.
    pub(crate) fn run_is_bound(&mut self) {
        if let Some(run) = &mut self.server.run {
            run.bound = true;
        }
    }

    /// Whether the client gets a reply only if no error follows; `input` begins with it, in `length` bytes. A
    /// query string describes what a statement that writes returns once that has run, and is complete once its
    /// transaction has been committed.
    pub(crate) fn holds_back(&mut self, entry: &Entry, input: &[u8], length: usize) -> bool {
        let own = |run: &&mut Run| run.turn == Turn::Prepared && entry.fate.is_for_client();
        let Some(run) = self.server.run.as_mut().filter(own) else { return false };
        let holds = match (input[0], input.get(length)) {
            (back::ROW_DESCRIPTION, next) => run.writes && next != Some(&back::DATA_ROW),
            (back::COMMAND_COMPLETE, next) => run.alone && next != Some(&back::READY_FOR_QUERY),
            _ => false,
        };
        if holds {
            run.held.extend_from_slice(&input[..length]);
        }
        holds
    }

    /// What was held back, and is for the client now.
    #[inline]
    pub(crate) fn held_back(&mut self) -> Option<Vec<u8>> {
        let run = self.server.run.as_mut().filter(|run| !run.held.is_empty())?;
        Some(std::mem::take(&mut run.held))
    }

    /// An error came for what was run in the place of a text. Says whether the text is run as it was sent instead.
    pub(crate) fn runs_again(&mut self, entry: &Entry, fields: &Fields<'_>) -> bool {
        let stale = is_stale(fields);
        let Some(run) = &mut self.server.run else { return false };
        if !run.may_be_repeated(fields) {
            run.failed = true;
            run.held.clear();
            // A value that names something that is not there would be refused in the text as well.
            let of_value = fields.get(field::CONTEXT).is_some_and(|it| parameter(it).is_some());
            let ours = run.turn == Turn::Prepared && !run.alone && stale && !of_value;
            self.pool().counters.auto_failures_in_transaction += u64::from(ours);
            return false;
        }
        debug_assert!(entry.fate == Fate::Swallow(Purpose::Autoprepare), "nothing is bound");
        let text = std::mem::take(&mut run.text);
        run.again = fields.sqlstate().first_chunk().copied();
        run.turn = Turn::Simple;
        self.server.ledger.swallow_first(Purpose::Autoprepare);
        self.forget_unnamed();
        write::query(self.out(), &text);
        self.owe(Entry::new(Owed::Query, Fate::Forward));
        self.server.text = text;
        self.pool().counters.auto_fallbacks += 1;
        true
    }

    /// A text that was looked at has been run.
    pub(crate) fn run_ends(&mut self, took: u64) {
        let Some(run) = self.server.run.take() else { return };
        if !run.failed {
            self.ran(&run, took);
        }
        if run.text.capacity() > 0 {
            self.server.text = run.text;
        }
    }

    /// A text that was looked at has been run without an error.
    fn ran(&mut self, run: &Run, took: u64) {
        let Run { place, turn, again, ref text, .. } = *run;
        let now = self.now;
        let pool = self.hub.pool(self.server.pool);
        let epoch = pool.shared.upheavals();
        if let Some(sqlstate) = again {
            // What it failed for as a statement is not the text's fault.
            if let Some(variant) = pool.templates.at(place) {
                variant.distrust(Refused::Server(sqlstate), RERUNS_MAX, epoch, now);
            }
        } else if let Some(why) = pool.templates.ran(place, turn, text, took) {
            pool.templates.refuse(place, why, epoch, now);
            pool.counters.auto_demotions += 1;
        }
    }

    /// The fields of an error as they would be for the text that the client sent.
    pub(crate) fn as_sent<'a>(&self, entry: &Entry, fields: &Fields<'a>) -> Vec<(u8, Vec<u8>)> {
        let own = |(code, value): (u8, &'a [u8])| (code, value.to_vec());
        let fields: Vec<_> = fields.iter().map(own).collect();
        let Some(run) = self.server.run.as_ref().filter(|run| run.turn == Turn::Prepared) else {
            return fields;
        };
        let (text, utf8) = (&run.text, self.client.current().reads.is_utf8);
        let plan = self
            .hub
            .peek_pool(self.server.pool)
            .and_then(|pool| pool.templates.plan(run.place.key));
        let Some((plan, spans)) = plan.zip(self.spans(text)) else { return fields };
        as_sent(fields, entry.owed == Owed::Bind, &plan, text, &spans, utf8)
    }

    /// The literals of a text of a template.
    fn spans(&self, text: &[u8]) -> Option<Vec<Span>> {
        let mut spans = Vec::new();
        let seed = self.hub.shared.registry.seed();
        refrain_sql::template::generalise(text, seed, usize::MAX, &mut spans).ok()?;
        Some(spans)
    }
}

/// The query that has a row for each of these tables that is none, or has rules.
fn rewritten(tables: &[String]) -> Vec<u8> {
    let mut text = b"SELECT FROM pg_catalog.pg_class WHERE oid IN (".to_vec();
    for (index, table) in tables.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        settings::write_literal(&mut text, table.as_bytes());
        text.extend_from_slice(b"::pg_catalog.regclass");
    }
    text.extend_from_slice(b") AND (relhasrules OR relkind NOT IN ('r','p','f'))");
    text
}

/// What a Parse of the statement says behind its name.
fn tail(plan: &Plan, text: &[u8], spans: &[Span]) -> Vec<u8> {
    let mut tail = Vec::new();
    plan.render(text, spans, &mut tail);
    tail.push(0);
    let oids: Vec<_> = plan.bound(spans).map(|bound| bound.oid).collect();
    tail.extend_from_slice(&u16::try_from(oids.len()).unwrap_or(u16::MAX).to_be_bytes());
    oids.iter().for_each(|oid| tail.extend_from_slice(&oid.to_be_bytes()));
    tail
}

/// The fields of an error about a statement, as they would be about the text. `bind` says that it came for the values:
/// then PostgreSQL names the parameter at the end of the context, and of a text would point at the literal; but not where
/// a constraint of a domain is violated, which of a text is found only when it runs.
fn as_sent(
    fields: Vec<(u8, Vec<u8>)>,
    bind: bool,
    plan: &Plan,
    text: &[u8],
    spans: &[Span],
    utf8: bool,
) -> Vec<(u8, Vec<u8>)> {
    let constraint =
        |(code, value): &(u8, Vec<u8>)| *code == field::SQLSTATE && value.starts_with(b"23");
    let points = !fields.iter().any(constraint);
    let mut made = Vec::with_capacity(fields.len());
    for (code, value) in fields {
        match code {
            field::POSITION => {
                let place = std::str::from_utf8(&value).ok().and_then(|it| it.parse().ok());
                let mapped = place.map(|place| plan.position(text, spans, place, utf8));
                made.push((code, mapped.map_or(value, |it| it.to_string().into_bytes())));
            }
            field::CONTEXT if bind => match parameter(&value) {
                None => made.push((code, value)),
                Some((number, before)) => {
                    if !before.is_empty() {
                        made.push((code, before.to_vec()));
                    }
                    let place = plan.place(text, spans, number, utf8).filter(|_| points);
                    made.extend(place.map(|it| (field::POSITION, it.to_string().into_bytes())));
                }
            },
            _ => made.push((code, value)),
        }
    }
    made
}

/// The parameter that a context names, such as `unnamed portal parameter $1 = '...'`, and the lines before that one. What
/// comes behind is the value. The words depend on the language.
fn parameter(context: &[u8]) -> Option<(usize, &[u8])> {
    let mut start = 0;
    for line in context.split(|&byte| byte == b'\n') {
        if let Some(number) = named(line) {
            return Some((number, context[..start].strip_suffix(b"\n").unwrap_or_default()));
        }
        start += line.len() + 1;
    }
    None
}

/// The number behind `$`, if it ends a line or a value follows.
fn named(line: &[u8]) -> Option<usize> {
    let at = line.iter().position(|&byte| byte == b'$')? + 1;
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, behind) = line[at..].split_at(digits);
    let ends = behind.is_empty() || behind.starts_with(b" = ");
    std::str::from_utf8(number).ok().filter(|_| ends)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_names_the_parameter() {
        let first = b"unnamed portal parameter $12 = '...'";
        assert_eq!(parameter(first), Some((12, &b""[..])));
        let last = b"JSON data, line 1: {a...\nunnamed portal parameter $1 = '{a: \n1'";
        assert_eq!(parameter(last), Some((1, &b"JSON data, line 1: {a..."[..])));
        assert_eq!(parameter(b"SQL function \"f\" statement 1"), None);
    }
}
