//! NodeRestriction: a kubelet writes its own Node, the pods on it, and little else
//! (`plugin/pkg/admission/noderestriction`).
//!
//! The Node authorizer says which kinds a kubelet may touch; what is in the objects is looked at here.

mod own;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use own::{common_name, forbidden_labels};

use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use crate::authorizer::Authorizer;
use crate::registry::Registry;
use crate::request::RequestInfo;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::tree::{at, flag, items, text};
use apis::validation::{difference, equal};

const MIRROR_POD: &str = "kubernetes.io/config.mirror";
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// Looks at what kubelets write.
pub(super) struct NodeRestriction {
    registry: Registry,
    authorizer: Arc<dyn Authorizer>,
    pods: Option<Arc<Kind>>,
    nodes: Option<Arc<Kind>>,
    csi_drivers: Option<Arc<Kind>>,
}

/// One write of one kubelet.
struct RestrictedWrite<'a> {
    node: &'a str,
    attributes: &'a Attributes<'a>,
    object: &'a Value,
    old: &'a Value,
}

type RestrictionVerdict = Result<(), Status>;

impl NodeRestriction {
    /// Reads pods and nodes through the registry.
    pub(super) fn new(with: &Initializer) -> NodeRestriction {
        NodeRestriction {
            registry: with.registry.clone(),
            authorizer: with.authorizer.clone(),
            pods: with.scheme.resource("", "v1", "pods"),
            nodes: with.scheme.resource("", "v1", "nodes"),
            csi_drivers: with.scheme.resource("storage.k8s.io", "v1", "csidrivers"),
        }
    }

    async fn check(&self, attributes: &Attributes<'_>, object: &Value, old: &Value) -> RestrictionVerdict {
        let Some(node) = attributes.ctx.user.node_identity() else { return Ok(()) };
        let write = RestrictedWrite { node, attributes, object, old };
        if node.is_empty() {
            return write
                .refuse(format!("could not determine node from user {:?}", attributes.ctx.user.name));
        }
        let group = &*attributes.kind.group_version.group;
        match (group, &*attributes.kind.plural, attributes.subresource) {
            ("", "pods", "") => self.pod(&write).await,
            ("", "pods", "status") => write.pod_status(),
            ("", "pods", "eviction") => self.eviction(&write).await,
            ("", "pods", other) => write.refuse(format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            )),
            ("", "nodes", _) => write.node(),
            ("", "persistentvolumeclaims", "status") => write.claim_status(),
            ("", "persistentvolumeclaims", _) => write.refuse("may only update PVC status"),
            ("", "serviceaccounts", "token") => self.token(&write).await,
            ("coordination.k8s.io", "leases", _) => write.lease(),
            ("storage.k8s.io", "csinodes", _) => write.csi_node(),
            ("resource.k8s.io", "resourceslices", _) => write.resource_slice(),
            ("certificates.k8s.io", "certificatesigningrequests", "") => write.signing_request(),
            _ => Ok(()),
        }
    }

    async fn pod(&self, write: &RestrictedWrite<'_>) -> RestrictionVerdict {
        let RestrictedWrite { node, attributes, .. } = write;
        match attributes.operation {
            Operation::Create => self.mirror_pod(write).await,
            Operation::Delete => {
                let pod = self.get(&self.pods, attributes.namespace, attributes.name).await?.to_value();
                if text(&pod, "spec.nodeName") == *node {
                    Ok(())
                } else {
                    write.refuse(format!(
                        "node {node:?} can only delete pods with spec.nodeName set to itself"
                    ))
                }
            }
            _ => write.refuse(format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                attributes.operation.name()
            )),
        }
    }

    async fn mirror_pod(&self, write: &RestrictedWrite<'_>) -> RestrictionVerdict {
        let node = write.node;
        let pod = write.object;
        if at(pod, "metadata.annotations").get(MIRROR_POD).is_none() {
            return write.refuse(format!(
                "pod does not have {MIRROR_POD:?} annotation, node {node:?} can only create mirror pods"
            ));
        }
        if text(pod, "spec.nodeName") != node {
            return write
                .refuse(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
        }
        let owners = items(pod, "metadata.ownerReferences");
        let can_only = |what: &str| write.refuse(format!("node {node:?} can only create pods with {what}"));
        match owners {
            [] => can_only("an owner reference set to itself")?,
            [owner] => {
                let is_itself = text(owner, "apiVersion") == "v1"
                    && text(owner, "kind") == "Node"
                    && text(owner, "name") == node;
                if !is_itself {
                    can_only("an owner reference set to itself")?;
                }
                if !flag(owner, "controller") {
                    can_only("a controller owner reference set to itself")?;
                }
                if flag(owner, "blockOwnerDeletion") {
                    let why = "must not set blockOwnerDeletion on an owner reference";
                    return write.refuse(format!("node {node:?} {why}"));
                }
                let real = self.get(&self.nodes, "", node).await?;
                let (uid, own) = (text(owner, "uid"), &real.metadata.uid);
                if uid != own {
                    return write.refuse(format!("node {node} UID mismatch: expected {uid} got {own}"));
                }
            }
            _ => can_only("a single owner reference set to itself")?,
        }
        write.refers_to_nothing()
    }

    async fn eviction(&self, write: &RestrictedWrite<'_>) -> RestrictionVerdict {
        let RestrictedWrite { node, attributes, object, .. } = write;
        if attributes.operation != Operation::Create {
            return write.refuse(format!("unexpected operation {}", attributes.operation.name()));
        }
        let name = match attributes.name {
            "" => text(object, "metadata.name"),
            name => name,
        };
        if name.is_empty() {
            return write.refuse("could not determine pod from request data");
        }
        let pod = self.get(&self.pods, attributes.namespace, name).await?.to_value();
        if text(&pod, "spec.nodeName") == *node {
            Ok(())
        } else {
            write.refuse(format!("node {node} can only evict pods with spec.nodeName set to itself"))
        }
    }

    async fn token(&self, write: &RestrictedWrite<'_>) -> RestrictionVerdict {
        let RestrictedWrite { node, attributes, object, .. } = write;
        let reference = at(object, "spec.boundObjectRef");
        let (name, uid) = (text(reference, "name"), text(reference, "uid"));
        if text(reference, "apiVersion") != "v1" || text(reference, "kind") != "Pod" || name.is_empty() {
            return write.refuse("node requested token not bound to a pod");
        }
        if uid.is_empty() {
            return write.refuse("node requested token with a pod binding without a uid");
        }
        let found = self.get(&self.pods, attributes.namespace, name).await?;
        let pod = found.to_value();
        if uid != found.metadata.uid {
            return write.refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object \
                 might have been deleted and then recreated"
            ));
        }
        if text(&pod, "spec.nodeName") != *node {
            return write.refuse("node requested token bound to a pod scheduled on a different node");
        }
        self.audience(write, &pod).await
    }

    /// For a token with an audience the pod must have a volume that wants it
    /// (`validateNodeServiceAccountAudience`).
    async fn audience(&self, write: &RestrictedWrite<'_>, pod: &Value) -> RestrictionVerdict {
        let audiences = items(write.object, "spec.audiences");
        let audience = match audiences {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => return write.refuse("node may only request 0 or 1 audiences"),
        };
        if self.pod_wants(pod, audience).await {
            return Ok(());
        }
        let attributes = write.attributes;
        let info = RequestInfo {
            is_resource_request: true,
            verb: "request-serviceaccounts-token-audience".into(),
            version: "v1".into(),
            namespace: attributes.namespace.into(),
            resource: audience.into(),
            name: attributes.name.into(),
            ..RequestInfo::default()
        };
        let decision = self.authorizer.authorize(&attributes.ctx.user, &info).wait().await;
        if decision.is_allowed() {
            Ok(())
        } else {
            write.refuse(format!("audience {audience:?} not found in pod spec volume, {}", decision.reason()))
        }
    }

    async fn pod_wants(&self, pod: &Value, audience: &str) -> bool {
        for volume in items(pod, "spec.volumes") {
            let sources = items(volume, "projected.sources").iter();
            let mut tokens = sources.filter(|source| !source["serviceAccountToken"].is_null());
            if tokens.any(|source| text(source, "serviceAccountToken.audience") == audience) {
                return true;
            }
            let driver = match text(volume, "csi.driver") {
                "" => continue,
                driver => self.get(&self.csi_drivers, "", driver).await,
            };
            let wants = |driver: Arc<Object>| {
                let driver = driver.to_value();
                items(&driver, "spec.tokenRequests").iter().any(|token| text(token, "audience") == audience)
            };
            if driver.is_ok_and(wants) {
                return true;
            }
        }
        false
    }

    async fn get(
        &self,
        kind: &Option<Arc<Kind>>,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Object>, Status> {
        let kind = kind.as_ref().ok_or_else(|| Status::internal("the kind is not served"))?;
        self.registry.get(kind, namespace, name, None).await
    }
}

impl AdmissionPlugin for NodeRestriction {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation != Operation::Connect && attributes.ctx.user.node_identity().is_some()
    }

    fn changes(&self) -> bool {
        false
    }

    fn admits(&self) -> bool {
        true
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let object = object.as_deref().unwrap_or(&Value::Null);
            self.check(attributes, object, old.unwrap_or(&Value::Null)).await
        })
    }
}

impl RestrictedWrite<'_> {
    fn refuse(&self, why: impl AsRef<str>) -> RestrictionVerdict {
        Err(forbidden(self.attributes, Some(self.object), why.as_ref()))
    }

    /// The name of a new object is in its body.
    fn name(&self) -> &str {
        match self.attributes.operation {
            Operation::Create => text(self.object, "metadata.name"),
            _ => self.attributes.name,
        }
    }

    fn unexpected_operation(&self) -> RestrictionVerdict {
        self.refuse(format!("unexpected operation {:?}", self.attributes.operation.name()))
    }

    fn refers_to_nothing(&self) -> RestrictionVerdict {
        let node = self.node;
        let pod = self.object;
        let cannot =
            |what: &str| self.refuse(format!("node {node:?} can not create pods that reference {what}"));
        if !text(pod, "spec.serviceAccountName").is_empty() {
            return cannot("a service account");
        }
        let spec = at(pod, "spec").to_string();
        // In a container's environment, and among the volumes.
        let mentions = |names: &[&str]| names.iter().any(|name| spec.contains(&format!("\"{name}\":")));
        if mentions(&["secretRef", "secretKeyRef", "secretName", "imagePullSecrets"])
            || has_projection(pod, "secret")
        {
            return cannot("secrets");
        }
        if mentions(&["configMapRef", "configMapKeyRef", "configMap"]) {
            return cannot("configmaps");
        }
        if has_projection(pod, "clusterTrustBundle") {
            return cannot("clustertrustbundles");
        }
        if mentions(&["persistentVolumeClaim"]) {
            return cannot("persistentvolumeclaims");
        }
        Ok(())
    }

    fn pod_status(&self) -> RestrictionVerdict {
        let node = self.node;
        if self.attributes.operation != Operation::Update {
            return self.unexpected_operation();
        }
        if text(self.old, "spec.nodeName") != node {
            return self.refuse(format!(
                "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        if !equal(at(self.object, "metadata.labels"), at(self.old, "metadata.labels")) {
            return self.refuse(format!("node {node:?} cannot update labels through pod status"));
        }
        let claims = "status.resourceClaimStatuses";
        if !equal(at(self.object, claims), at(self.old, claims)) {
            return self.refuse(format!("node {node:?} cannot update resource claim statues"));
        }
        let extended = "status.extendedResourceClaimStatus";
        if !equal(at(self.object, extended), at(self.old, extended)) {
            return self.refuse(format!("node {node:?} cannot update extended resource claim status"));
        }
        Ok(())
    }

    fn node(&self) -> RestrictionVerdict {
        let (node, name) = (self.node, self.name());
        if name != node {
            return self.refuse(format!("node {node:?} is not allowed to modify node {name:?}"));
        }
        let labels =
            |object| forbidden_labels(at(object, "metadata.labels"), at(self.old, "metadata.labels"));
        let source = |object| at(object, "spec.configSource");
        match self.attributes.operation {
            Operation::Create => {
                if !source(self.object).is_null() {
                    let why = "is not allowed to create pods with a non-nil configSource";
                    return self.refuse(format!("node {node:?} {why}"));
                }
                match labels(self.object) {
                    none if none.is_empty() => Ok(()),
                    found => self
                        .refuse(format!("node {node:?} is not allowed to set the following labels: {found}")),
                }
            }
            Operation::Update => {
                let new_source = source(self.object);
                if !new_source.is_null() && !equal(new_source, source(self.old)) {
                    let why = "is not allowed to update configSource to a new non-nil configSource";
                    return self.refuse(format!("node {node:?} {why}"));
                }
                if !equal(at(self.object, "spec.taints"), at(self.old, "spec.taints")) {
                    return self.refuse(format!("node {node:?} is not allowed to modify taints"));
                }
                match labels(self.object) {
                    none if none.is_empty() => Ok(()),
                    found => self.refuse(format!("is not allowed to modify labels: {found}")),
                }
            }
            _ => Ok(()),
        }
    }

    fn claim_status(&self) -> RestrictionVerdict {
        if self.attributes.operation != Operation::Update {
            return self.unexpected_operation();
        }
        let rest = |claim: &Value| {
            let mut claim = claim.clone();
            let mut remove = |part: &str, names: &[&str]| {
                if let Some(members) = claim[part].as_object_mut() {
                    names.iter().for_each(|name| drop(members.remove(*name)));
                }
            };
            remove("metadata", &["resourceVersion", "managedFields"]);
            remove("status", &["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"]);
            claim
        };
        let (old, new) = (rest(self.old), rest(self.object));
        if equal(&old, &new) {
            Ok(())
        } else {
            self.refuse(format!(
                "node {:?} is not allowed to update fields other than status.quantity and status.conditions: {}",
                self.node,
                difference(&old, &new)
            ))
        }
    }

    fn lease(&self) -> RestrictionVerdict {
        if self.attributes.namespace != LEASE_NAMESPACE {
            let why = format!("can only access leases in the {LEASE_NAMESPACE:?} system namespace");
            return self.refuse(why);
        }
        if self.name() == self.node {
            Ok(())
        } else {
            self.refuse("can only access node lease with the same name as the requesting node")
        }
    }

    fn csi_node(&self) -> RestrictionVerdict {
        if self.name() == self.node {
            Ok(())
        } else {
            self.refuse("can only access CSINode with the same name as the requesting node")
        }
    }

    fn resource_slice(&self) -> RestrictionVerdict {
        let (slice, doing) = match self.attributes.operation {
            Operation::Create => (self.object, "create"),
            Operation::Delete => (self.old, "delete"),
            _ => return Ok(()),
        };
        if text(slice, "spec.nodeName") == self.node {
            Ok(())
        } else {
            self.refuse(format!(
                "can only {doing} ResourceSlice with the same NodeName as the requesting node"
            ))
        }
    }

    fn signing_request(&self) -> RestrictionVerdict {
        const SIGNERS: [&str; 2] =
            ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];
        if self.attributes.operation != Operation::Create
            || !SIGNERS.contains(&text(self.object, "spec.signerName"))
        {
            return Ok(());
        }
        let name = match common_name(text(self.object, "spec.request")) {
            Ok(name) => name,
            Err(why) => return self.refuse(format!("unable to parse csr: {why}")),
        };
        let wanted = format!("system:node:{}", self.node);
        if name == wanted {
            Ok(())
        } else {
            self.refuse(format!("can only create a node CSR with CN={wanted}"))
        }
    }
}

fn has_projection(pod: &Value, source: &str) -> bool {
    let volumes = items(pod, "spec.volumes").iter();
    volumes.flat_map(|volume| items(volume, "projected.sources")).any(|found| !found[source].is_null())
}
