//! What the controllers sign with. They know neither keys nor the apiserver: they are handed these.

use std::sync::Arc;
use std::time::Duration;

use apiserver::authentication::service_account::issuer::{ClaimedObject, TokenIssuer};
use clock::Clock;
use controllers::{CertificateAuthority, TokenGenerator};
use entropy::Entropy;
use pki::Authority;

/// Signs certificates with the cluster's authority (`--cluster-signing-cert-file`).
pub(crate) struct ClusterAuthority {
    /// The authority.
    pub authority: Arc<Authority>,
    /// From when certificates are valid.
    pub clock: Clock,
    /// Draws serial numbers.
    pub entropy: Entropy,
}

impl CertificateAuthority for ClusterAuthority {
    fn sign(&self, request: &[u8], usages: &[&str], lifetime: Duration) -> Result<String, String> {
        let digits = u128::from_str_radix(&self.entropy.hex(32), 16).unwrap_or_default();
        let serial = digits.to_be_bytes();
        let signed = self.authority.sign_request(request, usages, lifetime, self.clock.now(), serial);
        signed.map_err(|error| error.to_string())
    }
}

/// Makes tokens for Secrets (`--service-account-private-key-file`).
pub(crate) struct SecretTokens(pub Arc<TokenIssuer>);

impl TokenGenerator for SecretTokens {
    fn generate(&self, namespace: &str, account: &str, uid: &str, secret: &str) -> Result<String, String> {
        let account = ClaimedObject { name: account.into(), uid: uid.into() };
        self.0.issue_legacy(namespace, &account, secret).map_err(String::from)
    }
}
