//! What steps are made of: the small values that more than one word is needed for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a change lies in a delta FIFO (`cache.DeltaType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeltaType {
    /// The watch said that it came.
    Added,
    /// The watch said that it changed.
    Updated,
    /// The watch said that it went.
    Deleted,
    /// A list had it, or had it no more.
    Replaced,
    /// It is only told again.
    Sync,
}

/// What an event handler is called with (`cache.ResourceEventHandler`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Callback {
    /// The indexer did not know the object.
    OnAdd,
    /// It knew another state of it.
    OnUpdate,
    /// It has let go of it.
    OnDelete,
}

/// What an informer's cache holds of an object from a step on. Noted while somebody looks from near.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheEntry {
    /// The revision of the object that it held before; none of one that it did not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Each index, and the values under which the object is found in it; none of an object that is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indices: Vec<(Arc<str>, Arc<str>)>,
}

/// The node of a kubelet that tells people something. Boxed in its step, since most events are of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventHost(pub Arc<str>);

/// What a controller found there should be, and what there is: the difference is what it works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedCount {
    /// Of what, as `pods`.
    pub of: Arc<str>,
    /// As many there should be.
    pub wanted: i64,
    /// As many there are.
    pub found: i64,
}

/// A field whose value a write changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldFromTo {
    /// As `spec.replicas`.
    pub path: Arc<str>,
    /// As JSON, shortened; nothing where it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Arc<str>>,
    /// As JSON, shortened; nothing where it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Arc<str>>,
}

impl FieldFromTo {
    /// So many changes of one write are kept; behind them stands one without a path that counts the rest.
    pub const MAX: usize = 8;
}

/// A Filter plugin's no, with the nodes that it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FitRefusal {
    /// As `NodeResourcesFit`.
    pub plugin: Arc<str>,
    /// Its words, as `Insufficient cpu`.
    pub reason: Arc<str>,
    /// How many nodes it is about.
    pub count: u32,
    /// The first of them by name; at most as many as [`FitRefusal::NAMED`].
    pub nodes: Vec<Arc<str>>,
}

impl FitRefusal {
    /// So many different refusals of one attempt are kept, those of most nodes.
    pub const MAX: usize = 8;
    /// So many nodes of a refusal are named.
    pub const NAMED: usize = 4;
}

/// A node's score, and what it is the sum of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeScore {
    /// The node.
    pub node: Arc<str>,
    /// The sum.
    pub total: i64,
    /// What each Score plugin gave, times its weight.
    pub by: Vec<(Arc<str>, i64)>,
}

impl NodeScore {
    /// So many nodes of an attempt are kept.
    pub const MAX: usize = 3;
}

/// An admission webhook that was asked, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CalledWebhook {
    /// As in its configuration: `policy.example.com`.
    pub webhook: Arc<str>,
    /// The configuration, as `ValidatingWebhookConfiguration gate`.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub configuration: Arc<str>,
    /// How long it took.
    pub microseconds: u64,
    /// `allowed it`, or what it said no with, or why it could not be asked.
    pub verdict: Arc<str>,
}

/// A request that kube-aggregator handed to another API server (`proxyHandler.ServeHTTP`), and what came of
/// it. What the other server stores is in no store of this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassedOnRequest {
    /// As `bars.agg.example.com`.
    pub resource: Arc<str>,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// The object's name; empty where neither path nor body says it.
    pub name: Arc<str>,
    /// As `v1.agg.example.com`.
    pub api_service: Arc<str>,
    /// As `default/agg:443`.
    pub service: Arc<str>,
    /// Which endpoint of it; none where no connection came to be, or it is in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Arc<str>>,
    /// Whose word was taken for it, as `TLS verified by the caBundle: CN=agg-ca`.
    pub trust: Arc<str>,
    /// The HTTP status.
    pub code: u16,
    /// How long it took until the answer began.
    pub microseconds: u64,
    /// Why there was no answer of the other server, which its client is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
    /// What the other server asked here meanwhile about who asked it, and the answer; at most as many as
    /// [`PassedOnRequest::MAX_REVIEWS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Arc<str>>,
}

impl PassedOnRequest {
    /// So many questions of one request are kept.
    pub const MAX_REVIEWS: usize = 4;
}

/// What is known of a person's request beside its path when the mux has found who answers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutedRequest {
    /// The client, as it calls itself (`User-Agent`), as `kubectl/v1.36.2`.
    pub client: Arc<str>,
    /// What it asks for beside the object, as `fieldManager=kubectl-create&fieldValidation=Strict`.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub options: Arc<str>,
    /// How it writes the body, as `application/json`.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub sent_as: Arc<str>,
    /// In which forms it takes the answer.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub accepts: Arc<str>,
    /// The groups of who asks. With the user they are in the request's context from here on, and the
    /// credentials are gone.
    pub groups: Arc<str>,
    /// Which handler answers, with which storage, as `handlers.CreateResource, storage of deployments.apps`.
    pub handler: Arc<str>,
    /// At which level it is told in the audit log; none where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_level: Option<Arc<str>>,
}

/// A body that has become an object (`runtime.Decoder`), and through which versions it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecodedObject {
    /// How many bytes it had.
    pub bytes: u64,
    /// The version and kind that it is read as, as `extensions/v1beta1 Deployment`.
    pub read_as: Arc<str>,
    /// The resource of the path, as `extensions/v1beta1 deployments`.
    pub resource: Arc<str>,
    /// The version in which the server works on it, in place of upstream's internal one, and stores it.
    pub stored_as: Arc<str>,
    /// Where fields that nobody set have got defaults, as `spec.strategy`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaulted: Vec<Arc<str>>,
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}
