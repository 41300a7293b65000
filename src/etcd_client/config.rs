//! Where etcd is, and how it is spoken to (`storagebackend.TransportConfig`).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::ClientConfig as TlsConfig;

/// What Kubernetes' keys begin with, unless `--etcd-prefix` says another word.
pub const DEFAULT_PREFIX: &str = "/registry";

/// What is to be known of an etcd.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// Its members, or some of them; the first that answers is spoken to, until it fails.
    pub endpoints: Vec<EtcdEndpoint>,
    /// Whom to trust and what to show, for `https` endpoints.
    pub tls: Option<Arc<TlsConfig>>,
    /// `--etcd-prefix`: what stands in etcd for [`DEFAULT_PREFIX`].
    pub prefix: String,
}

/// A member's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdEndpoint {
    /// `https`
    pub is_secure: bool,
    /// A name or an address, as in the URL.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl EtcdEndpoint {
    /// As `host:port`, as Go joins them.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The host without the brackets of an IPv6 address.
    pub fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl FromStr for EtcdEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<EtcdEndpoint, String> {
        const FORM: &str = "must be as http://127.0.0.1:2379 or https://HOST:2379";
        let (is_secure, rest) = match text.split_once("://") {
            None => (false, text),
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => return Err(format!("{text}: {scheme}:// is not spoken; {FORM}")),
        };
        let (host, port) = rest.trim_end_matches('/').rsplit_once(':').unwrap_or((rest, ""));
        let port = port.parse().map_err(|_| format!("{text}: has no port; {FORM}"))?;
        let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
        if !is_host(host) {
            return Err(format!("{text}: has no host; {FORM}"));
        }
        Ok(EtcdEndpoint { is_secure, host: host.to_owned(), port })
    }
}

impl fmt::Display for EtcdEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", if self.is_secure { "https" } else { "http" }, self.host, self.port)
    }
}
