//! The threads of the cores that serve one protocol.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use refrain_drive::{Kernel, Listener};
use refrain_pool::ids::Core;
use refrain_pool::{Engine, Ports};

use crate::core::Worker;
use crate::cores::Cores;
use crate::dial::Dialer;
use crate::listen::Door;
use crate::loads::Gauge;
use crate::machine::UserNames;
use crate::mail::Mail;
use crate::random;
use crate::served::Served;
use crate::state::State;
use crate::supervisor::SupervisorCommand;
use crate::tls::TlsHost;
use crate::worker_state::{Links, WorkerState};

/// Shared parts from which each thread gets its own.
pub(crate) struct Parts<'a, P: Served> {
    pub(crate) state: &'a State,
    pub(crate) cores: &'a Arc<Cores<P>>,
    pub(crate) helpers: P::Helpers,
    /// The first descriptor number that no client may have.
    pub(crate) gate: u32,
    pub(crate) commands: &'a Sender<SupervisorCommand>,
}

/// Starts a thread for each core. The first core accepts the clients of all cores.
///
/// # Errors
/// If the system refuses a thread.
pub(crate) fn start<P: Served>(
    parts: Parts<'_, P>,
    kernels: Vec<Kernel>,
    mut listeners: Vec<Listener>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::with_capacity(kernels.len());
    for (core, kernel) in parts.cores.post.cores().zip(kernels) {
        let worker_state = worker_state(&parts, core);
        let listeners = std::mem::take(&mut listeners);
        let commands = parts.commands.clone();
        let thread = thread::Builder::new().name(format!("{}-{}", P::THREADS, core.0));
        threads.push(thread.spawn(move || {
            let run = || Worker::new(kernel, worker_state(), listeners)?.run();
            // The supervisor ends last.
            let _ = commands.send(SupervisorCommand::Ended(core, run()));
        })?);
    }
    Ok(threads)
}

/// Returns a function that makes a core's state in that core's thread: an engine does not leave its
/// thread.
fn worker_state<P: Served>(
    parts: &Parts<'_, P>,
    core: Core,
) -> impl FnOnce() -> WorkerState<P> + Send + use<P> {
    let (cores, helpers, gate) = (Arc::clone(parts.cores), parts.helpers.clone(), parts.gate);
    let (clock, commands) = (parts.state.clock, parts.commands.clone());
    let (resolver, tls) = (Arc::clone(&parts.state.resolver), Arc::clone(&parts.state.tls));
    let mut supply = random::Supply::new();
    let entropy = Box::new(move |bytes: &mut [u8]| supply.fill(bytes));
    let post = Arc::clone(&cores.post);
    let tell = move |conn, ticket, addresses| {
        post.send(core, Mail::Resolved { conn, ticket, addresses });
    };
    move || WorkerState {
        core,
        clock,
        engine: Engine::new(core, Arc::clone(&cores.shared), entropy),
        ports: Ports::default(),
        dialer: Dialer::new(resolver, tell),
        tls: TlsHost::new(tls),
        local: P::local(&helpers, core),
        loads: cores.loads.clone(),
        gauge: Gauge::default(),
        giving: None,
        door: Door { shared: Arc::clone(&cores.shared), gate },
        user_names: UserNames::default(),
        links: Links {
            outgoing: cores.post.cores().map(|_| Vec::new()).collect(),
            post: Arc::clone(&cores.post),
            helpers,
            commands,
        },
        leaving: HashMap::new(),
        inbox: Vec::new(),
        woken: false,
        stopped: false,
        drained: false,
        counted: 0,
    }
}
