//! The handler chain: the filters that every request passes, in order (`server.DefaultBuildHandlerChain`).
//! Next: src/apiserver/filters/mod.rs

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state as with};
use tower::{ServiceBuilder, service_fn};

use super::admission::Admission;
use super::audit;
use super::authentication::Authenticators;
use super::authentication::token_file::StaticTokens;
use super::authorization::Authorizers;
use super::authorization::rbac::Rbac;
use super::config::ApiserverConfig;
use super::endpoints::{Endpoints, installer};
use super::filters::authentication::authenticate;
use super::filters::authorization::authorize;
use super::filters::impersonation::impersonate;
use super::filters::max_in_flight::{InFlight, MAX_MUTATING_REQUESTS, MAX_REQUESTS, limit_in_flight};
use super::filters::metrics::measure;
use super::filters::panic_recovery::recover_from_panic;
use super::filters::request_info::resolve_request_info;
use super::filters::timeout::limit_time;
use super::flow_record::{record_authenticated, record_authorized, record_request};
use super::metrics::Metrics;
use crate::apimachinery::wire::{ApiRequest, ApiService};

/// The apiserver of one cluster.
pub struct Apiserver;

impl Apiserver {
    /// Builds the one service that sockets, components and tests call. What it started ends when the last
    /// clone of the service is dropped. Needs a tokio runtime.
    #[expect(clippy::new_ret_no_self, reason = "the service is all that there is of it")]
    pub fn new(config: ApiserverConfig) -> ApiService {
        let ApiserverConfig { scheme, registry, clock, entropy, .. } = config;
        let authenticators = Arc::new(Authenticators::new(StaticTokens::new(config.static_tokens)));
        let authorizers = Arc::new(Authorizers::new(Rbac::start(&registry, &scheme, &clock)));
        let in_flight = Arc::new(InFlight::new(MAX_REQUESTS, MAX_MUTATING_REQUESTS));
        let metrics = Arc::new(Metrics::new(clock.clone()));
        let endpoints = Arc::new(Endpoints {
            admission: Admission::new(&registry, &scheme, &clock, &entropy),
            scheme,
            registry,
            schemas: config.schemas,
            clock: clock.clone(),
            entropy: entropy.clone(),
            kubelets: config.kubelets,
            version: config.version,
            flow: config.flow.clone(),
            metrics: metrics.clone(),
            health: config.health,
            openapi: Default::default(),
        });
        let chain = ServiceBuilder::new()
            // Around everything: whatever panics below becomes a 500 of this one request.
            .layer(from_fn(recover_from_panic))
            // Before all that asks what the request is about, which is nearly everything.
            .layer(from_fn(resolve_request_info))
            // Outside of what refuses, so that refusals are told of too; only writes are.
            .layer(with(config.flow.clone(), record_request))
            // Outside of what refuses, so that refusals have an id and are not cached either.
            .layer(with(entropy, audit::identify))
            // Outside of what refuses, so that refusals are counted.
            .layer(with(metrics, measure))
            // Outside of what waits. It must know the request: watches have no limit.
            .layer(with(clock, limit_time))
            // Before everything that asks who it is.
            .layer(with(authenticators, authenticate))
            .layer(with(config.flow.clone(), record_authenticated))
            // Behind authentication, which says who asks to be somebody else; what follows sees only the
            // other.
            .layer(with(authorizers.clone(), impersonate))
            // Before authorization, which costs something; behind authentication, because some are exempt.
            .layer(with(in_flight, limit_in_flight))
            // Last: everything below may rely on the request being allowed.
            .layer(with(authorizers, authorize))
            .layer(with(config.flow.clone(), record_authorized))
            .service(service_fn(move |request: ApiRequest| {
                let endpoints = endpoints.clone();
                async move { Ok(installer::serve(endpoints, request).await) }
            }));
        ApiService::new(chain)
    }
}
