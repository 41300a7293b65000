//! A cluster whose objects are in an etcd (`--etcd-servers`): what goes with that, and what does not.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::config::Config;
use super::etcd_store_error::EtcdStoreError;
use apiserver::storage::options::EtcdOptions;
use apiserver::webhook::http2_tls;
use etcd_client::{EtcdClient, EtcdConfig};
use rustls::ClientConfig as TlsConfig;

/// Connects to it.
///
/// # Errors
/// What is wrong with the flags, or with the etcd, within seconds.
pub(super) async fn open(config: &Config) -> Result<EtcdClient, EtcdStoreError> {
    refuse_what_is_our_own(config)?;
    let etcd = config_of(&config.apiserver.etcd)?;
    Ok(EtcdClient::open(etcd, config.clock.clone()).await?)
}

/// What is of our own store alone is not passed over in silence.
fn refuse_what_is_our_own(config: &Config) -> Result<(), EtcdStoreError> {
    let refused = [
        (config.clock.is_stepped(), "--clock stepped", "when an etcd has told everything is not known"),
        (config.snapshot.is_some(), "--snapshot", "it would have to replace what others have there"),
        (config.recover, "--recover", "it is about the data dir"),
        (config.unsafe_no_fsync, "--unsafe-no-fsync", "it is about the data dir, and a flag of etcd, too"),
        (
            !config.etcd.listen_client_urls.is_empty(),
            "--listen-client-urls",
            "that etcd serves its API itself",
        ),
    ];
    match refused.iter().find(|(is_asked, ..)| *is_asked) {
        Some((_, flag, why)) => {
            Err(EtcdStoreError::Flag(format!("{flag} does not go with --etcd-servers: {why}; leave one out")))
        }
        None => Ok(()),
    }
}

pub(super) fn config_of(options: &EtcdOptions) -> Result<EtcdConfig, EtcdStoreError> {
    let endpoints = options.endpoints()?;
    let is_secure = endpoints.iter().any(|endpoint| endpoint.is_secure);
    let tls = if is_secure { Some(Arc::new(tls(options)?)) } else { None };
    Ok(EtcdConfig { endpoints, tls, prefix: options.root()? })
}

fn tls(options: &EtcdOptions) -> Result<TlsConfig, EtcdStoreError> {
    let authorities = options.cafile.as_deref().map(|file| read("--etcd-cafile", file)).transpose()?;
    let certificate = options.certfile.as_deref().map(|file| read("--etcd-certfile", file)).transpose()?;
    let key = options.keyfile.as_deref().map(|file| read("--etcd-keyfile", file)).transpose()?;
    Ok(http2_tls(authorities, certificate.zip(key))?)
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, EtcdStoreError> {
    fs::read(path).map_err(|error| EtcdStoreError::Flag(format!("{flag} {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Clock;

    #[tokio::test]
    async fn what_is_of_our_own_store_alone_is_refused_before_anybody_is_asked() {
        let mut config = Config::default();
        config.apiserver.etcd.servers = vec!["http://127.0.0.1:1".into()];
        let refusal = async |config: &Config| open(config).await.unwrap_err().to_string();
        let stepped = Config { clock: Clock::stepped(Default::default()), ..config.clone() };
        let recovering = Config { recover: true, ..config.clone() };
        let hasty = Config { unsafe_no_fsync: true, ..config.clone() };
        let mut serving = config.clone();
        serving.etcd.listen_client_urls = vec!["http://127.0.0.1:0".parse().unwrap()];
        for (config, flag) in [
            (stepped, "--clock stepped"),
            (recovering, "--recover"),
            (hasty, "--unsafe-no-fsync"),
            (serving, "--listen-client-urls"),
        ] {
            let said = refusal(&config).await;
            assert!(said.starts_with(&format!("{flag} does not go with --etcd-servers: ")), "{said}");
        }
        config.apiserver.etcd.servers = vec!["http://nowhere".into()];
        assert!(refusal(&config).await.starts_with("--etcd-servers http://nowhere: has no port"));
        config.apiserver.etcd.servers = vec!["https://127.0.0.1:1".into()];
        config.apiserver.etcd.cafile = Some("/nowhere".into());
        assert!(refusal(&config).await.starts_with("--etcd-cafile /nowhere: No such file"));
    }
}
