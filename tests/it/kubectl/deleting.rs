//! Deletes: background, foreground, orphan; namespaces; force.

use super::NGINX;
use crate::support::{texts, with_each_kubectl};

#[test]
fn dependents_go_or_stay_as_told() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        let count = |line: &str| kubectl.ok(line).lines().count();
        for cascade in ["background", "foreground"] {
            kubectl.ok(&format!("create -f {file}"));
            kubectl.ok("rollout status deployment/nginx --timeout=60s");
            kubectl.ok(&format!("delete deployment nginx --cascade={cascade} --timeout=60s"));
            kubectl.until("get rs,pods -l app=nginx -o name", str::is_empty);
        }
        kubectl.ok(&format!("create -f {file}"));
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        kubectl.ok("delete deployment nginx --cascade=orphan --timeout=60s");
        assert_eq!(count("get rs -l app=nginx -o name"), 1);
        assert_eq!(count("get pods -l app=nginx -o name"), 2);
        let owners = "get rs -l app=nginx -o jsonpath={.items[0].metadata.ownerReferences}";
        kubectl.until(owners, str::is_empty);
        // The same deployment takes the orphans up again.
        kubectl.ok(&format!("create -f {file}"));
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        kubectl.until(owners, |text| text.contains("Deployment"));
        assert_eq!(count("get rs -l app=nginx -o name"), 1);
    });
}

#[test]
fn a_namespace_takes_everything_with_it() {
    with_each_kubectl(|up, kubectl| {
        kubectl.ok("create namespace test");
        let file = up.file("nginx.yaml", NGINX);
        kubectl.ok(&format!("create -n test -f {file}"));
        kubectl.ok("create configmap settings --from-literal=a=b -n test");
        kubectl.ok("create secret generic hidden --from-literal=a=b -n test");
        kubectl.ok("rollout status deployment/nginx -n test --timeout=60s");
        kubectl.until("get serviceaccounts -n test -o name", |text| text == "serviceaccount/default\n");
        kubectl.until("get configmaps -n test -o name", |text| text.contains("kube-root-ca.crt"));
        kubectl.ok("delete namespace test --timeout=60s");
        assert!(kubectl.fails("get namespace test").contains(r#"namespaces "test" not found"#));
        for kind in ["pods", "deployments", "configmaps", "secrets", "events"] {
            assert_eq!(kubectl.ok(&format!("get {kind} -n test -o name")), "", "{kind}");
        }
        let kept = kubectl.fails("delete namespace default");
        assert!(kept.contains("this namespace may not be deleted"), "{kept}");
    });
}

#[test]
fn pods_go_gracefully_or_at_once() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run web --image=nginx");
        kubectl.ok("wait --for=condition=Ready pod/web --timeout=60s");
        assert!(kubectl.ok("delete pod web").starts_with("pod \"web\" deleted"));
        assert!(kubectl.fails("get pod web").contains(r#"pods "web" not found"#));
        kubectl.ok("run web --image=nginx");
        kubectl.ok("wait --for=condition=Ready pod/web --timeout=60s");
        kubectl.ok("delete pod web --grace-period=0 --force");
        // Old ones fail to wait for what is gone already.
        let waited = kubectl.run("wait --for=delete pod/web --timeout=60s");
        let (_, said) = texts(&waited);
        assert!(waited.status.success() || said.contains("no matching resources found"), "{said}");
        assert!(kubectl.fails("get pod web").contains("not found"));
        kubectl.ok("run web --image=nginx");
        kubectl.ok("delete pods --all");
        assert_eq!(kubectl.ok("get pods -o name"), "");
    });
}
