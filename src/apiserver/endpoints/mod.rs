//! The endpoints: what answers a request that the filters let through (`k8s.io/apiserver/pkg/endpoints`).
//!
//! In comes a request; out goes an answer in the form that the client can read. Between them: which kind and
//! verb (`installer`), what the verb does (`handlers`, `subresources`), how that is written (`response`); or
//! a path that is no resource (`routes`). They must not know who authenticated the user, how objects are
//! stored, or any kind by name, apart from the subresources that only one kind has.

pub mod installer;

pub mod handlers;
pub(crate) mod subresources;

pub mod response;

pub mod routes;

pub mod query;

use std::sync::Arc;

use crate::admission::Admission;
use crate::aggregator::Aggregator;
use crate::authentication::config::Discovery;
use crate::authentication::service_account::issuer::TokenIssuer;
use crate::authorizer::Authorizer;
use crate::beside::Beside;
use crate::crd_handler::CrdHandler;
use crate::flow_control::FlowControl;
use crate::kubelet_client::KubeletLookup;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::registry::rest::Review;
use apimachinery::schema::Schemas;
use apis::scheme::Scheme;
use clock::Clock;
use entropy::Entropy;
use flow::Flow;
use handlers::body_budget::BodyBudget;
use handlers::long_work::LongWork;
use routes::debug::Debugging;
use routes::healthz::HealthChecks;
use routes::openapi_documents::OpenApi;
use routes::version::VersionInfo;
use routes::zpages::ZPages;

/// What the endpoints work with.
pub struct EndpointContext {
    /// The kinds that are served.
    pub scheme: Arc<Scheme>,
    /// Reads and writes objects.
    pub registry: Registry,
    /// Groups of other servers.
    pub aggregator: Aggregator,
    /// Fills in and refuses.
    pub admission: Arc<Admission>,
    /// Kinds that are answered and never kept.
    pub reviews: Vec<Box<dyn Review>>,
    /// Who is told which values of the causal record.
    pub authorizer: Arc<dyn Authorizer>,
    /// What is known of the fields of built-in kinds.
    pub schemas: Arc<Schemas>,
    /// For ages and for the end of watches.
    pub clock: Clock,
    /// Spreads the ends of watches.
    pub entropy: Entropy,
    /// Whom to ask for logs.
    pub kubelets: Arc<dyn KubeletLookup>,
    /// Makes tokens for service accounts; none where there is no key.
    pub token_issuer: Option<Arc<TokenIssuer>>,
    /// What is told to those who check such tokens themselves.
    pub token_discovery: Option<Discovery>,
    /// What `/version` says.
    pub version: VersionInfo,
    /// What `/metrics` says.
    pub metrics: Arc<Metrics>,
    /// What `/flowz` tells.
    pub flow: Flow,
    /// Which requests go first.
    pub flow_control: Arc<FlowControl>,
    /// Where long requests are worked on.
    pub long_work: LongWork,
    /// How much of bodies is read at once.
    pub bodies: BodyBudget,
    /// What `/readyz` asks.
    pub health: HealthChecks,
    /// What `/statusz` and `/flagz` show.
    pub zpages: ZPages,
    /// What `/debug` shows.
    pub debugging: Debugging,
    /// Whether objects may wait for initializers.
    pub initializers: bool,
    /// Who else answers.
    pub beside: Beside,
    /// Serves custom kinds.
    pub crds: CrdHandler,
    /// The OpenAPI documents, made when they are asked for.
    pub(crate) openapi: OpenApi,
}
