//! The HTTP server: `/metrics` for Prometheus, `/healthz` for load balancers and orchestrators.
//!
//! A few threads answer, one request each at a time: a scraper that does not read its answer must not keep
//! an orchestrator from being told that all is well. The cores see no more of it than a request for a
//! snapshot.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use tiny_http::{Header, Method, Request, Response, Server};

use crate::metrics;
use crate::state::State;

/// Requests that can be answered at a time.
const THREADS: usize = 4;

/// A bound address, for [`serve`].
pub(crate) struct Bound {
    server: Arc<Server>,
    pub(crate) address: SocketAddr,
}

/// Binds the address.
///
/// # Errors
/// What the system says, with the address.
pub(crate) fn bind(address: SocketAddr) -> io::Result<Bound> {
    let failed = |error| io::Error::other(format!("cannot serve metrics on {address}: {error}"));
    let server = Server::http(address).map_err(failed)?;
    let address = server.server_addr().to_ip().unwrap_or(address);
    Ok(Bound { server: Arc::new(server), address })
}

/// Answers requests from now on.
///
/// # Errors
/// Where no thread can be started.
pub(crate) fn serve(bound: &Bound, state: &Arc<State>) -> io::Result<()> {
    for _ in 0..THREADS {
        let (server, state) = (Arc::clone(&bound.server), Arc::clone(state));
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for request in server.incoming_requests() {
                answer(request, &state);
            }
        })?;
    }
    Ok(())
}

fn answer(request: Request, state: &State) {
    let path = request.url().split('?').next().unwrap_or_default();
    let (status, body) = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => (200, metrics::text(state)),
        (Method::Get | Method::Head, "/healthz") if state.is_draining() => {
            (503, "draining\n".to_owned())
        }
        (Method::Get | Method::Head, "/healthz") => (200, "ok\n".to_owned()),
        (Method::Get | Method::Head, _) => (404, "try /metrics or /healthz\n".to_owned()),
        _ => (405, "only GET\n".to_owned()),
    };
    let kind = Header::from_bytes("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    let mut response = Response::from_string(body).with_status_code(status);
    if let Ok(kind) = kind {
        response.add_header(kind);
    }
    // Whoever asked may be gone.
    let _ = request.respond(response);
}
