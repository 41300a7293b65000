//! Kinds that every cluster has.

/// A kind of objects, and where they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KnownResource {
    /// Empty for the core.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) is_namespaced: bool,
}

/// Group, version, plural, kind, short name, and whether in namespaces.
pub(crate) type BuiltinRow = (&'static str, &'static str, &'static str, &'static str, &'static str, bool);

/// Those that every cluster has.
pub(crate) const BUILTIN: &[BuiltinRow] = &[
    ("", "v1", "pods", "Pod", "po", true),
    ("", "v1", "services", "Service", "svc", true),
    ("", "v1", "configmaps", "ConfigMap", "cm", true),
    ("", "v1", "secrets", "Secret", "", true),
    ("", "v1", "namespaces", "Namespace", "ns", false),
    ("", "v1", "nodes", "Node", "no", false),
    ("", "v1", "endpoints", "Endpoints", "ep", true),
    ("", "v1", "events", "Event", "ev", true),
    ("", "v1", "serviceaccounts", "ServiceAccount", "sa", true),
    ("", "v1", "persistentvolumes", "PersistentVolume", "pv", false),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", true),
    ("", "v1", "replicationcontrollers", "ReplicationController", "rc", true),
    ("apps", "v1", "deployments", "Deployment", "deploy", true),
    ("apps", "v1", "replicasets", "ReplicaSet", "rs", true),
    ("apps", "v1", "statefulsets", "StatefulSet", "sts", true),
    ("apps", "v1", "daemonsets", "DaemonSet", "ds", true),
    ("batch", "v1", "jobs", "Job", "", true),
    ("batch", "v1", "cronjobs", "CronJob", "cj", true),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", "ing", true),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol", true),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", "", true),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "", true),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", false),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", "", false),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "crd", false),
];

impl KnownResource {
    pub(crate) fn builtin(row: &BuiltinRow) -> KnownResource {
        let (group, version, plural, kind, _, is_namespaced) = *row;
        KnownResource {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            singular: kind.to_ascii_lowercase(),
            is_namespaced,
        }
    }

    /// `deployment.apps`
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.singular.clone()
        } else {
            format!("{}.{}", self.singular, self.group)
        }
    }

    fn base(&self) -> String {
        if self.group.is_empty() {
            return format!("/api/{}", self.version);
        }
        format!("/apis/{}/{}", self.group, self.version)
    }

    /// Of all objects, in a namespace or everywhere.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.base(), self.plural),
            None => format!("{}/{}", self.base(), self.plural),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_where_their_kind_is() {
        let deployments =
            BUILTIN.iter().find(|row| row.2 == "deployments").map(KnownResource::builtin).unwrap();
        assert_eq!(deployments.path(Some("a")), "/apis/apps/v1/namespaces/a/deployments");
        assert_eq!(
            (deployments.path(None), deployments.qualified()),
            ("/apis/apps/v1/deployments".into(), "deployment.apps".into())
        );
        let nodes = BUILTIN.iter().find(|row| row.2 == "nodes").map(KnownResource::builtin).unwrap();
        assert_eq!((nodes.path(Some("a")), nodes.qualified()), ("/api/v1/nodes".into(), "node".into()));
    }
}
