//! The threads of the cores, of each protocol that the program serves.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use refrain_pool::ids::Core;
use refrain_pool::{Engine, Ports};

use crate::core::Worker;
use crate::cores::Cores;
use crate::dial::Dialer;
use crate::listen::{Door, Listeners};
use crate::loads::Gauge;
use crate::machine::UserNames;
use crate::mail::Mail;
use crate::opened::Opening;
use crate::random;
use crate::served::Served;
use crate::silence::Silence;
use crate::state::State;
use crate::supervisor::SupervisorCommand;
use crate::tls::TlsHost;
use crate::worker_state::{Links, WorkerState};

/// The parts of the program that the threads of all protocols share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) state: &'a State,
    /// The first descriptor number that no client may have.
    pub(crate) gate: u32,
    pub(crate) commands: &'a Sender<SupervisorCommand>,
}

/// The threads of all cores.
#[derive(Debug, Default)]
pub(crate) struct Threads(pub(crate) Vec<JoinHandle<()>>);

impl Threads {
    /// Starts a thread for each core of a protocol. The first core accepts the clients of all.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start<P: Served>(
        &mut self,
        shared: Shared<'_>,
        opening: Opening<P>,
        helpers: P::Helpers,
    ) -> io::Result<()> {
        let Opening { cores, kernels, listeners } = opening;
        let Listeners { mut sockets, .. } = listeners;
        for (core, kernel) in cores.post.cores().zip(kernels) {
            let worker_state = worker_state(shared, &cores, helpers.clone(), core);
            let sockets = std::mem::take(&mut sockets);
            let commands = shared.commands.clone();
            let thread = thread::Builder::new().name(format!("{}-{}", P::THREADS, core.0));
            self.0.push(thread.spawn(move || {
                let run = || Worker::new(kernel, worker_state(), sockets)?.run();
                // The supervisor ends last.
                let _ = commands.send(SupervisorCommand::Ended(core, run()));
            })?);
        }
        Ok(())
    }
}

/// Returns a function that makes a core's state in that core's thread: an engine does not leave its
/// thread.
fn worker_state<P: Served>(
    shared: Shared<'_>,
    cores: &Arc<Cores<P>>,
    helpers: P::Helpers,
    core: Core,
) -> impl FnOnce() -> WorkerState<P> + Send + use<P> {
    let Shared { state, gate, commands } = shared;
    let (cores, clock, commands) = (Arc::clone(cores), state.clock, commands.clone());
    let (resolver, tls) = (Arc::clone(&state.resolver), Arc::clone(&state.tls));
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
        silence: Silence::default(),
    }
}
