//! `kubectl` in pods: it describes what there is, and runs commands in other pods.

use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::rbac::role_binding::CLUSTER_ROLE_BINDINGS;
use serde_json::json;

use super::Net;
use crate::support::golden::golden;

impl Net {
    /// The account of pods may do everything.
    async fn let_pods_in(&self) {
        let subject = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
        let role =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
        let binding = json!({"metadata": {"name": "own"}, "subjects": [subject], "roleRef": role});
        self.client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_run_in_other_pods() {
    let net = Net::start().await;
    let forbidden = "Error from server (Forbidden): pods \"none\" is forbidden: User \
        \"system:serviceaccount:default:default\" cannot get resource \"pods\" in API group \"\" in the namespace \"default\"\n";
    assert_eq!(net.ran("stranger", "kubectl exec none -- true").await, (1, forbidden.to_owned()));
    net.let_pods_in().await;
    let two = json!([{"name": "a", "image": "busybox", "command": ["sleep", "1000"]},
        {"name": "b", "image": "busybox", "command": ["sleep", "1000"], "env": [{"name": "OWN", "value": "x y"}]}]);
    net.create(
        &PODS,
        json!({"metadata": {"name": "two", "labels": {"app": "two"}}, "spec": {"containers": two}}),
    )
    .await;
    net.address("two").await;
    let ports = json!([{"port": 80}]);
    net.create(
        &SERVICES,
        json!({"metadata": {"name": "two"}, "spec": {"selector": {"app": "two"}, "ports": ports}}),
    )
    .await;
    let runs = "kubectl exec two -- hostname 2> /said; cat /said; \
        kubectl exec two -q -- sh -c 'echo out; echo wrong >&2; exit 3'; echo $?; \
        kubectl exec -c b pod/two -- sh -c 'echo \"$OWN\"'; \
        printf 'one\\ntwo\\n' | kubectl exec -i svc/two -c b -- wc -l; \
        kubectl exec two -c b -- sh -c 'sleep 2; echo slow'; \
        kubectl exec two -c none -- true; kubectl exec none -- true; kubectl exec two; kubectl exec two true; \
        echo typed | kubectl exec -it two -c a -- cat";
    let wanted = "two\nDefaulted container \"a\" out of: a, b\nout\nwrong\ncommand terminated with exit code 3\n3\n\
        x y\n2\nslow\n\
        error: container none is not valid for pod two out of: a, b\n\
        Error from server (NotFound): pods \"none\" not found\n\
        error: you must specify at least one command for the container\n\
        error: exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\n\
        See 'kubectl exec -h' for help and examples\n\
        Unable to use a TTY - input is not a terminal or the right kind of file\ntyped\n";
    let (code, said) = net.ran("runs", runs).await;
    assert_eq!((code, said.as_str()), (0, wanted));
    let large = "kubectl exec two -c a -- sh -c 'seq 60000' | wc -c";
    let (_, said) = net.ran("large", large).await;
    assert!(said.contains("it said more than is read here"), "{said}");
    net.cluster.stop().await;
}

/// What stands in the place of what varies: addresses, times, names by chance.
fn steady(said: &str) -> String {
    let patterns = [
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
        (r"(containerd|docker-pullable)://\S+", "ID"),
        (r"sha256:[0-9a-f]{64}", "SHA"),
        (r"-[0-9a-f]{8,10}\b(-[a-z0-9]{5}\b)?", "-HASH"),
        (r"pod-template-hash=\w+", "pod-template-hash=HASH"),
        (r"kube-api-access-\w{5}", "kube-api-access-NAME"),
        (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
        (r"node-[12]/\S+", "NODE"),
        (r"\bnode-[12]\b", "NODE"),
        (r"\b\d+(\.\d+)?(ms|s)\b", "AGO"),
        (r"Image size: \d+", "Image size: N"),
        (r" {2,}", "  "),
    ];
    patterns.iter().fold(said.to_owned(), |text, (pattern, with)| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_described() {
    let net = Net::start().await;
    net.let_pods_in().await;
    let data =
        json!({"data": {"a": "one\ntwo", "b": "x"}, "metadata": {"name": "map", "labels": {"l": "m"}}});
    net.create(&CONFIG_MAPS, data).await;
    let container = json!({"name": "web", "image": "nginx:1.27", "ports": [{"containerPort": 80, "name": "http"}],
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
        "env": [{"name": "PLAIN", "value": "v"},
            {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "a"}}},
            {"name": "OWN", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]});
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [container], "volumes": [{"name": "scratch", "emptyDir": {}}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    net.create(&DEPLOYMENTS, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let ports = json!([{"port": 80, "targetPort": "http"}]);
    net.create(
        &SERVICES,
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}),
    )
    .await;
    let waits = "kubectl rollout status deployment/web > /dev/null; ";
    for (what, wanted) in [
        ("configmap map", "configmap"),
        ("deployment web", "deployment"),
        ("pod web", "pod"),
        ("svc/web", "service"),
    ] {
        let name = format!("tells-{}", what[..3].to_lowercase());
        let (code, said) = net.ran(&name, &format!("{waits}kubectl describe {what}")).await;
        assert_eq!(code, 0, "{what}: {said}");
        golden(&format!("kubectl-in-pods/{wanted}.txt"), &steady(&said));
    }
    let (_, said) = net.ran("tells-nod", "kubectl describe node node-1").await;
    for part in [
        "Roles:              <none>\n",
        "\nAllocated resources:\n  (Total limits",
        "  Type    ",
        "HolderIdentity:  node-1\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let others = "kubectl describe cm none; kubectl describe sa default | head -2; kubectl describe ingress; kubectl describe secret";
    let (_, said) = net.ran("others", others).await;
    let wanted = "Error from server (NotFound): configmaps \"none\" not found\n\
        Name:                default\nNamespace:           default\n\
        error: no description of ingresses is known here: this one describes ";
    assert!(
        said.starts_with(wanted) && said.ends_with("No resources found in default namespace.\n"),
        "{said}"
    );
    net.cluster.stop().await;
}
