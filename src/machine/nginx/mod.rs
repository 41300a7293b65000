//! nginx: what its configuration says is answered, as far as its core modules go.

mod answer;
mod config;
mod exchange;
mod files;
mod log;
mod patterns;
mod proxy;
mod rewrite;
mod rewriting;
mod scope;
mod syntax;
mod template;
#[cfg(test)]
mod tests;
mod variables;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use config::NginxConfig;

use crate::surroundings::Surroundings;

/// What images bring themselves, by their port: each connection asks who listens, and must not read it anew.
static OF_IMAGES: LazyLock<[(i64, Arc<NginxConfig>); 2]> =
    LazyLock::new(|| [80, 8080].map(|port| (port, Arc::new(NginxConfig::read(None, port)))));

/// An nginx with what it has read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NginxSite {
    config: Arc<NginxConfig>,
    version: String,
}

impl NginxSite {
    /// As a container's files configure it; nothing of them is known where nobody has looked.
    pub(crate) fn read(around: Option<&Surroundings>, version: String, image_port: i64) -> NginxSite {
        NginxSite { config: Arc::new(NginxConfig::read(around, image_port)), version }
    }

    /// As its image configures it.
    pub(crate) fn of_image(version: String, image_port: i64) -> NginxSite {
        let own = OF_IMAGES.iter().find(|(port, _)| *port == image_port);
        let config =
            own.map_or_else(|| Arc::new(NginxConfig::read(None, image_port)), |(_, own)| own.clone());
        NginxSite { config, version }
    }

    /// Where it listens, with the files of its certificate and key where it speaks TLS.
    pub(crate) fn ports(&self) -> BTreeMap<i64, Option<(&str, &str)>> {
        let listens = self.config.hosts.iter().flat_map(|host| {
            host.listens.iter().map(move |listen| {
                let files = listen.is_tls.then_some((host.certificate.as_str(), host.key.as_str()));
                (listen.port, files)
            })
        });
        listens.collect()
    }

    /// What it says of its configuration when it starts.
    pub(crate) fn problems(&self) -> &[String] {
        &self.config.problems
    }
}
