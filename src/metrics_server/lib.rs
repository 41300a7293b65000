//! metrics-server, and an adapter for other metrics (as prometheus-adapter): the APIs that autoscalers and
//! `kubectl top` ask.
//!
//! Comes in: a request below `/apis/metrics.k8s.io`, `/apis/custom.metrics.k8s.io` or
//! `/apis/external.metrics.k8s.io`, which the aggregator lets through. Goes out: what the kubelets measured,
//! or what annotations and ConfigMaps say. Which objects there are it asks the apiserver, as anybody; what
//! pods and nodes use it asks a [`UsageSource`]. It must not know kubelets, nor who asks. A real one scrapes
//! kubelets every 15 seconds; here nobody works before somebody asks. Which pods there are it watches from
//! then on, and nothing else is kept between requests.

#![warn(missing_docs)]

mod answer;
mod custom;
mod external;
mod pod_cache;
mod request;
mod resource;
mod source;

use std::convert::Infallible;
use std::sync::Arc;

use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, status_response};
use apis::scheme::Scheme;
use client_go::client::Client;
use clock::Clock;
use entropy::Entropy;

use pod_cache::PodCache;
use request::MetricsRequest;

pub use source::{ContainerSample, NodeSample, PodSample, UsageSource};

/// What all three APIs are answered with.
#[derive(Clone)]
pub struct MetricsServer {
    client: Client,
    scheme: Arc<Scheme>,
    clock: Clock,
    usage: Arc<dyn UsageSource>,
    pods: Arc<PodCache>,
}

impl MetricsServer {
    /// Asks in the name of `client` which objects there are.
    pub fn new(
        client: Client,
        scheme: Arc<Scheme>,
        (clock, entropy): (Clock, Entropy),
        usage: Arc<dyn UsageSource>,
    ) -> MetricsServer {
        let pods = Arc::new(PodCache::new(client.clone(), clock.clone(), entropy));
        MetricsServer { client, scheme, clock, usage, pods }
    }

    /// As a service, for the aggregator.
    pub fn service(self) -> ApiService {
        ApiService::new(tower::service_fn(move |request: ApiRequest| {
            let server = self.clone();
            let request = MetricsRequest::of(&request);
            async move { Ok::<_, Infallible>(server.answer(&request).await) }
        }))
    }

    async fn answer(&self, request: &MetricsRequest) -> ApiResponse {
        let answered = match request.group() {
            "metrics.k8s.io" => self.resource_metrics(request).await,
            "custom.metrics.k8s.io" => self.custom_metrics(request).await,
            "external.metrics.k8s.io" => self.external_metrics(request).await,
            _ => Err(Status::path_not_found()),
        };
        answered.unwrap_or_else(|status| status_response(status, false))
    }
}
