//! How the apiserver reaches kubelets in other processes (`kubeoptions.KubeletConnectionInfo`,
//! `client.KubeletClientConfig`).

use std::path::PathBuf;
use std::time::Duration;

use apimachinery::duration::parse_period;
use clap::Args;

/// Which of a Node's addresses is taken, when nobody says it: upstream's order.
const ADDRESS_TYPES: &str = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP";

/// What is said of kubelets that are elsewhere.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Kubelets elsewhere")]
pub struct KubeletClientOptions {
    /// Path to a client cert file for TLS; without, one of the cluster's own authority is made.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    pub kubelet_client_certificate: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    pub kubelet_client_key: Option<PathBuf>,
    /// Who has signed the kubelets' certificates; without, they are believed whatever they show.
    #[arg(long, value_name = "FILE")]
    pub kubelet_certificate_authority: Option<PathBuf>,
    /// Which of a Node's addresses is asked: the first of these types that it has.
    #[arg(long, value_name = "TYPE", value_delimiter = ',', default_value = ADDRESS_TYPES,
        value_parser = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"])]
    pub kubelet_preferred_address_types: Vec<String>,
    /// So long a kubelet may take to begin to answer.
    #[arg(long, default_value = "5s", value_parser = parse_period)]
    pub kubelet_timeout: Duration,
}

/// A file that cannot be read. The text names its flag.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KubeletFileError(pub String);

/// A certificate and its key, PEM.
type KubeletClientPem = (Vec<u8>, Vec<u8>);

impl KubeletClientOptions {
    /// What the files of the client hold; nothing without them.
    ///
    /// # Errors
    /// Which cannot be read, and why.
    pub fn identity(&self) -> Result<Option<KubeletClientPem>, KubeletFileError> {
        let (Some(certificate), Some(key)) = (&self.kubelet_client_certificate, &self.kubelet_client_key)
        else {
            return Ok(None);
        };
        Ok(Some((read("--kubelet-client-certificate", certificate)?, read("--kubelet-client-key", key)?)))
    }

    /// Whom kubelets must be signed by; nothing when anybody will do.
    ///
    /// # Errors
    /// As [`KubeletClientOptions::identity`].
    pub fn authority(&self) -> Result<Option<Vec<u8>>, KubeletFileError> {
        let file = self.kubelet_certificate_authority.as_ref();
        file.map(|file| read("--kubelet-certificate-authority", file)).transpose()
    }
}

fn read(flag: &str, path: &PathBuf) -> Result<Vec<u8>, KubeletFileError> {
    std::fs::read(path).map_err(|error| KubeletFileError(format!("{flag} {}: {error}", path.display())))
}
