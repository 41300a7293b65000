//! Programs that ask the apiserver as their pod's own account.

use std::net::SocketAddr;

use crate::interpreter::player::Player;
use crate::questions::{CONNECT_TIMEOUT, HttpQuestion, NetworkAsk, Question, TlsTrust};

/// Where a pod has its own account's token.
pub(super) const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Why there is no apiserver to be asked.
pub(super) const WHY_NONE: &str = "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and \
    KUBERNETES_SERVICE_PORT must be defined";

/// The header that says who asks; nothing where there is no account.
pub(super) fn authorization(player: &Player<'_>) -> Option<String> {
    let token = player.file(&format!("{ACCOUNT}/token"))?.text();
    Some(format!("Bearer {}", token.trim()))
}

/// What asks the apiserver for `target`; nothing where there is no account, or no apiserver.
pub(super) fn question(player: &Player<'_>, target: &str) -> Option<Question> {
    let host: std::net::IpAddr = player.variables.get("KUBERNETES_SERVICE_HOST")?.parse().ok()?;
    let port = player.variables.get("KUBERNETES_SERVICE_PORT")?.parse().ok()?;
    to(player, (SocketAddr::new(host, port), &host.to_string()), target)
}

/// [`question`], to somebody by his name.
pub(super) fn to(player: &Player<'_>, (to, name): (SocketAddr, &str), target: &str) -> Option<Question> {
    let authorities = player.file(&format!("{ACCOUNT}/ca.crt"))?.text();
    let http = HttpQuestion {
        to: Some(to),
        method: "GET".into(),
        target: target.to_owned(),
        headers: vec![("Host".into(), to.to_string()), ("Authorization".into(), authorization(player)?)],
        body: vec![],
        tls: Some(TlsTrust { server_name: name.to_owned(), authorities, ..TlsTrust::default() }),
        ..HttpQuestion::default()
    };
    Some(Question { what: NetworkAsk::Http(Box::new(http)), within: CONNECT_TIMEOUT })
}
