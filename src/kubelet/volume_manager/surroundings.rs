//! What the process of a container finds around it when it starts (`GenerateRunContainerOptions`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::config_error::ContainerConfigError;
use super::facts::VolumeFacts;
use super::host_files::WrittenFiles;
use super::runs_as::{RunsAs, first_process};
use super::{environment, volumes};
use apimachinery::time::Time;
use apis::views::pod::Container;
use machine::file_system::{MountedVolume, View};
use machine::surroundings::{Surroundings, sysctl_name};

/// What is known of a container's surroundings before anybody looks at its files.
pub struct PreparedContainer {
    variables: BTreeMap<String, String>,
    /// Where its volumes are mounted.
    pub mounts: Vec<MountedVolume>,
}

/// Works out the variables and mounts of `container`; nothing where it is not in its pod.
///
/// # Errors
/// The message of `CreateContainerConfigError`.
pub fn prepare(
    facts: &VolumeFacts<'_>,
    container: &Container,
    written: &WrittenFiles,
) -> Result<Option<PreparedContainer>, ContainerConfigError> {
    let Some(detail) = facts.detail.container(&container.name) else { return Ok(None) };
    let variables = environment::variables(facts, container, detail, written)?;
    let mounts = volumes::mounts(facts, detail, &variables, written)?;
    Ok(Some(PreparedContainer { variables, mounts }))
}

/// What a run of `container` that starts now finds.
///
/// # Errors
/// As [`prepare`].
pub fn surroundings(
    facts: &VolumeFacts<'_>,
    container: &Container,
    restart_count: i64,
    now: Time,
    written: &WrittenFiles,
) -> Result<Surroundings, ContainerConfigError> {
    let found = prepare(facts, container, written)?;
    Ok(found
        .map(|found| surround(facts, container, found, (restart_count, now), written))
        .unwrap_or_default())
}

/// The surroundings of a container that is prepared, for its run of this number that starts then.
pub fn surround(
    facts: &VolumeFacts<'_>,
    container: &Container,
    prepared: PreparedContainer,
    (restart_count, now): (i64, Time),
    written: &WrittenFiles,
) -> Surroundings {
    let Some(detail) = facts.detail.container(&container.name) else { return Surroundings::default() };
    let PreparedContainer { mut variables, mounts } = prepared;
    variables.insert("RANDOM".into(), random(&facts.metadata.uid, restart_count));
    let view =
        View { after: Duration::ZERO, tree: Arc::new(volumes::view(facts, container, &mounts, written)) };
    let (own, of_pod) = (&detail.security_context, &facts.detail.spec.security_context);
    let RunsAs { user, group, groups } = RunsAs::of(own, of_pod, container);
    let start_bytes = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
    let sysctls = of_pod.sysctls.iter().map(|sysctl| (sysctl_name(&sysctl.name), sysctl.value.clone()));
    Surroundings {
        image: container.image.clone(),
        variables,
        start_bytes,
        unseen_runs: 0,
        mounts,
        views: vec![view],
        folder: detail.working_dir.clone(),
        hostname: facts.kernel_hostname().into_owned(),
        user,
        group,
        groups,
        is_root_read_only: own.read_only_root_filesystem == Some(true),
        sysctls: sysctls.collect(),
        started_at: now,
        message_path: detail.termination_message_path.clone(),
        falls_back_to_logs: detail.termination_message_policy == "FallbackToLogsOnError",
        foreign: BTreeMap::new(),
        answers: Arc::default(),
        input: None,
        terminal: None,
        command: first_process(facts, container),
        listens: vec![],
        declared: BTreeMap::new(),
    }
}

/// The shell's `$RANDOM`: any number below 32768, the same each time that this run is looked at.
fn random(uid: &str, restart_count: i64) -> String {
    let seed = uid.bytes().fold(restart_count.unsigned_abs(), |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((seed >> 16) % 32_768).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_runtime::sandbox_status::PodSandboxStatus;
    use crate::volume_manager::sources::Sources;
    use crate::volume_manager::sources::{Found, Source};
    use apimachinery::object::Object;
    use apis::views::pod::Pod;
    use apis::views::pod_detail::PodDetail;
    use machine::file_system::{File, Left};
    use serde_json::{Value, json};

    struct Given {
        pod: Value,
        sources: Sources,
    }

    fn given(spec: Value) -> Given {
        let object = |value: Value| Arc::new(Object::from_value(&value, vec![]).unwrap());
        let metadata =
            json!({"name": "web", "namespace": "ns", "uid": "u-1", "labels": {"index": "3", "b": "\"q\""}});
        let map =
            json!({"metadata": {"name": "c"}, "data": {"k": "v", "l": "w"}, "binaryData": {"bin": "AAE="}});
        let secret = json!({"metadata": {"name": "s"}, "type": "Opaque", "data": {"k": "c2VjcmV0"}});
        let service = json!({"metadata": {"name": "my-db", "namespace": "ns"}, "spec": {"clusterIP": "10.0.0.9",
            "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}]}});
        let sources = Sources::from([
            (Source::ConfigMap("c".into()), Found::object(object(map))),
            (Source::ConfigMap("none".into()), Found::Missing("configmap \"none\" not found".into())),
            (Source::Secret("s".into()), Found::object(object(secret))),
            (Source::Services, Found::Services(vec![object(service)])),
        ]);
        Given { pod: json!({"metadata": metadata, "spec": spec}), sources }
    }

    impl Given {
        fn with<T>(&self, look: impl FnOnce(&VolumeFacts<'_>, &Container) -> T) -> T {
            let object = Object::from_value(&self.pod, vec![]).unwrap();
            let (pod, detail) = (object.view::<Pod>(), object.view::<PodDetail>());
            let allocatable = BTreeMap::from([("cpu".to_owned(), "8".to_owned())]);
            let facts = VolumeFacts {
                pod: &pod,
                metadata: &object.metadata,
                annotations: &pod.metadata.annotations,
                detail: &detail,
                sources: &self.sources,
                pod_ips: &PodSandboxStatus::of(["10.244.1.2", "fd00::2"].map(str::to_owned)).unwrap(),
                host_ips: &["172.18.0.2".to_owned(), "fc00::2".to_owned()],
                cluster_dns: "10.96.0.10",
                allocatable: &allocatable,
                memory_capacity: 1 << 30,
            };
            look(&facts, &pod.spec.containers[0])
        }

        fn around(&self) -> Result<Surroundings, ContainerConfigError> {
            self.with(|facts, own| surroundings(facts, own, 0, Time::UNIX_EPOCH, &WrittenFiles::new()))
        }
    }

    fn container(extra: Value) -> Value {
        let mut container = json!({"name": "c", "image": "busybox", "command": ["env"],
            "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "250m"}}});
        json_patch::merge(&mut container, &extra);
        json!({"containers": [container]})
    }

    #[test]
    fn variables_come_from_everywhere() {
        let path = |path: &str| json!({"fieldRef": {"fieldPath": path}});
        let amount =
            |name: &str, divisor: &str| json!({"resourceFieldRef": {"resource": name, "divisor": divisor}});
        let env = json!([
            {"name": "A", "value": "a"},
            {"name": "B", "value": "$(A)b$(C)$$(A)$(MY_DB_SERVICE_PORT)"},
            {"name": "INDEX", "valueFrom": path("metadata.labels['index']")},
            {"name": "IP", "valueFrom": path("status.podIP")},
            {"name": "IPS", "valueFrom": path("status.podIPs")},
            {"name": "HOST_IPS", "valueFrom": path("status.hostIPs")},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "GONE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "x", "optional": true}}},
            {"name": "CPU", "valueFrom": amount("requests.cpu", "0")},
            {"name": "MILLI", "valueFrom": amount("requests.cpu", "1m")},
            {"name": "LIMIT", "valueFrom": amount("limits.cpu", "1")},
            {"name": "MEMORY", "valueFrom": amount("limits.memory", "1Mi")},
        ]);
        let from = json!([{"prefix": "p_", "configMapRef": {"name": "c"}}]);
        let around = given(container(json!({"env": env, "envFrom": from}))).around().unwrap();
        for (name, value) in [
            ("A", "a"),
            ("B", "ab$(C)$(A)5432"),
            ("INDEX", "3"),
            ("IP", "10.244.1.2"),
            ("IPS", "10.244.1.2,fd00::2"),
            ("HOST_IPS", "172.18.0.2,fc00::2"),
            ("SECRET", "secret"),
            ("CPU", "1"),
            ("MILLI", "250"),
            ("LIMIT", "8"),
            ("MEMORY", "64"),
            ("p_k", "v"),
            ("MY_DB_PORT_5432_TCP_ADDR", "10.0.0.9"),
            ("MY_DB_SERVICE_PORT_SQL", "5432"),
            ("HOSTNAME", "web"),
        ] {
            assert_eq!(around.variables.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!around.variables.contains_key("GONE"));
    }

    /// Each variable is twice the one before.
    fn doubling(count: usize) -> Vec<Value> {
        let twice = |at: usize| json!({"name": format!("V{at}"), "value": format!("$(V{0})$(V{0})", at - 1)});
        let first = json!({"name": "V0", "value": "0123456789abcdef0"});
        [first].into_iter().chain((1..count).map(twice)).collect()
    }

    #[test]
    fn variables_come_from_files_of_other_containers() {
        let from = |key: &str, path: &str, is_optional: bool| {
            let source = json!({"volumeName": "v", "path": path, "key": key, "optional": is_optional});
            json!({"env": [{"name": "A", "valueFrom": {"fileKeyRef": source}}]})
        };
        let mut written = WrittenFiles::new();
        let file = File::new(b"HOST='db'\nBAD\n".to_vec(), 0o644);
        written.keep(vec![Left { volume: "v".into(), path: "of/app.env".into(), file: Some(file) }]);
        let found = |extra: Value, volumes: Value| {
            let mut spec = container(extra);
            spec["volumes"] = volumes;
            let given = given(spec);
            given.with(|facts, own| surroundings(facts, own, 0, Time::UNIX_EPOCH, &written))
        };
        let volume = json!([{"name": "v", "emptyDir": {}}]);
        let around = found(from("HOST", "of/app.env", false), volume.clone()).unwrap();
        assert_eq!(around.variables["A"], "db");
        for (extra, volumes, why) in [
            (from("HOST", "no.env", true), volume.clone(), "couldn't parse env file"),
            (from("PORT", "of/app.env", true), volume, "couldn't parse env file"),
            (from("HOST", "a", true), json!([]), "cannot find the volume \"v\" referenced by FileKeyRef"),
        ] {
            assert_eq!(found(extra, volumes).unwrap_err(), why);
        }
    }

    #[test]
    fn a_key_that_a_file_does_not_set_may_be_missing() {
        let mut written = WrittenFiles::new();
        let file = File::new(b"HOST='db'\n".to_vec(), 0o644);
        written.keep(vec![Left { volume: "v".into(), path: "app.env".into(), file: Some(file) }]);
        let found = |is_optional: bool| {
            let source = json!({"volumeName": "v", "path": "app.env", "key": "X", "optional": is_optional});
            let mut spec = container(json!({"env": [{"name": "A", "valueFrom": {"fileKeyRef": source}}]}));
            spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
            given(spec).with(|facts, own| surroundings(facts, own, 0, Time::UNIX_EPOCH, &written))
        };
        let folder = "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~empty-dir/v";
        let why = format!("environment variable key \"X\" not found in file \"{folder}/app.env\"");
        assert_eq!(found(false).unwrap_err(), why);
        assert!(!found(true).unwrap().variables.contains_key("A"));
    }

    #[test]
    fn a_pod_calls_itself_as_it_says() {
        let hostname = |extra: Value| {
            let mut spec = container(json!({}));
            json_patch::merge(&mut spec, &extra);
            let around = given(spec).around().unwrap();
            let hosts = around.views[0].tree["/etc/hosts"].text();
            (around.hostname.clone(), around.variables["HOSTNAME"].clone(), hosts)
        };
        let (name, variable, hosts) =
            hostname(json!({"hostname": "h", "subdomain": "s", "hostnameOverride": "my.own.name"}));
        assert_eq!((&*name, &*variable), ("my.own.name", "my.own.name"));
        assert!(hosts.ends_with("10.244.1.2\tmy.own.name\nfd00::2\tmy.own.name\n"), "{hosts}");
        let (name, _, hosts) =
            hostname(json!({"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": true}));
        assert_eq!(name, "h.s.ns.svc.cluster.local");
        assert!(
            hosts
                .ends_with("10.244.1.2\th.s.ns.svc.cluster.local\th\nfd00::2\th.s.ns.svc.cluster.local\th\n"),
            "{hosts}"
        );
    }

    #[test]
    fn what_is_missing_is_told() {
        let key = |kind: &str, name: &str, key: &str| json!({"env": [{"name": "A", "valueFrom": {kind: {"name": name, "key": key}}}]});
        for (extra, why) in [
            (key("configMapKeyRef", "none", "k"), "configmap \"none\" not found"),
            (key("configMapKeyRef", "c", "x"), "couldn't find key x in ConfigMap ns/c"),
            (key("secretKeyRef", "s", "x"), "couldn't find key x in Secret ns/s"),
            (json!({"envFrom": [{"configMapRef": {"name": "none"}}]}), "configmap \"none\" not found"),
            (json!({"env": doubling(40)}), "argument list too long: variable V13 is over 131072 bytes"),
            (
                json!({"env": doubling(12), "envFrom": [], "volumeMounts": [
                    {"name": "v", "mountPath": "/v", "subPathExpr": "$(V11)"}]}),
                "error SubPath of volume \"v\": file name too long",
            ),
            (
                json!({"env": (0..12).map(|at| json!({"name": format!("A{at}"), "value": "a".repeat(100_000)}))
                    .collect::<Vec<_>>()}),
                "argument list too long: variables are over 1048576 bytes",
            ),
            (
                json!({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "$(NO)"}]}),
                "missing value for NO",
            ),
        ] {
            assert_eq!(given(container(extra)).around().unwrap_err(), why);
        }
    }

    #[test]
    fn a_claim_that_a_pod_may_only_read_is_read_only_everywhere() {
        let mount = |name: &str| json!({"name": name, "mountPath": format!("/{name}")});
        let mut spec = container(json!({"volumeMounts": [mount("a"), mount("b")]}));
        spec["volumes"] = json!([
            {"name": "a", "persistentVolumeClaim": {"claimName": "c", "readOnly": true}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "c"}},
        ]);
        let around = given(spec).around().unwrap();
        assert_eq!(around.mounts.iter().map(|it| it.is_read_only).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn volumes_show_what_they_are_made_of() {
        let mut spec = container(json!({"volumeMounts": [
            {"name": "map", "mountPath": "/map"},
            {"name": "map", "mountPath": "/one/file", "subPath": "k"},
            {"name": "all", "mountPath": "/all/"},
        ]}));
        let labels = json!({"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}});
        spec["volumes"] = json!([
            {"name": "map", "configMap": {"name": "c", "defaultMode": 0o400}},
            {"name": "all", "projected": {"defaultMode": 0o644, "sources": [
                {"secret": {"name": "s", "items": [{"key": "k", "path": "deep/er", "mode": 0o440}]}},
                {"downwardAPI": {"items": [labels]}},
                {"configMap": {"name": "none", "optional": true}},
            ]}},
        ]);
        let around = given(spec.clone()).around().unwrap();
        let tree = &around.views[0].tree;
        let shown = |path: &str| tree.get(path).map(|file| (file.text(), file.mode));
        assert_eq!(shown("/map/k"), Some(("v".into(), 0o400)));
        assert_eq!(shown("/one/file"), Some(("v".into(), 0o400)));
        assert_eq!(shown("/all/deep/er"), Some(("secret".into(), 0o440)));
        assert_eq!(shown("/all/labels"), Some(("b=\"\\\"q\\\"\"\nindex=\"3\"".into(), 0o644)));
        assert!(tree.contains_key("/map/bin") && !tree.contains_key("/one/k"));
        assert!(shown("/etc/hosts").unwrap().0.ends_with("10.244.1.2\tweb\nfd00::2\tweb\n"));

        for (source, why) in [
            (json!({"configMap": {"name": "none"}}), "configmap \"none\" not found"),
            (
                json!({"secret": {"secretName": "s", "items": [{"key": "x", "path": "y"}]}}),
                "references non-existent secret key: x",
            ),
        ] {
            spec["volumes"][0] = source;
            spec["volumes"][0]["name"] = "map".into();
            let refused = given(spec.clone()).with(|facts, _| volumes::check(facts));
            assert_eq!(refused, Err(("map".to_owned(), why.to_owned())));
        }
    }
}
