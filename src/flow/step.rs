//! `Step`: everything that happens between a request and a running pod, one variant for each thing.
//!
//! Read from top to bottom this is the way of one `kubectl apply`. Every text is shared (`Arc<str>`): names
//! of a small vocabulary come from [`super::Flow::name`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::uid::Uid;

type Text = Arc<str>;

/// What a write did to the key in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// The object did not exist before.
    Create,
    /// It was replaced by its next state.
    Update,
    /// It is gone.
    Delete,
}

/// The resource whose updates say nothing but that somebody is still there.
const LEASES: &str = "leases.coordination.k8s.io";

/// Whether a write of this resource (as `pods`, `deployments.apps`) only says that somebody is still there:
/// an update of a lease. Kubelets and leaders write one every few seconds.
pub fn is_renewal(resource: &str, operation: Operation) -> bool {
    operation == Operation::Update && resource == LEASES
}

/// One thing that happened. `component` is the name of the process that it would happen in in a real cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all_fields = "camelCase")]
pub enum Step {
    /// A request met the first filter of the apiserver's handler chain, which found out what it asks for
    /// (`WithRequestInfo`). Caused by the step that made a component ask; a user's request has no cause.
    RequestReceived {
        /// Who asks, as far as is known before authentication: an in-process component's name, or nothing.
        user: Text,
        /// As in RBAC: `create`, `patch`, ...
        verb: Text,
        /// The path, without the query.
        path: Text,
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
    },
    /// No authorizer allowed it, or one denied it: the answer is 403.
    NotAuthorized {
        /// Those that were asked, and what each said.
        said: Vec<(Text, Text)>,
    },
    /// A mutating admission plugin changed the object. Those that left it as it was are not told of.
    Admitted {
        /// As in `--enable-admission-plugins`: `ServiceAccount`, `LimitRanger`, ...
        plugin: Text,
        /// Where, as `spec.tolerations, spec.volumes`.
        changed: Text,
    },
    /// An admission plugin said no, in either phase. Those that found nothing wrong are not told of.
    Denied {
        /// As in `--enable-admission-plugins`: `LimitRanger`, `ValidatingAdmissionWebhook`, ...
        plugin: Text,
    },
    /// The strategy of the kind prepared the object for the store and found nothing wrong with it
    /// (`registry/generic/registry.Store`, `rest.BeforeCreate` and `rest.BeforeUpdate`), and neither did the
    /// validating admission plugins, which come last.
    Validated,
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
        operation: Operation,
        /// The object's uid: another object of the same name has another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<Uid>,
    },
    /// The answer went back through the filters.
    Responded {
        /// The HTTP status.
        code: u16,
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
    },
    /// An event handler put a key into a controller's work queue. A key that waits there already is not put
    /// in again.
    Enqueued {
        /// The queue's name, which is its controller's.
        queue: Text,
        /// As `default/web`.
        key: Text,
    },
    /// A worker took the key and compares what is with what should be (`syncHandler`).
    ReconcileStarted {
        /// As `deployment`.
        controller: Text,
        /// As `default/web`.
        key: Text,
    },
    /// The worker is done with the key.
    ReconcileEnded {
        /// `done`, `requeue after 5s`, or the error with which it goes back into the queue.
        result: Text,
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
    },
    /// The Score plugins said which of these suits best (`prioritizeNodes`, `selectHost`).
    Scored {
        /// As `default/web-1`.
        pod: Text,
        /// The best node.
        node: Text,
        /// Its score.
        score: i64,
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
    },
}

impl Step {
    /// The component that it happened in; none where that is whoever caused it.
    pub fn component(&self) -> Option<String> {
        use Step::*;
        Some(match self {
            RequestReceived { .. }
            | Authenticated { .. }
            | NotAuthenticated { .. }
            | Impersonated { .. }
            | Authorized { .. }
            | NotAuthorized { .. }
            | Admitted { .. }
            | Denied { .. }
            | Validated
            | Stored { .. }
            | Responded { .. }
            | DryRun { .. }
            | Refused { .. }
            | WatchDelivered { .. } => APISERVER.into(),
            InformerUpdated { component, .. } | EventRecorded { component, .. } => component.to_string(),
            Enqueued { queue, .. } => format!("{queue}-controller"),
            ReconcileStarted { controller, .. } => format!("{controller}-controller"),
            ReconcileEnded { .. } => return None,
            SchedulingAttempt { .. } | Filtered { .. } | Scored { .. } | Assumed { .. } | Bound { .. } => {
                SCHEDULER.into()
            }
            PodWorkerSync { node, .. }
            | SandboxCreated { node, .. }
            | ImagePulled { node, .. }
            | ContainerCreated { node, .. }
            | ContainerStarted { node, .. }
            | ContainerExited { node, .. }
            | SandboxStopped { node, .. } => format!("kubelet/{node}"),
        })
    }

    /// The revision of the write that it is about, for those steps whose cause is that write.
    pub fn revision_seen(&self) -> Option<u64> {
        match self {
            Step::WatchDelivered { revision, .. } | Step::InformerUpdated { revision, .. } => Some(*revision),
            _ => None,
        }
    }
}

pub(super) const APISERVER: &str = "kube-apiserver";
pub(super) const SCHEDULER: &str = "kube-scheduler";
