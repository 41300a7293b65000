//! The handler chain: the filters that every request passes, in order (`server.DefaultBuildHandlerChain`).
//! Next: src/apiserver/filters/mod.rs

use std::sync::Arc;

use tower::ServiceBuilder;

use super::admission::{self, Admission};
use super::aggregator::Aggregator;
use super::audit::Audit;
use super::authentication::Authenticators;
use super::authorization;
use super::authorization::metrics::AuthorizationMetrics;
use super::authorization::rbac::Rbac;
use super::authorizer::{Authorizer, AuthorizerReply, Decision};
use super::config::{ApiserverConfig, ConfigError};
use super::crd_handler::{CrdHandler, DefinitionsSynced};
use super::endpoints::handlers::long_work::LongWork;
use super::endpoints::routes::healthz::{HealthCheck, at_once};
use super::endpoints::routes::openapi_documents::OpenApi;
use super::endpoints::routes::zpages::ZPages;
use super::endpoints::{EndpointContext, installer};
use super::filters::audit::audit as tell;
use super::filters::audit_init::identify;
use super::filters::authentication::authenticate;
use super::filters::authorization::{Authorization, authorize};
use super::filters::browsers::BrowserConfig;
use super::filters::chain::{Chain, endpoint, from_fn, from_fn_with_state as with};
use super::filters::cors::allow_origins;
use super::filters::flow_record::{record_authenticated, record_authorized, record_request};
use super::filters::hsts::demand_tls;
use super::filters::impersonation::{Impersonation, impersonate};
use super::filters::interceptor::{Interceptor, InterceptorLayer};
use super::filters::metrics::measure;
use super::filters::panic_recovery::recover_from_panic;
use super::filters::passed::Passed;
use super::filters::priority_and_fairness::prioritize;
use super::filters::request_info::resolve_request_info;
use super::filters::retry_after::send_elsewhere;
use super::filters::stepping::{Holds, OutlivesClient, hold_request};
use super::filters::timeout::limit_time;
use super::filters::traffic::count_traffic;
use super::filters::web_pages::keep_pages_out;
use super::flow_control::FlowControl;
use super::metrics::{Metrics, Render};
use super::post_start_hooks::{HookSurroundings, StartStep, finished};
use super::request::RequestInfo;
use super::shutdown::Shutdown;
use super::traffic::Traffic;
use super::webhook::ServiceResolver;
use apimachinery::feature_gates::{CONSTRAINED_IMPERSONATION, FeatureGates, INITIALIZERS};
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiService;
use apis::historical::INITIALIZER_CONFIGURATIONS;
use apis::scheme::Scheme;

/// Builds the apiserver of one cluster: the one service that sockets, components and tests call. What it
/// started ends when the last clone of the service is dropped. Needs a tokio runtime.
///
/// # Errors
/// Flags or files that make no server.
pub fn build_handler_chain(config: ApiserverConfig) -> Result<ApiService, ConfigError> {
    let rbac = Rbac::start(&config.registry, &config.scheme, &config.clock);
    let decisions = Arc::default();
    let authorizer = authorizer(&config, &rbac, &decisions)?;
    refuse_to_be_open(&config, &authorizer)?;
    config.registry.set_authorizer(Arc::downgrade(&authorizer));
    let initializers = serve_initializers(&config.feature_gates, &config.scheme);
    let admission = Arc::new(admission(&config, &authorizer, &rbac)?);
    let filters = Filters::new(&config, &authorizer, decisions, &admission);
    let ApiserverConfig { scheme, registry, clock, entropy, post_start_hooks, .. } = config;
    let reviews = config.authentication.reviews(&clock);
    let openapi = OpenApi::new(&scheme, &config.schemas, &clock, &config.version.git_version);
    let flow_control = Arc::new(FlowControl::new(config.flow_control, &registry, &scheme, &clock));
    let long_work = LongWork::new(clock.clone());
    let crds = CrdHandler::start(&registry, &scheme, &clock, &entropy, &config.pods);
    let definitions = crds.synced();
    post_start_hooks.follow_definitions(definitions.clone());
    let surroundings = HookSurroundings {
        priority_and_fairness: config.flow_control.priority_and_fairness,
        proxy_certificate: config.proxy_identity.0.is_some(),
        roles: roles_are_known(rbac.clone()),
        definitions: definitions_are_known(definitions.clone()),
    };
    let health = config.health.with_readiness("informer-sync", all_are_known(rbac, definitions));
    let health = post_start_hooks.add_to(health, &surroundings);
    let endpoints = Arc::new(EndpointContext {
        aggregator: Aggregator::new(
            &registry,
            &scheme,
            ServiceResolver::new(&registry, &entropy).over(&config.pods),
            config.proxy_identity,
            config.in_process,
            &clock,
        ),
        authorizer: authorizer.clone(),
        crds,
        admission,
        scheme,
        registry,
        reviews: reviews.into_iter().chain(authorization::reviews::all(&authorizer)).collect(),
        schemas: config.schemas,
        clock,
        entropy,
        kubelets: config.kubelets,
        token_issuer: config.authentication.issuer,
        token_discovery: config.authentication.discovery,
        zpages: ZPages::new(&config.feature_gates, config.flags),
        debugging: config.debugging.begin(),
        version: config.version,
        flow: config.flow,
        flow_control,
        long_work,
        bodies: Default::default(),
        metrics: filters.metrics.clone(),
        health: health.with_readiness("shutdown", goes_on(config.shutdown.1)),
        initializers,
        openapi,
        beside: config.beside,
    });
    post_start_hooks.reach(StartStep::HandlersBuilt);
    Ok(filters.around(endpoints))
}

/// The filters that know or count something.
struct Filters {
    authenticators: Arc<Authenticators>,
    audit: Option<Arc<Audit>>,
    impersonation: Arc<Impersonation>,
    authorization: Authorization,
    metrics: Arc<Metrics>,
    /// Where new requests are refused while it ends.
    shutdown: Option<Shutdown>,
    browsers: BrowserConfig,
    witness: Option<Arc<dyn Interceptor>>,
    interceptor: Option<Arc<dyn Interceptor>>,
    traffic: Traffic,
}

impl Filters {
    fn new(
        config: &ApiserverConfig,
        authorizer: &Arc<dyn Authorizer>,
        decisions: Arc<AuthorizationMetrics>,
        admission: &Arc<Admission>,
    ) -> Filters {
        let ApiserverConfig { registry, clock, entropy, .. } = config;
        let authenticators = config.authentication.authenticators.clone();
        let audit = config.audit.start(registry, clock, entropy).map(Arc::new);
        let is_constrained = config.feature_gates.enabled(CONSTRAINED_IMPERSONATION);
        let impersonation = Arc::new(Impersonation::new(authorizer.clone(), clock, is_constrained));
        let authorization =
            Authorization { authorizer: authorizer.clone(), clock: clock.clone(), metrics: decisions };
        let mut others: Vec<Arc<dyn Render>> = vec![admission.clone()];
        others.extend(audit.clone().map(|audit| audit as Arc<dyn Render>));
        others.push(impersonation.clone());
        others.push(authorization.metrics.clone());
        others.push(authenticators.clone());
        let metrics = Arc::new(Metrics::new(clock.clone(), others));
        let (ending, shutdown) = &config.shutdown;
        let shutdown = ending.sends_retry_after.then(|| shutdown.clone());
        let browsers = config.browsers.clone();
        let witness = config.witness.clone();
        let interceptor = config.interceptor.clone();
        let traffic = config.traffic.clone();
        Filters {
            authenticators,
            audit,
            impersonation,
            authorization,
            metrics,
            shutdown,
            browsers,
            witness,
            interceptor,
            traffic,
        }
    }

    /// In the order in which a request meets them.
    fn around(self, endpoints: Arc<EndpointContext>) -> ApiService {
        let flow = endpoints.flow.clone();
        let clock = endpoints.clock.clone();
        let (stepped, steps) = (flow.clone(), clock.clone());
        let chain = ServiceBuilder::new()
            // Around everything: whatever panics below becomes a 500 of this one request.
            .layer(from_fn(recover_from_panic))
            // Before all that asks what the request is about, which is nearly everything.
            .layer(from_fn(resolve_request_info))
            // Outside of what refuses, so that refusals are told of too; of reads only those are.
            .layer(with((flow.clone(), clock.clone()), record_request))
            // Outside of all that waits or costs something: a server that ends has no time for it.
            .layer(with(self.shutdown, send_elsewhere))
            // Outside of what refuses: browsers are told whatever the answer is.
            .layer(with(self.browsers.strict_transport_security, demand_tls))
            // Outside of what refuses, so that refusals have an id and are not cached either.
            .layer(with(endpoints.entropy.clone(), identify))
            // Outside of what refuses, so that refusals are counted.
            .layer(with(self.metrics, measure))
            // Outside of what waits. It must know the request: watches have no limit.
            .layer(with((clock, self.audit.clone(), Holds(flow.clone())), limit_time))
            // Before everything that asks who it is: a page says nothing of that. In front of what tells
            // pages that they may ask.
            .layer(with(self.browsers.allowed_origins.clone(), keep_pages_out))
            // Before everything that asks who it is: a browser asks without credentials whether it may ask.
            .layer(with(self.browsers.allowed_origins, allow_origins))
            // Before everything that asks who it is.
            .layer(with((self.authenticators, self.audit.clone()), authenticate))
            .layer(with(flow.clone(), record_authenticated))
            // Behind authentication, which says who asks; outside of all else that refuses.
            .layer(with(self.audit, tell))
            // Behind authentication, which says who asks to be somebody else; what follows sees only the
            // other.
            .layer(with(self.impersonation, impersonate))
            // Behind impersonation, for it tells who acts; outside of all else that refuses.
            .layer(InterceptorLayer(self.witness))
            // Behind impersonation, which says in whose name it is done; in front of what waits.
            .layer(with(self.traffic, count_traffic))
            // Behind what counts who asks; in front of the limits, so that who is held takes nobody's place.
            .layer(with(flow.clone(), hold_request))
            // Before authorization, which costs something; behind authentication, because some are exempt.
            .layer(with(endpoints.flow_control.clone(), prioritize))
            // Last: everything below may rely on the request being allowed.
            .layer(with(self.authorization, authorize))
            .layer(with(flow, record_authorized))
            // What goes wrong on purpose goes wrong with requests that would have been served.
            .layer(InterceptorLayer(self.interceptor))
            .service(endpoint(move |Passed { request, ctx, .. }: Passed| {
                installer::serve(endpoints.clone(), request, ctx)
            }));
        ApiService::new(OutlivesClient { chain: Chain::new(chain), flow: stepped, clock: steps })
    }
}

/// The kind of the initializers is there only with their feature; says whether it is.
fn serve_initializers(gates: &FeatureGates, scheme: &Scheme) -> bool {
    let enabled = gates.enabled(INITIALIZERS);
    if enabled {
        scheme.register(Arc::clone(&INITIALIZER_CONFIGURATIONS));
    }
    enabled
}

/// All authorizers behind one face: filters, admission and reviews ask it.
fn authorizer(
    config: &ApiserverConfig,
    rbac: &Arc<Rbac>,
    metrics: &Arc<AuthorizationMetrics>,
) -> Result<Arc<dyn Authorizer>, ConfigError> {
    let ApiserverConfig { registry, scheme, clock, entropy, .. } = config;
    let resolver = ServiceResolver::new(registry, entropy);
    let initializer =
        authorization::AuthorizerInitializer { registry, scheme, resolver: &resolver, clock, metrics };
    let started = authorization::start(&config.authorization, rbac, initializer);
    started.map_err(|why| ConfigError(why.into()))
}

/// Whoever listens where strangers come may not let those do everything who say nothing of themselves: as far
/// as that is known before there is any role.
fn refuse_to_be_open(config: &ApiserverConfig, authorizer: &Arc<dyn Authorizer>) -> Result<(), ConfigError> {
    let Some(address) = config.exposed.filter(|_| config.authentication.authenticators.admits_anybody())
    else {
        return Ok(());
    };
    let everything = RequestInfo {
        is_resource_request: true,
        verb: "create".into(),
        group: "rbac.authorization.k8s.io".into(),
        version: "v1".into(),
        resource: "clusterrolebindings".into(),
        ..RequestInfo::default()
    };
    let anonymous = UserInfo::anonymous();
    match authorizer.authorize(&anonymous, &everything) {
        AuthorizerReply::Now(Decision::Allow(allowed)) => Err(ConfigError(format!(
            "--listen {address} lets everybody in: requests without credentials are system:anonymous, who may \
             do everything ({}); give --anonymous-auth=false or take that away, or use 127.0.0.1",
            allowed.by
        ))),
        _ => Ok(()),
    }
}

/// The plugins that are enabled.
fn admission(
    config: &ApiserverConfig,
    authorizer: &Arc<dyn Authorizer>,
    rbac: &Arc<Rbac>,
) -> Result<Admission, ConfigError> {
    let with = admission::Initializer {
        registry: &config.registry,
        scheme: &config.scheme,
        clock: &config.clock,
        entropy: &config.entropy,
        pods: &config.pods,
        authorizer: authorizer.clone(),
        rbac: rbac.clone(),
        config: &config.admission,
        gates: &config.feature_gates,
        metrics: Arc::default(),
    };
    Admission::new(&with, &config.own_admission).map_err(|why| ConfigError(why.into()))
}

/// Ready is who does not end (`addReadyzShutdownCheck`).
fn goes_on(shutdown: Shutdown) -> HealthCheck {
    at_once(move || if shutdown.has_begun() { Err("process is shutting down".into()) } else { Ok(()) })
}

/// Ready is who may say what its own components may do.
fn roles_are_known(rbac: Arc<Rbac>) -> HealthCheck {
    at_once(move || finished(rbac.knows_bootstrap_roles()))
}

/// Ready is who serves the custom kinds that there were before.
fn definitions_are_known(definitions: DefinitionsSynced) -> HealthCheck {
    at_once(move || finished(definitions.is_so()))
}

/// The server's own informers follow roles and definitions.
fn all_are_known(rbac: Arc<Rbac>, definitions: DefinitionsSynced) -> HealthCheck {
    at_once(move || finished(rbac.knows_bootstrap_roles() && definitions.is_so()))
}
