//! Rules between the options of the program as a whole, and what follows from several of them.

use crate::choices::AuthMethod;
use crate::general::General;
use crate::tls::{SslMode, TlsChoices};

impl General {
    /// Returns the broken rules beyond bounds: the option that breaks a rule, and the rule.
    pub(crate) fn conflicts(&self) -> Vec<(&'static str, &'static str)> {
        let is_used = self.client_tls_sslmode != SslMode::Disable;
        let is_verifying = self.client_tls_sslmode.is_verifying();
        let hba = (self.hba.is_some(), self.hba_file.is_some());
        [
            (
                !self.listen.is_empty() || self.unix_socket_dir.is_some(),
                "listen",
                "must name at least one address, unless unix_socket_dir is set",
            ),
            (hba != (true, true), "hba", "cannot stand beside hba_file"),
            (
                hba != (false, false) || self.auth != AuthMethod::Hba,
                "auth",
                "needs the rules: set hba or hba_file",
            ),
            (
                self.ident.is_none() || self.ident_file.is_none(),
                "ident",
                "cannot stand beside ident_file",
            ),
            (
                !is_used || self.client_tls_cert_file.is_some(),
                "client_tls_cert_file",
                "is missing: client_tls_sslmode needs a certificate",
            ),
            (
                !is_used || self.client_tls_key_file.is_some(),
                "client_tls_key_file",
                "is missing: client_tls_sslmode needs the certificate's key",
            ),
            (
                !is_verifying || self.client_tls_ca_file.is_some(),
                "client_tls_ca_file",
                "is missing: client_tls_sslmode needs authorities to verify with",
            ),
            (
                self.client_tls_crl_file.is_none() || self.client_tls_ca_file.is_some(),
                "client_tls_ca_file",
                "is missing: client_tls_crl_file is of the authorities there",
            ),
            (
                !self.client_tls_protocols.is_empty(),
                "client_tls_protocols",
                "must name at least one version",
            ),
        ]
        .into_iter()
        .filter(|(holds, ..)| !holds)
        .map(|(_, name, rule)| (name, rule))
        .collect()
    }

    /// Returns the choices of handshakes with clients.
    pub fn client_tls_choices(&self) -> TlsChoices {
        TlsChoices {
            protocols: self.client_tls_protocols.clone(),
            ciphers: self.client_tls_ciphers.clone(),
            groups: self.client_tls_groups.clone(),
        }
    }
}
