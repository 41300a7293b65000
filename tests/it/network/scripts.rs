//! Scripts that listen, and programs in pods that ask the apiserver.

use std::net::SocketAddr;

use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::rbac::role_binding::CLUSTER_ROLE_BINDINGS;
use serde_json::{Value, json};

use super::Net;

fn script(image: &str, text: &str) -> Value {
    json!({"image": image, "command": ["sh", "-c", text]})
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_scripts_start_answer_with_the_files_that_are_there() {
    let net = Net::start().await;
    let page = "mkdir -p /www; echo hello > /www/index.html; echo '{}' > /www/a.json; ";
    let mut ready = script("busybox", &format!("{page} httpd -f -p 8080 -h /www"));
    ready["readinessProbe"] = json!({"httpGet": {"port": 8080}, "periodSeconds": 1});
    let busybox = net.pod("busybox-0", ready).await;
    let get = async |ip, port, path| net.get(ip, SocketAddr::new(ip, port), path).await;
    assert_eq!(get(busybox, 8080, "/").await.as_deref(), Some("hello\n"));
    assert_eq!(
        get(busybox, 8080, "/../www/a.json").await.as_deref(),
        Some("<html><body><h1>404 Not Found</h1></body></html>\n")
    );
    assert_eq!(get(busybox, 8080, "/a.json").await.as_deref(), Some("{}\n"));
    assert_eq!(get(busybox, 80, "/").await, None);
    let serves = format!("{page} cd /www; mkdir sub; touch sub/f; python3 -m http.server 8000");
    let python = script("python:3", &serves);
    let python = net.pod("python-0", python).await;
    assert_eq!(get(python, 8000, "/index.html").await.as_deref(), Some("hello\n"));
    let listed = get(python, 8000, "/sub/?x").await.unwrap();
    assert!(listed.contains("<ul>\n<li><a href=\"f\">f</a></li>\n</ul>"), "{listed}");
    let log = net.log("python-0").await;
    let line = format!("{python} - - [");
    assert!(log.contains(&line) && log.contains("] \"GET /sub/?x HTTP/1.1\" 200 -\n"), "{log}");
    let says =
        "while true; do printf 'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nhi' | nc -l -p 9000; done";
    let netcat = net.pod("netcat-0", script("busybox", says)).await;
    assert_eq!(get(netcat, 9000, "/").await.as_deref(), Some("hi"));
    net.cluster.stop().await;
}

impl Net {
    /// Runs a script to its end; what it said, and its code.
    pub(super) async fn ran(&self, name: &str, text: &str) -> (i64, String) {
        // It has kubectl, curl and openssl.
        let mut container = script("alpine/k8s:1.36.2", text);
        container["name"] = "main".into();
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        self.create(&PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
        (self.ended(name).await, self.log(name).await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_in_a_pod_does_what_its_account_may() {
    let net = Net::start().await;
    let forbidden = "Error from server (Forbidden): configmaps is forbidden: User \
                     \"system:serviceaccount:default:default\" cannot list resource \"configmaps\" in API group \"\" in \
                     the namespace \"default\"\n";
    assert_eq!(net.ran("stranger", "kubectl get cm").await, (1, forbidden.into()));
    let subject = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let binding = json!({"metadata": {"name": "own"}, "subjects": [subject], "roleRef": role});
    net.client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
    let map = "kind: ConfigMap\\napiVersion: v1\\nmetadata:\\n  name: made\\ndata:\\n";
    let applied = format!(
        "printf '{map}  a: one\\n  b: two\\n' > /a.yaml; kubectl apply -f /a.yaml; kubectl apply -f /a.yaml; \
         printf '{map}  a: three\\n' | kubectl apply -f -; kubectl get configmap made -o jsonpath='{{.data}}'; echo; \
         kubectl get cm -o name | grep made; kubectl get cm made --no-headers | grep -c made"
    );
    let said = "configmap/made created\nconfigmap/made unchanged\nconfigmap/made configured\n{\"a\":\"three\"}\n\
                configmap/made\n1\n";
    assert_eq!(net.ran("applies", &applied).await, (0, said.to_owned()));
    net.pod("web-0", json!({"image": "nginx"})).await;
    let waits = "kubectl wait --for=condition=Ready pod/web-0 --timeout=60s && kubectl delete pod web-0 --now && \
                 kubectl get po web-0";
    let gone = "pod/web-0 condition met\npod \"web-0\" deleted from default namespace\n\
                Error from server (NotFound): pods \"web-0\" not found\n";
    assert_eq!(net.ran("waits", waits).await, (1, gone.to_owned()));
    let changes = "kubectl label pod web-1 tier=a && kubectl label pod web-1 tier=b; kubectl label pod web-1 tier-; \
                   kubectl annotate pods web-1 note=x; kubectl patch pod web-1 -p '{\"metadata\":{\"labels\":{\"a\":\"b\"}}}' && \
                   kubectl get pod web-1 -o jsonpath='{.metadata.labels.a}{.metadata.annotations.note}'; echo; \
                   kubectl logs web-1 --tail=1";
    let script = json!({"image": "busybox", "command": ["sh", "-c", "echo first; echo said; sleep 1000"]});
    net.pod("web-1", script).await;
    let done = "pod/web-1 labeled\nerror: 'tier' already has a value (a), and --overwrite is false\n\
                pod/web-1 unlabeled\npod/web-1 annotated\npod/web-1 patched\nbx\nsaid\n";
    assert_eq!(net.ran("changes", changes).await, (0, done.to_owned()));
    let labels = json!({"app": "rolls"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    net.create(&DEPLOYMENTS, json!({"metadata": {"name": "rolls"}, "spec": spec})).await;
    let rolls = "kubectl scale deployment rolls --replicas=2; kubectl rollout status deploy/rolls | tail -1; \
                 kubectl rollout restart deploy rolls; kubectl rollout status deploy/rolls | tail -1; \
                 kubectl get deploy rolls -o jsonpath='{.status.readyReplicas}'; echo; \
                 kubectl rollout history deploy rolls; kubectl rollout undo deploy rolls; \
                 kubectl rollout status deploy/rolls > /dev/null; \
                 kubectl rollout history deploy/rolls | tail -2; \
                 kubectl get deploy rolls -o jsonpath='{.spec.template.metadata.annotations}'; \
                 kubectl rollout undo deploy rolls --to-revision=9";
    let (code, said) = net.ran("rolls", rolls).await;
    let done = "deployment.apps/rolls scaled\ndeployment \"rolls\" successfully rolled out\n\
                deployment.apps/rolls restarted\ndeployment \"rolls\" successfully rolled out\n2\n\
                deployment.apps/rolls \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>\n\n\
                deployment.apps/rolls rolled back\n3         <none>\n\n\
                error: unable to find specified revision 9 in history\n";
    assert_eq!((code, said.as_str()), (1, done));
    let versions = net.ran("versions", "kubectl version | grep Server; kubectl sing").await;
    assert!(versions.1.starts_with("Server Version: v1.36.2"), "{versions:?}");
    assert!(versions.1.contains("\nerror: unknown command \"sing\""), "{versions:?}");
    net.client.get(&CONFIG_MAPS, "default", "made").await.unwrap();
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_in_a_pod_makes_simple_objects_and_says_what_they_are() {
    let net = Net::start().await;
    let asks = "kubectl auth can-i get pods || kubectl auth whoami | sed -n '2s/  */ /gp'";
    let who = "no\nUsername system:serviceaccount:default:default\n";
    assert_eq!(net.ran("asks", asks).await, (0, who.to_owned()));
    let subject = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let binding = json!({"metadata": {"name": "own"}, "subjects": [subject], "roleRef": role});
    net.client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
    let makes = "kubectl auth can-i delete deployments.apps/web; echo -n word > /password; \
        kubectl create configmap one --from-literal=a=1 --from-literal=b=x=y; \
        kubectl create secret generic two --from-file=/password --from-file=other=/password; \
        kubectl create configmap three --from-literal=a=1 --dry-run=client -o yaml > /three; cat /three; kubectl apply -f /three; \
        kubectl create deployment web --image=nginx:1.27 --replicas=2 --port=80; \
        kubectl create job once --image=busybox -- echo hi; kubectl create namespace own; kubectl create serviceaccount me; \
        kubectl get secret two -o jsonpath='{.data.other}{\"\\n\"}'; \
        kubectl get cm one three -o custom-columns=NAME:.metadata.name,B:.data.b; \
        kubectl get deploy web -o jsonpath='{range .spec.template.spec.containers[*]}{.name} {.image} {.ports[0].containerPort}{\"\\n\"}{end}'; \
        kubectl get cm --sort-by=.data.b --no-headers -o name | tail -1; \
        kubectl create configmap one --from-literal=a=1; kubectl create thing x";
    let (code, said) = net.ran("makes", makes).await;
    let wanted = "yes\nconfigmap/one created\nsecret/two created\n\
        apiVersion: v1\ndata:\n  a: '1'\nkind: ConfigMap\nmetadata:\n  name: three\nconfigmap/three created\n\
        deployment.apps/web created\njob.batch/once created\nnamespace/own created\nserviceaccount/me created\n\
        d29yZA==\nNAME    B\none     x=y\nthree   <none>\nnginx nginx:1.27 80\nconfigmap/one\n\
        error: failed to create configmap: configmaps \"one\" already exists\n";
    assert!(code == 1 && said.starts_with(wanted), "{said}");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_apiserver_shows_its_certificate_at_the_address_of_its_service() {
    let net = Net::start().await;
    let asks = "ca=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt; to=kubernetes.default.svc:443; \
        openssl s_client -connect $to -CAfile $ca </dev/null 2>/dev/null > /shown; echo $?; grep 'Verify return code' /shown; \
        openssl x509 -noout -subject -ext subjectAltName < /shown | grep -c -e kube-apiserver -e DNS:kubernetes.default.svc; \
        nc -z -w 2 kubernetes.default.svc 443 && echo there";
    let (code, said) = net.ran("asks", asks).await;
    assert_eq!((code, said.as_str()), (0, "0\nVerify return code: 0 (ok)\n2\nthere\n"));
    net.cluster.stop().await;
}
