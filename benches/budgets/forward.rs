//! What `kubectl port-forward` costs: the canned page of nginx, as a program beside kubectl sees it.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use http::Method;
use serde_json::json;

use crate::server::{Server, median, milliseconds, runtime};
use crate::support::forward::Forward;
use crate::support::kubectls;
use crate::table::Row;

const PODS: &str = "/api/v1/namespaces/default/pods";
const REQUESTS: usize = 301;

/// Each request has a connection of its own, which is a stream of kubectl's.
pub(crate) fn measure() -> Vec<Row> {
    let server = Server::start(1);
    runtime().block_on(async {
        let mut wire = server.target.http2().await.unwrap();
        let spec = json!({"containers": [{"name": "c", "image": "nginx"}]});
        let pod = json!({"metadata": {"name": "web"}, "spec": spec});
        assert_eq!(wire.send(Method::POST, PODS, &pod).await.unwrap().code, 201);
    });
    server.wait_until_quiet();
    let forward = start_forward(server.kubeconfig());
    let mut times: Vec<f64> = (0..REQUESTS).map(|_| page(&forward)).collect();
    vec![Row::new("port-forward of nginx's page, p50", median(&mut times), "ms").budget(2.0)]
}

fn start_forward(kubeconfig: PathBuf) -> Forward {
    let mut command = Command::new(kubectls().pop().unwrap());
    command.arg("--kubeconfig").arg(kubeconfig).args(["port-forward", "pod/web", ":80"]);
    Forward::start(command)
}

/// How long a page takes.
fn page(forward: &Forward) -> f64 {
    let start = Instant::now();
    let answer = forward.get("/");
    assert!(answer.contains("Welcome to nginx!"), "{answer}");
    milliseconds(start.elapsed())
}
