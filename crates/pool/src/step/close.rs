//! Closing servers: one, or those of a host that is not in the state that pools want.

use crate::connections::Connection;
use crate::engine::Step;
use crate::event::{Action, Level, News};
use crate::hosts::HostPlace;
use crate::ids::{Conn, Core, PoolId};
use crate::message::CoreMessage;
use crate::pool_shared::PoolShared;
use crate::protocol::Protocol;
use crate::server::{Holder, Server, ServerState};

impl<P: Protocol> Step<'_, P> {
    /// Closes a server that no client holds, with a goodbye if it was logged in.
    pub fn close_server(&mut self, conn: Conn) {
        self.disperse(conn);
        if let Connection::Server(server) = self.engine.connections.take(conn) {
            if !server.is_new() {
                P::goodbye(self.ports.out(conn));
            }
            self.ports.close(conn);
            self.forget_server(&server);
        }
    }

    /// Removes a server from its pool and from all counts. Clients that wait, here or at other
    /// cores, may connect another one.
    pub(crate) fn forget_server(&mut self, server: &Server<P>) {
        let pool = self.engine.core_state.pool(server.pool);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        if pool.servers == 0 {
            pool.choice.unmark();
        }
        if let Some(place) = &server.place {
            place.leave(server.is_new());
        }
        if server.is_new() {
            pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
            pool.slow -= u32::from(server.is_slow);
        } else {
            pool.shared.server_dies();
        }
        pool.remove_idle(server.conn);
        if server.is_asked {
            pool.asked = pool.asked.checked_sub(1).expect("it was asked");
            // They were idle for as long as the one that gave no answer.
            let idle = pool.idle().to_vec();
            idle.into_iter().for_each(|idle| self.close_server(idle));
        }
        let pool = self.engine.core_state.pool(server.pool);
        if let ServerState::Held(Holder::Job(job, _)) = &server.state {
            P::lose_job(pool, job);
        }
        let shared = pool.shared.clone();
        self.count_out(&shared, server.heir);
        self.grow(server.pool);
    }

    /// Counts out a server of a pool, and tells those who may connect one: the heir of the server's
    /// room, and others that wait.
    pub(crate) fn count_out(&mut self, pool: &PoolShared<P>, heir: Option<(PoolId, Core)>) {
        let (shared, own) = (self.engine.core_state.shared.clone(), self.engine.core_state.core);
        let heir = heir.and_then(|(id, core)| Some((shared.pool_of(id)?, core)));
        let gone = shared.counts.server_gone(pool, heir.as_ref().map(|(heir, _)| &**heir));
        if let Some((heir, core)) = heir {
            let pool = heir.id;
            let message = match gone.is_inherited {
                true => CoreMessage::RoomFor { pool, is_counted: true },
                // Another limit is reached as well.
                false => CoreMessage::Room { pool },
            };
            self.ports.act(Action::Tell { core, message });
        }
        for (pool, core) in gone.waiting {
            if core == own {
                self.grow(pool);
            } else {
                self.ports.act(Action::Tell { core, message: CoreMessage::Room { pool } });
            }
        }
    }

    /// Forgets a server, and closes its connection without a goodbye.
    pub(crate) fn drop_server(&mut self, conn: Conn, gone: bool) {
        self.disperse(conn);
        if let Connection::Server(server) = self.engine.connections.take(conn) {
            if gone {
                self.ports.abandon(conn)
            } else {
                self.ports.close(conn)
            }
            self.forget_server(&server);
        }
    }

    /// Whether a server of a host is taken whatever the host's state is: the pool prefers another
    /// state, and no host has it.
    pub fn takes_any_host(&mut self, server: Conn) -> bool {
        let server = self.engine.connections.server(server);
        server.and_then(|server| server.place.as_ref()).is_some_and(HostPlace::takes_any)
    }

    /// Has no server of a host be lent again, on any core.
    pub(crate) fn leave_host(&mut self, place: &HostPlace) {
        for core in self.engine.core_state.others() {
            let message = CoreMessage::HostUnsuited { place: place.clone(), shown_by: None };
            self.ports.act(Action::Tell { core, message });
        }
        self.leave_host_here(place);
    }

    /// Handles the message that a host is not in the state that pools want.
    pub(crate) fn host_is_unsuited(&mut self, place: &HostPlace, shown_by: Option<PoolId>) {
        if let Some(pool) = shown_by {
            let told = format!("{}: a server there reports it", place.host());
            self.note_host(pool, place.host(), Level::Info, News::HostUnsuited.key(), told);
        }
        // The host may have become good again since.
        if place.is_unsuited() {
            self.leave_host_here(place);
        }
    }

    /// Closes the idle servers of a host, and the others once they are free.
    pub(crate) fn leave_host_here(&mut self, place: &HostPlace) {
        self.leave_servers(|server| server.place.as_ref().is_some_and(|other| other.is(place)));
    }

    /// Closes the idle ones of these servers, and the others once they are free.
    pub(crate) fn leave_servers(&mut self, which: impl Fn(&Server<P>) -> bool) {
        for conn in self.engine.connections.conns() {
            let Connection::Server(server) = self.engine.connections.get(conn) else { continue };
            if server.is_new() || !which(server) {
                continue;
            }
            if matches!(server.state, ServerState::Idle) {
                self.close_server(conn);
            } else if let Some(server) = self.engine.connections.server(conn) {
                server.close_needed = true;
            }
        }
    }
}
