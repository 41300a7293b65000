//! The flags of etcd that say who may connect and how (`embed.Config`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};

/// Where etcd's API is served, and to whom.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "APIs")]
pub struct ListenOptions {
    /// Serve etcd's API v3 (gRPC) at these URLs, for etcdctl and other clients of etcd: as
    /// http://127.0.0.1:2379 or https://HOST:PORT.
    ///
    /// A client reads and writes everything, Secrets too, past all rules of the apiserver. Without TLS it is
    /// served on loopback alone; elsewhere clients must show certificates (--client-cert-auth). Under the
    /// name etcd, as test suites start it, 0.0.0.0 is 127.0.0.1 then.
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    pub listen_client_urls: Vec<ClientUrl>,
    /// What etcd's API is served with.
    #[command(flatten)]
    pub tls: TlsOptions,
}

impl ListenOptions {
    /// Whether everybody who reaches the machine gets in there.
    pub fn is_exposed(&self, url: &ClientUrl) -> bool {
        !url.address.ip().is_loopback() && !self.tls.is_safe(url)
    }

    /// Listens on loopback alone where it would be at all addresses, and exposed.
    pub fn keep_to_loopback(&mut self) {
        let tls = &self.tls;
        for url in &mut self.listen_client_urls {
            match url.address.ip() {
                ip if !ip.is_unspecified() || tls.is_safe(url) => {}
                IpAddr::V4(_) => url.address.set_ip(Ipv4Addr::LOCALHOST.into()),
                IpAddr::V6(_) => url.address.set_ip(Ipv6Addr::LOCALHOST.into()),
            }
        }
    }
}

/// The certificates of etcd's API.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "APIs")]
pub struct TlsOptions {
    /// The certificate that clients of etcd's API are shown, PEM.
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub cert_file: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    pub key_file: Option<PathBuf>,
    /// Who signs the certificates of clients of etcd's API, PEM; clients must show one then.
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    pub trusted_ca_file: Option<PathBuf>,
    /// Let in only clients of etcd's API with a certificate that --trusted-ca-file signs.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", requires = "trusted_ca_file")]
    pub client_cert_auth: bool,
}

impl TlsOptions {
    /// Whether nobody gets in there without a certificate.
    fn is_safe(&self, url: &ClientUrl) -> bool {
        url.is_secure && self.demands_certificates()
    }

    /// Whether clients must show a certificate: as in etcd, an authority alone asks for that, too.
    pub fn demands_certificates(&self) -> bool {
        self.trusted_ca_file.is_some()
    }
}

/// Where to listen for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientUrl {
    /// `https`
    pub is_secure: bool,
    /// The host, looked up, and the port.
    pub address: SocketAddr,
}

impl FromStr for ClientUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ClientUrl, String> {
        let (is_secure, rest) = match text.split_once("://") {
            None => (false, text),
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => return Err(format!("{scheme}:// is not served: http:// and https:// are")),
        };
        let found = rest.trim_end_matches('/').to_socket_addrs();
        let mut found: Vec<SocketAddr> = found
            .map_err(|error| format!("{error}; must be a URL, as http://127.0.0.1:2379, or HOST:PORT"))?
            .collect();
        // `localhost` means the family that clients try first.
        found.sort_by_key(SocketAddr::is_ipv6);
        let address = *found.first().ok_or("has no address")?;
        Ok(ClientUrl { is_secure, address })
    }
}

impl fmt::Display for ClientUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_secure { "https" } else { "http" }, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_loopback_unless_clients_show_certificates() {
        let kept = |text: &str, authority: Option<&str>| {
            let tls = TlsOptions { trusted_ca_file: authority.map(PathBuf::from), ..TlsOptions::default() };
            let mut listen = ListenOptions { listen_client_urls: vec![text.parse().unwrap()], tls };
            listen.keep_to_loopback();
            let url = listen.listen_client_urls[0];
            (url.to_string(), listen.is_exposed(&url))
        };
        for (text, authority, expected, is_exposed) in [
            ("http://0.0.0.0:1", None, "http://127.0.0.1:1", false),
            ("http://[::]:1", None, "http://[::1]:1", false),
            ("http://0.0.0.0:1", Some("ca"), "http://127.0.0.1:1", false),
            ("https://0.0.0.0:1", None, "https://127.0.0.1:1", false),
            ("https://0.0.0.0:1", Some("ca"), "https://0.0.0.0:1", false),
            ("http://10.0.0.1:1", None, "http://10.0.0.1:1", true),
        ] {
            assert_eq!(kept(text, authority), (expected.to_owned(), is_exposed), "{text} {authority:?}");
        }
    }

    #[test]
    fn a_url_is_a_scheme_a_host_and_a_port() {
        for (text, expected) in [
            ("http://127.0.0.1:2379", "http://127.0.0.1:2379"),
            ("https://0.0.0.0:1/", "https://0.0.0.0:1"),
            ("127.0.0.1:2379", "http://127.0.0.1:2379"),
            ("http://localhost:2379", "http://127.0.0.1:2379"),
            ("http://[::1]:2379", "http://[::1]:2379"),
        ] {
            assert_eq!(text.parse::<ClientUrl>().unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "http://", "127.0.0.1", "unix://socket:0", "http://127.0.0.1:x"] {
            assert!(text.parse::<ClientUrl>().is_err(), "{text}");
        }
    }
}
