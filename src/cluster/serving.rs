//! What a server shows of itself, and what its clients are told of it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::config::Access;
pub(super) use apimachinery::user::MASTERS;
use clock::Clock;
use pki::{Authority, Identity, MadeAt};

/// Who may do everything.
pub(super) const ADMIN: &str = "kubernetes-admin";

/// When what is signed now is made: clients live by the machine's clock, the cluster and its pods by this
/// one. Where a year may pass in a moment nothing ends after one.
pub(super) fn made_at(clock: &Clock) -> MadeAt {
    let made = MadeAt::by_both(clock.now(), clock.machine_now());
    if clock.goes_as_the_machine() { made } else { made.for_ever() }
}

/// How an administrator reaches it.
pub(super) fn access(
    bound: SocketAddr,
    tls: bool,
    authority: &Authority,
    serving: Option<&Identity>,
    clock: &Clock,
) -> Result<Access, pki::PkiError> {
    let reachable = match bound.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bound.port()),
        _ => bound,
    };
    if !tls {
        let server = format!("http://{reachable}");
        return Ok(Access { server, authority_pem: None, identity: None });
    }
    let identity = authority.client(ADMIN, MASTERS, made_at(clock))?;
    // Who gives a certificate has signed it, or names those who have after it.
    let trusted = serving.map_or(authority.certificate_pem(), |serving| &serving.certificate_pem);
    let authority_pem = Some(trusted.to_owned());
    Ok(Access { server: format!("https://{reachable}"), authority_pem, identity: Some(identity) })
}
