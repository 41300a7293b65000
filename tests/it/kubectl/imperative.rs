//! Imperative commands and imperative objects.

use super::NGINX;
use crate::support::with_each_kubectl;

#[test]
fn commands_make_scale_and_expose() {
    with_each_kubectl(|_, kubectl| {
        assert_eq!(kubectl.ok("create namespace test"), "namespace/test created\n");
        let line = "create deployment nginx-deployment --image nginx -n test";
        assert_eq!(kubectl.ok(line), "deployment.apps/nginx-deployment created\n");
        let again = kubectl.fails(line);
        assert!(again.contains(r#"deployments.apps "nginx-deployment" already exists"#), "{again}");
        kubectl.ok("wait --for=condition=Available deployment/nginx-deployment -n test --timeout=60s");
        let scaled = kubectl.ok("scale deployment nginx-deployment --replicas 5 -n test");
        assert_eq!(scaled, "deployment.apps/nginx-deployment scaled\n");
        let all_ready = |text: &str| text.contains(" 5/5 ");
        kubectl.until("get deployment nginx-deployment -n test", all_ready);
        let pods = kubectl.ok("get pods -n test --no-headers");
        assert_eq!(pods.lines().filter(|line| line.contains(" Running ")).count(), 5, "{pods}");
        kubectl.ok("expose deployment nginx-deployment --port 80 -n test");
        kubectl.until("get endpoints nginx-deployment -n test", |text| text.contains(":80"));
        let slices =
            kubectl.until("get endpointslices -n test --no-headers", |text| text.contains("10.244."));
        assert!(slices.starts_with("nginx-deployment-"), "{slices}");
        let gone = kubectl.fails("create deployment x --image nginx -n nowhere");
        assert!(gone.contains(r#"namespaces "nowhere" not found"#), "{gone}");
    });
}

#[test]
fn run_starts_pods_that_stay_and_pods_that_end() {
    with_each_kubectl(|_, kubectl| {
        assert_eq!(kubectl.ok("run web --image=nginx"), "pod/web created\n");
        kubectl.ok("wait --for=condition=Ready pod/web --timeout=60s");
        kubectl.ok("run once --image=busybox --restart=Never -- sh -c 'echo done'");
        kubectl.until("get pod once", |text| text.contains("Completed"));
        assert_eq!(kubectl.ok("get pod once -o jsonpath={.status.phase}"), "Succeeded");
        assert_eq!(kubectl.ok("logs once"), "done\n");
        let logs = kubectl.ok("logs web");
        assert!(!logs.is_empty());
        let none = kubectl.fails("logs nobody");
        assert!(none.contains(r#"pods "nobody" not found"#), "{none}");
    });
}

#[test]
fn objects_are_created_and_replaced() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        assert_eq!(kubectl.ok(&format!("create -f {file}")), "deployment.apps/nginx created\n");
        assert!(kubectl.fails(&format!("create -f {file}")).contains("already exists"));
        up.file("nginx.yaml", &NGINX.replace("replicas: 2", "replicas: 4"));
        assert_eq!(kubectl.ok(&format!("replace -f {file}")), "deployment.apps/nginx replaced\n");
        kubectl.until("get deployment nginx", |text| text.contains(" 4/4 "));
        kubectl.ok(&format!("replace --force -f {file}"));
        kubectl.until("get deployment nginx", |text| text.contains(" 4/4 "));
        kubectl.ok(&format!("delete -f {file}"));
        kubectl.until("get pods -l app=nginx --no-headers", str::is_empty);
    });
}

#[test]
fn bad_manifests_are_refused_as_the_real_server_does() {
    with_each_kubectl(|up, kubectl| {
        let unknown = up.file("unknown.yaml", &NGINX.replace("replicas: 2", "replica: 2"));
        let said = kubectl.fails(&format!("create -f {unknown}"));
        // Old ones find it themselves, in the published schema.
        let said_so = [r#"unknown field "spec.replica""#, r#"unknown field "replica" in io.k8s.api.apps.v1"#];
        assert!(said_so.iter().any(|text| said.contains(text)), "{said}");
        let mistyped = up.file("mistyped.yaml", &NGINX.replace("replicas: 2", "replicas: two"));
        let said = kubectl.fails(&format!("create --validate=false -f {mistyped}"));
        assert!(said.contains("cannot be handled as a Deployment"), "{said}");
        let mismatch = up
            .file("mismatch.yaml", &NGINX.replace("labels:\n        app: nginx", "labels:\n        app: x"));
        let said = kubectl.fails(&format!("create -f {mismatch}"));
        assert!(said.contains("`selector` does not match template `labels`"), "{said}");
        let name = up.file("name.yaml", &NGINX.replace("name: nginx\nspec", "name: Nginx_1\nspec"));
        let said = kubectl.fails(&format!("create -f {name}"));
        assert!(said.contains("a lowercase RFC 1123 subdomain must consist of"), "{said}");
        let said = kubectl.fails("create deployment a --image=");
        assert!(!said.is_empty());
    });
}

#[test]
fn a_program_that_its_image_surely_does_not_have_is_no_start() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run none --image=busybox --restart=Never -- nosuchprog");
        kubectl.ok("run own --image=example.com/own --restart=Never -- nosuchprog");
        let terminated =
            "get pod none -o jsonpath={.status.phase};{.status.containerStatuses[0].state.terminated}";
        kubectl.until(terminated, |said| said.starts_with("Failed;"));
        let said = kubectl.ok(terminated);
        for wanted in ["\"exitCode\":128", "StartError", "executable file not found in $PATH"] {
            assert!(said.contains(wanted), "{said}");
        }
        kubectl
            .until("events --for pod/none", |said| said.contains("Error: failed to create containerd task"));
        assert!(!kubectl.ok("events --for pod/none").contains("Started"));
        assert_eq!(kubectl.ok("logs none"), "");
        kubectl.until("get pod own", |said| said.contains("Running"));
    });
}

#[test]
fn programs_are_those_of_the_image_and_of_its_packages() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run own --image=busybox --restart=Never -- curl -s localhost");
        let probe = r#"{"spec":{"containers":[{"name":"box","image":"busybox","command":["sleep","1000"],"readinessProbe":{"exec":{"command":["curl","localhost"]}}}]}}"#;
        kubectl.ok(&format!("run box --image=busybox --overrides={probe}"));
        kubectl.ok("run alpine --image=alpine -- sleep 1000");
        kubectl.ok("wait --for=jsonpath={.status.phase}=Running pod/box pod/alpine --timeout=30s");
        let absent = "executable file not found in $PATH: unknown";
        for command in ["curl -s localhost", "bash", "dig a"] {
            let said = kubectl.fails(&format!("exec box -- {command}"));
            let program = command.split(' ').next().unwrap();
            assert!(said.contains("OCI runtime exec failed: exec failed: "), "{said}");
            assert!(said.contains(&format!("exec: \"{program}\": {absent}")), "{said}");
        }
        let output = kubectl.run("exec box -- sh -c 'curl -s localhost'");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.starts_with("sh: curl: not found\n"), "{errors}");
        assert_eq!(output.status.code(), Some(127), "{errors}");
        assert_eq!(kubectl.ok("exec box -- sh -c 'which wget curl || true'"), "/bin/wget\n");
        let errored =
            "Readiness probe errored and resulted in unknown state: rpc error: code = Unknown desc = ";
        kubectl.until("events --for pod/box", |said| said.contains(errored) && said.contains(absent));
        kubectl.until(
            "get pod own -o jsonpath={.status.containerStatuses[0].state.terminated.reason}",
            |said| said == "StartError",
        );
        // What somebody installs is there until the container ends.
        assert!(kubectl.fails("exec alpine -- curl --version").contains(absent));
        kubectl.ok("exec alpine -- apk add --no-cache curl");
        assert!(kubectl.ok("exec alpine -- curl --version").starts_with("curl 8."));
        assert_eq!(kubectl.ok("exec alpine -- which curl"), "/usr/bin/curl\n");
    });
}
