//! `Step`: everything that happens between a request and a running pod, one variant for each thing.
//!
//! From top to bottom the way of one `kubectl apply`. Names of a small vocabulary: [`super::Flow::name`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::parts::{
    CacheEntry, Callback, CalledWebhook, ComparedCount, DecodedObject, DeltaType, EventHost, FieldFromTo,
    FitRefusal, NodeScore, PassedOnRequest, RoutedRequest,
};
use super::uid::Uid;

type Text = Arc<str>;

/// The status of an object that was found invalid: why tells the values that are.
const UNPROCESSABLE: u16 = 422;
const NOT_FOR_YOU: &str = "the object is invalid; which values are, is for those who may read it";

/// What a write did to the key in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteOperation {
    /// The object did not exist before.
    Create,
    /// It was replaced by its next state.
    Update,
    /// It is gone.
    Delete,
}

/// One thing that happened. `component` is the name of the process that it would happen in in a real cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all_fields = "camelCase")]
pub enum Step {
    /// A component has come so far on its start.
    Started {
        /// As `kube-apiserver`.
        component: Text,
        /// What there is now, as `post-start hook rbac/bootstrap-roles`.
        what: Text,
    },
    /// A client asked what is served: discovery, OpenAPI, the version. Caused by what it asked before that on
    /// the same connection.
    Discovered {
        /// As it calls itself (`User-Agent`).
        client: Text,
        /// As `/apis`.
        path: Text,
        /// In which form it was answered, as `application/json;g=apidiscovery.k8s.io;v=v2`.
        form: Text,
        /// The HTTP status: with 304 what the client keeps is still true.
        code: u16,
    },
    /// A request met the first filter of the apiserver's handler chain, which found out what it asks for
    /// (`WithRequestInfo`). Caused by the step that made a component ask; a user's request has no cause but
    /// what its client asked of the server before it.
    RequestReceived {
        /// Who asks, as far as is known before authentication: an in-process component's name, or nothing.
        user: Text,
        /// As in RBAC: `create`, `patch`, ...
        verb: Text,
        /// The path, without the query.
        path: Text,
    },
    /// The client says that the request is part of a trace of its own (`WithTracing`).
    TraceContinued {
        /// The header `traceparent`, as W3C's Trace Context has it.
        traceparent: Text,
    },
    /// An authenticator knew the credentials (`WithAuthentication`).
    Authenticated {
        /// Who it is.
        user: Text,
        /// Which authenticator knew: `X509`, `ServiceAccount`, `InProcess`, `Anonymous`, ...
        by: Text,
        /// Those that were asked before, and what each said.
        said: Vec<(Text, Text)>,
    },
    /// No authenticator knew the credentials: the answer is 401, which says no more than that.
    NotAuthenticated {
        /// Those that were asked, and what each said.
        said: Vec<(Text, Text)>,
    },
    /// Who is known acts as somebody else from here on (`WithImpersonation`).
    Impersonated {
        /// Who it is.
        user: Text,
        /// As whom.
        acting: Text,
        /// The verb that allowed it: `impersonate`, or one of a constrained way.
        verb: Text,
    },
    /// An authorizer allowed or refused the verb on the resource (`WithAuthorization`).
    Authorized {
        /// Which authorizer had an opinion: `RBAC`, `Node`, `AlwaysAllow`; empty where it is not known.
        by: Text,
        /// Why: the binding and role that allow it.
        reason: Text,
        /// Those that were asked before and had no opinion, as `Node, ABAC`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Text>,
    },
    /// No authorizer allowed it, or one denied it: the answer is 403.
    NotAuthorized {
        /// Those that were asked, and what each said.
        said: Vec<(Text, Text)>,
    },
    /// The mux found the handler of a person's request, which goes on in its user's name. Boxed, since few
    /// requests are people's.
    Routed(Box<RoutedRequest>),
    /// The body of a person's request was read as an object, and has its defaults.
    Decoded(Box<DecodedObject>),
    /// A mutating admission plugin changed the object. Those that left it as it was are not told of.
    Admitted {
        /// As in `--enable-admission-plugins`: `ServiceAccount`, `LimitRanger`, ...
        plugin: Text,
        /// Where, as `spec.tolerations, spec.volumes`.
        changed: Text,
        /// From what to what; of people's requests alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        values: Vec<FieldFromTo>,
    },
    /// An admission webhook was asked, and this came of it. Boxed, since few requests meet one.
    WebhookCalled(Box<CalledWebhook>),
    /// An admission plugin said no, in either phase. Those that found nothing wrong are not told of.
    Denied {
        /// As in `--enable-admission-plugins`: `LimitRanger`, `ValidatingAdmissionWebhook`, ...
        plugin: Text,
    },
    /// The strategy of the kind prepared the object for the store and found nothing wrong with it
    /// (`registry/generic/registry.Store`, `rest.BeforeCreate` and `rest.BeforeUpdate`), and neither did the
    /// validating admission plugins, which come last.
    Validated {
        /// The admission plugins that were asked, in their order, as `NamespaceLifecycle, LimitRanger`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plugins: Option<Text>,
        /// What an update changes in the object; of what people and the controllers of workloads write.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<FieldFromTo>,
    },
    /// etcd committed the write: the revision is born here, and everything that follows is caused by it.
    Stored {
        /// As `deployments.apps`.
        resource: Text,
        /// Empty for cluster-scoped objects.
        namespace: Text,
        /// The object's name.
        name: Text,
        /// The revision of the write: the object's new resourceVersion.
        revision: u64,
        /// What the write did.
        operation: WriteOperation,
        /// The object's uid: another object of the same name has another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<Uid>,
        /// How many bytes lie under the object's key; 0 of a deletion.
        #[serde(default)]
        bytes: u32,
    },
    /// What a person's write has stored is read back for the answer, and what is done behind it is done
    /// (`registry.Store`: `AfterCreate`, `AfterUpdate`, `Decorator`).
    ReadBack {
        /// Of which revision it is.
        revision: u64,
        /// In which version it is answered.
        version: Text,
        /// What was done behind the write, as `keeps its cluster address`; empty: nothing.
        #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
        after: Text,
    },
    /// The object was to be deleted and is still there (`metadata.deletionTimestamp`): what it waits for.
    Terminating {
        /// Who set one of these has to do its work and take it away.
        finalizers: Vec<Text>,
        /// How long its end may take.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_seconds: Option<u64>,
    },
    /// kube-aggregator handed the request to the API server that an APIService names, and has its answer.
    /// Boxed, since few requests are.
    PassedOn(Box<PassedOnRequest>),
    /// The answer went back through the filters.
    Responded {
        /// The HTTP status.
        code: u16,
        /// The request's line in the audit log; of people's requests alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audit_id: Option<Text>,
    },
    /// A write that was only to be tried (`dryRun=All`) went well: everything was done but the storing.
    DryRun {
        /// As `deployments.apps`.
        resource: Text,
        /// Empty for cluster-scoped objects.
        namespace: Text,
        /// The object's name; empty where it would have been generated.
        name: Text,
        /// The HTTP status.
        code: u16,
    },
    /// The request came to nothing: a filter, an authorizer, an admission plugin or validation said no.
    Refused {
        /// As `deployments.apps`.
        resource: Text,
        /// Empty for cluster-scoped objects.
        namespace: Text,
        /// The object's name; empty where it was not known yet.
        name: Text,
        /// The HTTP status.
        code: u16,
        /// What the client was told, and what it was not told beside it.
        why: Text,
    },
    /// The apiserver's watch cache (`storage/cacher`) handed the change to those who watch the resource.
    WatchDelivered {
        /// As `pods`.
        resource: Text,
        /// As `default/web`.
        key: Text,
        /// The revision of the change.
        revision: u64,
        /// To how many watches.
        watchers: u32,
    },
    /// A shared informer of a component (client-go's reflector, delta FIFO and indexer) brought its cache up
    /// to the revision, and is about to tell its event handlers.
    InformerUpdated {
        /// As `kube-controller-manager`, `kube-scheduler`, `kubelet/node-1`.
        component: Text,
        /// As `pods`.
        resource: Text,
        /// As `default/web`.
        key: Text,
        /// The object's resourceVersion.
        revision: u64,
        /// How it lay in the delta FIFO.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<DeltaType>,
        /// What its event handlers are called with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        callback: Option<Callback>,
        /// How many event handlers there are.
        #[serde(default)]
        handlers: u16,
        /// How many deltas of the key came out of the FIFO together, of which this is one.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        deltas: u8,
        /// How many deletions in a row had been merged into one of them.
        #[serde(default, skip_serializing_if = "is_zero")]
        merged: u8,
        /// What the cache holds of it now. Boxed, since few are noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<Box<CacheEntry>>,
    },
    /// A reflector listed a resource: when it began, or since its watch had ended and could not be resumed.
    Listed {
        /// As `kube-scheduler`.
        component: Text,
        /// As `pods`.
        resource: Text,
        /// How many objects the list has.
        items: u32,
        /// Of which revision it is: what happened later comes by a watch.
        #[serde(default)]
        revision: u64,
        /// Whether it had listed them before.
        again: bool,
        /// The indices of the cache that they go into, as `namespace, by-node`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        indices: Option<Text>,
    },
    /// An event handler put a key into a controller's work queue. A key that waits there already is not put
    /// in again, which its [`Step::ReconcileStarted`] counts.
    Enqueued {
        /// The queue's name, which is its controller's.
        queue: Text,
        /// As `default/web`.
        key: Text,
        /// How often in a row it has failed: above 0 it is put in again (`AddRateLimited`).
        #[serde(default)]
        retries: u32,
        /// For how long it was held back first.
        #[serde(default)]
        delay_milliseconds: u64,
    },
    /// A worker took the key and compares what is with what should be (`syncHandler`).
    ReconcileStarted {
        /// As `deployment`.
        controller: Text,
        /// As `default/web`.
        key: Text,
        /// How often it was put into the queue while it was there already.
        #[serde(default)]
        coalesced: u32,
    },
    /// The worker is done with the key.
    ReconcileEnded {
        /// `done`, `requeue after 5s`, or the error with which it goes back into the queue.
        result: Text,
        /// What it found should be there, and what is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compared: Option<ComparedCount>,
    },
    /// The scheduler took a pod from its active queue and began a scheduling cycle (`schedulePod`).
    SchedulingAttempt {
        /// As `default/web-1`.
        pod: Text,
    },
    /// The Filter plugins said which nodes can run the pod (`findNodesThatFitPod`).
    Filtered {
        /// As `default/web-1`.
        pod: Text,
        /// How many nodes passed.
        feasible: u32,
        /// How many were asked about.
        nodes: u32,
        /// Why the others did not; at most as many as [`FitRefusal::MAX`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refusals: Vec<FitRefusal>,
    },
    /// The Score plugins said which of these suits best (`prioritizeNodes`, `selectHost`).
    Scored {
        /// As `default/web-1`.
        pod: Text,
        /// The best node.
        node: Text,
        /// Its score.
        score: i64,
        /// The best nodes, best first, with what each plugin gave; at most as many as [`NodeScore::MAX`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        table: Vec<NodeScore>,
    },
    /// The scheduler's cache counts the pod on the node already, so that the next pod can be scheduled while
    /// the binding of this one is on its way (`assume`).
    Assumed {
        /// As `default/web-1`.
        pod: Text,
        /// The chosen node.
        node: Text,
    },
    /// The Bind plugin (`DefaultBinder`) wrote the pod's binding.
    Bound {
        /// As `default/web-1`.
        pod: Text,
        /// The chosen node.
        node: Text,
    },
    /// The pod's worker in the kubelet began a sync (`syncPod`, `syncTerminatingPod`, `syncTerminatedPod`).
    PodWorkerSync {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
        /// `sync`, `terminating` or `terminated`.
        state: Text,
    },
    /// The node takes the pod, and what its containers need is there before they are: volumes,
    /// secrets for its images (`canAdmitPod`, `syncPod`).
    PodPrepared {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
        /// What is there, as `admitted by the node, volumes data`.
        with: Text,
    },
    /// The container runtime made the pod's sandbox, and the network gave it an address (CRI
    /// `RunPodSandbox`).
    SandboxCreated {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
        /// The pod's IP.
        address: Text,
    },
    /// The image is on the node (CRI `PullImage`).
    ImagePulled {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
        /// As `nginx:1.27`.
        image: Text,
    },
    /// The container exists and does not run yet (CRI `CreateContainer`).
    ContainerCreated {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
        /// The container's name.
        container: Text,
    },
    /// The container runs (CRI `StartContainer`).
    ContainerStarted {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
        /// The container's name.
        container: Text,
    },
    /// The container ended, by itself or because it was told to (CRI `StopContainer`).
    ContainerExited {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
        /// The container's name.
        container: Text,
        /// What its process returned.
        exit_code: i32,
        /// Why, where that is not all: `OOMKilled`.
        #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
        reason: Text,
    },
    /// The sandbox and its address are gone (CRI `StopPodSandbox`).
    SandboxStopped {
        /// The kubelet's node.
        node: Text,
        /// As `default/web-1`.
        pod: Text,
    },
    /// A component told people about it: an Event is on its way to the apiserver (client-go's
    /// `EventRecorder`).
    EventRecorded {
        /// As `deployment-controller`.
        component: Text,
        /// The object that it is about, as `default/web`.
        object: Text,
        /// As `ScalingReplicaSet`.
        reason: Text,
        /// What people are told, up to a bound.
        #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
        message: Text,
        /// Whether it is of the type `Warning`, and not `Normal`.
        #[serde(default)]
        warning: bool,
        /// On which node, of a kubelet's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<Box<EventHost>>,
    },
}

impl Step {
    /// Whether it tells values of an object, which are for those who may read that.
    pub fn has_values(&self) -> bool {
        let is_value = |field: &FieldFromTo| field.from.is_some() || field.to.is_some();
        match self {
            Step::Admitted { values: told, .. } | Step::Validated { changed: told, .. } => {
                told.iter().any(is_value)
            }
            Step::Refused { code, why, .. } => *code == UNPROCESSABLE && !why.is_empty(),
            Step::InformerUpdated { entry, .. } => entry.is_some(),
            _ => false,
        }
    }

    /// Leaves of the values only whose they are.
    pub fn hide_values(&mut self) {
        match self {
            Step::Admitted { values: told, .. } | Step::Validated { changed: told, .. } => {
                told.iter_mut().for_each(|field| (field.from, field.to) = (None, None));
            }
            Step::Refused { why, code: UNPROCESSABLE, .. } => *why = NOT_FOR_YOU.into(),
            Step::InformerUpdated { entry, .. } => *entry = None,
            _ => {}
        }
    }
}

fn nothing() -> Text {
    "".into()
}

fn is_nothing(text: &Text) -> bool {
    text.is_empty()
}

fn one() -> u8 {
    1
}

fn is_one(deltas: &u8) -> bool {
    *deltas == 1
}

fn is_zero(merged: &u8) -> bool {
    *merged == 0
}
