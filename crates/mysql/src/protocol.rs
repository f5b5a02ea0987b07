//! The answers to all that the pool asks of the protocol.

use refrain_pool::client::{Client, Phase};
use refrain_pool::core_state::CoreState;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::PoolId;
use refrain_pool::protocol::{Activity, Fitness};
use refrain_pool::refusal::Refusal;
use refrain_pool::server::Server;
use refrain_pool::side::SideEnd;
use refrain_pool::{Background, Conn, Protocol, Sides, Step, Supply, Views};

use crate::client_state::ClientState;
use crate::console::Answer;
use crate::errors::{self, Brand};
use crate::parts::{ClientSession, CorePart, My, Quiescent, Reading, ServerSession, Transaction};
use crate::sides::{Probe, Side};
use crate::views::{ClientView, ServerView};
use crate::{admin, entering, killing, preparing, probe, release, replies, requests, settle};

impl Background for My {
    fn answered(step: &mut Step<'_, Self>, answer: Answer) {
        admin::answered(step, answer);
    }

    fn tick(step: &mut Step<'_, Self>, _sweep: bool) {
        let core_state = &mut step.engine.core_state;
        let core = &mut core_state.protocol;
        let shared = &core_state.shared.protocol;
        shared.counting.apply(&mut core.figures, &mut core.texts);
        core.durations = shared.durations();
    }
}

impl Views for My {
    fn commands(core: &CorePart) -> Vec<u64> {
        core.figures.calls_by_time()
    }

    fn console_names(session: &ClientSession) -> Option<(&str, &str)> {
        match &session.state {
            ClientState::Console(client) => Some((client.name, &client.user)),
            _ => None,
        }
    }

    fn client_view(session: &ClientSession) -> ClientView {
        ClientView { pinned: session.reasons(), statements: session.statements.count() }
    }

    fn keeps_server(session: &ClientSession) -> bool {
        !session.reasons().is_empty()
    }

    fn server_view(session: &ServerSession) -> ServerView {
        let (statements, statement_bytes) = session.slots.size();
        ServerView { statements, statement_bytes }
    }
}

impl Sides for My {
    fn cancel_side(server: &Server<Self>) -> Option<Side> {
        Some(Side::Killing(killing::of(server)))
    }

    fn side_connected(step: &mut Step<'_, Self>, side: Conn) {
        killing::connected(step, side);
    }

    fn side_secured(step: &mut Step<'_, Self>, side: Conn) {
        killing::secured(step, side);
    }

    fn side_output(step: &mut Step<'_, Self>, side: Conn, output: &[u8]) -> usize {
        match step.engine.connections.side(side).map(|side| &side.session) {
            Some(&Side::Probe(Probe { number })) => probe::output(step, side, number, output),
            Some(Side::Killing(_)) => killing::output(step, side, output),
            None => output.len(),
        }
    }

    fn side_over(step: &mut Step<'_, Self>, side: Side, server: Option<Conn>, end: SideEnd<'_>) {
        match side {
            Side::Probe(probe) => probe::ended(step, &probe, end),
            Side::Killing(killing) => killing::over(step, &killing, server, end),
        }
    }

    fn let_go(step: &mut Step<'_, Self>, server: Conn) {
        killing::go_on(step, server);
    }
}

impl Protocol for My {
    fn greet(step: &mut Step<'_, Self>, client: Conn) {
        probe::greet(step, client);
    }

    fn phase(session: &ClientSession) -> Phase {
        session.state.phase()
    }

    fn is_silent(session: &ClientSession) -> bool {
        match &session.state {
            ClientState::Ungreeted => true,
            ClientState::LoggingIn(login) => login.user().is_empty(),
            _ => false,
        }
    }

    fn login_input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize {
        entering::input(step, client, input)
    }

    fn admit(step: &mut Step<'_, Self>, client: Conn) {
        entering::admit(step, client);
    }

    fn checked(step: &mut Step<'_, Self>, client: Conn) {
        entering::check(step, client);
    }

    fn input(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> usize {
        requests::input(step, client, input)
    }

    fn console_input(step: &mut Step<'_, Self>, client: Conn, bytes: &[u8]) {
        admin::input(step, client, bytes);
    }

    fn dismiss_from_console(step: &mut Step<'_, Self>, client: Conn) {
        admin::dismiss(step, client);
    }

    fn code(cause: DisconnectReason) -> Option<&'static str> {
        let sqlstate = &errors::of_static(cause)?.code.sqlstate;
        std::str::from_utf8(sqlstate).ok()
    }

    // The error has the place of a reply's next packet. In the middle of a message no error can be
    // told from the message, and where rows have come the end of the stream says enough.
    fn tell(
        _: &refrain_pool::shared::Shared<Self>,
        client: &ClientSession,
        out: &mut Vec<u8>,
        cause: DisconnectReason,
    ) {
        let place = client.place_of_error();
        let is_lost =
            matches!(cause, DisconnectReason::ServerGone | DisconnectReason::ServerProtocol);
        if place.is_within || is_lost && place.has_begun {
            return;
        }
        let brand = client.brand.unwrap_or(Brand::MySql);
        let error = match client.agreed() {
            Some(_) => errors::of(cause, brand),
            None => errors::in_login(cause, brand),
        };
        if let Some(error) = error {
            error.write(out, place.sequence);
        }
    }

    // The server speaks first.
    fn connected(step: &mut Step<'_, Self>, server: Conn) {
        preparing::begin(step, server);
    }

    fn connect_failed(step: &mut Step<'_, Self>, server: Conn, why: &str) {
        preparing::connect_failed(step, server, why);
    }

    fn refuse_waiting(supply: &mut Supply<'_, Self>, pool: PoolId, refusal: &Refusal) {
        let why = (DisconnectReason::ServerLogin, &*refusal.why);
        preparing::tell_waiting(supply, pool, why, Some(&refusal.error));
    }

    fn secured(step: &mut Step<'_, Self>, server: Conn) {
        preparing::secured(step, server);
    }

    fn output(step: &mut Step<'_, Self>, server: Conn, output: &[u8]) -> usize {
        let mut used = 0;
        while used < output.len() {
            let Some(s) = step.engine.connections.server(server) else { break };
            let rest = &output[used..];
            let taken = match preparing::is_proving(s) {
                true => preparing::packet(step, server, rest),
                false => replies::next(step, server, rest),
            };
            match taken {
                Some(bytes) => used += bytes,
                None => break,
            }
        }
        used
    }

    fn idle(session: &ServerSession) -> Option<Quiescent> {
        session.quiescent()
    }

    fn activity(session: &ServerSession) -> Activity {
        Activity {
            owes: !session.commands.is_empty(),
            in_transaction: session.transaction != Transaction::None,
        }
    }

    fn take_back(step: &mut Step<'_, Self>, server: Conn, left: &Client<Self>) -> Fitness {
        release::take_back(step, server, left)
    }

    fn make_fit(step: &mut Step<'_, Self>, server: Conn) -> Fitness {
        release::make_fit(step, server)
    }

    fn cancel(step: &mut Step<'_, Self>, client: Conn, server: Conn) {
        settle::kill(step, client, server);
    }

    fn cancel_waiting(step: &mut Step<'_, Self>, client: Conn, input: &[u8]) -> Option<usize> {
        requests::interrupt(step, client, input)
    }

    fn goodbye(out: &mut Vec<u8>) {
        refrain_mysql_wire::packet::message(out, 0, |out| {
            out.push(refrain_mysql_wire::command::QUIT);
        });
    }

    fn arrive(step: &mut Step<'_, Self>, session: &mut ServerSession) {
        let registry = &mut step.engine.core_state.protocol.statements;
        session.slots.replace(|statement| registry.adopt(statement));
    }

    // The server does not go along.
    fn may_travel(session: &ClientSession) -> bool {
        session.reading == Reading::Commands && !session.keeps() && !session.left.is_any()
    }

    fn pack(session: ClientSession) -> Box<ClientSession> {
        Box::new(session)
    }

    fn unpack(core_state: &mut CoreState<Self>, traveller: Box<ClientSession>) -> ClientSession {
        let mut session = *traveller;
        let registry = &mut core_state.protocol.statements;
        session.statements.replace(|statement| registry.adopt(statement));
        session
    }
}
