//! Components in processes of their own: `kubarium apiserver`, `controller-manager`, `scheduler` and
//! `kubelet`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::programs::free_port;
use crate::support::{command, eventually, kubectls, texts, upstream};

/// One process of a cluster. Killed when dropped.
struct Component {
    child: Child,
    log: PathBuf,
}

impl Component {
    fn start(folder: &Path, name: &str, arguments: &[&str]) -> Component {
        let mut program = command(folder);
        program.args(arguments);
        Component::run(folder, name, program)
    }

    fn run(folder: &Path, name: &str, mut program: Command) -> Component {
        let log = folder.join(format!("{name}.log"));
        let out = fs::File::options().create(true).append(true).open(&log).unwrap();
        program.stdout(out.try_clone().unwrap()).stderr(out);
        Component { child: program.spawn().unwrap(), log }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn end(&mut self) -> ExitStatus {
        eventually("a component to end", || self.child.try_wait().unwrap())
    }

    fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- what {} holds ---\n{}", self.log.display(), self.said());
        }
    }
}

/// A control plane of which each part is started by itself.
struct Apart {
    folder: TempDir,
    apiserver: Component,
}

impl Apart {
    fn start(more: &[&str]) -> Apart {
        let folder = tempfile::tempdir().unwrap();
        let apiserver = Apart::apiserver(folder.path(), "127.0.0.1:0", more);
        let apart = Apart { folder, apiserver };
        eventually("the kubeconfig", || fs::read_to_string(apart.kubeconfig()).ok());
        apart
    }

    fn apiserver(folder: &Path, listen: &str, more: &[&str]) -> Component {
        let (data, kubeconfig) = (folder.join("data"), folder.join("kubeconfig"));
        let fixed = [
            "apiserver",
            "--name",
            "apart",
            "--listen",
            listen,
            "--data-dir",
            data.to_str().unwrap(),
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
        ];
        Component::start(folder, "apiserver", &[&fixed[..], more].concat())
    }

    fn kubeconfig(&self) -> String {
        self.folder.path().join("kubeconfig").to_str().unwrap().to_owned()
    }

    /// Killed and started again at the same address.
    /// It is away until all of these have noticed.
    fn restart_apiserver(&mut self, components: &[Component]) {
        let text = fs::read_to_string(self.kubeconfig()).unwrap();
        let config: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
        self.apiserver.signal("-KILL");
        self.apiserver.end();
        for component in components {
            eventually("it is missed", || component.said().contains(MISSED).then_some(()));
        }
        let address = server.trim_start_matches("https://");
        self.apiserver = Apart::apiserver(self.folder.path(), address, &[]);
    }

    /// A component that asks this apiserver, without pages.
    fn component(&self, name: &str, subcommand: &str, more: &[&str]) -> Component {
        let kubeconfig = self.kubeconfig();
        let asking = [subcommand, "--kubeconfig", &kubeconfig];
        Component::start(self.folder.path(), name, &[&asking[..], more].concat())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let mut kubectl = Command::new(&kubectls()[0]);
        kubectl.env("KUBECONFIG", self.kubeconfig()).env("HOME", self.folder.path()).args(arguments);
        let output = kubectl.output().unwrap();
        let (out, errors) = texts(&output);
        if output.status.success() { Ok(out) } else { Err(out + &errors) }
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.kubectl(arguments).unwrap_or_else(|said| panic!("kubectl {arguments:?}: {said}"))
    }

    fn until(&self, arguments: &[&str], wanted: &str) {
        let mut last = Ok(String::new());
        eventually(&format!("{arguments:?} to print {wanted}"), || {
            last = self.kubectl(arguments);
            last.as_ref().is_ok_and(|out| out == wanted).then_some(())
        });
    }
}

/// What a component says whose apiserver is away.
const MISSED: &str = "cannot be reached, and is asked until it answers";
const READY: &[&str] = &["get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"];

#[test]
fn pods_run_are_reached_and_outlive_the_apiserver() {
    let mut apart = Apart::start(&[]);
    let mut components = [
        apart.component("controllers", "controller-manager", &["--secure-port", "0"]),
        apart.component("scheduler", "scheduler", &["--secure-port", "0"]),
        apart.component("kubelet", "kubelet", &["--nodes", "2", "--hostname-override", "fleet"]),
    ];
    apart.ok(&["create", "deployment", "web", "--image=nginx", "--replicas=3"]);
    apart.until(READY, "3");
    apart.until(&["get", "nodes", "-o", "name"], "node/fleet-1\nnode/fleet-2\n");
    assert!(apart.ok(&["logs", "deployment/web"]).contains("start worker process"));
    let said = apart.ok(&["exec", "deployment/web", "--", "sh", "-c", "echo from $HOSTNAME"]);
    assert!(said.starts_with("from web-"), "{said}");
    assert_eq!(apart.ok(&["get", "--raw", "/api/v1/nodes/fleet-1/proxy/healthz"]), "ok");
    let profiles = apart.ok(&["get", "--raw", "/api/v1/nodes/fleet-1/proxy/debug/pprof/"]);
    assert!(profiles.contains("goroutine?debug=1"), "{profiles}");
    apart.ok(&["cordon", "fleet-2"]);
    let told = [
        "get",
        "events",
        "--field-selector",
        "reason=NodeNotSchedulable",
        "-o",
        "jsonpath={.items[*].message}",
    ];
    apart.until(&told, "Node fleet-2 status is now: NodeNotSchedulable");
    apart.ok(&["uncordon", "fleet-2"]);
    assert!(apart.kubectl(&["exec", "deployment/web", "--", "false"]).is_err());
    apart.restart_apiserver(&components);
    apart.until(READY, "3");
    eventually("the apiserver to take it", || {
        apart.kubectl(&["scale", "deployment/web", "--replicas=4"]).ok()
    });
    apart.until(READY, "4");
    for component in &mut components {
        assert!(component.runs(), "it waits for the server: {}", component.said());
        let said = component.said();
        assert_eq!(said.matches(MISSED).count(), 1, "{said}");
        assert_eq!(said.matches("answers again.").count(), 1, "{said}");
        component.signal("-TERM");
        assert!(component.end().success());
    }
}

impl Apart {
    /// Upstream's program, where `make upstream` names a folder with it; ours of the same name.
    fn controller_manager_and_scheduler(&self) -> [Component; 2] {
        let Some(bin) = upstream::asked().filter(|bin| upstream::has_components(bin)) else {
            let at_no_port = &["--secure-port", "0"];
            return [("controllers", "controller-manager"), ("scheduler", "scheduler")]
                .map(|(name, subcommand)| self.component(name, subcommand, at_no_port));
        };
        let key = |name: &str| self.folder.path().join("data/pki").join(name).display().to_string();
        let common = ["--kubeconfig".to_owned(), self.kubeconfig(), "--leader-elect=false".to_owned()];
        let keys = [
            format!("--root-ca-file={}", key("ca.crt")),
            format!("--service-account-private-key-file={}", key("sa.key")),
            "--use-service-account-credentials=true".to_owned(),
        ];
        let programs = [("kube-controller-manager", &keys[..]), ("kube-scheduler", &[])];
        programs.map(|(name, own)| {
            let mut program = Command::new(bin.join(name));
            program.args(common.iter().chain(own)).arg("--secure-port=0").current_dir(self.folder.path());
            Component::run(self.folder.path(), name, program)
        })
    }
}

/// With `make upstream` those are upstream's, which know nothing of us.
#[test]
fn controllers_and_a_scheduler_do_their_work_whoever_wrote_them() {
    let apart = Apart::start(&[]);
    let _others = apart.controller_manager_and_scheduler();
    let _kubelet = apart.component("kubelet", "kubelet", &["--nodes", "2"]);
    eventually("the account", || apart.kubectl(&["get", "serviceaccount", "default"]).ok());
    apart.ok(&["create", "deployment", "web", "--image=nginx", "--replicas=3"]);
    apart.ok(&["expose", "deployment", "web", "--port=80"]);
    apart.until(READY, "3");
    let addresses = "jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}";
    let slices = ["get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", addresses];
    eventually("three endpoints", || (apart.ok(&slices).split_whitespace().count() == 3).then_some(()));
    apart.ok(&["set", "image", "deployment/web", "nginx=nginx:1.29"]);
    apart.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    apart.ok(&["create", "job", "pi", "--image=busybox", "--", "true"]);
    apart.ok(&["wait", "--for=condition=Complete", "job/pi", "--timeout=60s"]);
    apart.ok(&["create", "cronjob", "tick", "--image=busybox", "--schedule=0 0 1 1 *", "--", "true"]);
    apart.ok(&["create", "job", "tock", "--from=cronjob/tick"]);
    apart.ok(&["wait", "--for=condition=Complete", "job/tock", "--timeout=60s"]);
    apart.ok(&["delete", "deployment,cronjob", "--all"]);
    apart.until(&["get", "replicasets,pods", "-l", "app=web", "-o", "name"], "");
    apart.until(&["get", "jobs", "-o", "name"], "job.batch/pi\n");
    apart.ok(&["create", "namespace", "there"]);
    apart.ok(&["create", "configmap", "c", "--namespace=there"]);
    apart.ok(&["delete", "namespace", "there", "--timeout=60s"]);
    assert!(apart.kubectl(&["get", "configmap", "c", "--namespace=there"]).is_err());
}

/// What somebody with a token is answered at another port of this machine.
fn at_port(port: &str, token: &str, path: &str) -> String {
    let server = format!("--server=https://127.0.0.1:{port}");
    let mut kubectl = Command::new(&kubectls()[0]);
    kubectl.env("KUBECONFIG", "/dev/null").stdin(Stdio::null()).args([
        &server,
        "--insecure-skip-tls-verify",
        "get",
        "--raw",
        path,
    ]);
    if !token.is_empty() {
        kubectl.arg(format!("--token={token}"));
    }
    let (out, errors) = texts(&kubectl.output().unwrap());
    out + &errors
}

#[test]
fn ports_of_components_let_in_whom_the_apiserver_lets() {
    let apart = Apart::start(&[]);
    let _controllers = apart.component("controllers", "controller-manager", &["--secure-port", "0"]);
    let _kubelet = apart.component("kubelet", "kubelet", &[]);
    let endpoint = "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}";
    // A Node is made to have its ranges of addresses, before its kubelet listens.
    let port = eventually("the node", || {
        let port = apart.kubectl(&["get", "node", "node-1", "-o", endpoint]).ok()?;
        (port != "0").then_some(port)
    });
    let token = eventually("the account", || apart.kubectl(&["create", "token", "default"]).ok());
    // What kubectl makes of 401.
    assert!(at_port(&port, "", "/pods").contains("Please enter Username"));
    let unknown = at_port(&port, "nonsense", "/pods");
    assert!(unknown.contains("You must be logged in to the server"), "{unknown}");
    let refused = at_port(&port, &token, "/pods");
    let wanted = "Forbidden (user=system:serviceaccount:default:default, verb=get, resource=nodes, \
        subresource(s)=[pods proxy])";
    assert!(refused.contains(wanted), "{refused}");
    apart.ok(&["create", "clusterrole", "pods", "--verb=get", "--resource=nodes/pods"]);
    let account = "--serviceaccount=default:default";
    apart.ok(&["create", "clusterrolebinding", "pods", "--clusterrole=pods", account]);
    eventually("the role to count", || at_port(&port, &token, "/pods").contains("PodList").then_some(()));
    assert!(at_port(&port, &token, "/configz").contains("Forbidden"), "it is as fine as that");
    assert!(at_port(&port, &token, "/exec/default/p/c").contains("Forbidden"));
}

#[test]
fn each_component_of_its_own_has_its_own_pages_at_its_port() {
    let apart = Apart::start(&[]);
    let ports = [free_port(), free_port()].map(|port| port.to_string());
    let _components = [("controllers", "controller-manager"), ("scheduler", "scheduler")]
        .iter()
        .zip(&ports)
        .map(|((name, subcommand), port)| apart.component(name, subcommand, &["--secure-port", port]))
        .collect::<Vec<Component>>();
    let account = "--serviceaccount=default:default";
    apart.ok(&["create", "clusterrolebinding", "pages", "--clusterrole=cluster-admin", account]);
    let token = eventually("the account", || apart.kubectl(&["create", "token", "default"]).ok());
    let own = [
        ("\"kubecontrollermanager.config.k8s.io\"", "workqueue_adds_total{", "kube-controller-manager"),
        ("\"componentconfig\"", "scheduler_cache_size{", "kube-scheduler"),
    ];
    for (port, (config, counted, name)) in ports.iter().zip(own) {
        eventually("it to serve and to lead", || {
            at_port(port, &token, "/metrics").contains(counted).then_some(())
        });
        for (page, words) in [
            ("/configz", config),
            ("/statusz", name),
            ("/flagz", name),
            ("/healthz", "ok"),
            ("/metrics/slis", "kubernetes_healthcheck{name=\"leaderElection\",type=\"healthz\"} 1\n"),
            ("/debug/pprof/", "<title>/debug/pprof/</title>"),
            ("/debug/pprof/goroutine?debug=1", "goroutine profile: total "),
            ("/debug/pprof/heap?debug=1", "#\tnamespaces\n#\tinformer\n#\tkube-"),
        ] {
            let told = at_port(port, &token, page);
            assert!(told.contains(words), "{name}{page}: {told}");
        }
        assert!(at_port(port, "nonsense", "/debug/pprof/").contains("must be logged in"), "{name}");
    }
}

/// Where several begin at one moment each gives up what another has claimed.
#[test]
fn kubelets_that_begin_at_one_moment_have_ranges_of_their_own() {
    let apart = Apart::start(&[]);
    let _kubelets: Vec<Component> = ["a", "b", "c"]
        .map(|name| apart.component(name, "kubelet", &["--nodes", "3", "--hostname-override", name]))
        .into();
    let ranges = ["get", "nodes", "-o", "jsonpath={.items[*].spec.podCIDR}"];
    let addresses =
        ["get", "nodes", "-o", "jsonpath={.items[*].status.addresses[?(@.type==\"InternalIP\")].address}"];
    for (what, count) in [(&ranges[..], 9), (&addresses, 9)] {
        eventually("nine nodes of which none has what another has", || {
            let found = apart.kubectl(what).ok()?;
            let distinct: std::collections::BTreeSet<&str> = found.split_whitespace().collect();
            (distinct.len() == count && found.split_whitespace().count() == count).then_some(())
        });
    }
}

/// Nothing else tells who writes the status of their pods.
#[test]
fn two_kubelets_of_one_node_are_told() {
    let apart = Apart::start(&[]);
    let kubelets = ["a", "b"].map(|name| apart.component(name, "kubelet", &["--nodes", "1"]));
    const SHARED: &str = "another kubelet renews the Lease of this node, too";
    eventually("one of them to say so", || {
        kubelets.iter().any(|kubelet| kubelet.said().contains(SHARED)).then_some(())
    });
}

/// Users of whom each is one controller manager.
const TOKENS: &str = "ta,cm-a,1,system:masters\ntb,cm-b,2,system:masters\ntc,cm-c,3,system:masters\n";
const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived],
    rules: [{level: Metadata, verbs: [create, update, patch, delete]}]}";
const HOLDER: &str = "jsonpath={.spec.holderIdentity}";

/// A controller manager in the name of its own user, with a Lease that is short.
fn candidate(apart: &Apart, letter: &str) -> Component {
    let text = fs::read_to_string(apart.kubeconfig()).unwrap();
    let mut config: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    config["users"][0]["user"] = serde_yaml::from_str(&format!("token: t{letter}")).unwrap();
    let path = apart.folder.path().join(format!("kubeconfig-{letter}"));
    fs::write(&path, serde_yaml::to_string(&config).unwrap()).unwrap();
    let arguments = [
        "controller-manager",
        "--secure-port=0",
        "--use-service-account-credentials=false",
        "--leader-elect-lease-duration=6s",
        "--leader-elect-renew-deadline=5s",
        "--leader-elect-retry-period=200ms",
        "--kubeconfig",
        path.to_str().unwrap(),
    ];
    Component::start(apart.folder.path(), &format!("controllers-{letter}"), &arguments)
}

fn wait_until_leading(candidate: &Component) {
    eventually("it to lead", || candidate.said().contains("Leading.").then_some(()));
}

/// When a user has written anything that only a leader writes: the first and the last time.
fn acted(log: &Path, user: &str) -> (String, String) {
    let text = fs::read_to_string(log).unwrap();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_of_leader = |event: &Value| {
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        event["user"]["username"] == user && !matches!(resource, "leases" | "events" | "selfsubjectreviews")
    };
    let times = events.filter(is_of_leader).map(|event| event["requestReceivedTimestamp"].to_string());
    let mut times: Vec<String> = times.collect();
    times.sort();
    let first = times.first().unwrap_or_else(|| panic!("{user} has written nothing")).clone();
    (first, times.last().cloned().unwrap_or_default())
}

#[test]
fn of_two_controller_managers_one_acts_and_the_other_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (tokens, policy) = (file("tokens", TOKENS), file("policy", POLICY));
    let log = folder.path().join("audit");
    let apart = Apart::start(&[
        "--token-auth-file",
        &tokens,
        "--audit-policy-file",
        &policy,
        "--audit-log-path",
        log.to_str().unwrap(),
    ]);
    let replica_sets = |name: &str| {
        apart.ok(&["create", "deployment", name, "--image=nginx"]);
        let label = format!("app={name}");
        eventually("a ReplicaSet", || {
            let found = apart.ok(&["get", "rs", "-l", &label, "-o", "name"]);
            (!found.is_empty()).then_some(())
        });
    };
    let mut first = candidate(&apart, "a");
    wait_until_leading(&first);
    let mut second = candidate(&apart, "b");
    replica_sets("one");
    first.signal("-KILL");
    first.end();
    wait_until_leading(&second);
    replica_sets("two");
    let lease = ["get", "lease", "kube-controller-manager", "-n", "kube-system", "-o"];
    let transitions = apart.ok(&[&lease[..], &["jsonpath={.spec.leaseTransitions}"]].concat());
    assert_eq!(transitions, "1");
    let (last_of_first, first_of_second) = (acted(&log, "cm-a").1, acted(&log, "cm-b").0);
    assert!(last_of_first < first_of_second, "{last_of_first}, {first_of_second}");
    // One that has slept for too long has lost it, and ends.
    let holder = apart.ok(&[&lease[..], &[HOLDER]].concat());
    let mut third = candidate(&apart, "c");
    second.signal("-STOP");
    wait_until_leading(&third);
    assert_ne!(apart.ok(&[&lease[..], &[HOLDER]].concat()), holder);
    second.signal("-CONT");
    assert_eq!(second.end().code(), Some(1));
    // Events that were on their way may be told after it.
    assert!(second.said().lines().any(|line| line == "error: leaderelection lost"), "{}", second.said());
    // What is given up in order is free at once.
    third.signal("-TERM");
    assert!(third.end().success());
    assert_eq!(apart.ok(&[&lease[..], &[HOLDER]].concat()), "");
    let events = apart.ok(&["get", "events", "-n", "kube-system", "-o", "jsonpath={.items[*].message}"]);
    assert!(events.contains("became leader"), "{events}");
}
