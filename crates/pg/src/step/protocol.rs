//! The interface between the pool and PostgreSQL's protocol: each method calls the file of its
//! subject.

use std::time::Duration;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::write::{self, Report};
use refrain_pool::client::{Client, Phase};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::{Conn, PoolId};
use refrain_pool::pool::Pool;
use refrain_pool::protocol::{Activity, Fitness};
use refrain_pool::refusal::Refusal;
use refrain_pool::server::Server;
use refrain_pool::settings::PoolSettings;
use refrain_pool::snapshot::Extent;
use refrain_pool::{Background, Linked, Protocol, Sides, Step as PoolStep, Supply, Views};

use crate::engine::{Asking, ClientLogin, Step};
use crate::ground::reports::{logged_sqlstate, report};
use crate::ground::stats::StatementCounters;
use crate::login::server::{LoginToServer, tell_failure};
use crate::pipeline::job::Job;
use crate::pipeline::outstanding::{Copying, Quiescent, Seq};
use crate::relay::follow::begin_use;
use crate::relay::link::Link;
use crate::relay::pipe::Pipeline;
use crate::relay::turn::drop_answered_parse;
use crate::state::cancel::CancelRequest;
use crate::state::client::ClientSession;
use crate::state::client::login::ClientState;
use crate::state::client::travel::TravellingSession;
use crate::state::core::CorePart;
use crate::state::parts::{CoreState, Engine, Pg, Shared};
use crate::state::replication::Relay;
use crate::state::requests::Answer;
use crate::state::server::ServerSession;
use crate::state::snapshot::{ClientSessionView, CoreView, ServerSessionView};
use crate::step::answer::end_long_waits;
use crate::step::console::ConsoleClient;
use crate::step::reads::{look_for_reads, text_read};
use crate::step::refresh::lose_in_vain;
use crate::step::reload::reloaded;
use crate::step::repeats::tick_repeats;
use crate::step::share::is_unanswered;
use crate::step::waiting_reads::look_for_answers;
use crate::step::{check, jobs, lookups, view};

impl Background for Pg {
    fn begin_job(step: &mut PoolStep<'_, Self>, server: Conn, _: Job) -> bool {
        Step { step }.do_what_is_due(server)
    }

    #[inline]
    fn begin_own_job(step: &mut PoolStep<'_, Self>, server: Conn) -> bool {
        let mut step = Step { step };
        step.has_wishes(server) && step.prepare_what_is_wished(server)
    }

    fn lose_job(pool: &mut Pool<Self>, job: &Job) {
        jobs::lost(pool, job);
    }

    fn abandon_job(step: &mut PoolStep<'_, Self>, server: Conn) {
        Step { step }.abandon_job(server);
    }

    fn answered(step: &mut PoolStep<'_, Self>, answer: Answer) {
        match answer {
            Answer::Console { client, reply } => {
                if let Some(mut client) = ConsoleClient::find(step, client) {
                    client.reply(reply);
                }
            }
            Answer::Analysed { case, analysis } => Step { step }.analysed(&case, analysis),
            Answer::Read { case, found } => {
                let pool = case.statement.pool;
                text_read(step.now, &mut step.engine.core_state, *case, *found);
                Step { step }.queue_what_is_due(pool);
            }
        }
    }

    fn tick_pool(step: &mut PoolStep<'_, Self>, pool: PoolId) {
        tick_repeats(step.now, &mut step.engine.core_state, pool);
        let mut step = Step { step };
        step.wake_clients(pool);
        lose_in_vain(&mut step.step.engine.core_state, pool, step.step.now);
        step.queue_what_is_due(pool);
    }

    fn tick(step: &mut PoolStep<'_, Self>, sweep: bool) {
        if look_for_reads(step.now, &mut step.engine.core_state, step.ports) {
            for pool in look_for_answers(&mut step.engine.core_state, step.now) {
                Step { step }.queue_what_is_due(pool);
            }
        }
        let core_state = &step.engine.core_state;
        let results = &core_state.shared.protocol.results;
        let stranded = results.tick(step.now, core_state.core().0);
        Step { step }.wake_for_reply(stranded);
        let waited = end_long_waits(step.engine, step.now);
        Step { step }.wake_for_reply(waited);
        let woken = lookups::tick(&step.engine.core_state.shared, step.now);
        Step { step }.wake_for_reply(woken);
        let core_state = &mut step.engine.core_state;
        if let Some(timeout) = core_state.protocol.interned_settings.take_new_idle_timeout() {
            core_state.look_for_idle_within(timeout, step.now);
        }
        if sweep {
            core_state.protocol.sweep();
        }
        core_state.protocol.follow(&core_state.shared.protocol);
        let shared = &core_state.shared;
        let registry = &shared.protocol.registry;
        if registry.due(step.now, shared.options().general.max_statement_bytes / 2) {
            registry.purge(step.now);
        }
    }

    fn ends_soon(session: &ServerSession, idle: Duration) -> bool {
        session.settings.end_it_soon(idle)
    }

    fn keep(step: &mut PoolStep<'_, Self>, server: Conn) {
        if let Some(mut pipe) = (Step { step }).pipe(server) {
            pipe.drop_idle_timeout();
        }
    }

    const ASKS: bool = true;

    fn ask_server(supply: &mut Supply<'_, Self>, server: Conn) {
        let Supply { now, core_state, connections, ports } = supply;
        if let Some(server) = connections.server(server) {
            Pipeline { now: *now, server, core_state, ports }.ask_whether_there();
        }
    }

    fn reloaded(supply: &mut Supply<'_, Self>, pool: PoolId, before: &PoolSettings) {
        reloaded(supply, pool, before);
    }

    fn flush(pool: &mut Pool<Self>) {
        jobs::flush(pool);
    }
}

impl Sides for Pg {
    fn cancel_side(server: &Server<Self>) -> Option<CancelRequest> {
        Some(CancelRequest::new(server.pid(), server.cancel_key()))
    }

    fn side_connected(step: &mut PoolStep<'_, Self>, side: Conn) {
        if let Some(request) = step.engine.connections.side(side) {
            request.session.write(step.ports.out(side));
        }
    }
}

impl Views for Pg {
    fn commands(core: &CorePart) -> Vec<u64> {
        core.figures.calls_by_time()
    }

    fn console_names(session: &ClientSession) -> Option<(&str, &str)> {
        let (authenticated, name, _) = session.login.console()?;
        Some((name, authenticated.user()))
    }

    fn client_view(session: &ClientSession) -> ClientSessionView {
        view::client_view(session)
    }

    fn server_view(session: &ServerSession) -> ServerSessionView {
        view::server_view(session)
    }

    fn keeps_server(session: &ClientSession) -> bool {
        !session.pins.is_empty()
    }

    fn view(engine: &Engine, extent: Extent) -> CoreView {
        let pools = || engine.core_state.pools();
        let with_texts = || pools().filter(|_| extent.texts);
        CoreView {
            normalized_queries: with_texts().flat_map(view::normalized_queries).collect(),
            time_saved_us: pools().map(view::time_saved_us).sum(),
            cache_rules: pools().flat_map(view::cache_rules).collect(),
            repeats: with_texts().flat_map(view::repeats).collect(),
        }
    }

    fn check_client(client: &Client<Self>) -> Result<(), String> {
        check::check_client(client)
    }

    fn check_server(server: &Server<Self>) -> Result<(), String> {
        check::check_server(server)
    }
}

impl Protocol for Pg {
    #[inline]
    fn phase(session: &ClientSession) -> Phase {
        match session.login.state() {
            ClientState::Opening | ClientState::LookingUp(..) | ClientState::Proving(..) => {
                Phase::Login
            }
            ClientState::Entering(..) => Phase::Entering,
            ClientState::Checking(..) => Phase::Checking,
            ClientState::Ready(..) => Phase::Ready,
            ClientState::Console(..) => Phase::Console,
        }
    }

    fn is_silent(session: &ClientSession) -> bool {
        matches!(session.login.state(), ClientState::Opening)
    }

    fn login_input(step: &mut PoolStep<'_, Self>, client: Conn, input: &[u8]) -> usize {
        ClientLogin { step, conn: client }.login_bytes(input)
    }

    fn admit(step: &mut PoolStep<'_, Self>, client: Conn) {
        ClientLogin { step, conn: client }.admit();
    }

    fn checked(step: &mut PoolStep<'_, Self>, client: Conn) {
        ClientLogin { step, conn: client }.checked();
    }

    #[inline]
    fn input(step: &mut PoolStep<'_, Self>, client: Conn, input: &[u8]) -> usize {
        Step { step }.serve_input(client, input)
    }

    fn console_input(step: &mut PoolStep<'_, Self>, client: Conn, bytes: &[u8]) {
        ConsoleClient { step, conn: client }.input(bytes);
    }

    fn dismiss_from_console(step: &mut PoolStep<'_, Self>, client: Conn) {
        ConsoleClient { step, conn: client }.dismiss();
    }

    fn claimed(session: &ClientSession) -> Option<(&str, &str)> {
        session.login.claimed()
    }

    fn code(cause: DisconnectReason) -> Option<&'static str> {
        logged_sqlstate(cause)
    }

    fn tell_wait(_client: &ClientSession, out: &mut Vec<u8>) {
        // PgBouncer's words.
        let message = "No server connection available in postgres backend, client being queued";
        write::notice(out, &Report { severity: "NOTICE", sqlstate: "00000", message, hint: "" });
    }

    fn tell(shared: &Shared, _: &ClientSession, out: &mut Vec<u8>, cause: DisconnectReason) {
        if let Some(report) = report(shared.options().general.pooler_errors, cause) {
            write::error(out, &report);
        }
    }

    fn cancel_waiting(step: &mut PoolStep<'_, Self>, client: Conn, input: &[u8]) -> Option<usize> {
        let (used, waiters) = Asking::of(step, client)?.cancel_waiting(input)?;
        Step { step }.wake_for_reply(waiters);
        Some(used)
    }

    fn cancel(step: &mut PoolStep<'_, Self>, client: Conn, server: Conn) {
        Step { step }.cancel_request_of(client, server);
    }

    fn connected(step: &mut PoolStep<'_, Self>, server: Conn) {
        LoginToServer { step, conn: server }.server_connected();
    }

    fn connect_failed(step: &mut PoolStep<'_, Self>, server: Conn, why: &str) {
        let mut login = LoginToServer { step, conn: server };
        login.login_failed(DisconnectReason::ServerDown, why, None);
    }

    fn refuse_waiting(supply: &mut Supply<'_, Self>, pool: PoolId, refusal: &Refusal) {
        let (cause, error) = (DisconnectReason::ServerLogin, Some(&*refusal.error));
        let errors = supply.core_state.shared.options().general.pooler_errors;
        let tell = |client: &ClientSession, out: &mut Vec<u8>| {
            tell_failure((errors, cause), client, out, error)
        };
        supply.fail_waiting(pool, (cause, &*refusal.why), tell);
    }

    #[inline]
    fn output(step: &mut PoolStep<'_, Self>, server: Conn, output: &[u8]) -> usize {
        Step { step }.server_input(server, output)
    }

    fn is_marked(server: &ServerSession) -> bool {
        !server.settings.placeholders.is_empty()
    }

    fn suits(client: &ClientSession, server: &ServerSession) -> Option<usize> {
        server.settings.placeholders.suits(&client.settings.placeholders)
    }

    #[inline]
    fn lent(linked: Linked<'_, Self>) {
        begin_use(linked.into());
    }

    fn share(step: &mut PoolStep<'_, Self>, client: Conn, input: &[u8]) -> bool {
        Step { step }.send_shared(client, input)
    }

    #[inline]
    fn joined(client: &mut ClientSession, server: &mut ServerSession) {
        server.begin_behind();
        client.begin_use();
    }

    fn turn_begins(linked: Linked<'_, Self>) {
        let mut link = Link::from(linked);
        link.begin_turn();
        drop_answered_parse(link.client, &link.pipe.server.session.outstanding);
    }

    fn turn_of_nobody_begins(server: &mut ServerSession) {
        server.turn_of_nobody_begins();
    }

    fn is_unanswered(client: &ClientSession, server: &ServerSession) -> bool {
        is_unanswered(client, server)
    }

    fn take_request_back(session: &mut ClientSession) {
        session.read = None;
        session.results.come_back();
        // The numbers of requests count for one server.
        session.statements.settle(Seq::MAX);
    }

    fn turn_given_up(counters: &mut StatementCounters, client: &ClientSession) {
        counters.standby_reads_returned += u64::from(client.results.is_away());
    }

    #[inline]
    fn idle(session: &ServerSession) -> Option<Quiescent> {
        let is_busy = session.relay.is_some_and(Relay::is_busy);
        session.outstanding.quiescent().filter(|_| !is_busy)
    }

    fn idle_timeout(session: &ClientSession) -> Option<Duration> {
        session.settings.expected().idle_timeout
    }

    fn shortest_idle_timeout(core: &CorePart) -> Option<Duration> {
        core.interned_settings.shortest_idle_timeout()
    }

    #[inline]
    fn activity(session: &ServerSession) -> Activity {
        let outstanding = &session.outstanding;
        Activity {
            owes: !outstanding.is_empty()
                || outstanding.copying() != Copying::No
                || session.relay.is_some_and(Relay::is_busy),
            in_transaction: outstanding.status() != Status::Idle || outstanding.is_open(),
        }
    }

    fn take_back(step: &mut PoolStep<'_, Self>, server: Conn, left: &Client<Self>) -> Fitness {
        let mut step = Step { step };
        step.pipe(server).map_or(Fitness::Busy, |mut pipe| pipe.take_back(left))
    }

    fn make_fit(step: &mut PoolStep<'_, Self>, server: Conn) -> Fitness {
        let mut step = Step { step };
        step.pipe(server).map_or(Fitness::Busy, |mut pipe| pipe.make_fit())
    }

    fn goodbye(out: &mut Vec<u8>) {
        write::terminate(out);
    }

    fn may_travel(session: &ClientSession) -> bool {
        session.may_travel()
    }

    fn pack(session: ClientSession) -> TravellingSession {
        TravellingSession::pack(session)
    }

    fn unpack(core_state: &mut CoreState, traveller: TravellingSession) -> ClientSession {
        traveller.unpack(&mut core_state.protocol, &core_state.shared.protocol)
    }

    fn depart(session: &mut ServerSession) {
        session.wishes.clear();
    }

    fn arrive(step: &mut PoolStep<'_, Self>, session: &mut ServerSession) {
        let core_state = &mut step.engine.core_state;
        let shared = &core_state.shared.protocol;
        session.settings.arrive(|edit| core_state.protocol.settings(shared, edit));
    }
}
