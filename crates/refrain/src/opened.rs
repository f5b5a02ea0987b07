//! Everything that the program opens first, whatever protocols it serves, so that errors come
//! before a client is accepted.

use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::{Arc, RwLock};
use std::thread;

use refrain_config::{DriverChoice, General, Options, Workers};
use refrain_drive::{Driver, Kernel, Kind, Sizing};

use crate::clock::Clock;
use crate::cores::{AnyCores, Cores};
use crate::descriptors::{self, Shares};
use crate::listen::{self, Listeners};
use crate::resolve::Resolver;
use crate::served::Served;
use crate::source::Source;
use crate::state::{Flags, State};
use crate::tls::{Setup, Store};
use crate::{exposure, http};

/// Everything that the program opens first.
pub(crate) struct Opened {
    pub(crate) options: Arc<Options>,
    pub(crate) shares: Shares,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) metrics: Option<http::Bound>,
    pub(crate) listeners: Listeners,
    tls: Arc<Store>,
}

impl Opened {
    /// Opens everything.
    ///
    /// # Errors
    /// If an address cannot be bound, a file of TLS cannot be read, or the kernel lacks what the
    /// driver needs.
    pub(crate) fn open(options: Options) -> io::Result<Self> {
        let general = &options.general;
        let shares = Shares::of(&options, descriptors::limit());
        let kernels = open_kernels(general, shares.gate())?;
        // Before the listeners: a client that finds their port open finds this one open as well.
        let metrics = general.metrics_listen.map(http::bind).transpose()?;
        let tls = Arc::new(Store::new(Setup::read(&options).map_err(io::Error::other)?));
        let listeners = listen::bind(general)?;
        Ok(Self { options: Arc::new(options), shares, kernels, metrics, listeners, tls })
    }

    /// Makes the cores of a protocol, one for each kernel driver.
    pub(crate) fn cores<P: Served>(&self) -> Arc<Cores<P>> {
        Cores::new(&self.options, &self.kernels, self.shares.room())
    }

    /// Makes the state of the program, which has these cores.
    pub(crate) fn state(&self, source: &Source, cores: Vec<Arc<dyn AnyCores>>) -> Arc<State> {
        let clock = Clock::start();
        Arc::new(State {
            clock,
            started: clock.now(),
            cores,
            resolver: Arc::<Resolver>::default(),
            tls: Arc::clone(&self.tls),
            addresses: self.listeners.addresses.clone(),
            driver: self.kernels.first().map_or("", Driver::name),
            source: source.from.to_string(),
            options: RwLock::new(Arc::clone(&self.options)),
            flags: Flags::default(),
        })
    }

    /// Returns the address at which metrics are served.
    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|bound| bound.address)
    }

    /// Writes to the log what has been opened, and warnings about the options.
    pub(crate) fn announce(&self, source: &Source, state: &State) {
        let general = &self.options.general;
        let asked = general.driver != DriverChoice::Auto;
        let why = match asked {
            true => "the configuration asks for it",
            false => "this kernel has all that it needs",
        };
        let why = self.kernels.first().and_then(Kernel::why).unwrap_or(why);
        let addresses: Vec<_> = state.addresses.iter().map(ToString::to_string).collect();
        tracing::info!(
            cause = "start",
            version = env!("CARGO_PKG_VERSION"),
            configuration = state.source,
            workers = self.kernels.len(),
            driver = state.driver,
            driver_because = why,
            metrics = self.metrics_address().map(|address| format!("http://{address}/metrics")),
            "listening on {}",
            addresses.join(", ")
        );
        if let Some(address) = self.options.trusts_strangers(&general.listen) {
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
    let sizing = Sizing { gate, ..Sizing::default() };
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
