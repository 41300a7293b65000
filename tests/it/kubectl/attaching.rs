//! To processes that run: `kubectl run -i`, `attach`, `debug`, and files with `cp`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::support::{Kubectl, texts, with_each_kubectl};

/// Both ways in which kubectl opens streams; an old one knows the second alone, and does not look.
const STREAMS: [(&str, &str); 2] = [("websockets", "true"), ("SPDY", "false")];

/// Exit code and both outputs of a command that reads `input`.
fn run_over(kubectl: &Kubectl, websockets: &str, line: &str, input: &str) -> (Option<i32>, String, String) {
    let mut command = kubectl.command(line);
    command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever has ended reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let (out, errors) = texts(&output);
    (output.status.code(), out, errors)
}

#[test]
fn a_shell_that_is_run_reads_what_is_typed() {
    with_each_kubectl(|_, kubectl| {
        for (name, websockets) in STREAMS {
            let run = |line: &str, input: &str| run_over(kubectl, websockets, line, input);
            let line = "run -i --rm --restart=Never --image=busybox box";
            let (code, out, errors) =
                run(&format!("{line} -- sh"), "x=4\necho $((x + 3))\necho no >&2\nexit 5\n");
            assert_eq!((code, out.starts_with("7\n")), (Some(5), true), "{name}: {out} {errors}");
            assert!(out.contains("pod \"box\" deleted"), "{name}: {out}");
            assert!(
                errors.contains("no\n") && errors.contains("exit code 5") || errors.contains("(Error)"),
                "{name}: {errors}"
            );
            let (code, out, errors) = run(&format!("{line} -- cat"), "one\ntwo");
            assert_eq!((code, out.starts_with("one\ntwo")), (Some(0), true), "{name}: {out} {errors}");
            let script = "'echo who; read who; echo hello $who'";
            let (code, out, errors) = run(&format!("{line} -- sh -c {script}"), "you\n");
            assert_eq!(
                (code, out.starts_with("who\nhello you\n")),
                (Some(0), true),
                "{name}: {out} {errors}"
            );
            assert!(kubectl.ok("get pods").is_empty(), "{name}");
        }
    });
}

#[test]
fn whoever_attaches_hears_what_is_said_from_then_on() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run ticks --image=busybox -- sh -c 'while true; do echo tick; sleep 1; done'");
        kubectl.ok("run box --image=busybox --restart=Never -i --attach=false --leave-stdin-open -- sh");
        kubectl.ok("wait --for=condition=Ready pod --all --timeout=60s");
        for (name, websockets) in STREAMS {
            let mut command = kubectl.command("attach ticks");
            command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "tick", "{name}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // What a shell was told by one it remembers for the next; it goes on when nobody is attached.
        let (first, second) = (STREAMS[0].1, STREAMS[1].1);
        let mut child = kubectl.command("attach -i box");
        child.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", first);
        let mut child =
            child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"x=hers\necho ready\n").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        child.kill().unwrap();
        child.wait().unwrap();
        let (code, out, errors) = run_over(kubectl, second, "attach -i box", "echo it is $x\nexit 2\n");
        assert_eq!((code, &*out), (Some(0), "it is hers\n"), "{errors}");
        kubectl.until("get pod box", |said| said.contains("Error"));
        assert_eq!(kubectl.ok("logs box"), "ready\nit is hers\n");
        let said = kubectl.fails("attach box");
        assert!(
            said.contains("cannot attach a container in a completed pod; current phase is Failed"),
            "{said}"
        );
        let said = kubectl.fails("attach ticks -c none");
        assert!(said.contains("none"), "{said}");
    });
}

#[test]
fn pods_and_nodes_are_debugged() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run web --image=nginx:1.25");
        kubectl.ok("wait --for=condition=Ready pod/web --timeout=60s");
        let run = |line: &str, input: &str| run_over(kubectl, STREAMS[0].1, line, input);
        let (code, out, errors) =
            run("debug -i web --image=busybox --target=web -c look -- sh", "hostname\nexit 3\n");
        assert_eq!((code, out.contains("web\n")), (Some(0), true), "{out} {errors}");
        let code =
            "get pod web -o jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}";
        kubectl.until(code, |code| code == "3");
        let (code, out, errors) = run("debug -i web --image=busybox -c says -- echo hello", "");
        assert_eq!((code, out.contains("hello\n")), (Some(0), true), "{out} {errors}");
        kubectl.ok("run box --image=busybox -- sleep 1234");
        kubectl.ok("wait --for=condition=Ready pod/box --timeout=60s");
        let (code, out, errors) = run("debug -i box --image=busybox --target=box -- sh", "ps\nexit\n");
        assert_eq!((code, out.contains(" sleep 1234\n")), (Some(0), true), "{out} {errors}");
        kubectl.ok("debug web --copy-to=copy --set-image=*=httpd:2.4");
        assert_eq!(kubectl.ok("get pod copy -o jsonpath={.spec.containers[*].image}"), "httpd:2.4");
        let (code, out, errors) = run(
            "debug -i web --copy-to=shell --container=web --image=busybox -- sh",
            "echo in $HOSTNAME\nexit\n",
        );
        assert_eq!((code, out.contains("in shell\n")), (Some(0), true), "{out} {errors}");
        let node = kubectl.ok("get nodes -o jsonpath={.items[0].metadata.name}");
        let (code, out, errors) =
            run(&format!("debug -i node/{node} --image=busybox -- sh"), "echo on $(hostname)\nexit\n");
        assert_eq!((code, out.contains(&format!("on {node}\n"))), (Some(0), true), "{out} {errors}");
    });
}

#[test]
fn files_are_copied_both_ways_as_they_are() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run box --image=busybox --restart=Never -- sleep 1000");
        kubectl.ok("wait --for=condition=Ready pod/box --timeout=60s");
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let every: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        fs::create_dir(folder.path().join("files")).unwrap();
        fs::write(folder.path().join("files/bytes"), &every).unwrap();
        fs::write(folder.path().join("files/text"), "a text\n").unwrap();
        kubectl.ok(&format!("cp {} box:/tmp/copied", path("files/bytes")));
        assert_eq!(kubectl.ok("exec box -- stat -c %s /tmp/copied"), "100000\n");
        assert_eq!(kubectl.ok("exec box -- sh -c 'cat /tmp/copied | tee /tmp/b | wc -c'"), "100000\n");
        assert_eq!(kubectl.ok("exec box -- sh -c 'cmp /tmp/copied /tmp/b && echo same'"), "same\n");
        kubectl.ok(&format!("cp box:/tmp/copied {}", path("back")));
        assert!(fs::read(folder.path().join("back")).unwrap() == every);
        kubectl.ok(&format!("cp {} box:/tmp", path("files")));
        assert_eq!(kubectl.ok("exec box -- cat /tmp/files/text"), "a text\n");
        kubectl.ok(&format!("cp box:/tmp/files {}", path("again")));
        assert!(fs::read(folder.path().join("again/bytes")).unwrap() == every);
        assert_eq!(fs::read_to_string(folder.path().join("again/text")).unwrap(), "a text\n");
        let said = kubectl.fails(&format!("cp box:/tmp/none {}", path("none")));
        // Why is said on the standard error of tar, for which kubectl does not always wait.
        assert!(said.contains("command terminated with exit code 1"), "{said}");
    });
}

#[test]
fn whoever_ends_the_first_process_restarts_its_container() {
    with_each_kubectl(|_, kubectl| {
        kubectl.ok("run web --image=nginx");
        kubectl.ok("run own --image=busybox -- sleep 1000");
        kubectl.ok("wait --for=condition=Ready pod/web pod/own --timeout=60s");
        // Who has no handler is the first process of its container, which no signal ends.
        kubectl.ok("exec own -- kill -9 1");
        kubectl.ok("exec web -- sh -c 'kill -TERM 1'");
        let restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1";
        kubectl.ok(&format!("wait {restarted} pod/web --timeout=60s"));
        let last = "get pod web -o jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}";
        assert_eq!(kubectl.ok(last), "0");
        let count = "get pod own -o jsonpath={.status.containerStatuses[0].restartCount}";
        assert_eq!(kubectl.ok(count), "0");
    });
}
