//! The page that shows a cluster: who is let in, in whose name it asks, and a session in a real browser
//! (`tests/page/session.py`).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt;
use http::Method;
use http_body_util::BodyExt;
use kubarium::cluster::Listen;
use kubarium::pki::{Authority, Identity, MadeAt};
use kubarium::{Clock, Cluster};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::handles::{ask, bare};
use crate::learn::path_with_programs;
use crate::support::wire::Target;
use crate::support::{self, Up, kubectls, texts};

#[test]
fn a_session_in_a_browser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let axe = root.join("target/javascript-client/node_modules/axe-core");
    assert!(axe.exists(), "no axe-core: run `make javascript-client`, which installs it");
    let up = Up::start_with(&["--nodes", "3", "--ui"]);
    let (link, err) = texts(&up.kubarium(&["ui"]));
    assert!(link.starts_with("http://127.0.0.1:"), "{link}{err}");
    let output = Command::new(python())
        .arg(root.join("tests/page/session.py"))
        .arg(link.trim())
        .arg(&kubectls()[0])
        .arg(up.folder().join("kubeconfig"))
        .arg(axe)
        .arg(up.folder())
        .env("HOME", up.folder())
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.ends_with("done\n"), "{out}{err}");
    // Who reads the log is not invited by it.
    let log = up.log();
    assert!(log.contains("kubarium ui prints a link to it") && !log.contains("/#"), "{log}");
}

/// All of them one after the other: they tell of what one object or another does, by the name `lesson`.
#[test]
fn every_lesson_is_taken_in_the_page() {
    let up = Up::start_with(&["--nodes", "3", "--ui"]);
    let (link, err) = texts(&up.kubarium(&["ui"]));
    assert!(link.starts_with("http://127.0.0.1:"), "{link}{err}");
    let output = support::at_home(Command::new(python()), up.folder())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/lessons.py"))
        .arg(link.trim())
        .args([up.folder().join("kubeconfig"), up.folder().to_owned()])
        .arg(path_with_programs(up.folder()))
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.ends_with("done\n"), "{out}{err}");
}

/// A Python with what drives a browser.
fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python-client/bin/python");
    assert!(python.exists(), "no Python with selenium: run `make python-client`, which installs it");
    let chromium = Path::new("/usr/bin/chromedriver");
    assert!(chromium.exists(), "no Chromium: run `make chromium`, which installs it");
    python
}

async fn plain(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    support::plain::ask(address, line, headers, body).await.unwrap()
}

#[tokio::test]
async fn the_page_asks_in_the_name_of_who_was_invited() {
    let cluster = Cluster::start(bare()).await.unwrap();
    assert_eq!(cluster.page_address().await, None, "nobody has asked for it");
    let rules = json!([{"nonResourceURLs": ["/kubarium/v1/ui"], "verbs": ["post"]}]);
    let role = json!({"metadata": {"name": "ui"}, "rules": rules});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert_eq!(ask(&cluster, "", "POST", roles, role).await.0, 201);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "ui"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "ui"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(ask(&cluster, "", "POST", bindings, binding).await.0, 201);
    // Roles are heard of a moment after they are written.
    let link = loop {
        let (code, told) = ask(&cluster, "jane", "POST", "/kubarium/v1/ui", Value::Null).await;
        if code == 200 {
            break told["url"].as_str().unwrap().to_owned();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(ask(&cluster, "joe", "POST", "/kubarium/v1/ui", Value::Null).await.0, 403);
    let (origin, invitation) = link.split_once("/#").unwrap();
    let address = cluster.page_address().await.unwrap();
    assert_eq!(origin, format!("http://{address}"));
    let entered = plain(address, "POST /session", &[], invitation).await;
    let told: Value = serde_json::from_str(&entered.1).unwrap();
    assert_eq!((entered.0, &told["user"]), (200, &json!("jane")));
    let bearer = format!("Bearer {}", told["session"].as_str().unwrap());
    let (code, said) = plain(address, "GET /api/v1/pods", &[("authorization", &bearer)], "").await;
    assert!(code == 403 && said.contains("User \\\"jane\\\" cannot list resource \\\"pods\\\""), "{said}");
    assert_eq!(plain(address, "GET /api/v1/pods", &[], "").await.0, 401);
    cluster.stop().await;
    // Somebody else may have its port by now, who does not know the session.
    let headers = [("authorization", bearer.as_str())];
    let asked = support::plain::ask(address, "GET /api/v1/pods", &headers, "");
    let answer = tokio::time::timeout(Duration::from_secs(10), asked).await;
    assert!(!matches!(answer, Ok(Ok((403, _)))), "it ends with the cluster");
}

#[tokio::test]
async fn a_page_is_for_this_machine_alone() {
    let config = bare().ui_listen("0.0.0.0:0".parse().unwrap());
    let cluster = Cluster::start(config).await.unwrap();
    let refused = cluster.open_page().await.unwrap_err().to_string();
    assert!(refused.contains("0.0.0.0:0"), "{refused}");
    cluster.stop().await;
}

#[tokio::test]
async fn the_record_is_told_as_it_is_written() {
    let cluster = Cluster::start(bare()).await.unwrap();
    let request = http::Request::builder().uri("/kubarium/v1/flow?since=now&follow=true");
    let response = cluster.service().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut lines = response.into_body().into_data_stream();
    let map = json!({"metadata": {"name": "a"}});
    assert_eq!(ask(&cluster, "", "POST", "/api/v1/namespaces/default/configmaps", map).await.0, 201);
    let mut words = String::new();
    while !words.contains("answered 201") {
        let line: Value = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(line["missed"], 0);
        assert!(line["behind"].is_u64(), "{line}");
        for step in line["steps"].as_array().unwrap() {
            words +=
                &format!("{}: {}\n", step["component"].as_str().unwrap(), step["words"].as_str().unwrap());
        }
    }
    assert!(words.contains("kube-apiserver: created configmaps default/a at "), "{words}");
    // Without following it ends; what has been is told in order.
    let (_, told) = ask(&cluster, "", "GET", "/kubarium/v1/flow?since=1", Value::Null).await;
    assert_eq!((&told["steps"][0]["id"], &told["missed"]), (&json!(1), &json!(0)));
    let (code, refused) = ask(&cluster, "", "GET", "/kubarium/v1/flow?since=x", Value::Null).await;
    assert!(code == 400 && refused["message"].as_str().unwrap().contains("since"), "{refused}");
    // What follows ends with the cluster.
    cluster.stop().await;
    while lines.next().await.is_some() {}
}

#[tokio::test]
async fn a_story_ends_with_how_it_stands_where_that_is_asked_for() {
    let cluster = Cluster::start(bare()).await.unwrap();
    let map = json!({"metadata": {"name": "a"}});
    assert_eq!(ask(&cluster, "joe", "POST", "/api/v1/namespaces/default/configmaps", map).await.0, 403);
    let path = "/flowz?resource=configmaps&namespace=default&name=a";
    let (code, told) = ask(&cluster, "", "GET", &format!("{path}&standing=true"), Value::Null).await;
    let end = "a Role with apiGroups [\"\"], resources [\"configmaps\"], verbs [\"create\"], \
               bound to User \"joe\" in namespace default, would allow it";
    assert_eq!((code, &told["standing"]), (200, &json!([end])));
    let (_, told) = ask(&cluster, "", "GET", path, Value::Null).await;
    assert!(told["steps"].is_array() && told.get("standing").is_none(), "{told}");
    cluster.stop().await;
}

/// Who may be invited to the page, and read the version of nothing else.
async fn may_open_the_page(cluster: &Cluster, subject: Value) {
    let rules = json!([{"nonResourceURLs": ["/kubarium/v1/ui"], "verbs": ["post"]}]);
    let role = json!({"metadata": {"name": "ui"}, "rules": rules});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert_eq!(ask(cluster, "", "POST", roles, role).await.0, 201);
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ui"});
    let binding = json!({"metadata": {"name": "ui"}, "roleRef": role, "subjects": [subject]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(ask(cluster, "", "POST", bindings, binding).await.0, 201);
}

/// A cluster on a port of its own, whose time passes when the test says so, from now on: certificates have to
/// be good in real time.
async fn listening() -> (Cluster, Clock) {
    let clock = Clock::stepped(Clock::real().now());
    let config = bare().clock(clock.clone()).listen(Listen::loopback());
    (Cluster::start(config).await.unwrap(), clock)
}

/// Opens a session for who shows a token, else the administrator's certificate, as soon as that is allowed.
async fn session(cluster: &Cluster, bearer: Option<&str>) -> String {
    let access = cluster.access().unwrap();
    session_of(cluster, access.identity.as_ref().filter(|_| bearer.is_none()), bearer).await
}

/// Opens it for who shows this certificate, or this token.
async fn session_of(cluster: &Cluster, identity: Option<&Identity>, bearer: Option<&str>) -> String {
    let access = cluster.access().unwrap();
    let identity = identity.map(|one| [one.certificate_pem.as_str().into(), one.key_pem.as_str().into()]);
    let target = Target::new(&access.server, access.authority_pem.as_ref().unwrap().as_bytes(), identity);
    let mut wire = target.http1().await.unwrap();
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("authorization", *bearer)).collect();
    let link = loop {
        let answer = wire.open_with(Method::POST, "/kubarium/v1/ui", &headers, None).await.unwrap();
        let code = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        if code == 200 {
            let told: Value = serde_json::from_slice(&bytes).unwrap();
            break told["url"].as_str().unwrap().to_owned();
        }
        assert_eq!(code, 403, "{bytes:?}");
    };
    let address = cluster.page_address().await.unwrap();
    let entered = plain(address, "POST /session", &[], link.split_once("/#").unwrap().1).await;
    let told: Value = serde_json::from_str(&entered.1).unwrap();
    format!("Bearer {}", told["session"].as_str().unwrap())
}

async fn answered(cluster: &Cluster, session: &str, path: &str) -> u16 {
    let address = cluster.page_address().await.unwrap();
    plain(address, &format!("GET {path}"), &[("authorization", session)], "").await.0
}

#[tokio::test]
async fn a_session_ends_with_a_token_that_is_revoked_or_expires() {
    let (cluster, clock) = listening().await;
    let account = json!({"kind": "ServiceAccount", "namespace": "default", "name": "robot"});
    may_open_the_page(&cluster, account).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let robot = json!({"metadata": {"name": "robot"}});
    assert_eq!(ask(&cluster, "", "POST", accounts, robot.clone()).await.0, 201);
    let token = async || {
        let wanted = json!({"spec": {"expirationSeconds": 600}});
        let path = format!("{accounts}/robot/token");
        let (code, told) = ask(&cluster, "", "POST", &path, wanted).await;
        assert_eq!(code, 201, "{told}");
        format!("Bearer {}", told["status"]["token"].as_str().unwrap())
    };
    let bearer = token().await;
    let expiring = session(&cluster, Some(&bearer)).await;
    assert_eq!(answered(&cluster, &expiring, "/version").await, 200);
    assert_eq!(answered(&cluster, &expiring, "/api/v1/pods").await, 403);
    clock.advance(Duration::from_secs(1200));
    assert_eq!(answered(&cluster, &expiring, "/version").await, 401);
    let bearer = token().await;
    let revoked = session(&cluster, Some(&bearer)).await;
    assert_eq!(answered(&cluster, &revoked, "/version").await, 200);
    // What loses its role is a stranger to nobody, and may do nothing.
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/ui";
    assert_eq!(ask(&cluster, "", "DELETE", binding, Value::Null).await.0, 200);
    let address = cluster.page_address().await.unwrap();
    let invite = async || plain(address, "POST /kubarium/v1/ui", &[("authorization", &revoked)], "").await.0;
    while invite().await == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(invite().await, 403);
    assert_eq!(ask(&cluster, "", "DELETE", &format!("{accounts}/robot"), Value::Null).await.0, 200);
    // Tokens that were found good are believed for ten seconds.
    clock.advance(Duration::from_secs(20));
    assert_eq!(answered(&cluster, &revoked, "/version").await, 401);
    assert_eq!(ask(&cluster, "", "POST", accounts, robot).await.0, 201);
    assert_eq!(answered(&cluster, &revoked, "/version").await, 401, "it is over");
    cluster.stop().await;
}

#[tokio::test]
async fn a_session_ends_with_a_certificate_that_expires() {
    // The cluster's own outlast any time that is stepped through: one of somebody else's authority.
    let clock = Clock::stepped(Clock::real().now());
    let made = MadeAt::by_both(clock.now(), clock.now());
    let authority = Authority::generate(made).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, authority.certificate_pem()).unwrap();
    let mut config = bare().clock(clock.clone()).listen(Listen::loopback());
    config.apiserver.authentication.client_ca_file = Some(file);
    let cluster = Cluster::start(config).await.unwrap();
    let identity = authority.client("jane", "system:masters", made).unwrap();
    let session = session_of(&cluster, Some(&identity), None).await;
    assert_eq!(answered(&cluster, &session, "/api/v1/pods").await, 200);
    clock.advance(Duration::from_secs(20 * 365 * 24 * 3600));
    assert_eq!(answered(&cluster, &session, "/api/v1/pods").await, 401);
    cluster.stop().await;
}
