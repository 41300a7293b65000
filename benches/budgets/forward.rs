//! What `kubectl port-forward` costs: the canned page of nginx, as a program beside kubectl sees it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use http::Method;
use serde_json::json;

use crate::server::{Server, median, milliseconds, runtime};
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
    let forward = Forward::start(server.kubeconfig());
    let mut times: Vec<f64> = (0..REQUESTS).map(|_| forward.page()).collect();
    vec![Row::new("port-forward of nginx's page, p50", median(&mut times), "ms").budget(2.0)]
}

/// A kubectl that forwards. Dropped, it ends.
struct Forward {
    kubectl: Child,
    /// Where it listens.
    address: String,
    /// It says a short line for each connection, and ends when nobody can hear it.
    _said: BufReader<ChildStdout>,
}

impl Forward {
    fn start(kubeconfig: PathBuf) -> Forward {
        let mut command = Command::new(kubectls().pop().unwrap());
        command.arg("--kubeconfig").arg(kubeconfig).args(["port-forward", "pod/web", ":80"]);
        let mut kubectl = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(kubectl.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        // "Forwarding from 127.0.0.1:40123 -> 80"
        let address = line.split(' ').nth(2).unwrap_or_else(|| panic!("it said {line:?}")).to_owned();
        Forward { kubectl, address, _said: said }
    }

    /// How long a page takes.
    fn page(&self) -> f64 {
        let start = Instant::now();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("Welcome to nginx!"), "{answer}");
        milliseconds(start.elapsed())
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}
