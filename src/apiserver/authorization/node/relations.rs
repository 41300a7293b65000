//! What leads to a node: secret, config map, claim, service account -> pod -> node, and the rest of
//! upstream's graph (`plugin/pkg/auth/authorizer/node/graph.go`).
//!
//! Upstream keeps the graph of all pods; here the way is searched when somebody asks, among the pods of that
//! one node: kubelets ask seldom, and pods come and go all the time.

use std::sync::Arc;

use serde_json::Value;

use crate::registry::Registry;
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apis::tree::{at, items, text};
use apis::views::pod_answers::{ANSWERS_FROM, AnswersFrom};

/// A kind of object that a way can start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vertex {
    /// `secrets`
    Secret,
    /// `configmaps`
    ConfigMap,
    /// `persistentvolumeclaims`
    Claim,
    /// `persistentvolumes`
    Volume,
    /// `volumeattachments`
    Attachment,
    /// `serviceaccounts`
    ServiceAccount,
    /// `resourceclaims`
    ResourceClaim,
    /// `resourceslices`
    ResourceSlice,
    /// `pods`
    Pod,
}

/// Searches for ways.
pub(super) struct Relations {
    registry: Registry,
    pods: Option<Arc<Kind>>,
    claims: Option<Arc<Kind>>,
    volumes: Option<Arc<Kind>>,
    attachments: Option<Arc<Kind>>,
    slices: Option<Arc<Kind>>,
}

impl Relations {
    /// Reads through the registry.
    pub(super) fn new(registry: &Registry, scheme: &Scheme) -> Relations {
        Relations {
            registry: registry.clone(),
            pods: scheme.resource("", "v1", "pods"),
            claims: scheme.resource("", "v1", "persistentvolumeclaims"),
            volumes: scheme.resource("", "v1", "persistentvolumes"),
            attachments: scheme.resource("storage.k8s.io", "v1", "volumeattachments"),
            slices: scheme.resource("resource.k8s.io", "v1", "resourceslices"),
        }
    }

    /// Whether there is a way from the object to the node.
    pub(super) async fn lead_to(&self, node: &str, vertex: Vertex, namespace: &str, name: &str) -> bool {
        match vertex {
            Vertex::Attachment => self.field(&self.attachments, name, "spec.nodeName").await == node,
            Vertex::ResourceSlice => self.field(&self.slices, name, "spec.nodeName").await == node,
            Vertex::Pod => self.pods_on(node, namespace).await.iter().any(|pod| pod.metadata.name == name),
            Vertex::Volume => self.volume_leads_to(node, name).await,
            Vertex::Secret => {
                self.pods_refer_to(node, vertex, namespace, name).await
                    || self.volumes_need_secret(node, namespace, name).await
            }
            _ => self.pods_refer_to(node, vertex, namespace, name).await,
        }
    }

    async fn pods_refer_to(&self, node: &str, vertex: Vertex, namespace: &str, name: &str) -> bool {
        let pods = self.pods_on(node, namespace).await;
        pods.iter().any(|pod| refers_to(&pod.metadata.name, &pod.to_value(), vertex, name))
    }

    /// volume <- claim <- pod <- node
    async fn volume_leads_to(&self, node: &str, name: &str) -> bool {
        for pod in self.pods_on(node, "").await {
            for claim in claims_of(&pod.metadata.name, &pod.to_value()) {
                let claim = self.get(&self.claims, &pod.metadata.namespace, &claim).await;
                if claim.is_some_and(|claim| text(&claim, "spec.volumeName") == name) {
                    return true;
                }
            }
        }
        false
    }

    /// secret <- volume <- claim <- pod <- node: the credentials that a volume is mounted with.
    async fn volumes_need_secret(&self, node: &str, namespace: &str, name: &str) -> bool {
        for pod in self.pods_on(node, "").await {
            for claim in claims_of(&pod.metadata.name, &pod.to_value()) {
                let Some(claim) = self.get(&self.claims, &pod.metadata.namespace, &claim).await else {
                    continue;
                };
                let volume = self.get(&self.volumes, "", text(&claim, "spec.volumeName")).await;
                if volume.is_some_and(|volume| volume_needs_secret(&volume, namespace, name)) {
                    return true;
                }
            }
        }
        false
    }

    /// The pods of a node, in one namespace or in all.
    async fn pods_on(&self, node: &str, namespace: &str) -> Vec<Arc<Object>> {
        let Some(pods) = &self.pods else { return vec![] };
        let fields = FieldSelector::equal("spec.nodeName", node);
        let predicate = Predicate { fields, ..Predicate::default() };
        let resource_version = Some("0".to_owned());
        let options = ListOptions { predicate, resource_version, ..ListOptions::default() };
        match self.registry.list(pods, namespace, &options).await {
            Ok(list) => list.items.to_vec(),
            Err(error) => {
                tracing::warn!(%error, "the node authorizer cannot list pods");
                vec![]
            }
        }
    }

    async fn get(&self, kind: &Option<Arc<Kind>>, namespace: &str, name: &str) -> Option<Value> {
        let kind = kind.as_ref().filter(|_| !name.is_empty())?;
        let found = self.registry.get(kind, namespace, name, Some("0")).await.ok()?;
        Some(found.to_value())
    }

    async fn field(&self, kind: &Option<Arc<Kind>>, name: &str, path: &str) -> String {
        let found = self.get(kind, "", name).await;
        found.map(|object| text(&object, path).to_owned()).unwrap_or_default()
    }
}

/// Whether a pod needs that object (`Graph.AddPod`).
fn refers_to(pod_name: &str, pod: &Value, vertex: Vertex, name: &str) -> bool {
    match vertex {
        Vertex::Secret => mentions(pod, &SECRETS, name),
        Vertex::ConfigMap => mentions(pod, &CONFIG_MAPS, name) || answers_from(pod, name),
        Vertex::ServiceAccount => text(pod, "spec.serviceAccountName") == name,
        Vertex::Claim => claims_of(pod_name, pod).iter().any(|claim| claim == name),
        Vertex::ResourceClaim => {
            let named = items(pod, "spec.resourceClaims").iter();
            let mut named = named.map(|claim| text(claim, "resourceClaimName"));
            let mut generated = items(pod, "status.resourceClaimStatuses").iter();
            named.any(|claim| claim == name)
                || generated.any(|status| text(status, "resourceClaimName") == name)
                || text(pod, "status.extendedResourceClaimStatus.resourceClaimName") == name
        }
        Vertex::Volume | Vertex::Attachment | Vertex::ResourceSlice | Vertex::Pod => false,
    }
}

/// Whether an annotation of ours names the ConfigMap.
fn answers_from(pod: &Value, name: &str) -> bool {
    let annotation = at(pod, "metadata.annotations").get(ANSWERS_FROM).and_then(Value::as_str);
    annotation.is_some_and(|text| AnswersFrom::parse(text).is_some_and(|from| from.name == name))
}

/// Where a pod names objects of a kind: in lists of the spec, volumes and containers.
struct RelationPlaces {
    spec: &'static [(&'static str, &'static str)],
    volume: &'static [&'static str],
    projected: &'static str,
    env_from: &'static str,
    env: &'static str,
}

const SECRETS: RelationPlaces = RelationPlaces {
    spec: &[("spec.imagePullSecrets", "name")],
    volume: &[
        "secret.secretName",
        "azureFile.secretName",
        "cephfs.secretRef.name",
        "cinder.secretRef.name",
        "csi.nodePublishSecretRef.name",
        "flexVolume.secretRef.name",
        "iscsi.secretRef.name",
        "rbd.secretRef.name",
        "scaleIO.secretRef.name",
        "storageos.secretRef.name",
    ],
    projected: "secret.name",
    env_from: "secretRef.name",
    env: "valueFrom.secretKeyRef.name",
};

const CONFIG_MAPS: RelationPlaces = RelationPlaces {
    spec: &[],
    volume: &["configMap.name"],
    projected: "configMap.name",
    env_from: "configMapRef.name",
    env: "valueFrom.configMapKeyRef.name",
};

fn mentions(pod: &Value, places: &RelationPlaces, name: &str) -> bool {
    let names = |list: &[Value], path: &str| list.iter().any(|item| text(item, path) == name);
    let of_volume = |volume: &Value| {
        places.volume.iter().any(|path| text(volume, path) == name)
            || names(items(volume, "projected.sources"), places.projected)
    };
    let of_container = |container: &Value| {
        names(items(container, "envFrom"), places.env_from) || names(items(container, "env"), places.env)
    };
    places.spec.iter().any(|(list, path)| names(items(pod, list), path))
        || items(pod, "spec.volumes").iter().any(of_volume)
        || ["spec.containers", "spec.initContainers", "spec.ephemeralContainers"]
            .iter()
            .any(|list| items(pod, list).iter().any(of_container))
}

/// The claims that a pod mounts; one of an ephemeral volume is named after pod and volume.
fn claims_of(pod_name: &str, pod: &Value) -> Vec<String> {
    let claim = |volume: &Value| match text(volume, "persistentVolumeClaim.claimName") {
        "" if at(volume, "ephemeral").is_null() => None,
        "" => Some(format!("{pod_name}-{}", text(volume, "name"))),
        claim => Some(claim.to_owned()),
    };
    items(pod, "spec.volumes").iter().filter_map(claim).collect()
}

/// `persistentvolume/util.VisitPVSecretNames`, of the sources that a kubelet mounts.
fn volume_needs_secret(volume: &Value, namespace: &str, name: &str) -> bool {
    const PATHS: [&str; 12] = [
        "azureFile.secretName",
        "cephfs.secretRef.name",
        "cinder.secretRef.name",
        "flexVolume.secretRef.name",
        "rbd.secretRef.name",
        "scaleIO.secretRef.name",
        "iscsi.secretRef.name",
        "storageos.secretRef.name",
        "csi.controllerPublishSecretRef.name",
        "csi.nodePublishSecretRef.name",
        "csi.nodeStageSecretRef.name",
        "csi.nodeExpandSecretRef.name",
    ];
    PATHS.iter().any(|path| {
        let path = format!("spec.{path}");
        let home =
            text(volume, &path.replace(".name", ".namespace").replace(".secretName", ".secretNamespace"));
        let claims = text(volume, "spec.claimRef.namespace");
        text(volume, &path) == name && (if home.is_empty() { claims } else { home }) == namespace
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_leads_to_what_it_names() {
        let pod = json!({
            "metadata": {"annotations": {ANSWERS_FROM: "answers, optional"}},
            "spec": {
                "serviceAccountName": "robot",
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{"envFrom": [{"secretRef": {"name": "env-from"}}],
                    "env": [{"valueFrom": {"configMapKeyRef": {"name": "env-map"}}}]}],
                "initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env"}}}]}],
                "volumes": [{"secret": {"secretName": "volume"}}, {"configMap": {"name": "map"}},
                    {"projected": {"sources": [{"secret": {"name": "projected"}}]}},
                    {"persistentVolumeClaim": {"claimName": "data"}}, {"name": "scratch", "ephemeral": {}}],
            },
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-x"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "extended"}},
        });
        for (vertex, names) in [
            (Vertex::Secret, &["pull", "env-from", "env", "volume", "projected"][..]),
            (Vertex::ConfigMap, &["env-map", "map", "answers"]),
            (Vertex::ServiceAccount, &["robot"]),
            (Vertex::Claim, &["data", "web-scratch"]),
            (Vertex::ResourceClaim, &["gpu-x", "extended"]),
        ] {
            for name in names {
                assert!(refers_to("web", &pod, vertex, name), "{vertex:?} {name}");
            }
            assert!(!refers_to("web", &pod, vertex, "other"), "{vertex:?}");
        }
    }

    #[test]
    fn a_volume_names_its_secret_where_its_claim_is_or_elsewhere() {
        let volume =
            json!({"spec": {"claimRef": {"namespace": "a"}, "cephfs": {"secretRef": {"name": "s"}}}});
        assert!(volume_needs_secret(&volume, "a", "s") && !volume_needs_secret(&volume, "b", "s"));
        let volume = json!({"spec": {"claimRef": {"namespace": "a"},
            "csi": {"nodeStageSecretRef": {"name": "s", "namespace": "b"}}}});
        assert!(volume_needs_secret(&volume, "b", "s") && !volume_needs_secret(&volume, "a", "s"));
    }
}
