//! How far a client's session has come.

use std::sync::Arc;

use refrain_pool::client::Phase;

use crate::console;
use crate::login::{Agreed, ClientLogin};

/// How far a client's session has come.
#[derive(Debug, Default)]
pub(crate) enum ClientState {
    /// The client has not been greeted.
    #[default]
    Ungreeted,
    /// The client logs in.
    LoggingIn(Box<ClientLogin>),
    /// The client goes over to TLS, and logs in then.
    Securing(Box<ClientLogin>),
    /// The client has authenticated, and waits until a server of its pool has been reached.
    Entering(Box<Agreed>),
    /// A server is asked for the client's schema.
    Checking(Box<Agreed>),
    /// The client is logged in.
    Ready(Box<Agreed>),
    /// The client gives commands to the admin console.
    Console(Box<AtConsole>),
}

/// A client of the admin console.
#[derive(Debug)]
pub(crate) struct AtConsole {
    pub(crate) agreed: Agreed,
    /// The name under which the client has asked for the console.
    pub(crate) name: &'static str,
    pub(crate) user: Arc<str>,
    /// Whether the client may do everything, whatever the options say of its user.
    pub(crate) is_owner: bool,
    pub(crate) session: console::ConsoleSession,
}

impl ClientState {
    /// Returns what the login has agreed on, once the client has authenticated.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        match self {
            Self::Entering(agreed) | Self::Checking(agreed) | Self::Ready(agreed) => Some(agreed),
            Self::Console(client) => Some(&client.agreed),
            Self::Ungreeted | Self::LoggingIn(_) | Self::Securing(_) => None,
        }
    }

    /// Returns the client of the console that the client is, if it is one.
    pub(crate) fn console(&mut self) -> Option<&mut AtConsole> {
        match self {
            Self::Console(client) => Some(client),
            _ => None,
        }
    }

    /// Returns the phase.
    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Ungreeted | Self::LoggingIn(_) | Self::Securing(_) => Phase::Login,
            Self::Entering(_) => Phase::Entering,
            Self::Checking(_) => Phase::Checking,
            Self::Ready(_) => Phase::Ready,
            Self::Console(_) => Phase::Console,
        }
    }
}
