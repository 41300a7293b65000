//! What a [`Config`] says of who looks at the cluster: the record, the page, spans, steps.

use std::net::SocketAddr;

use super::config::Config;
use super::otlp_endpoint::OtlpEndpoint;

impl Config {
    /// Says where spans are sent of what happens.
    #[must_use]
    pub fn otlp_endpoint(self, endpoint: OtlpEndpoint) -> Config {
        Config { otlp_endpoint: Some(endpoint), ..self }
    }

    /// Says whether it is held between two steps from when it is ready (`kubarium step`).
    #[must_use]
    pub fn step(self, step: bool) -> Config {
        Config { step, ..self }
    }

    /// Says where the page listens that shows the cluster, once [`super::Cluster::open_page`] opens it.
    #[must_use]
    pub fn ui_listen(self, ui_listen: SocketAddr) -> Config {
        Config { ui_listen, ..self }
    }

    /// Says whether headers and bodies of writes are kept, also while nobody asks for them
    /// (`kubarium trace --bodies`).
    #[must_use]
    pub fn keep_bodies(self, keep_bodies: bool) -> Config {
        Config { keep_bodies, ..self }
    }

    /// Says whether the flow record is kept.
    #[must_use]
    pub fn flow(self, flow: bool) -> Config {
        Config { flow, ..self }
    }
}
