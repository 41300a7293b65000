//! Ports of components that run beside the apiserver, where the components of other clusters have them
//! (`--secure-port`).

use std::net::{Ipv4Addr, SocketAddr};
use std::num::ParseIntError;

use clap::Args;

/// Where components have pages of their own: `healthz`, `livez` and `readyz` for everybody, `metrics` and
/// `configz` for whom the apiserver lets read them. A fork has none.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[command(next_help_heading = "What runs")]
pub struct ComponentPorts {
    /// Where kube-controller-manager has its pages, over TLS, at 127.0.0.1; upstream's port is 10257.
    #[arg(long, value_name = "PORT", value_parser = loopback)]
    pub controller_manager_secure_port: Option<SocketAddr>,
    /// Where kube-scheduler has its pages, over TLS, at 127.0.0.1; upstream's port is 10259.
    #[arg(long, value_name = "PORT", value_parser = loopback)]
    pub scheduler_secure_port: Option<SocketAddr>,
}

/// A port of this machine alone; 0 takes a free one.
fn loopback(text: &str) -> Result<SocketAddr, ParseIntError> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, text.parse()?)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        ports: ComponentPorts,
    }

    #[test]
    fn components_have_ports_when_they_are_asked_for() {
        let ports = |arguments: &[&str]| {
            Only::try_parse_from(["up"].iter().chain(arguments)).map(|parsed| parsed.ports)
        };
        assert_eq!(ports(&[]).unwrap(), ComponentPorts::default());
        let at = |port: u16| Some(SocketAddr::from(([127, 0, 0, 1], port)));
        let both = ports(&["--scheduler-secure-port=10259", "--controller-manager-secure-port=0"]).unwrap();
        assert_eq!((both.controller_manager_secure_port, both.scheduler_secure_port), (at(0), at(10259)));
        assert!(ports(&["--scheduler-secure-port=65536"]).is_err());
    }
}
