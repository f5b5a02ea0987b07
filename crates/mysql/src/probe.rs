//! Probes: a side connection reads a server's greeting before anybody has logged in, so that
//! clients can be greeted as that server would greet them.
//!
//! A server takes a probe for a login that was broken off, and counts those of a host. Any login
//! resets its count, and there is one probe for each core and start. Where a host does not greet,
//! that of the next database is asked.

use std::time::Duration;

use refrain_config::Backend;
use refrain_mysql_wire::handshake::Greeting;
use refrain_mysql_wire::packet;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::side::SideEnd;
use refrain_pool::{ClientNote, Conn, Protocol, Step};

use crate::entering;
use crate::login::{self, Flavour};
use crate::parts::My;
use crate::sides::{Probe, Side};

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
    if !std::mem::replace(&mut core.is_probing, true) {
        probe(step, 0, "no database of MySQL is configured");
    }
}

/// Has a server of a host greet: the host with this number, among those of the databases of MySQL.
/// If there are no more, all have failed, the last one for this reason.
fn probe(step: &mut Step<'_, My>, number: usize, why: &str) {
    let options = step.engine.core_state.shared.options();
    let mut hosts = Vec::new();
    for database in &options.databases {
        let server = &database.server;
        if server.backend == Backend::Mysql && !hosts.contains(&&server.host) {
            hosts.push(&server.host);
        }
    }
    let begun = hosts
        .get(number)
        .map(|&host| host.clone().into())
        .and_then(|host| step.open_side(host, Some(PROBE_TIME), Side::Probe(Probe { number })));
    if begun.is_none() {
        over(step, Err(why));
    }
}

/// Greets those who wait for it, or tells them that there is no server.
fn over(step: &mut Step<'_, My>, result: Result<Flavour, &str>) {
    let core_state = &mut step.engine.core_state;
    core_state.protocol.is_probing = false;
    let waiting = std::mem::take(&mut core_state.protocol.ungreeted);
    let known = &core_state.shared.protocol;
    let result = match result {
        Ok(flavour) => Ok(known.learn(flavour)),
        // Another core, or a pool that was there, may have been luckier.
        Err(why) => known.flavour().ok_or(why),
    };
    for (conn, serial) in waiting {
        let there = step.engine.connections.client(conn).is_some_and(|c| c.serial() == serial);
        match &result {
            _ if !there => {}
            Ok(flavour) => entering::greet(step, conn, flavour),
            Err(why) => refuse(step, conn, why),
        }
    }
}

/// Ends the session of a client that no server can be had for, for this reason.
fn refuse(step: &mut Step<'_, My>, conn: Conn, why: &str) {
    let cause = DisconnectReason::ServerDown;
    let refrain_pool::Engine { core_state, connections, .. } = &mut *step.engine;
    let Some(client) = connections.client(conn) else { return };
    My::tell(&core_state.shared, &client.session, step.ports.out(conn), cause);
    let note = ClientNote { detail: why.to_owned(), ..ClientNote::new(Level::Warn, cause) };
    step.log().tell_of_client(conn, note);
    step.remove_client(conn, false);
}

/// Reads the greeting of a host. Returns the number of bytes handled.
pub(crate) fn output(step: &mut Step<'_, My>, side: Conn, number: usize, output: &[u8]) -> usize {
    let Some(whole) = packet::split(output) else { return 0 };
    let result = match Greeting::read(whole.payload) {
        Ok(Greeting::Handshake(greeting)) => Ok(Flavour::of(&greeting)),
        Ok(Greeting::Refused(err)) => Err(login::refusal(&err)),
        Err(malformed) => Err(malformed.to_string()),
    };
    step.end_side(side);
    match result {
        Ok(flavour) => over(step, Ok(flavour)),
        Err(why) => probe(step, number + 1, &why),
    }
    output.len()
}

/// Goes on behind a probe that has ended without a greeting.
pub(crate) fn ended(step: &mut Step<'_, My>, ended: &Probe, end: SideEnd<'_>) {
    let why = match end {
        SideEnd::Failed(why) => why,
        SideEnd::Closed => "the server closed the connection",
        SideEnd::Late => "the server did not greet in time",
        SideEnd::Stopped => return over(step, Err("Refrain stops")),
    };
    probe(step, ended.number + 1, why);
}
