//! What the apiserver is told of who its users are.

use super::config::Config;
use super::origin::SigningKeys;
use super::start_error::StartError;
use apiserver::authentication::{self, Authentication};
use apiserver::authorization::config::Mode;
use apiserver::config::ApiserverConfig;

/// By the flags, and the keys that the cluster signs with.
pub(super) fn authentication(
    config: &Config,
    keys: &SigningKeys,
    apiserver: &ApiserverConfig,
) -> Result<Authentication, StartError> {
    let parts = authentication::Parts {
        registry: &apiserver.registry,
        clock: &apiserver.clock,
        entropy: &apiserver.entropy,
        authority_pem: keys.authority.certificate_pem(),
        signing_key_pem: &keys.signing_key_pem,
    };
    let mut flags = config.apiserver.authentication.clone();
    // Upstream's ApplyAuthorization: nobody in particular may not do everything.
    let allows_all = config.apiserver.authorization.modes().contains(&Mode::AlwaysAllow);
    if flags.anonymous.unwrap_or(true) && allows_all {
        tracing::warn!("AnonymousAuth is not allowed with the AlwaysAllow authorizer: it is off");
        flags.anonymous = Some(false);
    }
    Ok(Authentication::new(&flags, &parts)?)
}
