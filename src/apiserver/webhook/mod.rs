//! The one HTTP client to the outside (`k8s.io/apiserver/pkg/util/webhook`): admission, conversion,
//! authentication, authorization, audit and aggregation go through it.
//!
//! In comes where somebody is to be asked (a URL, or a Service of this cluster), whom to trust and who we
//! are; then trees to send. Out go trees, or a [`CallError`] in upstream's words. It must not know what is
//! asked: no review, no object, no policy of failure.
//!
//! Pods have no address that the machine knows: a [`PodDialer`] that is handed in late reaches them.

mod config;
mod kubeconfig;

mod client;

mod redirects;

mod service_resolver;

mod pod_network;

mod connector;
mod lanes;
mod line;
mod tls;
mod transport;

mod errors;

mod answers;

mod upgraded;

pub use answers::Answers;
pub use client::{FIRST_PAUSE, WebhookClient};
pub use config::{ClientConfig, NoTarget, ServiceReference, WebhookTarget};
pub use errors::CallError;
pub use kubeconfig::KubeconfigError;
pub use lanes::Lanes;
pub use line::Reached;
pub use pod_network::{PodDialer, PodNetwork};
pub use redirects::Journey;
pub use service_resolver::ServiceResolver;
pub use tls::{TlsFilesError, http2_tls};
pub use transport::Transport;
pub use upgraded::go_on;
