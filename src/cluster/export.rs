//! Export: the objects of a cluster as YAML that `kubectl apply` takes, in an order in which it can.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::stocked::Stock;
use apis::core::secret::LEGACY_TOKEN_TRACKING;

/// What the server or a controller writes into every object.
const METADATA: [&str; 9] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "ownerReferences",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];
/// What controllers, kubectl and binders note about an object.
const ANNOTATIONS: [&str; 8] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
];
/// Fields that the server fills in by what else there is in a cluster: another would fill in others, or
/// refuse these values.
const FILLED_IN: [(&str, &[&str]); 5] = [
    ("Namespace", &["spec"]),
    ("Pod", &["spec.nodeName", "spec.priority", "spec.preemptionPolicy"]),
    ("PersistentVolumeClaim", &["spec.volumeName"]),
    ("PersistentVolume", &["spec.claimRef.uid", "spec.claimRef.resourceVersion"]),
    ("Service", &["spec.healthCheckNodePort"]),
];
/// The labels that tie the pods of a Job to its uid.
const JOB_LABELS: [&str; 4] =
    ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];
/// Others may need these: they come first, in this order (helm's `InstallOrder`, but for definitions).
const FIRST: [&str; 22] = [
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
];
/// These could refuse others: they come last.
const LAST: [&str; 5] = [
    "APIService",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];
/// What tells of the cluster and its components, and would be wrong in another.
const OF_COMPONENTS: [&str; 9] = [
    "Node",
    "CSINode",
    "Lease",
    "LeaseCandidate",
    "Event",
    "Endpoints",
    "EndpointSlice",
    "ControllerRevision",
    "IPAddress",
];
/// Namespaces that every cluster has, with what is in the latter two.
const OF_EVERY_CLUSTER: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// ConfigMaps that every cluster has.
const CONFIG_MAPS_OF_EVERY_CLUSTER: [&str; 3] =
    ["kube-root-ca.crt", "extension-apiserver-authentication", LEGACY_TOKEN_TRACKING];

/// At the top where it is so: the first time kubectl knows of none of the kinds that it is about to define.
const APPLY_TWICE: &str = "# Apply this twice: kubectl looks up all kinds before it sends anything, and does \
                           not find those\n# that are defined here until they have been. The first time it \
                           leaves out their objects, and fails.\n";

/// What is exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Export {
    /// Also what controllers and the cluster itself have made: they would make it again.
    pub all: bool,
}

impl Export {
    /// What people and their programs have made.
    pub fn new() -> Export {
        Export::default()
    }

    /// Says whether to export also what controllers and the cluster itself have made.
    #[must_use]
    pub fn all(self, all: bool) -> Export {
        Export { all }
    }
}

/// The objects as YAML, in an order in which they can be applied.
pub(super) fn manifest(stock: Stock, what: Export) -> String {
    let mut objects: Vec<Value> = stock.into_values().collect();
    objects.retain(|object| object["metadata"]["deletionTimestamp"].is_null());
    objects.retain(|object| what.all || !is_made_by_the_cluster(object));
    objects.sort_by_key(|object| (rank(kind_of(object)), kind_of(object).to_owned()));
    objects.iter_mut().for_each(clean);
    let note = if has_objects_of_its_definitions(&objects) { APPLY_TWICE } else { "" };
    let documents = objects.iter().filter_map(|object| serde_yaml::to_string(object).ok());
    format!("{note}{}", documents.collect::<Vec<String>>().join("---\n"))
}

/// Whether one is of a kind that another one defines.
fn has_objects_of_its_definitions(objects: &[Value]) -> bool {
    let definitions = objects.iter().filter(|object| kind_of(object) == "CustomResourceDefinition");
    let defined: BTreeSet<(&str, &str)> = definitions
        .filter_map(|definition| {
            let spec = &definition["spec"];
            Some((spec["group"].as_str()?, spec["names"]["kind"].as_str()?))
        })
        .collect();
    objects.iter().any(|object| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        version.split_once('/').is_some_and(|(group, _)| defined.contains(&(group, kind_of(object))))
    })
}

fn kind_of(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

fn rank(kind: &str) -> usize {
    let at = |kinds: &[&str]| kinds.iter().position(|known| *known == kind);
    let last = at(&LAST).map(|at| FIRST.len() + 1 + at);
    at(&FIRST).or(last).unwrap_or(FIRST.len())
}

/// Whether a cluster has it without anybody's doing: made by a controller for something else, told by a
/// component, or there in every cluster.
fn is_made_by_the_cluster(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let is_owned = owners.is_some_and(|owners| !owners.is_empty());
    is_owned || OF_COMPONENTS.contains(&kind_of(object)) || is_in_every_cluster(object)
}

/// Whether the server or a controller makes it in every cluster, or in every namespace.
pub(super) fn is_in_every_cluster(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let (kind, name) = (kind_of(object), metadata["name"].as_str().unwrap_or_default());
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let annotation = |name: &str| !metadata["annotations"][name].is_null();
    let label = |name: &str| !metadata["labels"][name].is_null();
    matches!(namespace, "kube-public" | "kube-node-lease")
        || annotation("pv.kubernetes.io/provisioned-by")
        || annotation("apf.kubernetes.io/autoupdate-spec")
        || label("kubernetes.io/bootstrapping")
        || label("kube-aggregator.kubernetes.io/automanaged")
        || match kind {
            "Namespace" => OF_EVERY_CLUSTER.contains(&name),
            "ServiceAccount" => name == "default" || namespace == "kube-system",
            "ConfigMap" => CONFIG_MAPS_OF_EVERY_CLUSTER.contains(&name),
            "Secret" => object["type"] == "kubernetes.io/service-account-token",
            "PriorityClass" => name.starts_with("system-"),
            "Service" => namespace == "default" && name == "kubernetes",
            "ServiceCIDR" => name == "kubernetes",
            "StorageClass" => name == "standard",
            _ => false,
        }
}

fn clean(object: &mut Value) {
    remove(object, "status");
    let kind = kind_of(object).to_owned();
    let applied = applied(object);
    for field in METADATA {
        remove(object, &format!("metadata.{field}"));
    }
    for annotation in ANNOTATIONS {
        remove_member(&mut object["metadata"]["annotations"], annotation);
    }
    drop_protections(&mut object["metadata"]);
    for (_, fields) in FILLED_IN.iter().filter(|(of, _)| *of == kind) {
        fields.iter().for_each(|field| remove(object, field));
    }
    match kind.as_str() {
        "Service" => clean_service(object, &applied),
        "Pod" => drop_token_volumes(&mut object["spec"]),
        "Job" => clean_job(object),
        _ => {}
    }
    for field in ["annotations", "labels", "finalizers"] {
        let is_empty = match &object["metadata"][field] {
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            other => other.is_null(),
        };
        if is_empty {
            remove(object, &format!("metadata.{field}"));
        }
    }
}

/// What its user wrote, if that is known.
fn applied(object: &Value) -> Value {
    let text = object["metadata"]["annotations"][ANNOTATIONS[0]].as_str();
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A path of members, none of which has a dot in its name.
fn remove(object: &mut Value, path: &str) {
    let (place, name) = match path.rsplit_once('.') {
        Some((outer, name)) => (object.pointer_mut(&format!("/{}", outer.replace('.', "/"))), name),
        None => (Some(object), path),
    };
    if let Some(place) = place {
        remove_member(place, name);
    }
}

fn remove_member(object: &mut Value, name: &str) {
    if let Value::Object(map) = object {
        map.remove(name);
    }
}

/// Controllers put these on again where they belong.
fn drop_protections(metadata: &mut Value) {
    let is_protection = |finalizer: &Value| {
        let name = finalizer.as_str().unwrap_or_default();
        matches!(name, "kubernetes" | "foregroundDeletion" | "orphan" | "kubernetes.io/legacy-token-cleaner")
            || name.starts_with("kubernetes.io/pv")
            || name.starts_with("batch.kubernetes.io/")
    };
    if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| !is_protection(finalizer));
    }
}

/// The field as a list. An index would make the field where it is not there.
fn list<'a>(of: &'a mut Value, field: &str) -> Option<&'a mut Vec<Value>> {
    of.get_mut(field)?.as_array_mut()
}

/// Addresses and ports that were drawn: others are drawn elsewhere. Those that its user named stay.
fn clean_service(service: &mut Value, applied: &Value) {
    let spec = &mut service["spec"];
    if spec["clusterIP"] != "None" && applied["spec"]["clusterIP"].is_null() {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            remove_member(spec, field);
        }
    }
    let named = |port: &Value| {
        let ports = applied["spec"]["ports"].as_array();
        ports.is_some_and(|ports| ports.iter().any(|of_user| of_user["nodePort"] == *port))
    };
    for port in list(spec, "ports").into_iter().flatten() {
        if !port["nodePort"].is_null() && !named(&port["nodePort"]) {
            remove_member(port, "nodePort");
        }
    }
}

/// The volume with the token that admission mounts into each container.
fn drop_token_volumes(spec: &mut Value) {
    let is_token = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("kube-api-access-"));
    if let Some(volumes) = list(spec, "volumes") {
        volumes.retain(|volume| !is_token(&volume["name"]));
    }
    for containers in ["containers", "initContainers"] {
        for container in list(spec, containers).into_iter().flatten() {
            if let Some(mounts) = list(container, "volumeMounts") {
                mounts.retain(|mount| !is_token(&mount["name"]));
            }
        }
    }
}

fn clean_job(job: &mut Value) {
    if job["spec"]["manualSelector"] == json!(true) {
        return;
    }
    remove(job, "spec.selector");
    for labels in ["/spec/template/metadata/labels", "/metadata/labels"] {
        if let Some(labels) = job.pointer_mut(labels) {
            JOB_LABELS.iter().for_each(|label| remove_member(labels, label));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stocked::ObjectPlace;
    use super::*;

    fn cleaned(mut object: Value) -> Value {
        clean(&mut object);
        object
    }

    #[test]
    fn what_a_server_fills_in_is_left_out_and_what_a_user_wrote_stays() {
        let service = json!({
            "kind": "Service",
            "metadata": {"name": "s", "uid": "u", "resourceVersion": "7", "finalizers": ["mine/x"], "annotations": {
                ANNOTATIONS[0]: "{\"spec\":{\"ports\":[{\"nodePort\":30080}]}}"}},
            "spec": {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"],
                "ports": [{"port": 80, "nodePort": 30080}, {"port": 81, "nodePort": 31234}]},
            "status": {"loadBalancer": {}},
        });
        let expected = json!({
            "kind": "Service",
            "metadata": {"name": "s", "finalizers": ["mine/x"]},
            "spec": {"ports": [{"port": 80, "nodePort": 30080}, {"port": 81}]},
        });
        assert_eq!(cleaned(service), expected);
        let headless = json!({"kind": "Service", "spec": {"clusterIP": "None"}, "metadata": {"name": "s"}});
        assert_eq!(cleaned(headless.clone()), headless);
        let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {
            "nodeName": "n", "volumes": [{"name": "kube-api-access-x"}, {"name": "mine"}],
            "containers": [{"name": "c", "volumeMounts": [{"name": "kube-api-access-x"}, {"name": "mine"}]}]}});
        let expected = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {
            "volumes": [{"name": "mine"}], "containers": [{"name": "c", "volumeMounts": [{"name": "mine"}]}]}});
        assert_eq!(cleaned(pod), expected);
        let labels = json!({"controller-uid": "u", "app": "a"});
        let job = json!({"kind": "Job", "metadata": {"name": "j", "labels": {"job-name": "j"}},
            "spec": {"selector": {}, "template": {"metadata": {"labels": labels}}}});
        let expected = json!({"kind": "Job", "metadata": {"name": "j"},
            "spec": {"template": {"metadata": {"labels": {"app": "a"}}}}});
        assert_eq!(cleaned(job), expected);
    }

    #[test]
    fn namespaces_and_definitions_come_first_and_what_refuses_last() {
        let kinds = [
            "ValidatingWebhookConfiguration",
            "Widget",
            "Deployment",
            "Pod",
            "Secret",
            "CustomResourceDefinition",
            "Namespace",
        ];
        let mut sorted = kinds;
        sorted.sort_by_key(|kind| rank(kind));
        assert_eq!((sorted[0], sorted[1], sorted[2], sorted[6]), (kinds[6], kinds[5], kinds[4], kinds[0]));
    }

    #[test]
    fn objects_of_kinds_that_it_defines_need_a_second_time() {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Foo"}},
        });
        let metadata = json!({"name": "a", "namespace": "default"});
        let object =
            |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        let text = |objects: &[Value]| {
            let place = |object: &Value| ObjectPlace {
                api_version: object["apiVersion"].as_str().unwrap_or_default().into(),
                kind: kind_of(object).into(),
                namespace: String::new(),
                name: "a".into(),
            };
            let stock = objects.iter().map(|object| (place(object), object.clone()));
            manifest(stock.collect(), Export::new())
        };
        let map = object("v1", "ConfigMap");
        let with_foo = text(&[definition.clone(), map.clone(), object("example.com/v2", "Foo")]);
        assert!(with_foo.starts_with("# Apply this twice: "), "{with_foo}");
        assert!(with_foo.find("kind: CustomResource") < with_foo.find("kind: Foo"), "{with_foo}");
        let other = text(&[definition, map.clone(), object("other.com/v2", "Foo")]);
        assert!(!other.contains('#') && !text(&[map]).contains('#'), "{other}");
    }

    #[test]
    fn what_the_cluster_makes_is_known_by_its_owner_its_marks_or_its_name() {
        let of = |kind: &str, metadata: Value| {
            is_made_by_the_cluster(&json!({"kind": kind, "metadata": metadata}))
        };
        let made = [
            ("ReplicaSet", json!({"name": "r", "ownerReferences": [{"kind": "Deployment"}]})),
            (
                "ClusterRole",
                json!({"name": "view", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}),
            ),
            ("Namespace", json!({"name": "kube-system"})),
            ("ConfigMap", json!({"name": "kube-root-ca.crt", "namespace": "a"})),
            ("Service", json!({"name": "kubernetes", "namespace": "default"})),
            ("Lease", json!({"name": "l", "namespace": "a"})),
        ];
        for (kind, metadata) in made {
            assert!(of(kind, metadata.clone()), "{kind} {metadata}");
        }
        let of_users = [
            ("ConfigMap", json!({"name": "a", "namespace": "kube-system"})),
            ("Service", json!({"name": "kubernetes", "namespace": "a", "ownerReferences": []})),
            ("ClusterRole", json!({"name": "mine"})),
        ];
        for (kind, metadata) in of_users {
            assert!(!of(kind, metadata.clone()), "{kind} {metadata}");
        }
    }
}
