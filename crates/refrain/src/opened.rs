//! Everything that the program opens first, whatever protocols it serves, so that errors come
//! before a client is accepted.

use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::{Arc, Mutex, RwLock};
use std::{mem, thread};

use refrain_config::{DriverChoice, General, Options, Workers};
use refrain_drive::{Address, Driver, Kernel, Kind, Sizing};
use refrain_pool::process::Process;

use crate::clock::Clock;
use crate::cores::{AnyCores, Cores};
use crate::descriptors::{self, Shares};
use crate::inherit::{Handles, Held, Inherited};
use crate::listen::{self, Listeners};
use crate::resolve::Resolver;
use crate::served::Served;
use crate::source::Source;
use crate::state::{Flags, MetricsSocket, OptionsFollowers, State};
use crate::systemd::Supervising;
use crate::tls::{Setup, Store};
use crate::{exposure, http};

/// Everything that the program opens first, but for what each protocol has of its own.
pub(crate) struct Opened {
    pub(crate) options: Arc<Options>,
    pub(crate) shares: Shares,
    pub(crate) metrics: Option<http::Bound>,
    /// The sockets that listen already and that nothing has taken yet.
    pub(crate) inherited: Inherited,
    held: Vec<Held>,
    process: Arc<Process>,
    tls: Arc<Store>,
}

/// Everything that the program opens first for one protocol.
pub(crate) struct Opening<P: Served> {
    pub(crate) cores: Arc<Cores<P>>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) listeners: Listeners,
}

/// The cores of a protocol, and the addresses at which they accept clients.
pub(crate) type Front = (Arc<dyn AnyCores>, Vec<Address>);

impl<P: Served> Opening<P> {
    /// Returns the cores of the protocol, with their addresses.
    pub(crate) fn front(&self) -> Front {
        (Arc::clone(&self.cores) as _, self.listeners.addresses.clone())
    }
}

impl Opened {
    /// Opens everything but for the protocols.
    ///
    /// # Errors
    /// If an address cannot be bound, or a file of TLS cannot be read.
    pub(crate) fn open(options: Options, mut inherited: Inherited) -> io::Result<Self> {
        let shares = Shares::of(&options, descriptors::limit());
        // Before the listeners: a client that finds their port open finds this one open as well.
        let metrics = http::bind(options.general.metrics_listen, &mut inherited)?;
        let held = metrics.iter().map(http::Bound::held).collect::<io::Result<_>>()?;
        let tls = Arc::new(Store::new(Setup::read(&options).map_err(io::Error::other)?));
        let (options, process) = (Arc::new(options), Arc::default());
        Ok(Self { options, shares, metrics, inherited, held, process, tls })
    }

    /// Opens everything for a protocol.
    ///
    /// # Errors
    /// If an address cannot be bound, or the kernel lacks what the driver needs.
    pub(crate) fn protocol<P: Served>(&mut self) -> io::Result<Opening<P>> {
        let general = &self.options.general;
        let kernels = open_kernels(general, self.shares.gate())?;
        let mut listeners = listen::bind(P::places(general), general, &mut self.inherited)?;
        self.held.append(&mut listeners.held);
        let process = Arc::clone(&self.process);
        let cores = Cores::new(process, &self.options, &kernels, self.shares.room());
        Ok(Opening { cores, kernels, listeners })
    }

    /// Makes the state of the program, which serves these protocols with this kernel driver.
    pub(crate) fn state(
        &mut self,
        source: &Source,
        driver: Option<&Kernel>,
        fronts: Vec<Front>,
        supervising: Supervising,
    ) -> Arc<State> {
        let clock = Clock::start();
        let resolver = Arc::<Resolver>::default();
        resolver.configure(&self.options.general);
        let (cores, addresses): (Vec<_>, Vec<_>) = fronts.into_iter().unzip();
        Arc::new(State {
            clock,
            started: clock.now(),
            cores,
            resolver,
            tls: Arc::clone(&self.tls),
            addresses: addresses.concat(),
            driver: driver.map_or("", Driver::name),
            source: source.from.to_string(),
            options: RwLock::new(Arc::clone(&self.options)),
            flags: Flags::default(),
            handles: Handles::new(mem::take(&mut self.held)),
            metrics: MetricsSocket::default(),
            supervising,
            followers: OptionsFollowers::default(),
            reloaded: Mutex::default(),
        })
    }

    /// Returns the address at which metrics are served.
    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|bound| bound.address)
    }

    /// Writes to the log what has been opened, and warnings about the options.
    pub(crate) fn announce(&self, source: &Source, driver: Option<&Kernel>, state: &State) {
        let general = &self.options.general;
        let asked = general.driver != DriverChoice::Auto;
        let why = match asked {
            true => "the configuration asks for it",
            false => "this kernel has all that it needs",
        };
        let why = driver.and_then(Kernel::why).unwrap_or(why);
        let addresses: Vec<_> = state.addresses.iter().map(ToString::to_string).collect();
        tracing::info!(
            cause = "start",
            version = env!("CARGO_PKG_VERSION"),
            configuration = state.source,
            workers = state.core_count(),
            driver = state.driver,
            driver_because = why,
            metrics = self.metrics_address().map(|address| format!("http://{address}/metrics")),
            "listening on {}",
            addresses.join(", ")
        );
        if let Some(address) = self.options.trusts_strangers(&self.options.addresses()) {
            tracing::warn!(
                cause = "trust",
                "auth is trust: every client that can reach {address} can log in as any user"
            );
        }
        let warnings = exposure::warnings(source, &self.options);
        for warning in self.shares.warning(general).into_iter().chain(warnings) {
            tracing::warn!(cause = "start", "{warning}");
        }
    }
}

fn open_kernels(general: &General, gate: u32) -> io::Result<Vec<Kernel>> {
    let kind = match general.driver {
        DriverChoice::Auto => Kind::Auto,
        DriverChoice::Uring => Kind::Uring,
        DriverChoice::Epoll => Kind::Epoll,
    };
    let sizing = Sizing { gate, tuning: listen::tuning(general), ..Sizing::default() };
    (0..worker_count(general.workers)).map(|_| refrain_drive::open(kind, sizing)).collect()
}

fn worker_count(workers: Workers) -> u16 {
    match workers {
        Workers::Fixed(count) => count,
        Workers::Cores => {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            u16::try_from(cores).unwrap_or(u16::MAX)
        }
    }
}
