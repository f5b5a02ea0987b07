//! The last login to a pool of one core: clients of one application log in alike, so the next login
//! takes over what this one has computed.
//!
//! An entry is right for as long as the servers' parameters are the very same object and the
//! startup packet asks for the same settings: what is kept is a function of these two. It takes a
//! few kilobytes: the startup packet and the parameters are bounded.

use std::sync::Arc;

use refrain_pg_wire::write;

use crate::settings::session::{ServerParameters, Setting, Settings, SettingsMut};

/// The last login, and what it led to.
#[derive(Debug)]
pub(crate) struct LastLogin {
    server_parameters: Arc<ServerParameters>,
    asked: Vec<Setting>,
    /// The settings of the servers that a client can change.
    pub(crate) defaults: Arc<Settings>,
    /// The same with those of the startup packet over them.
    pub(crate) wants: Arc<Settings>,
    /// The settings of the startup packet.
    pub(crate) startup: SettingsMut,
    /// The settings that the last client was told, and its ParameterStatus messages.
    told: Option<(Arc<Settings>, Box<[u8]>)>,
}

impl LastLogin {
    /// Computes what a login with these settings leads to. `intern` interns settings.
    pub(crate) fn new(
        server_parameters: Arc<ServerParameters>,
        asked: &[Setting],
        mut intern: impl FnMut(SettingsMut) -> Arc<Settings>,
    ) -> Self {
        let defaults = SettingsMut::settable(&server_parameters);
        let (mut wants, mut startup) = (defaults.clone(), SettingsMut::default());
        for (name, value) in asked {
            wants.set(name, value);
            startup.set(name, value);
        }
        let (wants, defaults) = (intern(wants), intern(defaults));
        Self { server_parameters, asked: asked.to_vec(), defaults, wants, startup, told: None }
    }

    /// True if a login with these settings leads to the same.
    pub(crate) fn is_like(&self, known: &Arc<ServerParameters>, asked: &[Setting]) -> bool {
        Arc::ptr_eq(&self.server_parameters, known) && self.asked == asked
    }

    /// Appends the ParameterStatus messages for a client with the settings `expected`.
    pub(crate) fn tell(&mut self, out: &mut Vec<u8>, expected: &Arc<Settings>) {
        if let Some((told, messages)) = &self.told
            && Arc::ptr_eq(told, expected)
        {
            return out.extend_from_slice(messages);
        }
        let begin = out.len();
        tell_parameters(out, &self.server_parameters, expected);
        self.told = Some((expected.clone(), out[begin..].into()));
    }
}

/// Appends a ParameterStatus for each of a server's parameters, with the values of a client that
/// has the settings `expected`.
pub(crate) fn tell_parameters(out: &mut Vec<u8>, known: &ServerParameters, expected: &Settings) {
    for (name, value) in known {
        write::parameter_status(out, name, expected.get(name).unwrap_or(value));
    }
}
