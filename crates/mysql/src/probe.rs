//! Probes: a side connection reads a server's greeting before anybody has logged in, so that
//! clients can be greeted as that server would greet them.
//!
//! A server takes a probe for a login that was broken off, and counts those of a host. Any login
//! resets its count, and there is one probe for each core and start.

use std::time::Duration;

use refrain_config::Backend;
use refrain_mysql_wire::handshake::Greeting;
use refrain_mysql_wire::packet;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::side::SideEnd;
use refrain_pool::{Conn, Sides, Step};

use crate::entering;
use crate::login::Flavour;
use crate::parts::{My, Probe};

/// Time in which a server has to greet.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// Greets a client, or finds out how to.
pub(crate) fn greet(step: &mut Step<'_, My>, client: Conn) {
    if let Some(flavour) = step.engine.core_state.shared.protocol.flavour() {
        return entering::greet(step, client, &flavour);
    }
    let Some(c) = step.engine.connections.client(client) else { return };
    let serial = c.serial();
    let core = &mut step.engine.core_state.protocol;
    core.ungreeted.push((client, serial));
    if std::mem::replace(&mut core.is_probing, true) {
        return;
    }
    let options = step.engine.core_state.shared.options();
    let mut databases = options.databases.iter();
    let served = databases.find(|database| database.server.backend == Backend::Mysql);
    let host = served.map(|database| database.server.host.clone());
    let begun = host.and_then(|host| step.open_side(host.into(), Some(PROBE_TIME), Probe));
    if begun.is_none() {
        over(step, None);
    }
}

/// Greets those who wait for it, or tells them that there is no server.
fn over(step: &mut Step<'_, My>, flavour: Option<Flavour>) {
    let core_state = &mut step.engine.core_state;
    core_state.protocol.is_probing = false;
    let waiting = std::mem::take(&mut core_state.protocol.ungreeted);
    let flavour = match flavour {
        Some(flavour) => Some(core_state.shared.protocol.learn(flavour)),
        // Another core, or a pool that was there, may have been luckier.
        None => core_state.shared.protocol.flavour(),
    };
    for (conn, serial) in waiting {
        let there = step.engine.connections.client(conn).is_some_and(|c| c.serial() == serial);
        match &flavour {
            _ if !there => {}
            Some(flavour) => entering::greet(step, conn, flavour),
            None => step.end_client(conn, DisconnectReason::ServerDown),
        }
    }
}

impl Sides for My {
    fn side_output(step: &mut Step<'_, Self>, side: Conn, output: &[u8]) -> usize {
        let Some(whole) = packet::split(output) else { return 0 };
        let flavour = match Greeting::read(whole.payload) {
            Ok(Greeting::Handshake(greeting)) => Some(Flavour::of(&greeting)),
            Ok(Greeting::Refused(_)) | Err(_) => None,
        };
        step.end_side(side);
        over(step, flavour);
        output.len()
    }

    fn side_over(step: &mut Step<'_, Self>, _: Probe, _server: Option<Conn>, _end: SideEnd<'_>) {
        over(step, None);
    }
}
