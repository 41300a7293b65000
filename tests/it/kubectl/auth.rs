//! `kubectl auth`: can-i, whoami's neighbour, and reconcile.

use crate::support::with_each_kubectl;

/// What everybody who is known may do, as a real server lists it.
const EVERYBODY: &str = "
Resources Non-Resource URLs Resource Names Verbs
selfsubjectreviews.authentication.k8s.io [] [] [create]
selfsubjectaccessreviews.authorization.k8s.io [] [] [create]
selfsubjectrulesreviews.authorization.k8s.io [] [] [create]
[/api/*] [] [get]
[/api] [] [get]
[/apis/*] [] [get]
[/apis] [] [get]
[/healthz] [] [get]
[/healthz] [] [get]
[/livez] [] [get]
[/livez] [] [get]
[/openapi/*] [] [get]
[/openapi] [] [get]
[/readyz] [] [get]
[/readyz] [] [get]
[/version/] [] [get]
[/version/] [] [get]
[/version] [] [get]
[/version] [] [get]
";

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: reader
  namespace: default
rules:
- apiGroups: ['']
  resources: [configmaps]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: reader
  namespace: default
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: reader
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: jane
";

#[test]
fn kubectl_says_who_may_do_what() {
    with_each_kubectl(|up, kubectl| {
        assert_eq!(kubectl.ok("auth can-i delete nodes").trim_end(), "yes");
        let listed = kubectl.ok("auth can-i --list --as nobody");
        let words = |text: &str| -> Vec<String> {
            let lines = text.trim().lines();
            lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(words(&listed), words(EVERYBODY));
        let file = up.file("role.yaml", ROLE);
        let done = kubectl.ok(&format!("auth reconcile -f {file}"));
        assert!(done.contains("role.rbac.authorization.k8s.io/reader reconciled"), "{done}");
        assert!(done.contains("rolebinding.rbac.authorization.k8s.io/reader reconciled"), "{done}");
        kubectl.until("auth can-i get configmaps --as jane", |answer| answer.trim_end() == "yes");
        let more = up.file("role.yaml", &ROLE.replace("[get]", "[list]"));
        kubectl.ok(&format!("auth reconcile -f {more}"));
        kubectl.until("auth can-i list configmaps --as jane", |answer| answer.trim_end() == "yes");
        assert_eq!(kubectl.ok("auth can-i get configmaps --as jane").trim_end(), "yes");
        let refused = kubectl.fails("get secrets --as jane");
        let text = "Error from server (Forbidden): secrets is forbidden: User \"jane\" cannot list resource \
            \"secrets\" in API group \"\" in the namespace \"default\"";
        assert_eq!(refused.trim_end(), text);
        let refused = kubectl.fails("get namespace default --as jane");
        let text = "Error from server (Forbidden): namespaces \"default\" is forbidden: User \"jane\" cannot \
            get resource \"namespaces\" in API group \"\" in the namespace \"default\"";
        assert_eq!(refused.trim_end(), text);
        assert!(kubectl.ok("get clusterroles --no-headers").lines().count() > 65);
    });
}
