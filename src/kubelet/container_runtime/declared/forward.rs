//! Real addresses behind simulated pods: the developer's own process answers at a port of a pod.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::net::TcpStream;

use clock::Clock;

golang::text_error! {
    /// An address that pods may not have behind them, or that is none; for people.
    pub struct BadForward;
}

/// Where annotations `kubarium.dev/forward.PORT` may lead. Whoever may write a pod could reach with them
/// what only this machine reaches, so nowhere is what holds unless the user says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodForwarding {
    /// Nowhere: no pod has a real address behind it.
    #[default]
    Nowhere,
    /// To this machine's own loopback addresses.
    Loopback,
    /// To any address.
    Anywhere,
}

impl std::str::FromStr for PodForwarding {
    type Err = String;

    fn from_str(text: &str) -> Result<PodForwarding, String> {
        match text {
            "nowhere" => Ok(PodForwarding::Nowhere),
            "loopback" => Ok(PodForwarding::Loopback),
            "anywhere" => Ok(PodForwarding::Anywhere),
            other => Err(format!("{other:?} is none of nowhere, loopback, anywhere")),
        }
    }
}

impl PodForwarding {
    /// Whether pods may have `address` behind them.
    ///
    /// # Errors
    /// Why not, and what would allow it.
    pub fn check(self, address: SocketAddr) -> Result<(), BadForward> {
        let wanted = match (self, is_loopback(address.ip())) {
            (PodForwarding::Anywhere, _) | (PodForwarding::Loopback, true) => return Ok(()),
            (_, true) => "loopback",
            (_, false) => "anywhere",
        };
        Err(format!("leads to {address}, which needs `kubarium up --forward-pods {wanted}`").into())
    }
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|it| it.is_loopback())
        }
    }
}

/// An address with its port; names are refused, since nothing is resolved here.
///
/// # Errors
/// What it may be.
pub(super) fn parse(text: &str) -> Result<SocketAddr, BadForward> {
    text.trim()
        .parse()
        .map_err(|_| format!("is {text:?}, it may be an address with a port as 127.0.0.1:3000").into())
}

/// Until a real address is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Carries bytes to and fro until either side ends.
pub(super) async fn serve(mut io: DuplexStream, address: SocketAddr, clock: &Clock) {
    let connected = clock.timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    match connected {
        Ok(Ok(mut real)) => {
            let _ = tokio::io::copy_bidirectional(&mut io, &mut real).await;
        }
        _ => tracing::warn!(%address, "nobody answers at the real address behind a simulated pod"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_outside_unless_the_user_says_so() {
        let address = |text: &str| parse(text).unwrap();
        let (own, other) = (address("127.0.0.1:3000"), address("10.1.2.3:80"));
        for (forwarding, own_is_well, other_is_well) in [
            (PodForwarding::Nowhere, false, false),
            (PodForwarding::Loopback, true, false),
            (PodForwarding::Anywhere, true, true),
        ] {
            assert_eq!(forwarding.check(own).is_ok(), own_is_well);
            assert_eq!(forwarding.check(other).is_ok(), other_is_well);
        }
        assert!(PodForwarding::Loopback.check(address("[::ffff:127.0.0.1]:80")).is_ok());
        let why = PodForwarding::default().check(own).unwrap_err();
        assert_eq!(why, "leads to 127.0.0.1:3000, which needs `kubarium up --forward-pods loopback`");
        assert!(parse("localhost:80").unwrap_err().starts_with("is \"localhost:80\", it may be an address"));
        assert!("maybe".parse::<PodForwarding>().unwrap_err().contains("nowhere, loopback, anywhere"));
    }
}
