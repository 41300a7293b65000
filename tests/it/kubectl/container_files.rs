//! What a container finds: files of its image and of its volumes, what others left there a moment ago, its own
//! limits; and ports of its node.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Kubectl, with_each_kubectl};

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.53";
const WAITS: &str = "trap exit TERM; while true; do sleep 1; done";

fn pod(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

fn shell(name: &str, script: &str, mounts: Value) -> Value {
    json!({"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts})
}

fn create(kubectl: &Kubectl, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut command = kubectl.command("create -f -");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(list.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn files_come_from_images_volumes_and_other_containers() {
    with_each_kubectl(|_, kubectl| {
        let shared = json!({
            "restartPolicy": "Never",
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                shell("main", WAITS, json!([
                    {"name": "v", "mountPath": "/all"},
                    {"name": "v", "mountPath": "/own", "subPathExpr": "a/$(HOSTNAME)"},
                ])),
                shell("other", "echo hello > /data/said", json!([{"name": "v", "mountPath": "/data"}])),
            ],
        });
        let mut of_node = json!({
            "volumes": [
                {"name": "hosts", "hostPath": {"path": "/etc/hosts", "type": "File"}},
                {"name": "image", "image": {"reference": "registry.k8s.io/e2e-test-images/kitten:1.8"}},
                {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "10Mi"}},
            ],
            "containers": [shell("main", WAITS, json!([
                {"name": "hosts", "mountPath": "/etc/hosts-original"},
                {"name": "image", "mountPath": "/image"},
                {"name": "memory", "mountPath": "/memory"},
            ]))],
        });
        of_node["containers"][0]["resources"] =
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1500m", "memory": "64Mi"}});
        create(kubectl, &[pod("shared", shared), pod("node", of_node)]);
        kubectl.ok("wait --for=condition=Ready pod/node --timeout=60s");
        // The first look sees what was left and fetched meanwhile.
        kubectl.until("get pod shared -o jsonpath='{.status.containerStatuses[1].state}'", |state| {
            state.contains("terminated")
        });
        assert_eq!(kubectl.ok("exec shared -c main -- cat /all/said"), "hello\n");
        assert_eq!(kubectl.ok("exec shared -c main -- sh -c 'test -d /all/a/shared; echo $?'"), "0\n");
        let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
        assert_eq!(kubectl.ok(&format!("exec node -- cat {folder}/namespace")), "default");
        let node = kubectl.ok("get pod node -o jsonpath='{.spec.nodeName}'");
        assert!(kubectl.ok("exec node -- cat /etc/hosts-original").ends_with(&format!("\t{node}\n")));
        assert_eq!(kubectl.ok("exec node -- cat /image/data.json"), "{\n  \"image\": \"kitten.jpg\"\n}\n");
        assert!(kubectl.ok("exec node -- cat /image/etc/os-release").contains("Alpine Linux"));
        assert!(kubectl.fails("exec node -- touch /image/new").contains("Read-only file system"));
        let mounted = kubectl.ok("exec node -- mount -t cgroup2");
        assert!(mounted.starts_with("cgroup on /sys/fs/cgroup type cgroup2 "), "{mounted}");
        assert_eq!(kubectl.ok("exec node -- cat /sys/fs/cgroup/cpu.max"), "150000 100000\n");
        assert_eq!(kubectl.ok("exec node -- cat /sys/fs/cgroup/memory.max"), "67108864\n");
        kubectl.ok("exec node -- sh -c 'seq 1000 > /memory/numbers'");
        // Its own limit, or that of its pod.
        for (place, size) in
            [("/memory", ["10240", "4", "10236", "1%"]), (folder, ["65536", "12", "65524", "1%"])]
        {
            let disks = kubectl.ok("exec node -- df");
            let line = disks.lines().find(|line| line.ends_with(place)).unwrap_or_else(|| panic!("{disks}"));
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((words[0], &words[1..5]), ("tmpfs", &size[..]), "{disks}");
        }
        assert!(
            kubectl
                .ok("exec node -- mount")
                .contains("tmpfs on /memory type tmpfs (rw,relatime,size=10240k)\n")
        );
        assert!(kubectl.ok("exec node -- df -h /memory/numbers").ends_with(" 1% /memory\n"));
    });
}

#[test]
fn what_is_in_a_claimed_volume_stays_for_the_next_pod() {
    with_each_kubectl(|_, kubectl| {
        let resources = json!({"requests": {"storage": "1Gi"}});
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": resources}});
        let with_claim = |name: &str, script: &str, node: &str| {
            let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
            let main = shell("main", script, json!([{"name": "v", "mountPath": "/p", "subPath": "of"}]));
            let selector = json!({"kubernetes.io/hostname": node});
            let mut made = json!({"volumes": volumes, "containers": [main]});
            if !node.is_empty() {
                made["nodeSelector"] = selector;
            }
            pod(name, made)
        };
        let writes = format!("echo first > /p/f; {WAITS}");
        create(kubectl, &[claim, with_claim("one", &writes, "")]);
        kubectl.ok("wait --for=condition=Ready pod/one --timeout=60s");
        let node = kubectl.ok("get pod one -o jsonpath='{.spec.nodeName}'");
        kubectl.ok("delete pod one --wait");
        create(kubectl, &[with_claim("two", WAITS, &node)]);
        kubectl.ok("wait --for=condition=Ready pod/two --timeout=60s");
        assert_eq!(kubectl.ok("exec two -- cat /p/f"), "first\n");
        kubectl.ok("exec two -- sh -c 'echo second > /p/g; rm /p/f'");
        kubectl.ok("delete pod two --wait");
        create(kubectl, &[with_claim("three", WAITS, "")]);
        kubectl.ok("wait --for=condition=Ready pod/three --timeout=60s");
        assert_eq!(kubectl.ok("exec three -- sh -c 'cd /p; echo *; cat *'"), "g\nsecond\n");
    });
}

#[test]
fn web_servers_serve_the_files_that_are_there() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("create configmap pages --from-literal=index.html=mine --from-literal=a.json={}");
        let mounts = json!([{"name": "pages", "mountPath": "/usr/share/nginx/html"}]);
        let mounted = json!({
            "volumes": [{"name": "pages", "configMap": {"name": "pages"}}],
            "containers": [{"name": "c", "image": "nginx:1.27", "volumeMounts": mounts}],
        });
        let probe = json!({"httpGet": {"path": "/localhost.crt", "port": 80}, "periodSeconds": 1, "failureThreshold": 1});
        let files =
            json!({"name": "c", "image": AGNHOST, "args": ["test-webserver"], "readinessProbe": probe});
        let picture = json!({"name": "c", "image": "registry.k8s.io/e2e-test-images/nautilus:1.8"});
        let says = json!([{"name": "SERVE_TLS_PORT_443", "value": "secret"}]);
        let porter = json!({"name": "c", "image": AGNHOST, "args": ["porter"], "env": says});
        create(
            kubectl,
            &[
                pod("porter", json!({"containers": [porter]})),
                pod("mounted", mounted),
                pod("files", json!({"containers": [files]})),
                pod("picture", json!({"containers": [picture]})),
            ],
        );
        kubectl.ok("run plain --image=nginx:1.27");
        kubectl.ok("wait --for=condition=Ready pod --all --timeout=60s");
        let page = |pod: &str, path: &str| {
            kubectl.ok(&format!("get --raw /api/v1/namespaces/default/pods/{pod}:80/proxy/{path}"))
        };
        assert_eq!((page("mounted", ""), page("mounted", "a.json")), ("mine".into(), "{}".into()));
        let tls = kubectl.ok("get --raw /api/v1/namespaces/default/pods/https:porter:443/proxy/");
        assert_eq!(tls, "secret", "with the certificate of its image");
        assert!(page("plain", "").contains("Welcome to nginx!"));
        kubectl.ok("exec plain -- sh -c 'echo written > /usr/share/nginx/html/index.html'");
        assert_eq!(page("plain", ""), "written\n");
        assert_eq!(page("picture", "data.json"), "{\n  \"image\": \"nautilus.jpg\"\n}\n");
        assert!(page("files", "localhost.crt").starts_with("-----BEGIN CERTIFICATE-----\n"));
        kubectl.ok("exec files -- mv -v /localhost.crt /tmp/");
        let gone = kubectl.fails("get --raw /api/v1/namespaces/default/pods/files:80/proxy/localhost.crt");
        assert!(gone.contains("NotFound"), "{gone}");
        kubectl.ok("wait --for=condition=Ready=false pod/files --timeout=60s");
        kubectl.ok("exec files -- mv -v /tmp/localhost.crt /");
        kubectl.ok("wait --for=condition=Ready pod/files --timeout=60s");
        assert!(page("files", "localhost.crt").starts_with("-----BEGIN CERTIFICATE-----\n"));
    });
}

#[test]
fn a_port_of_the_node_leads_to_the_pod_that_asked_for_it() {
    with_each_kubectl(|_, kubectl| {
        let ports = json!([{"containerPort": 8080, "hostPort": 8088}]);
        let web = json!({"name": "c", "image": AGNHOST, "args": ["netexec"], "ports": ports});
        let ports = json!([{"containerPort": 8080, "hostPort": 8087, "hostIP": "127.0.0.1"}]);
        let near = json!({"name": "c", "image": AGNHOST, "args": ["netexec"], "ports": ports});
        // On the node of the first: loopback is of one node.
        let beside = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"beside": "near"}}}]}});
        let mut near = pod("near", json!({"containers": [near]}));
        near["metadata"]["labels"] = json!({"beside": "near"});
        let client =
            json!({"containers": [shell("c", WAITS, json!([]))], "hostNetwork": true, "affinity": beside});
        create(kubectl, &[pod("web", json!({"containers": [web]})), near, pod("client", client)]);
        kubectl.ok("wait --for=condition=Ready pod --all --timeout=60s");
        let node = kubectl.ok("get pod web -o jsonpath='{.status.hostIP}'");
        assert_eq!(kubectl.ok(&format!("exec client -- wget -q -O- http://{node}:8088/hostname")), "web");
        assert_eq!(kubectl.ok("exec client -- wget -q -O- http://127.0.0.1:8087/hostname"), "near");
        let own = kubectl.ok("get pod client -o jsonpath='{.status.hostIP}'");
        for nobody in [format!("{node}:8089"), format!("{own}:8087")] {
            let refused = kubectl.fails(&format!("exec client -- wget -q -O- http://{nobody}/"));
            assert!(refused.contains("Connection refused"), "{nobody}: {refused}");
        }
    });
}

#[test]
fn a_pause_container_never_ends_by_itself() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("create job waits --image=registry.k8s.io/pause:3.10");
        kubectl.ok("create job ends --image=busybox -- true");
        kubectl.ok("wait --for=condition=Complete job/ends --timeout=60s");
        let ready = "get job waits -o jsonpath='{.status.ready}/{.status.succeeded}'";
        kubectl.until(ready, |counts| counts == "1/");
    });
}

/// As the page of the documentation on security contexts shows it.
#[test]
fn volumes_have_the_group_of_their_pod() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("create configmap files --from-literal=a=b");
        let security =
            json!({"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]});
        let mounts = json!([{"name": "data", "mountPath": "/data/demo"}, {"name": "files", "mountPath": "/files"},
            {"name": "node", "mountPath": "/node"}]);
        let container =
            json!({"name": "demo", "image": "busybox", "args": ["sleep", "1h"], "volumeMounts": mounts});
        let volumes = json!([{"name": "data", "emptyDir": {}}, {"name": "files", "configMap": {"name": "files"}},
            {"name": "node", "hostPath": {"path": "/tmp/own"}}]);
        let spec = json!({"securityContext": security, "containers": [container], "volumes": volumes});
        kubectl.ok(&format!("run demo --image=busybox --overrides='{}'", json!({"spec": spec})));
        kubectl.ok("wait --for=condition=Ready pod/demo --timeout=60s");
        let said = |script: &str| kubectl.ok(&format!("exec demo -- sh -c '{script}'"));
        assert!(said("ps").contains("    1 1000      0:00 sleep 1h\n"));
        assert_eq!(said("id"), "uid=1000 gid=3000 groups=2000,3000,4000\n");
        let columns = "| tail -n +2 | tr -s \" \" | cut -d \" \" -f 1,3,4,9";
        assert_eq!(said(&format!("ls -l /data {columns}")), "drwxrwsrwx root 2000 demo\n");
        let made = said(&format!("cd /data/demo; echo hello > file; mkdir sub; ls -l {columns}"));
        assert_eq!(made, "-rw-r--r-- 1000 2000 file\ndrwxr-sr-x 1000 2000 sub\n");
        assert_eq!(said(&format!("ls -lL /files {columns}")), "-rw-r--r-- root 2000 a\n");
        assert_eq!(said(&format!("touch /node/x /tmp/y; ls -l /node {columns}")), "-rw-r--r-- 1000 3000 x\n");
        assert_eq!(
            said("stat -c \"%u %g %a\" /data/demo /data/demo/file /tmp/y"),
            "0 2000 2777\n1000 2000 644\n1000 3000 644\n"
        );
    });
}
