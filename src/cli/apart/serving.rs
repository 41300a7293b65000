//! Flags of the port at which a component in a process of its own has its pages.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use super::failed;
use crate::cli::outcome::{Failure, say};
use crate::cluster::apart::component::Apart;
use crate::cluster::apart::pages;
use apiserver::endpoints::routes::debug::{Debugging, DebuggingOptions, Verbosity};
use apiserver::server::Server;
use clock::Clock;
use pki::Identity;

/// Where the pages are.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Pages")]
pub struct PageFlags {
    /// Where healthz, livez, readyz, metrics, configz, statusz, flagz and /debug/pprof are served, over TLS;
    /// upstream's is every address.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    pub bind_address: IpAddr,
    /// At which port; 0 is none. Upstream's default of the component.
    #[arg(long, value_name = "PORT")]
    pub secure_port: Option<u16>,
    /// Whose client certificates are believed there; without, those of the kubeconfig's authority.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// What is shown.
    #[command(flatten)]
    pub serving: ServingFlags,
    /// What is shown for debugging.
    #[command(flatten)]
    pub debugging: DebuggingOptions,
}

impl PageFlags {
    /// Serves them, if they are to be served.
    pub(super) async fn serve(
        &self,
        apart: &Apart,
        (component, default_port): (&str, u16),
        verbosity: Verbosity,
        authority: &str,
    ) -> Result<Option<Server>, Failure> {
        let port = self.secure_port.unwrap_or(default_port);
        if port == 0 {
            return Ok(None);
        }
        let authority = authority_of(self.client_ca_file.as_deref(), authority)?;
        let address = SocketAddr::new(self.bind_address, port);
        let identity = match self.serving.identity()? {
            Some(identity) => identity,
            None => pages::self_signed(address, &Clock::real()).map_err(failed)?,
        };
        let delegated = apart.delegated(&authority).map_err(failed)?;
        let debugging = Debugging::new(self.debugging, Some(verbosity));
        let own = apart.own_pages(component, debugging);
        let served = pages::serve(address, identity, (delegated, &authority), own).await;
        let server = served.map_err(|why| failed(format!("--secure-port: {why}")))?;
        say(format!("Serving securely on {}.", server.address()));
        Ok(Some(server))
    }
}

/// The certificate that a port shows.
#[derive(Args, Clone, Debug)]
pub struct ServingFlags {
    /// The certificate that is shown; without, one that nobody has signed but itself.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
}

impl ServingFlags {
    /// What the files hold, if there are any.
    pub(super) fn identity(&self) -> Result<Option<Identity>, Failure> {
        let files = self.tls_cert_file.as_deref().zip(self.tls_private_key_file.as_deref());
        let Some((certificate, key)) = files else { return Ok(None) };
        Ok(Some(Identity {
            certificate_pem: read("--tls-cert-file", certificate)?,
            key_pem: read("--tls-private-key-file", key)?,
        }))
    }
}

/// What the file holds, or the kubeconfig's.
pub(super) fn authority_of(file: Option<&std::path::Path>, of_kubeconfig: &str) -> Result<String, Failure> {
    let Some(file) = file else { return Ok(of_kubeconfig.to_owned()) };
    read("--client-ca-file", file)
}

/// A file that a flag names.
pub(super) fn read(flag: &str, file: &std::path::Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| failed(format!("{flag} {}: {error}", file.display())))
}
