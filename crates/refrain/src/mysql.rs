//! The protocol of MySQL and MariaDB, as the program serves it.

use std::convert::Infallible;

use refrain_config::{Backend, General, Host};
use refrain_mysql::parts::{self, My};
use refrain_pg::snapshot::{ClientSessionView, ServerSessionView};
use refrain_pool::ids::Core;

use crate::inherit::Kind;
use crate::listen::{Places, UnixSocket};
use crate::served::{LocalServers, Served};
use crate::tls::{Session, Store};

/// No servers in this process: all are behind sockets.
pub(crate) struct NoServers;

impl LocalServers for NoServers {
    type Session = Infallible;
}

impl Served for My {
    const THREADS: &'static str = "mysql-core";

    fn serves(backend: Backend) -> bool {
        backend == Backend::Mysql
    }

    // A client waits for the greeting of the server.
    fn places(general: &General) -> Places<'_> {
        Places {
            kind: Kind::Mysql,
            addresses: &general.mysql_listen,
            socket: general.mysql_socket.as_deref().map(UnixSocket::At),
            client_speaks_first: false,
        }
    }

    type Helpers = ();
    type Local = NoServers;

    fn client_view_of(view: parts::ClientView) -> ClientSessionView {
        let parts::ClientView { pinned, statements } = view;
        ClientSessionView { pinned, statements, ..ClientSessionView::default() }
    }
    fn server_view_of(view: parts::ServerView) -> ServerSessionView {
        let parts::ServerView { statements, statement_bytes } = view;
        ServerSessionView { statements, statement_bytes, ..ServerSessionView::default() }
    }

    fn local((): &(), _core: Core) -> NoServers {
        NoServers
    }
    fn ask((): &(), _core: Core, (): ()) {}
    fn name((): &()) -> &'static str {
        "nothing"
    }

    // The protocol asks for TLS once it has read the greeting.
    fn server_tls(_store: &Store, _host: &Host) -> Result<Option<Session>, String> {
        Ok(None)
    }
}
