//! Requests that are looked at for a second now and then, to see what a rule of the cache would
//! save.

use refrain_pool::Now;
use refrain_pool::ids::PoolId;
use refrain_sql::reads::may_be_read;

use crate::relay::texts::statement_of_text;
use crate::results::repeats::Watched;
use crate::results::segment::{Form, Segment};
use crate::results::texts;
use crate::state::options::finds_reads;
use crate::state::parts::{Client, CoreState};
use crate::statements::statement::{Identity, Statement};

/// Begins a look at the requests of a pool or ends one, as the time says.
pub(crate) fn tick_repeats(now: Now, core_state: &mut CoreState, id: PoolId) {
    if let Some(pool) = core_state.find_pool(id) {
        pool.protocol.repeats.tick(now);
    }
}

/// Looks at a client's first segment, which goes to a server, if it may be a read.
#[cold]
pub(crate) fn watch(now: Now, core_state: &mut CoreState, client: &mut Client, input: &[u8]) {
    if client.session.results.is_awaited() || !client.session.may_share() {
        return;
    }
    if !core_state.pool_in_use(client.pool()).protocol.repeats.looks() {
        return;
    }
    let Some(segment) = Segment::read(input) else { return };
    let found = match segment.form {
        Form::Query(text) => {
            may_be_read(&refrain_sql::scan(text)).then(|| (text.to_vec(), &[][..], None))
        }
        Form::Several(_) => None,
        Form::Extended { parse, name, values, .. } => {
            let statement = statement(core_state, client, parse, name);
            let statement = statement.filter(|it| may_be_read(&it.scan));
            statement.map(|it| (it.text().to_vec(), values, Some(it)))
        }
    };
    let Some((text, values, statement)) = found else { return };
    // Such a request is never answered from the cache, and the text that is shown does not have its
    // literals.
    if texts::name_moment(&text, core_state.shared.protocol.registry.seed()) {
        return;
    }
    // Whether it is worth a rule depends on what the catalog says of it.
    let asks = finds_reads(core_state.pool_in_use(client.pool()));
    let statement = match statement {
        None if asks => {
            let found =
                statement_of_text(core_state, client.pool(), &client.session.settings, &text);
            found.map(|cached| cached.statement.clone())
        }
        statement => statement,
    };
    let registry = &core_state.shared.protocol.registry;
    let settings = client.session.settings.expected().number();
    let whole = [&settings.to_le_bytes()[..], &text, &[0], values].concat();
    let hash = registry.hash_bytes(&whole);
    let text = texts::canonical_of(registry.seed(), &text);
    client.session.results.watch(Watched { hash, text, statement, since: now });
}

/// Returns the statement that a segment runs, if it is known.
fn statement(
    core_state: &CoreState,
    client: &mut Client,
    parse: Option<&[u8]>,
    name: &[u8],
) -> Option<Statement> {
    let Some(tail) = parse else {
        return Some(client.session.statements.get(name)?.held.cached().statement.clone());
    };
    let identity = Identity { pool: client.pool(), env: client.session.settings.env(), tail };
    let registry = &core_state.shared.protocol.registry;
    Some(core_state.protocol.statements.find(registry, identity)?.statement.clone())
}
