//! What the apiserver is told of who its users are.

use super::authentication_trust;
use super::config::Config;
use super::origin::SigningKeys;
use super::serving::made_at;
use super::start_error::StartError;
use apiserver::authentication::{self, Authentication};
use apiserver::authorization::config::Mode;
use apiserver::config::ApiserverConfig;

/// Takes over the options, and how this server shows itself to aggregated ones.
pub(super) fn follow(
    apiserver: &mut ApiserverConfig,
    config: &Config,
    keys: &SigningKeys,
) -> Result<(), StartError> {
    apiserver.follow(&config.apiserver, &config.admission)?;
    let given = std::mem::take(&mut apiserver.proxy_identity);
    let (flags, now) = (&config.apiserver.authentication, made_at(&config.clock));
    apiserver.proxy_identity = authentication_trust::front_proxy(flags, given, &keys.authority, now)?;
    Ok(())
}

/// By the flags, and the keys that the cluster signs with.
pub(super) fn authentication(
    config: &Config,
    keys: &SigningKeys,
    apiserver: &ApiserverConfig,
) -> Result<Authentication, StartError> {
    let parts = authentication::AuthenticatorParts {
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
