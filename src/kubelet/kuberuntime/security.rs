//! As whom the processes of a pod run, and whether they may (`pkg/kubelet/kuberuntime/security_context.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use apimachinery::object::Object;
use apis::views::pod::Container as Spec;

/// Pods that say none of these are not looked at.
const SAID: [&str; 3] = ["\"runAs", "\"fsGroup\"", "\"supplementalGroups\""];
/// Images whose user is known, by the last part of their names.
const USERS: [(&str, i64); 29] = [
    ("nginx-unprivileged", 101),
    ("pause", 65535),
    ("coredns", 65532),
    ("agnhost", 0),
    ("alpine", 0),
    ("bash", 0),
    ("busybox", 0),
    ("caddy", 0),
    ("centos", 0),
    ("debian", 0),
    ("fedora", 0),
    ("golang", 0),
    ("httpd", 0),
    ("mariadb", 0),
    ("memcached", 11211),
    ("mysql", 0),
    ("nginx", 0),
    ("node", 0),
    ("nonroot", 1234),
    ("perl", 0),
    ("postgres", 0),
    ("python", 0),
    ("rabbitmq", 0),
    ("redis", 0),
    ("rockylinux", 0),
    ("ruby", 0),
    ("traefik", 0),
    ("ubuntu", 0),
    ("wordpress", 0),
];
/// As whom images of this name's tags run, distroless and others.
const NON_ROOT_TAG: &str = "nonroot";
const NON_ROOT: i64 = 65532;

/// What a pod says of its users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Users {
    run_as_user: Option<i64>,
    run_as_group: Option<i64>,
    run_as_non_root: Option<bool>,
    fs_group: Option<i64>,
    supplemental_groups: Option<Vec<i64>>,
}

/// The users of a pod and of its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUsers {
    pod: Users,
    /// By the names of containers. Bound: those of the pod.
    containers: BTreeMap<String, Users>,
}

impl PodUsers {
    /// Nothing for a pod that says nothing of them, as most do.
    pub(crate) fn of(object: &Object) -> Option<Arc<PodUsers>> {
        if !SAID.iter().any(|said| object.mentions(said)) {
            return None;
        }
        let spec = object.to_value()["spec"].take();
        let users = |value: &Value| Users::deserialize(&value["securityContext"]).unwrap_or_default();
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let all = lists.iter().filter_map(|list| spec[*list].as_array()).flatten();
        let named = all.map(|it| (it["name"].as_str().unwrap_or_default().to_owned(), users(it)));
        Some(Arc::new(PodUsers { containers: named.collect(), pod: users(&spec) }))
    }

    fn either<T>(&self, container: &str, field: fn(&Users) -> Option<T>) -> Option<T> {
        self.containers.get(container).and_then(field).or_else(|| field(&self.pod))
    }

    /// `verifyRunAsNonRoot`
    pub(crate) fn refusal(&self, spec: &Spec, pod: &str) -> Option<String> {
        if self.either(&spec.name, |users| users.run_as_non_root) != Some(true) {
            return None;
        }
        let (user, name) = (self.either(&spec.name, |users| users.run_as_user), &spec.name);
        match user.or_else(|| user_of_image(&spec.image)) {
            Some(0) if user.is_some() => {
                let why = "container's runAsUser breaks non-root policy";
                Some(format!("{why} (pod: {pod:?}, container: {name})"))
            }
            Some(0) => {
                let why = "container has runAsNonRoot and image will run as root";
                Some(format!("{why} (pod: {pod:?}, container: {name})"))
            }
            _ => None,
        }
    }
}

/// As whom an image runs that is not told; none of one whose user nobody knows, as of an operator's own.
pub(crate) fn user_of_image(image: &str) -> Option<i64> {
    let name = image.split(['@']).next().unwrap_or_default();
    let (path, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).unwrap_or((name, ""));
    if tag.contains(NON_ROOT_TAG) {
        return Some(NON_ROOT);
    }
    if path.contains("bitnami/") {
        return Some(1001);
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    USERS.iter().find(|(known, _)| *known == last).map(|(_, user)| *user)
}

/// `status.containerStatuses[].user`
pub(crate) fn status(users: Option<&PodUsers>, spec: &Spec) -> Value {
    let find = |field: fn(&Users) -> Option<i64>| users.and_then(|users| users.either(&spec.name, field));
    let uid = find(|it| it.run_as_user).or_else(|| user_of_image(&spec.image)).unwrap_or(0);
    let gid = find(|it| it.run_as_group).unwrap_or(0);
    let pod = users.map(|users| &users.pod);
    let more = pod.and_then(|pod| pod.supplemental_groups.clone()).unwrap_or_default();
    let mut groups: Vec<i64> = vec![gid];
    groups.extend(pod.and_then(|pod| pod.fs_group).into_iter().chain(more));
    groups.sort_unstable();
    groups.dedup();
    json!({"linux": {"uid": uid, "gid": gid, "supplementalGroups": groups}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(of_pod: Value, of_container: Value) -> Option<Arc<PodUsers>> {
        let container = json!({"name": "c", "image": "nginx", "securityContext": of_container});
        let spec = json!({"containers": [container], "securityContext": of_pod});
        PodUsers::of(&Object::from_value(&json!({"metadata": {"name": "p"}, "spec": spec}), vec![]).unwrap())
    }

    fn spec(image: &str) -> Spec {
        Spec { name: "c".into(), image: image.into(), ..Spec::default() }
    }

    #[test]
    fn root_is_refused_where_nobody_may_be_root() {
        assert_eq!(pod(json!({}), json!({"privileged": true})), None);
        let said = pod(json!({"runAsNonRoot": true}), json!({})).unwrap();
        let why = said.refusal(&spec("nginx"), "p_default(u)").unwrap();
        let words =
            "container has runAsNonRoot and image will run as root (pod: \"p_default(u)\", container: c)";
        assert_eq!(why, words);
        assert_eq!(said.refusal(&spec("nginxinc/nginx-unprivileged:1.29"), "p"), None);
        assert_eq!(said.refusal(&spec("gcr.io/distroless/base:nonroot"), "p"), None);
        // Of what nobody knows it is believed: its image has a user of its own, as operators' images do.
        for unknown in
            ["controller:latest", "ghcr.io/me/my-static", "example.com:5000/team/operator@sha256:0"]
        {
            assert_eq!(said.refusal(&spec(unknown), "p"), None, "{unknown}");
        }
        let root = pod(json!({"runAsNonRoot": true, "runAsUser": 7}), json!({"runAsUser": 0})).unwrap();
        assert!(root.refusal(&spec("nginx"), "p").unwrap().starts_with("container's runAsUser breaks"));
        let own = pod(json!({"runAsNonRoot": true}), json!({"runAsNonRoot": false})).unwrap();
        assert_eq!(own.refusal(&spec("nginx"), "p"), None);
    }

    #[test]
    fn the_status_tells_as_whom_it_runs() {
        let of_pod =
            json!({"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]});
        let users = pod(of_pod, json!({})).unwrap();
        let user = status(Some(&users), &spec("nginx"));
        let expected = json!({"uid": 1000, "gid": 3000, "supplementalGroups": [2000, 3000, 4000]});
        assert_eq!(user["linux"], expected);
        let root = json!({"uid": 0, "gid": 0, "supplementalGroups": [0]});
        assert_eq!(status(None, &spec("nginx"))["linux"], root);
    }
}
