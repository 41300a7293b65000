//! Into pods: `kubectl exec`, `port-forward`, and requests through the apiserver to a pod or a Service.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::json;
use sha2::Digest;

use crate::support::forward::Forward;
use crate::support::{Kubectl, texts, with_each_kubectl};

/// Both ways in which kubectl opens streams; an old one knows the second alone, and does not look.
const STREAMS: [(&str, &str); 2] = [("websockets", "true"), ("SPDY", "false")];
const WHO_AM_I: &str = "create deployment web --image=traefik/whoami --port=80";

fn start_forward(kubectl: &Kubectl, line: &str, websockets: &str) -> Forward {
    let mut command = kubectl.command(&format!("port-forward --address 127.0.0.1 {line}"));
    command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets);
    Forward::start(command)
}

#[test]
fn ports_of_pods_and_of_services_are_forwarded() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run nginx --image=nginx:1.25");
        kubectl.ok(WHO_AM_I);
        kubectl.ok("expose deployment web --port=8080 --target-port=80");
        kubectl.ok("wait --for=condition=Ready pod --all --timeout=60s");
        for (name, websockets) in STREAMS {
            let forward = start_forward(kubectl, "pod/nginx :80", websockets);
            let page = forward.get("/");
            assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {page}");
            assert!(page.contains("Welcome to nginx!"), "{name}: {page}");
            assert!(forward.get("/none").starts_with("HTTP/1.1 404 "), "{name}");
            let forward = start_forward(kubectl, "service/web :8080", websockets);
            assert!(forward.get("/a?b=c").contains("GET /a?b=c HTTP/1.1\r\n"), "{name}");
            let nobody = start_forward(kubectl, "pod/nginx :81", websockets);
            assert_eq!(nobody.get("/"), "", "{name}");
        }
    });
}

#[test]
fn commands_run_over_either_kind_of_stream() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run box --image=busybox --restart=Never -- sleep 1000");
        kubectl.ok("wait --for=condition=Ready pod/box --timeout=60s");
        for (name, websockets) in STREAMS {
            let run = |line: &str, input: &str| {
                let output = fed(kubectl, (line, websockets), input.as_bytes());
                let (out, errors) = texts(&output);
                (output.status.code(), out, errors)
            };
            let (code, out, errors) = run("exec box -- sh -c 'echo out; echo err >&2; exit 3'", "");
            assert_eq!((code, &*out), (Some(3), "out\n"), "{name}: {errors}");
            assert_eq!(errors, "err\ncommand terminated with exit code 3\n", "{name}");
            assert_eq!(run("exec -i box -- cat", "some input\n").1, "some input\n", "{name}");
            let (code, out, _) = run("exec -i box -- sh", "x=5\necho $((x + 1))\nexit 4\n");
            assert_eq!((code, &*out), (Some(4), "6\n"), "{name}");
        }
    });
}

/// Runs it with this on its standard input.
fn fed(kubectl: &Kubectl, (line, websockets): (&str, &str), input: &[u8]) -> Output {
    let mut command = kubectl.command(line);
    command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
    let mut child = piped(&mut command);
    let mut into = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || into.write_all(input));
        child.wait_with_output().unwrap()
    })
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn whole_streams_go_through_commands_that_read() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run box --image=busybox --restart=Never -- sleep 1000");
        kubectl.ok("wait --for=condition=Ready pod/box --timeout=60s");
        let bytes: Vec<u8> =
            (0..5_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let sum = format!("{:x}  -\n", sha2::Sha256::digest(&bytes[..1 << 20]));
        for (name, websockets) in STREAMS {
            let run = |line: &str, input: &[u8]| {
                let output = fed(kubectl, (line, websockets), input);
                assert!(output.status.success(), "{name}: {line}: {}", texts(&output).1);
                output.stdout
            };
            let said = |line: &str, input: &[u8]| String::from_utf8(run(line, input)).unwrap();
            assert!(run("exec -i box -- cat", &bytes) == bytes, "{name}: another stream came back");
            assert_eq!(said("exec -i box -- wc -c", &bytes), format!("{}\n", bytes.len()), "{name}");
            assert_eq!(said("exec -i box -- sha256sum", &bytes[..1 << 20]), sum, "{name}");
            run("exec -i box -- sh -c 'cat > /tmp/kept'", &bytes[..1 << 20]);
            assert_eq!(said("exec box -- sha256sum /tmp/kept", b"").split(' ').next(), sum.split(' ').next());
            assert_eq!(said("exec -i box -- tee /tmp/a", b"no end of a line"), "no end of a line", "{name}");
            // A shell and what it runs read the same stream, one after the other.
            let script = b"read a b\none two\necho $b $a\ncat <<E\nx\nE\nwc -l\n1\n2\n3";
            assert_eq!(said("exec -i box -- sh", script), "two one\nx\n2\n", "{name}");
            let script = b"set -- \"$@\" c\necho $# $1 $3\nfalse\necho not reached\n";
            let output = fed(kubectl, ("exec -i box -- sh -es -- a b", websockets), script);
            assert_eq!((output.status.code(), texts(&output).0.as_str()), (Some(1), "3 a c\n"), "{name}");
            // Who only wants to say something hears nothing back, and ends when it does.
            assert_eq!(said("exec -i box -- sh -c 'exit 0'", &bytes[..1000]), "", "{name}");
        }
    });
}

#[test]
fn a_shell_behind_a_pipe_answers_as_soon_as_it_is_asked() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run box --image=busybox --restart=Never -- sleep 1000");
        kubectl.ok("wait --for=condition=Ready pod/box --timeout=60s");
        let mut command = kubectl.command("exec -i box -- sh");
        let mut child = piped(&mut command);
        let mut into = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        for number in 1..=5 {
            // What others do meanwhile it sees, too.
            kubectl.ok(&format!("exec box -- sh -c 'echo {number} > /tmp/told'"));
            writeln!(into, "x=${{x}}{number}; echo $x $(cat /tmp/told)").unwrap();
            let told: String = (1..=number).map(|number| number.to_string()).collect();
            assert_eq!(out.next().unwrap().unwrap(), format!("{told} {number}"));
        }
        drop(into);
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn pods_and_services_are_reached_through_the_apiserver() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok(WHO_AM_I);
        kubectl.ok("expose deployment web --port=8080 --target-port=80");
        kubectl.ok("run exec --image=registry.k8s.io/e2e-test-images/agnhost:2.53 --port=8080 -- netexec");
        kubectl.ok("wait --for=condition=Ready pod --all --timeout=60s");
        let raw = |path: &str| format!("get --raw '/api/v1/namespaces/default/{path}'");
        kubectl.until(&raw("services/web:8080/proxy/a?b=c"), |page| page.contains("GET /a?b=c HTTP/1.1\r\n"));
        assert!(kubectl.ok(&raw("services/web/proxy/")).contains("GET / HTTP/1.1\r\n"));
        assert_eq!(kubectl.ok(&raw("pods/exec:8080/proxy/hostname")), "exec");
        assert_eq!(kubectl.ok(&raw("pods/exec/proxy/echo?msg=hi%20there")), "hi there");
        assert_eq!(kubectl.ok(&raw("pods/http:exec:8080/proxy/redirect?location=/hostname")), "exec");
        for (path, why) in [
            ("services/web:81/proxy/", "no service port 81 found for service \"web\""),
            ("services/web:x/proxy/", "no endpoints available for service \"web\""),
            ("services/none/proxy/", "services \"none\" not found"),
            ("pods/none:80/proxy/", "pods \"none\" not found"),
            ("pods/a:b:80/proxy/", "invalid pod request \"a:b:80\""),
            ("pods/exec:81/proxy/", ":81: connect: connection refused"),
            ("pods/https:exec:8080/proxy/", "server gave HTTP response to HTTPS client"),
            ("pods/exec/proxy/echo?code=404", "could not find the requested resource"),
        ] {
            let said = kubectl.fails(&raw(path));
            assert!(said.contains(why), "{path}: {said}");
        }
    });
}

#[test]
fn kubelets_are_asked_through_their_nodes() {
    with_each_kubectl(|_, kubectl| {
        let probes = json!({"spec": {"containers": [{"name": "box", "image": "busybox",
            "args": ["sh", "-c", "echo said; sleep 1000"], "readinessProbe": {"exec": {"command": ["true"]}}}]}});
        kubectl.ok(&format!("run box --image=busybox --restart=Never --overrides='{probes}'"));
        kubectl.ok("wait --for=condition=Ready pod/box --timeout=60s");
        let node = kubectl.ok("get pod box -o jsonpath={.spec.nodeName}");
        let raw = |path: &str| format!("get --raw '/api/v1/nodes/{node}/proxy/{path}'");
        for (path, said) in [
            ("healthz", "ok"),
            ("pods", "\"name\":\"box\""),
            ("runningpods/", "\"image\":\"busybox\""),
            ("metrics", &format!("kubelet_node_name{{node=\"{node}\"}} 1\n")),
            ("metrics/slis", "kubernetes_healthcheck{name=\"syncloop\",type=\"healthz\"} 1\n"),
            ("metrics/resource", "container_memory_working_set_bytes{container=\"box\""),
            ("metrics/probes", "probe_type=\"Readiness\",result=\"successful\"}"),
            ("metrics/cadvisor", "machine_cpu_cores 8\n"),
            ("stats/summary", &format!("\"nodeName\":\"{node}\"")),
            ("configz", "\"kubeletconfig\""),
            ("statusz", "kubelet statusz"),
            ("logs/", "href=\"pods/\""),
            ("containerLogs/default/box/box?tailLines=1", "said\n"),
        ] {
            let answer = kubectl.ok(&raw(path));
            assert!(answer.contains(said), "{path}: {answer}");
        }
        let run = "create -f /dev/null --raw '/api/v1/nodes/NODE/proxy/run/default/box/box?cmd=echo%20hi'";
        assert_eq!(kubectl.ok(&run.replace("NODE", &node)), "hi\n");
        let same = kubectl.ok(&format!("get --raw /api/v1/nodes/https:{node}:10250/proxy/healthz"));
        assert_eq!(same, "ok");
        for (path, why) in [
            (format!("/api/v1/nodes/{node}/proxy/none"), "could not find the requested resource"),
            (format!("/api/v1/nodes/{node}:9100/proxy/metrics"), ":9100: connect: connection refused"),
            ("/api/v1/nodes/none/proxy/pods".to_owned(), "nodes \"none\" not found"),
            (format!("/api/v1/nodes/{node}/proxy/containerLogs/default/none/box"), "\"none\""),
        ] {
            let said = kubectl.fails(&format!("get --raw '{path}'"));
            assert!(said.contains(why), "{path}: {said}");
        }
    });
}
