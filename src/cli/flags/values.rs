//! What flags may be: parsers whose errors say it, since "invalid digit found in string" helps nobody.

use std::path::Path;

use crate::cli::Failure;
use crate::cluster::OtlpEndpoint;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use kubelet::node_group::MAX_NODES;

golang::text_error! {
    /// What a flag cannot be; for people.
    pub struct BadFlag;
}

/// `--nodes`
pub fn nodes(text: &str) -> Result<u32, BadFlag> {
    let number = text.parse().ok().filter(|number| *number <= MAX_NODES);
    number.ok_or_else(|| format!("must be a whole number from 0 to {MAX_NODES}").into())
}

/// `--seed`
pub fn seed(text: &str) -> Result<u64, BadFlag> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX).into())
}

/// `--listen`: an address, a name that is looked up, or a port of this machine alone.
pub fn listener(text: &str) -> Result<SocketAddr, BadFlag> {
    let loopback = Ipv4Addr::LOCALHOST;
    let full = match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => format!("{loopback}:{port}"),
        Err(_) => text.to_owned(),
    };
    let found = full.to_socket_addrs().map_err(|error| {
        format!(
            "{error}; must be HOST:PORT, as 127.0.0.1:8443 or localhost:0, or a port of {loopback}, as :8443; \
             port 0 takes a free one"
        )
    })?;
    let mut found: Vec<SocketAddr> = found.collect();
    // A name of both families means the one that the default has.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "has no address".into())
}

/// Where spans go, and whom to believe that it is there: a file of certificates.
pub(crate) fn collector(
    endpoint: Option<OtlpEndpoint>,
    certificate: Option<&Path>,
) -> Result<Option<OtlpEndpoint>, Failure> {
    let (Some(endpoint), Some(file)) = (endpoint.clone(), certificate) else { return Ok(endpoint) };
    let flag = format!("--otlp-certificate {}", file.display());
    let pem = std::fs::read(file).map_err(|error| Failure::new(format!("cannot read {flag}"), error))?;
    endpoint.trusting(pem).map(Some).map_err(|why| Failure(format!("{flag}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_an_address_a_name_or_a_port() {
        for (text, expected) in [
            ("127.0.0.1:8443", "127.0.0.1:8443"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:0", "127.0.0.1:0"),
            (":8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
        ] {
            assert_eq!(listener(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "nowhere", "127.0.0.1", ":", "70000", "127.0.0.1:x"] {
            let why = listener(text).unwrap_err();
            assert!(why.contains("HOST:PORT, as 127.0.0.1:8443"), "{text}: {why}");
        }
    }
}
