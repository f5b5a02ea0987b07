//! The method by which a client proves who it is: that of the configuration, or that of the first
//! rule of `pg_hba.conf` that is for the client.

use refrain_config::{AuthMethod, HbaMethod};
use refrain_pg_wire::write::{self, Report};
use refrain_pool::ClientNote;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;

use crate::auth::Method;
use crate::auth::hba::Denied;
use crate::engine::ClientLogin;
use crate::ground::reports::{PoolerError, in_other_words};
use crate::state::client::login::LoginRequest;

impl ClientLogin<'_, '_> {
    /// Chooses the method by which a client proves who it is. `None` if the client is gone.
    pub(crate) fn method(
        &mut self,
        login_request: &mut LoginRequest,
    ) -> Option<Result<Method, Denied>> {
        let shared = self.step.engine.core_state.shared.clone();
        let general = &shared.options().general;
        let client = self.step.engine.connections.client(self.conn)?;
        // A login that has waited for its user keeps its rule.
        let mut matched = login_request.rule.take();
        let applicant = login_request.applicant(client.peer(), client.secured());
        let method = match general.auth {
            AuthMethod::Trust => Ok(Method::Trust),
            AuthMethod::Password => Ok(Method::Password),
            AuthMethod::Md5 => Ok(Method::Md5),
            AuthMethod::Scram => Ok(Method::Scram),
            AuthMethod::Hba => {
                let find = || shared.protocol.hba().find(&applicant);
                let found = matched.get_or_insert_with(find);
                match found.rule() {
                    Some(rule) => applicant.method(found.hba(), rule),
                    None => Err(applicant.no_entry()),
                }
            }
        };
        let exposes = method == Ok(Method::Password) && applicant.is_overheard();
        login_request.rule = matched;
        let is_clear = exposes && !general.insecure_password;
        Some(if is_clear { Err(Denied::ClearText) } else { method })
    }

    /// Checks the certificate of a client that has proved who it is, if its rule asks for one.
    pub(crate) fn check_certificate(&mut self, login_request: &LoginRequest) -> Result<(), Denied> {
        let Some(matched) = &login_request.rule else { return Ok(()) };
        let Some(client) = self.step.engine.connections.client(self.conn) else { return Ok(()) };
        let applicant = login_request.applicant(client.peer(), client.secured());
        match matched.rule() {
            Some(rule) => applicant.check_certificate(matched.hba(), rule),
            None => Ok(()),
        }
    }

    /// Ends a login that is denied.
    pub(crate) fn deny(&mut self, login_request: &LoginRequest, denied: &Denied) {
        let message = denied.to_string();
        let sqlstate = denied.sqlstate();
        let report = Report { severity: "FATAL", sqlstate, message: &message, hint: denied.hint() };
        self.refused(login_request, own_error(denied), &report, denied.detail());
    }

    /// Ends a login that has failed, and counts that. The log also has the rule that was for the
    /// client, as PostgreSQL's log does.
    pub(crate) fn refused(
        &mut self,
        login_request: &LoginRequest,
        error: PoolerError,
        report: &Report<'_>,
        detail: &str,
    ) {
        if let Some(pool) =
            login_request.pool.and_then(|id| self.step.engine.core_state.find_pool(id))
        {
            pool.counters.pool.client_login_failures += 1;
        }
        let mut line = report.message.to_owned();
        if !detail.is_empty() {
            line += &format!(": {detail}");
        }
        if let Some(matched) = &login_request.rule {
            matched.count_refusal();
            if let Some(rule) = matched.rule() {
                line += &format!(" (connection matched {rule})");
            }
        }
        self.step.log().tell_of_client(
            self.conn,
            ClientNote {
                code: Some(report.sqlstate),
                names: Some((&login_request.database, &login_request.user)),
                detail: line,
                ..ClientNote::new(Level::Warn, DisconnectReason::Login)
            },
        );
        let errors = self.step.engine.core_state.shared.options().general.pooler_errors;
        let out = self.step.ports.out(self.conn);
        match in_other_words(errors, error, "") {
            None => write::error(out, report),
            Some((sqlstate, message)) => {
                write::error(out, &Report { sqlstate, message: &message, hint: "", ..*report });
            }
        }
        self.step.remove_client(self.conn, false);
    }
}

/// Returns the error of a login that is denied.
fn own_error(denied: &Denied) -> PoolerError {
    match denied {
        Denied::NoEntry(_) => PoolerError::NoRule,
        Denied::Rejected(_) => PoolerError::Rejected,
        Denied::NoCertificate => PoolerError::Certificate,
        Denied::ClearText => PoolerError::PostgreSqls,
        Denied::Failed { method, .. } => match method {
            HbaMethod::Cert => PoolerError::Certificate,
            HbaMethod::Peer => PoolerError::Peer,
            HbaMethod::Trust | HbaMethod::Reject => PoolerError::Untrusted,
            HbaMethod::Password | HbaMethod::Md5 | HbaMethod::Scram => {
                PoolerError::End(DisconnectReason::Login)
            }
        },
    }
}
