//! What the controllers sign with. They know neither keys nor the apiserver: they are handed these.

use std::sync::Arc;

use crate::apiserver::authentication::service_account::issuer::{Reference, TokenIssuer};
use crate::controllers::TokenGenerator;

/// Makes tokens for Secrets (`--service-account-private-key-file`).
pub struct SecretTokens(pub Arc<TokenIssuer>);

impl TokenGenerator for SecretTokens {
    fn generate(&self, namespace: &str, account: &str, uid: &str, secret: &str) -> Result<String, String> {
        let account = Reference { name: account.into(), uid: uid.into() };
        self.0.issue_legacy(namespace, &account, secret)
    }
}
