//! What the pool asks of the protocol.

use refrain_pool::client::Phase;
use refrain_pool::protocol::Activity;
use refrain_pool::{Background, Conn, Protocol, Sides, Step, Views};

use crate::parts::{ClientSession, My, Quiescent, ServerSession};

impl Background for My {}

impl Sides for My {}

impl Views for My {}

impl Protocol for My {
    fn phase(session: &ClientSession) -> Phase {
        session.phase
    }

    fn login_input(_step: &mut Step<'_, Self>, _client: Conn, _input: &[u8]) -> usize {
        0
    }

    fn admit(_step: &mut Step<'_, Self>, _client: Conn) {}

    fn input(_step: &mut Step<'_, Self>, _client: Conn, _input: &[u8]) -> usize {
        0
    }

    fn connected(_step: &mut Step<'_, Self>, _server: Conn) {}

    fn output(_step: &mut Step<'_, Self>, _server: Conn, output: &[u8]) -> usize {
        output.len()
    }

    fn idle(session: &ServerSession) -> Option<Quiescent> {
        session.quiescent()
    }

    fn activity(session: &ServerSession) -> Activity {
        Activity { owes: session.owed > 0, in_transaction: false }
    }
}
