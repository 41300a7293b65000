//! The flags of `kubarium up`: what help shows, what a mistake is told, and what they do.

use std::fs;
use std::path::Path;
use std::process::Output;

use kubarium::apimachinery::options::ListOptions;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::networking::service_cidr::SERVICE_CIDRS;
use kubarium::apis::networking::service_ranges::ServiceRanges;
use kubarium::apiserver::options::ServerRunOptions;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};

use crate::support::{Kubectl, Up, command, kubectls, texts};

fn run(home: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    command(home).args(arguments).envs(environment.iter().copied()).output().unwrap()
}

/// What is said of a mistake, in its one line.
fn refusal(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), arguments, environment);
    let (out, err) = texts(&output);
    assert!(!output.status.success(), "{arguments:?} {environment:?} should have failed: {out}");
    let errors: Vec<&str> = err.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert_eq!(errors.len(), 1, "{err}");
    errors[0].to_owned()
}

#[test]
fn help_fits_the_window_and_a_pipe() {
    let home = tempfile::tempdir().unwrap();
    for environment in [&[("COLUMNS", "80")][..], &[]] {
        for arguments in [&["up", "--help"][..], &["up", "-h"], &["--help"], &["trace", "--help"]] {
            let (help, _) = texts(&run(home.path(), arguments, environment));
            assert!(help.contains("Usage:"), "{arguments:?}: {help}");
            let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(wide.is_empty(), "{arguments:?}: {wide:?}");
        }
    }
    let (short, _) = texts(&run(home.path(), &["up", "-h"], &[]));
    assert!(short.contains("--nodes") && !short.contains("--oidc-issuer-url"), "{short}");
}

#[test]
fn a_value_that_cannot_be_used_is_told_with_its_flag_or_variable() {
    const NUMBER: &str = "must be a whole number from 0 to 3000";
    let cases: &[(&str, &str, &[&str])] = &[
        ("--nodes=abc", "", &["--nodes abc: ", NUMBER]),
        ("", "KUBARIUM_NODES=abc", &["KUBARIUM_NODES=abc (for --nodes): ", NUMBER]),
        ("", "KUBARIUM_SEED=-1", &["KUBARIUM_SEED=-1 (for --seed): must be a whole number"]),
        ("--listen=nowhere", "", &["--listen nowhere: ", "must be HOST:PORT, as 127.0.0.1:8443"]),
        ("", "KUBARIUM_LISTEN=x", &["KUBARIUM_LISTEN=x (for --listen): "]),
        (
            "--authorization-mode=Foo",
            "",
            &["authorization-mode \"Foo\" is not a valid mode", "ABAC, Webhook"],
        ),
        ("--authorization-mode=RBAC,rbac", "", &["did you mean RBAC?"]),
        ("--enable-admission-plugins=X", "", &["plugin \"X\" is unknown", "LimitRanger, "]),
        ("--disable-admission-plugins=limitranger", "", &["did you mean LimitRanger?"]),
        ("--runtime-config=nope/v9=true", "", &["unknown api groups nope", "must be GROUP/VERSION=BOOL"]),
        ("--runtime-config=batc/v1=true", "", &["a group of a similar name: batch"]),
        (
            "--feature-gates=Initializer=true",
            "",
            &["unrecognized feature gate", "did you mean Initializers?"],
        ),
        ("--feature-gates=Initializers", "", &["missing bool value", "must be NAME=true or NAME=false"]),
        (
            "--controllers=*,-x",
            "",
            &["\"x\" is not in the list of known controllers", "cronjob-controller, "],
        ),
        (
            "--controllers=jobs",
            "",
            &["\"jobs\" is not in", "the controllers are bootstrap-signer-controller"],
        ),
        ("--service-cluster-ip-range=10.0.0.0", "", &["service-cluster-ip-range[0] is not a valid cidr"]),
        ("--service-cluster-ip-range=10.0.0.0/30", "", &["must be at least 8 IP addresses"]),
        ("--service-cluster-ip-range=fd00::/112", "", &["must match public address family \"127.0.0.1\""]),
        ("--service-node-port-range=9-8", "", &["end port cannot be less than start port", "as 30000-32767"]),
        ("--cluster-cidr=10.0.0.0", "", &["invalid CIDR address: 10.0.0.0; must be a range"]),
        ("--load-balancer-range=10.0.0.1", "", &["invalid CIDR address: 10.0.0.1", "as 192.168.100.0/24"]),
        ("--node-cidr-mask-size=31", "", &["must be a whole number from 8 to 30"]),
        ("--node-cidr-mask-size-ipv4=64", "", &["must be a whole number from 8 to 30"]),
        ("--node-cidr-mask-size-ipv6=127", "", &["must be a whole number from 8 to 126"]),
        ("--event-ttl=soon", "", &["--event-ttl soon: ", "must be a duration, as 30s"]),
        ("--node-monitor-period=0s", "", &["must be longer than 0s"]),
        ("--concurrent-gc-syncs=0", "", &["must be a whole number from 1 to 1000"]),
        (
            "",
            "KUBARIUM_CONCURRENT_JOB_SYNCS=x",
            &["KUBARIUM_CONCURRENT_JOB_SYNCS=x (for --concurrent-job-syncs)"],
        ),
        ("--tls-cert-file=/nope", "", &["missing filename for serving cert", "--tls-private-key-file"]),
        ("--data-dir=/proc/nope", "", &["--data-dir /proc/nope: ", "choose a folder that you may write to"]),
    ];
    for (flag, variable, wanted) in cases {
        let arguments: Vec<&str> = ["up", flag].into_iter().filter(|one| !one.is_empty()).collect();
        let said = refusal(&arguments, variable.split_once('=').as_slice());
        for part in *wanted {
            assert!(said.contains(part), "{flag}{variable}: {said}");
        }
    }
    assert!(refusal(&["up", "--nodes", "-1"], &[]).contains(NUMBER));
}

#[test]
fn a_port_alone_is_one_of_this_machine() {
    for address in ["localhost:0", ":0", "0"] {
        let up = Up::start_with(&["--listen", address, "--apiserver-only"]);
        assert!(up.log().contains("https://127.0.0.1:"), "{address}: {}", up.log());
    }
}

#[test]
fn a_bare_server_leaves_objects_alone() {
    let environment = [("RUST_LOG", "debug")];
    for arguments in [&["--apiserver-only"][..], &["--controllers=-*", "--scheduler=false", "--nodes", "0"]] {
        let up = Up::start_in(arguments, &environment);
        let kubectl = Kubectl::new(kubectls().last().unwrap(), &up);
        kubectl.ok("create deployment web --image=nginx");
        assert_eq!(kubectl.ok("get nodes -o name"), "");
        assert_eq!(kubectl.ok("get replicasets,serviceaccounts -A -o name"), "", "{arguments:?}");
        // The server's own, as every kube-apiserver's, and nobody's who would lead.
        let leases = kubectl.until("get leases -A -o name", |names| !names.is_empty());
        assert!(leases.lines().count() == 1 && leases.contains("/apiserver-"), "{leases}");
        assert!(up.log().contains("DEBUG") && !up.log().contains('\x1b'), "colours in a file");
    }
}

#[test]
fn controllers_run_one_by_one() {
    let up = Up::start_with(&["--controllers=serviceaccount,deployment-controller", "--nodes", "0"]);
    let kubectl = Kubectl::new(kubectls().last().unwrap(), &up);
    kubectl.ok("create deployment web --image=nginx");
    kubectl.until("get replicasets -o name", |names| names.starts_with("replicaset.apps/web-"));
    kubectl.ok("get serviceaccount default");
    assert_eq!(
        kubectl.ok("get pods,configmaps -o name"),
        "",
        "nobody makes pods, or publishes the authority"
    );
}

#[test]
fn a_key_that_is_empty_or_gone_is_told() {
    let data = tempfile::tempdir().unwrap();
    let data_dir = data.path().to_str().unwrap();
    drop(Up::start_with(&["--data-dir", data_dir, "--apiserver-only"]));
    let pki = data.path().join("pki");
    let key = fs::read(pki.join("sa.key")).unwrap();
    fs::write(pki.join("sa.key"), "").unwrap();
    let said = refusal(&["up", "--data-dir", data_dir, "--kubeconfig", "/dev/null"], &[]);
    assert!(said.contains("sa.key is empty") && said.contains("put it back from a backup"), "{said}");
    fs::write(pki.join("sa.key"), key).unwrap();
    fs::remove_file(pki.join("ca.key")).unwrap();
    let said = refusal(&["up", "--data-dir", data_dir, "--kubeconfig", "/dev/null"], &[]);
    assert!(said.contains("ca.key is missing") && said.contains("put it back from a backup"), "{said}");
    assert!(!pki.join("ca.key").exists());
}

fn config(ranges: &str) -> Config {
    let service_cluster_ip_range = ServiceRanges::parse(ranges).unwrap();
    let mut apiserver = ServerRunOptions::default();
    apiserver.services.service_cluster_ip_range = service_cluster_ip_range;
    Config::new().components(Components::NONE).apiserver(apiserver)
}

fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    json_patch::merge(&mut service["spec"], &spec);
    service
}

async fn spec_of(cluster: &Cluster, name: &str) -> Value {
    cluster.client().get(&SERVICES, "default", name).await.unwrap().to_value()["spec"].take()
}

async fn range_of(cluster: &Cluster) -> Value {
    let range = cluster.client().get(&SERVICE_CIDRS, "", "kubernetes").await.unwrap();
    range.to_value()["spec"]["cidrs"].take()
}

#[tokio::test]
async fn services_take_their_addresses_from_the_range() {
    let cluster = Cluster::start(config("10.5.6.0/24")).await.unwrap();
    assert_eq!(spec_of(&cluster, "kubernetes").await["clusterIPs"], json!(["10.5.6.1"]));
    assert_eq!(range_of(&cluster).await, json!(["10.5.6.0/24"]));
    let client = cluster.client();
    client.create(&SERVICES, "default", service("a", json!({}))).await.unwrap();
    let address = spec_of(&cluster, "a").await["clusterIP"].take();
    assert!(address.as_str().unwrap().starts_with("10.5.6."), "{address}");
    let outside = service("b", json!({"clusterIP": "10.96.0.10"}));
    let refused = client.create(&SERVICES, "default", outside).await.unwrap_err().to_string();
    assert!(refused.contains("the provided network does not match the current range"), "{refused}");
    cluster.stop().await;
}

#[tokio::test]
async fn two_ranges_make_services_of_two_families() {
    let cluster = Cluster::start(config("10.5.0.0/16,fd00:5::/108")).await.unwrap();
    let client = cluster.client();
    assert_eq!(spec_of(&cluster, "kubernetes").await["ipFamilies"], json!(["IPv4"]));
    for (name, spec, families) in [
        ("none", json!({}), json!(["IPv4"])),
        ("prefers", json!({"ipFamilyPolicy": "PreferDualStack"}), json!(["IPv4", "IPv6"])),
        ("requires", json!({"ipFamilyPolicy": "RequireDualStack"}), json!(["IPv4", "IPv6"])),
        ("six", json!({"ipFamilies": ["IPv6"]}), json!(["IPv6"])),
        ("by-address", json!({"clusterIP": "fd00:5::77"}), json!(["IPv6"])),
        (
            "six-first",
            json!({"ipFamilies": ["IPv6"], "ipFamilyPolicy": "PreferDualStack"}),
            json!(["IPv6", "IPv4"]),
        ),
    ] {
        client.create(&SERVICES, "default", service(name, spec)).await.unwrap();
        let spec = spec_of(&cluster, name).await;
        assert_eq!(spec["ipFamilies"], families, "{name}");
        let ips = spec["clusterIPs"].as_array().unwrap();
        let of_family = |ip: &Value| if ip.as_str().unwrap().starts_with("10.5.") { "IPv4" } else { "IPv6" };
        assert_eq!(json!(ips.iter().map(of_family).collect::<Vec<_>>()), families, "{name}: {spec}");
        assert_eq!(spec["clusterIP"], ips[0], "{name}");
    }
    let both = service("single", json!({"ipFamilies": ["IPv4", "IPv6"]}));
    let refused = client.create(&SERVICES, "default", both).await.unwrap_err().to_string();
    assert!(refused.contains("when multiple IP families are specified"), "{refused}");
    release_the_second(&cluster).await;
    cluster.stop().await;
}

/// A service may go from one family to two and back.
async fn release_the_second(cluster: &Cluster) {
    let client = cluster.client();
    for (policy, families) in [("PreferDualStack", 2), ("SingleStack", 1)] {
        let mut tree = client.get(&SERVICES, "default", "none").await.unwrap().to_value();
        tree["spec"]["ipFamilyPolicy"] = policy.into();
        client.update(&SERVICES, "default", "none", tree).await.unwrap();
        let spec = spec_of(cluster, "none").await;
        for field in ["clusterIPs", "ipFamilies"] {
            assert_eq!(spec[field].as_array().unwrap().len(), families, "{policy}: {spec}");
        }
    }
}

#[tokio::test]
async fn a_cluster_of_one_family_has_no_other() {
    let cluster = Cluster::start(config("fd00:5::/112")).await.unwrap();
    assert_eq!(spec_of(&cluster, "kubernetes").await["clusterIP"], "fd00:5::1");
    let client = cluster.client();
    for (spec, why) in [
        (json!({"ipFamilies": ["IPv4"]}), "not configured on this cluster"),
        (json!({"clusterIP": "10.96.0.7"}), "IPv4 is not configured on this cluster"),
        (
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            "this cluster is not configured for dual-stack services",
        ),
    ] {
        let refused = client.create(&SERVICES, "default", service("a", spec)).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_data_dir_keeps_the_range_that_it_was_made_with() {
    let data = tempfile::tempdir().unwrap();
    let start = async |ranges: &str| Cluster::start(config(ranges).data_dir(data.path())).await.unwrap();
    start("10.5.0.0/16").await.stop().await;
    let cluster = start("10.6.0.0/16").await;
    assert_eq!(range_of(&cluster).await, json!(["10.5.0.0/16"]));
    assert_eq!(spec_of(&cluster, "kubernetes").await["clusterIP"], "10.5.0.1");
    cluster.client().create(&SERVICES, "default", service("a", json!({}))).await.unwrap();
    let address = spec_of(&cluster, "a").await["clusterIP"].take();
    assert!(address.as_str().unwrap().starts_with("10.5."), "{address}");
    let events = cluster.client().list(&EVENTS, "default", &ListOptions::default()).await.unwrap();
    let messages: Vec<Value> = events.items.iter().map(|event| event.to_value()["message"].take()).collect();
    let said = "The default ServiceCIDR [10.5.0.0/16] does not match the controller flag configurations \
                [10.6.0.0/16]";
    assert_eq!(messages, [said]);
    cluster.stop().await;
    // A second family may come.
    let cluster = start("10.5.0.0/16,fd00:5::/112").await;
    assert_eq!(range_of(&cluster).await, json!(["10.5.0.0/16", "fd00:5::/112"]));
    let both = service("both", json!({"ipFamilyPolicy": "RequireDualStack"}));
    cluster.client().create(&SERVICES, "default", both).await.unwrap();
    cluster.stop().await;
}
