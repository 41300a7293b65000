//! An etcd that is full, has no quorum or is too old, and keys and values of somebody else in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::thread;

use apimachinery::wire::ApiService;
use axum::body::Body;
use bytes::Bytes;
use etcd_server::frames::framed;
use etcd_server::messages::StatusResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::refused::said;
use super::trio::EtcdOfThree;
use super::way::{Passage, Way};
use super::*;

fn is_ready(kubectl: &Kubectl) -> bool {
    kubectl.run("get --raw /readyz").status.success()
}

#[test]
fn a_full_etcd_refuses_writes_in_its_words_and_takes_them_again_when_there_is_room() {
    let etcd = RealEtcd::start_plain(&["--quota-backend-bytes", "8388608"]);
    let keys = tempfile::tempdir().unwrap();
    let up = server(&etcd, &keys, &["--apiserver-only", "--etcd-compaction-interval", "0"]);
    let kubectl = kubectl(&up);
    let large = up.file("large", &"x".repeat(900_000));
    kubectl.ok("create configmap before");
    let refused = (0..40).find_map(|number| {
        let made = kubectl.run(&format!("create configmap large-{number} --from-file {large}"));
        (!made.status.success()).then(|| texts(&made).1)
    });
    let refused = refused.expect("it is full at some time");
    assert!(
        refused.contains("failed to create configmap: etcdserver: mvcc: database space exceeded"),
        "{refused}"
    );
    let refused = kubectl.fails("label configmap before a=b");
    assert!(refused.contains("etcdserver: mvcc: database space exceeded"), "{refused}");
    // Reads go on, and the real one is ready, too: whoever asks it is not sent elsewhere, where it is as full.
    kubectl.ok("get configmap before");
    assert!(is_ready(&kubectl));
    etcd.ctl(&["del", "--prefix", "/registry/configmaps/default/large-"]);
    etcd.ctl(&["compaction", &newest(&etcd)]);
    etcd.ctl(&["defrag"]);
    etcd.ctl(&["alarm", "disarm"]);
    eventually("a write", || kubectl.run("create configmap after").status.success().then_some(()));
    kubectl.until("get configmaps -o name", |names| !names.contains("large") && names.contains("before"));
}

#[test]
fn without_a_quorum_nobody_writes_and_nothing_is_lost() {
    let mut etcd = EtcdOfThree::start();
    let keys = tempfile::tempdir().unwrap();
    let urls: Vec<String> = etcd.addresses().iter().map(|address| format!("http://{address}")).collect();
    let data = keys.path().to_str().unwrap();
    let up = Up::start_with(&["--etcd-servers", &urls.join(","), "--data-dir", data, "--apiserver-only"]);
    let kubectl = kubectl(&up);
    kubectl.ok("create configmap before");
    [0, 1].into_iter().for_each(|member| etcd.kill(member));
    let refused = kubectl.fails("create configmap during");
    assert!(refused.contains("failed to create configmap: "), "{refused}");
    let not_ready = kubectl.fails("get --raw /readyz?verbose");
    assert!(not_ready.contains("[-]etcd failed"), "{not_ready}");
    kubectl.ok("get --raw /livez?exclude=etcd");
    etcd.start_again(0);
    eventually("the server to be ready", || is_ready(&kubectl).then_some(()));
    kubectl.ok("get configmap before");
    // Whether the other was made nobody knew; now it is known, and it is made at most once.
    let made = kubectl.run("get configmap during").status.success();
    assert_ne!(kubectl.run("create configmap during").status.success(), made);
}

/// The etcd has done it, and its answer does not arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_answered_as_uncertain_and_not_made_twice() {
    let etcd = tokio::task::block_in_place(RealEtcd::start);
    let way = Way::to(etcd.address).await;
    tokio::task::block_in_place(|| {
        let keys = tempfile::tempdir().unwrap();
        let url = format!("http://{}", way.address);
        let data = keys.path().to_str().unwrap();
        let up = Up::start_with(&["--etcd-servers", &url, "--data-dir", data, "--apiserver-only"]);
        let kubectl = kubectl(&up);
        kubectl.ok("create configmap before");
        way.set(Passage::Unanswered);
        let refused = thread::scope(|scope| {
            let creating = scope.spawn(|| kubectl.fails("create configmap during"));
            eventually("the write to be done", || {
                etcd.ctl(&["get", "/registry/configmaps/default/during"]).contains("during").then_some(())
            });
            way.set(Passage::Cut);
            creating.join().unwrap()
        });
        assert!(
            refused.contains("failed to create configmap: rpc error: code = Unavailable desc = "),
            "{refused}"
        );
        way.set(Passage::Open);
        eventually("the server to be ready", || is_ready(&kubectl).then_some(()));
        assert!(kubectl.fails("create configmap during").contains("already exists"));
        kubectl.until("get configmaps -o name", |names| names.contains("before") && names.contains("during"));
    });
}

#[test]
fn clusters_below_different_prefixes_do_not_know_each_other() {
    let etcd = RealEtcd::start();
    let keys = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let of =
        |keys: &TempDir, prefix: &str| server(&etcd, keys, &["--apiserver-only", "--etcd-prefix", prefix]);
    // One prefix begins as the other does.
    let (first, second) = (of(&keys[0], "/registry"), of(&keys[1], "/registry2"));
    let (one, other) = (kubectl(&first), kubectl(&second));
    one.ok("create configmap of-one");
    other.ok("create configmap of-other");
    let names = |kubectl: &Kubectl| kubectl.ok("get configmaps -o name");
    let (of_one, of_other) = (names(&one), names(&other));
    assert!(of_one.contains("of-one") && !of_one.contains("of-other"), "{of_one}");
    assert!(of_other.contains("of-other") && !of_other.contains("of-one"), "{of_other}");
}

#[test]
fn what_nobody_can_read_is_said_by_its_key_and_harms_nothing_else() {
    let etcd = RealEtcd::start();
    for prefix in ["/registry", "/elsewhere"] {
        let bad = format!("{prefix}/configmaps/default/bad");
        etcd.ctl(&["put", &bad, "garbage"]);
        let secrets = format!("{prefix}/secrets/default");
        let no_object = r#"{"kind":"Secret","apiVersion":"v1","metadata":7}"#;
        etcd.ctl(&["put", &format!("{secrets}/bad"), no_object]);
        let keys = tempfile::tempdir().unwrap();
        let up = server(&etcd, &keys, &["--apiserver-only", "--etcd-prefix", prefix]);
        let kubectl = kubectl(&up);
        for kind in ["configmaps", "secrets"] {
            let wanted = format!("Internal error occurred: unable to decode {prefix}/{kind}/default/bad: ");
            for asked in [kind.to_owned(), format!("{kind} bad")] {
                let refused = kubectl.fails(&format!("get {asked}"));
                assert!(refused.contains(&wanted), "{asked}: {refused}");
            }
        }
        etcd.ctl(&["put", &format!("{secrets}/locked"), "k8s:enc:aescbc:v1:key1:x"]);
        let wanted = format!("unable to transform key \"{secrets}/locked\": ");
        let refused = kubectl.fails("get secret locked");
        assert!(refused.contains(&wanted), "{refused}");
        assert!(is_ready(&kubectl));
        kubectl.ok("create configmap good");
        kubectl.ok("get configmap good");
        etcd.ctl(&["del", &bad]);
        kubectl.until("get configmaps -o name", |names| names.contains("good"));
        // One that comes while it is watched is left out, and what follows is told.
        etcd.ctl(&["put", &bad, "garbage"]);
        kubectl.ok("create configmap later");
        kubectl.until("get configmap later -o name", |name| !name.is_empty());
    }
}

#[test]
fn keys_that_are_no_text_are_left_out_however_short_the_pages() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let up = server(&etcd, &keys, &["--apiserver-only"]);
    let kubectl = kubectl(&up);
    kubectl.ok("create configmap a");
    for name in [&b"a\xff"[..], b"a\xff\xff", b"z\xff"] {
        let key = [b"/registry/configmaps/default/", name].concat();
        let mut put = Command::new("etcdctl");
        put.env("ETCDCTL_API", "3").args(["--endpoints", &etcd.url(), "put"]).arg(OsStr::from_bytes(&key));
        assert!(put.arg("{}").stdout(Stdio::null()).status().unwrap().success());
    }
    kubectl.ok("create configmap b");
    for size in [0, 1, 2] {
        let names = kubectl.ok(&format!("get configmaps --chunk-size={size} -o name"));
        let own = names.lines().filter(|name| !name.contains("kube-root-ca")).collect::<Vec<_>>();
        assert_eq!(own, ["configmap/a", "configmap/b"], "{size}");
    }
}

/// What answers as an etcd of that version does that is asked what it is.
async fn etcd_of_version(version: &'static str) -> apiserver::server::Server {
    let service = ApiService::new(tower::service_fn(move |_: Request<Body>| async move {
        let status = StatusResponse { version: version.to_owned(), ..StatusResponse::default() };
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let frames = [Frame::data(framed(&status)), Frame::trailers(trailers)];
        let frames = frames.into_iter().map(Ok::<Frame<Bytes>, std::convert::Infallible>);
        let body = Body::new(StreamBody::new(futures::stream::iter(frames)));
        let response = Response::builder().header("content-type", "application/grpc").body(body);
        Ok(response.unwrap())
    }));
    let listener = apiserver::server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    apiserver::server::Server::start(listener, None, service).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_is_too_old_is_refused_by_its_version() {
    let old = etcd_of_version("3.3.27").await;
    let url = format!("http://{}", old.address());
    let said = tokio::task::block_in_place(|| said(&["--etcd-servers", &url]));
    let wanted = format!("--etcd-servers {url}: {url}: etcd 3.3.27 is too old: it must be 3.4 or later");
    assert!(said.contains(&wanted), "{said}");
    old.stop().await;
}
