//! `kubectl apply`, `diff`, `patch`, `label`, `annotate`, `edit`.

use super::NGINX;
use crate::support::{texts, with_each_kubectl};

#[test]
fn apply_creates_then_changes_then_rests() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        let apply = format!("apply -f {file}");
        assert_eq!(kubectl.ok(&apply), "deployment.apps/nginx created\n");
        assert_eq!(kubectl.ok(&apply), "deployment.apps/nginx unchanged\n");
        up.file("nginx.yaml", &NGINX.replace("replicas: 2", "replicas: 5"));
        let diff = kubectl.run(&format!("diff -f {file}"));
        let (shown, said) = texts(&diff);
        assert_eq!(diff.status.code(), Some(1), "{shown}{said}");
        assert!(shown.contains("-  replicas: 2") && shown.contains("+  replicas: 5"), "{shown}");
        assert_eq!(kubectl.ok(&apply), "deployment.apps/nginx configured\n");
        kubectl.until("get deployment nginx", |text| text.contains(" 5/5 "));
        kubectl.ok(&format!("diff -f {file}"));
        let dry = kubectl.ok(&format!("{apply} --dry-run=server"));
        assert_eq!(dry, "deployment.apps/nginx unchanged (server dry run)\n");
    });
}

#[test]
fn apply_merges_containers_by_name_and_takes_away_what_it_gave() {
    with_each_kubectl(|up, kubectl| {
        let with_more = NGINX.replace(
            "        ports:",
            "        env:\n        - name: A\n          value: '1'\n        - name: B\n          value: '2'\n        ports:",
        );
        let file = up.file("nginx.yaml", &with_more);
        kubectl.ok(&format!("apply -f {file}"));
        kubectl.ok("set env deployment/nginx C=3");
        up.file("nginx.yaml", &with_more.replace("        - name: B\n          value: '2'\n", ""));
        kubectl.ok(&format!("apply -f {file}"));
        let env =
            kubectl.ok("get deployment nginx -o jsonpath={.spec.template.spec.containers[0].env[*].name}");
        let mut names: Vec<&str> = env.split(' ').collect();
        names.sort_unstable();
        assert_eq!(names, ["A", "C"]);
    });
}

#[test]
fn apply_runs_on_the_servers_side() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        let apply = format!("apply --server-side -f {file}");
        assert_eq!(kubectl.ok(&apply), "deployment.apps/nginx serverside-applied\n");
        kubectl.ok(&apply);
        let owners =
            "get deployment nginx --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}";
        kubectl.until(owners, |named| named.starts_with("kubectl kube-controller-manager"));
        kubectl.ok("scale deployment nginx --replicas 5");
        let said = kubectl.fails(&apply);
        assert!(said.contains("Apply failed with 1 conflict: conflict with \"kubectl"), "{said}");
        assert!(said.contains(".spec.replicas"), "{said}");
        kubectl.ok(&format!("{apply} --force-conflicts"));
        assert_eq!(kubectl.ok("get deployment nginx -o jsonpath={.spec.replicas}"), "2");
        up.file("nginx.yaml", &NGINX.replace("replicas: 2", "replicas: 3"));
        let diff = kubectl.run(&format!("diff --server-side -f {file}"));
        let (shown, said) = texts(&diff);
        assert!(shown.contains("+  replicas: 3") && diff.status.code() == Some(1), "{shown}{said}");
        let said = kubectl.fails(&format!("{apply} --field-manager another"));
        assert!(said.contains("conflict with \"kubectl\": .spec.replicas"), "{said}");
        kubectl.ok(&apply);
        up.file("nginx.yaml", &NGINX.replace("replicas: 2", "replicas: 2\n  colour: red"));
        let said = kubectl.fails(&apply);
        assert!(said.contains(".spec.colour: field not declared in schema"), "{said}");
    });
}

#[test]
fn a_client_side_apply_is_taken_over_by_the_server() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        kubectl.ok(&format!("apply -f {file}"));
        let last = kubectl.ok(&format!("apply view-last-applied -f {file}"));
        assert!(last.contains("replicas: 2"), "{last}");
        up.file("nginx.yaml", &NGINX.replace("nginx:1.25", "nginx:1.26"));
        let said = kubectl.ok(&format!("apply --server-side -f {file}"));
        assert_eq!(said, "deployment.apps/nginx serverside-applied\n");
        let last = kubectl.ok("apply view-last-applied deployment nginx");
        assert!(last.contains("nginx:1.26"), "{last}");
        kubectl.ok(&format!("apply -f {file}"));
        let labelled = NGINX.replace("  name: nginx\nspec", "  name: nginx\n  labels: {prune: me}\nspec");
        up.file("nginx.yaml", &labelled);
        kubectl.ok(&format!("apply -f {file}"));
        let other =
            up.file("other.yaml", &labelled.replace("name: nginx\n  labels", "name: other\n  labels"));
        let pruned =
            kubectl.ok(&format!("apply --prune -l prune=me --prune-allowlist apps/v1/Deployment -f {other}"));
        assert!(pruned.contains("deployment.apps/nginx pruned"), "{pruned}");
    });
}

#[test]
fn objects_are_patched_in_all_three_ways() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        kubectl.ok(&format!("create -f {file}"));
        let replicas = || kubectl.ok("get deployment nginx -o jsonpath={.spec.replicas}");
        kubectl.ok(r#"patch deployment nginx -p '{"spec":{"replicas":3}}'"#);
        assert_eq!(replicas(), "3");
        kubectl.ok(r#"patch deployment nginx --type=merge -p '{"spec":{"replicas":4}}'"#);
        assert_eq!(replicas(), "4");
        kubectl.ok(
            r#"patch deployment nginx --type=json -p '[{"op":"replace","path":"/spec/replicas","value":1}]'"#,
        );
        assert_eq!(replicas(), "1");
        let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}"#;
        kubectl.ok(&format!("patch deployment nginx -p '{image}'"));
        let template = kubectl.ok("get deployment nginx -o jsonpath={.spec.template.spec.containers[0]}");
        assert!(
            template.contains(r#""image":"nginx:2""#) && template.contains("containerPort"),
            "{template}"
        );
        let none = r#"[{"op":"remove","path":"/spec/nowhere"}]"#;
        let said = kubectl.fails(&format!("patch deployment nginx --type=json -p '{none}'"));
        // Old ones have words of their own for a 422 without causes.
        let said_so =
            ["the server rejected our request due to an error in our request", "The request is invalid"];
        assert!(said_so.iter().any(|text| said.contains(text)), "{said}");
    });
}

#[test]
fn labels_annotations_and_edits() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run web --image=nginx --labels=app=x");
        kubectl.ok("label pod web tier=front");
        assert!(kubectl.fails("label pod web tier=back").contains("--overwrite is false"));
        kubectl.ok("label pod web tier=back --overwrite");
        kubectl.ok("annotate pod web note='two words'");
        assert_eq!(kubectl.ok("get pod web -o jsonpath={.metadata.annotations.note}"), "two words");
        assert!(kubectl.ok("get pods -l app=x,tier=back --no-headers").starts_with("web "));
        let edit =
            kubectl.command("edit pod web").env("KUBE_EDITOR", "sed -i s/back/middle/").output().unwrap();
        assert!(edit.status.success(), "{:?}", texts(&edit));
        assert_eq!(kubectl.ok("get pod web -o jsonpath={.metadata.labels.tier}"), "middle");
        kubectl.ok("label pod web tier-");
        assert_eq!(kubectl.ok("get pod web -o jsonpath={.metadata.labels.tier}"), "");
        let fixed = kubectl.fails(r#"patch pod web -p '{"spec":{"restartPolicy":"Never"}}'"#);
        assert!(fixed.contains("pod updates may not change fields other than"), "{fixed}");
    });
}
