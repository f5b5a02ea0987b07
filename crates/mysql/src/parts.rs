//! The parts of the protocol, for each thing that the pool has.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_config::Options;
use refrain_mysql_wire::{Capabilities, Status};
use refrain_pool::durations::LoggedDurations;
use refrain_pool::figures::StatementFigures;
use refrain_pool::ids::ClientSerial;
use refrain_pool::seed::{Seed, seed};
use refrain_pool::settings::PoolSettings;
use refrain_pool::{Conn, Now, Parts};

use crate::client_state::ClientState;
use crate::commands::Commands;
use crate::console;
use crate::definitions::{Coming, Moment};
use crate::errors::Brand;
use crate::hidden::{Asked, Caller, Hidden};
use crate::insert_id::{Kept, Own, Readers};
use crate::login::{Agreed, Flavour, ServerLogin, ServerSecret};
use crate::pins::Pins;
use crate::registry::Registry;
use crate::sessions::{Listed, Sessions};
use crate::settings::{Base, Interned, Settings};
use crate::sides::Side;
use crate::slots::Slots;
use crate::statement::{Statement, Statements};
use crate::text::{Memory, Tables};
use crate::texts::{Counting, Texts};
use crate::views::{ClientView, ServerView};
use crate::wishes::Wishes;

/// The protocol of MySQL and MariaDB.
#[derive(Debug)]
pub enum My {}

/// A client's session.
#[derive(Debug, Default)]
pub struct ClientSession {
    /// How far the session has come.
    pub(crate) state: ClientState,
    /// The product that the client believes to be connected to.
    pub(crate) brand: Option<Brand>,
    /// The place of the next packet that the client gets.
    pub(crate) place: Place,
    /// The kind of the client's next packet.
    pub(crate) reading: Reading,
    /// The settings, which follow the client.
    pub(crate) settings: Arc<Settings>,
    /// Whether texts could have several statements before COM_CHANGE_USER, which leaves that.
    pub(crate) has_had_several: Option<bool>,
    /// The things that only the client's server has.
    pub(crate) pins: Pins,
    /// The prepared statements.
    pub(crate) statements: Statements,
    /// Which changes of the session the client wants to be told of.
    pub(crate) wishes: Wishes,
    /// The flags of the session that the client was told last.
    pub(crate) status: Status,
    /// The things that the client's last command has left, for the next one to ask about.
    pub(crate) left: Left,
    /// The serial of the server that the client's last command ran on; 0 for none.
    pub(crate) last_server: u64,
    /// The things that the client has had that server remember since another client had it.
    pub(crate) memory: Memory,
    /// Whether a statement has left warnings or an error that may still be there to ask about.
    pub(crate) has_conditions: bool,
    /// The number that LAST_INSERT_ID() is to tell.
    pub(crate) insert_id: Own,
    /// How many sessions the client has ended before this one, by a reset or a change of its user.
    pub(crate) ended_before: u64,
    /// The client's places in the tables for KILL, once it is logged in.
    pub(crate) listed: Option<Listed>,
}

impl ClientSession {
    /// Returns what the login has agreed on, once the client has authenticated.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        self.state.agreed()
    }

    /// Returns the place of an error that Refrain tells now.
    pub(crate) fn place_of_error(&self) -> Place {
        match &self.state {
            // The client reads it once it has sent the packet that is its turn.
            ClientState::LoggingIn(login) | ClientState::Securing(login) => {
                Place { sequence: login.sequence().wrapping_add(1), ..self.place }
            }
            ClientState::Ungreeted
            | ClientState::Entering(_)
            | ClientState::Checking(_)
            | ClientState::Ready(_)
            | ClientState::Console(_) => self.place,
        }
    }

    /// Returns the capabilities that the client has agreed on.
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.agreed().map_or(Capabilities::NONE, |agreed| agreed.capabilities)
    }

    /// Whether the client has offered files.
    pub(crate) fn has_files(&self) -> bool {
        self.capabilities().has(Capabilities::LOCAL_FILES)
    }

    /// Returns the reasons for which the client keeps its server though its transaction is over, in
    /// words.
    pub(crate) fn reasons(&self) -> String {
        let mut words = self.pins.words();
        if self.statements.keep() {
            words.push("cursor or part of a value");
        }
        words.join(", ")
    }

    /// Whether the client keeps its server though its transaction is over.
    pub(crate) fn keeps(&self) -> bool {
        self.pins.is_any() || self.statements.keep() || self.reading != Reading::Commands
    }
}

/// The things that a command has left in its session, for the next one to ask about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Warnings, or an error.
    pub(crate) warnings: bool,
    /// A number of rows, or one that was inserted.
    pub(crate) counts: bool,
}

impl Left {
    /// Whether there is anything.
    pub(crate) fn is_any(self) -> bool {
        self.warnings || self.counts
    }
}

/// The place of the next packet that a client gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The packet's sequence id.
    pub(crate) sequence: u8,
    /// Whether packets of the reply have been sent before it.
    pub(crate) has_begun: bool,
    /// Whether the packet goes on with a message.
    pub(crate) is_within: bool,
}

/// The kind of a client's next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A command.
    #[default]
    Commands,
    /// It goes on with a command.
    Continuation,
    /// A part of a file, or its end.
    File,
}

/// A server's session.
#[derive(Debug, Default)]
pub struct ServerSession {
    /// The commands that the server has got.
    pub(crate) commands: Commands,
    /// The capabilities that were agreed on.
    pub(crate) agreed: Capabilities,
    /// Whether a transaction is open.
    pub(crate) transaction: Transaction,
    /// Whether the server is about to end the session, as its client wanted.
    pub(crate) is_released: bool,
    /// The changes that no reply has told.
    pub(crate) untold: Untold,
    /// Whether a statement may have set variables of which no report tells at all.
    pub(crate) is_unasked: bool,
    /// The prepared statements that the server has.
    pub(crate) slots: Slots,
    /// The definitions of a statement that come, as the reply to a client's PREPARE.
    pub(crate) defining: Option<(Arc<Statement>, Coming)>,
    /// The values with which a session of the server begins.
    pub(crate) base: Arc<Base>,
    /// The settings.
    pub(crate) settings: Arc<Settings>,
    /// Whether the session has to be made as new before the next client.
    pub(crate) is_dirty: bool,
    /// The client whose statements may have left what no server reports: another client, and
    /// another session of this one, may have to get the server as new.
    pub(crate) caller: Option<Caller>,
    /// The question about the catalog, while its answer is under way.
    pub(crate) asked: Option<Asked>,
    /// Whether KILL may have come between two statements. A server remembers KILL for the next
    /// one for a moment behind the end of one.
    pub(crate) is_struck: bool,
    /// The thing that waits for replies, or for the side connections that hold the server.
    pub(crate) postponed: Postponed,
    /// The client that had the server last.
    pub(crate) last_client: Option<ClientSerial>,
    /// The things that clients have left for later questions.
    pub(crate) leftover: Leftover,
    /// The number that LAST_INSERT_ID() tells.
    pub(crate) insert_id: Kept,
    /// Bytes that the server has sent for a client that has left.
    pub(crate) dropped: usize,
    /// Strings of the rows that an internal command asks for.
    pub(crate) rows: Vec<Vec<Box<[u8]>>>,
}

/// The things that clients have left in a server's session for later questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Nothing: no client has run anything since the session was made as new.
    Nothing,
    /// Counts, and numbers of rows.
    #[default]
    Counts,
    /// Warnings or an error as well.
    Conditions,
}

/// A thing that is to be done with a server and has to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Postponed {
    /// None.
    #[default]
    None,
    /// The statement of its client is to be ended, once no command of Refrain's own can be hit.
    Killed,
    /// It is to be made as new, once no side connection holds it.
    Left,
    /// It is to be asked for its collation, once no side connection holds it.
    Collation,
}

/// The changes of a session that no reply has told, though a statement may have made some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Untold {
    /// None.
    #[default]
    Nothing,
    /// Variables that a statement had for its own time have been set back.
    SetBack,
    /// Any.
    Any,
}

/// Whether a transaction is open on a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// No.
    #[default]
    None,
    /// Yes.
    Open,
    /// Not known: an error does not say it.
    Unsure,
}

impl ServerSession {
    /// Proves that the server owes nothing and is outside of any transaction.
    pub(crate) fn quiescent(&self) -> Option<Quiescent> {
        let is_quiescent = self.commands.is_empty() && self.transaction == Transaction::None;
        is_quiescent.then_some(Quiescent(()))
    }
}

/// The proof that a server owes nothing and is outside of any transaction.
#[derive(Debug)]
pub struct Quiescent(());

/// A login to a server.
#[derive(Debug)]
pub enum LoggingIn {
    /// The server lets Refrain in.
    Proving(Box<ServerLogin>),
    /// The loop shakes hands with the server, in the middle of that.
    Securing(Box<ServerLogin>),
    /// Refrain asks for what it has to know of the session.
    Preparing,
}

/// One core's part.
#[derive(Debug, Default)]
pub struct CorePart {
    /// Whether a probe is under way.
    pub(crate) is_probing: bool,
    /// The clients that wait to be greeted.
    pub(crate) ungreeted: Vec<(Conn, ClientSerial)>,
    /// The settings of clients and servers.
    pub(crate) settings: Interned,
    /// The prepared statements of clients and servers.
    pub(crate) statements: Registry,
    /// The figures of the statements.
    pub(crate) figures: StatementFigures,
    /// The texts that are counted by themselves.
    pub(crate) texts: Texts,
    /// The commands that the log tells of because of their time.
    pub(crate) durations: LoggedDurations,
}

/// The part that the cores share.
#[derive(Debug, Default)]
pub struct SharedPart {
    /// The seed of the tables whose keys clients choose.
    seed: Seed,
    flavour: Mutex<Option<Arc<Flavour>>>,
    /// How many changes of tables are known.
    tables: AtomicU64,
    /// When a view or a trigger was last known to change.
    views: AtomicU64,
    /// The clients by the numbers by which KILL names them.
    pub(crate) sessions: Arc<Sessions>,
    /// The choice of what is counted.
    pub(crate) counting: Counting,
    durations: Mutex<LoggedDurations>,
}

impl SharedPart {
    /// Returns which commands the log tells of because of their time.
    pub(crate) fn durations(&self) -> LoggedDurations {
        *lock(&self.durations)
    }

    /// Returns what the server said that was reached last, if there was any.
    pub(crate) fn flavour(&self) -> Option<Arc<Flavour>> {
        lock(&self.flavour).clone()
    }

    /// Returns the moment of what servers get now.
    pub(crate) fn moment(&self, at: Now) -> Moment {
        Moment { tables: self.tables.load(Acquire), at }
    }

    /// Notes that tables may have changed.
    pub(crate) fn tables_change(&self) {
        self.tables.fetch_add(1, AcqRel);
    }

    /// Notes that tables may have changed in a way, at a moment.
    pub(crate) fn change(&self, tables: Tables, at: Now) {
        if tables != Tables::Stay {
            self.tables_change();
        }
        if tables == Tables::ChangeViews {
            self.views.fetch_max(at.0, AcqRel);
        }
    }

    /// Returns when a view or a trigger was last known to change.
    pub(crate) fn views_changed(&self) -> Now {
        Now(self.views.load(Acquire))
    }

    /// Notes what a server has said. Returns it, shared.
    pub(crate) fn learn(&self, flavour: Flavour) -> Arc<Flavour> {
        let mut known = lock(&self.flavour);
        match &*known {
            Some(known) if **known == flavour => known.clone(),
            _ => known.insert(Arc::new(flavour)).clone(),
        }
    }
}

/// The part of one pool that the cores share.
#[derive(Debug, Default)]
pub struct PoolPart {
    base: Mutex<Option<Arc<Base>>>,
    secret: Mutex<Option<ServerSecret>>,
    /// Whether the next login stays in the clear, as TLS has failed.
    stays_clear: AtomicBool,
    /// Whether clients read the number that a row got.
    pub(crate) readers: Readers,
    /// The catalog's views and triggers, as far as they matter.
    pub(crate) hidden: Hidden,
}

impl PoolPart {
    /// Has the next login stay in the clear.
    pub(crate) fn stay_clear(&self) {
        self.stays_clear.store(true, Relaxed);
    }

    /// Whether this login is the one that stays in the clear.
    pub(crate) fn takes_clear(&self) -> bool {
        self.stays_clear.swap(false, Relaxed)
    }

    /// Returns the values with which sessions of the pool begin.
    pub(crate) fn base(&self) -> Option<Arc<Base>> {
        lock(&self.base).clone()
    }

    /// Notes the values with which a session has begun. Returns them, shared.
    pub(crate) fn learn(&self, base: Base) -> Arc<Base> {
        let mut known = lock(&self.base);
        match &*known {
            Some(known) if **known == base => known.clone(),
            _ => known.insert(Arc::new(base)).clone(),
        }
    }

    /// Returns the secret that a client's login has shown.
    pub(crate) fn secret(&self) -> Option<ServerSecret> {
        lock(&self.secret).clone()
    }

    /// Notes the secret that a client's login has shown. Returns whether it is another one than
    /// before.
    pub(crate) fn learn_secret(&self, secret: ServerSecret) -> bool {
        if matches!(secret, ServerSecret::None) {
            return false;
        }
        let mut known = lock(&self.secret);
        let is_other = known.as_ref().is_some_and(|known| !known.is_same(&secret));
        *known = Some(secret);
        is_other
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Parts for My {
    type Client = ClientSession;
    type Server = ServerSession;
    type Traveller = Box<ClientSession>;
    type Login = LoggingIn;
    type Job = ();
    type Side = Side;
    type Idle = Quiescent;
    type Pool = ();
    type Core = CorePart;
    type PoolShared = PoolPart;
    type Shared = SharedPart;
    type Counters = ();
    type ClientView = ClientView;
    type ServerView = ServerView;
    type View = ();
    type Request = console::Request;
    type Answer = console::Answer;

    fn client(_core: &CorePart, _now: Now) -> ClientSession {
        ClientSession::default()
    }
    fn server(_core: &CorePart, _now: Now) -> ServerSession {
        ServerSession::default()
    }
    fn core(shared: &SharedPart) -> CorePart {
        let (figures, texts) = shared.counting.begin(shared.seed.clone());
        CorePart {
            figures,
            texts,
            durations: shared.durations(),
            settings: Interned::new(shared.seed.clone()),
            statements: Registry::new(shared.seed.clone()),
            ..CorePart::default()
        }
    }
    fn shared(options: &Options, entropy: &mut dyn FnMut(&mut [u8])) -> SharedPart {
        let shared = SharedPart { seed: seed(entropy), ..SharedPart::default() };
        Self::options_changed(&shared, options);
        shared
    }
    fn options_changed(shared: &SharedPart, options: &Options) {
        shared.counting.set(&options.general);
        *lock(&shared.durations) = LoggedDurations::of(&options.general);
    }
    fn pool_shared(_: &SharedPart, _: &PoolSettings, _database: &str, _variant: u16) -> PoolPart {
        PoolPart::default()
    }
    fn is_known(pool: &PoolPart) -> bool {
        lock(&pool.base).is_some()
    }
}
