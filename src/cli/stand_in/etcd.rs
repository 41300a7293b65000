//! kubarium called `etcd`: keeps the place of a store, answers who looks whether it is well, and ends.
//!
//! The store itself is opened by `kube-apiserver`, which is the only one who reads and writes it: what is
//! between the two would otherwise be a second way of every request. So this process holds the data dir by
//! being the one that says where it is; it speaks none of etcd's gRPC, and says so to `etcdctl`.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use axum::body::Body;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use serde_json::json;

use super::ending::{Ending, PATIENCE};
use super::flags::Flags;
use super::place::{EtcdStore, STORE};
use super::program::{ETCD, log, runtime, said};
use crate::cli::outcome::{Failure, say};
use apimachinery::wire::ApiService;
use apiserver::server::{Server, bind};
use clock::Clock;

/// The release whose flags and answers these are.
const VERSION: &str = "3.6.8";
const UNSERVED: &str = include_str!("etcd_flags.txt");
const NO_GRPC: &str = "this is kubarium under the name of etcd: it keeps the data dir of its kube-apiserver and \
                       serves none of etcd's API; look at objects with kubectl";

/// Keeps the store of the kube-apiserver that is kubarium too.
#[derive(Parser)]
#[command(name = "etcd", disable_version_flag = true, args_override_self = true)]
struct Etcd {
    /// Human-readable name for this member.
    #[arg(long, default_value = "default")]
    name: String,
    /// Path to the data directory; NAME.etcd when not given.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// List of URLs to listen on for client traffic.
    #[arg(long, value_delimiter = ',', default_value = "http://localhost:2379")]
    listen_client_urls: Vec<String>,
    /// List of this member's client URLs to advertise to the public.
    #[arg(long, value_delimiter = ',', default_value = "http://localhost:2379")]
    advertise_client_urls: Vec<String>,
    /// Disables fsync, unsafe, will cause data loss.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true")]
    unsafe_no_fsync: bool,
}

/// Runs until it is told to end.
pub fn run(words: Vec<String>) -> Result<(), Failure> {
    let mut command = Etcd::command();
    let flags = Flags { served: &command, known: UNSERVED, is_plain_go: true };
    let normal = flags.read(words).map_err(Failure)?;
    if normal.asks_for_help {
        say(command.render_long_help().to_string());
        return Ok(());
    }
    if normal.asks_for_version {
        say(format!("etcd Version: {VERSION}\nkubarium Version: {}", env!("CARGO_PKG_VERSION")));
        return Ok(());
    }
    let words = std::iter::once(ETCD.to_owned()).chain(normal.words);
    let matches = command.try_get_matches_from_mut(words).and_then(|found| Etcd::from_arg_matches(&found));
    let etcd = matches.map_err(|error| said(&error))?;
    runtime()?.block_on(etcd.serve())
}

impl Etcd {
    async fn serve(self) -> Result<(), Failure> {
        let mut ending = Ending::listen()?;
        let store = self.store()?;
        let mut servers = vec![];
        for url in &self.listen_client_urls {
            servers.push(self.listen(url, &store).await?);
        }
        ending.wait().await;
        let stopping = async {
            for server in servers {
                server.stop().await;
            }
        };
        // Whoever keeps a connection open is not waited for.
        let _ = Clock::real().timeout(PATIENCE, stopping).await;
        Ok(())
    }

    /// The data dir, made if need be, for its owner alone.
    fn store(&self) -> Result<EtcdStore, Failure> {
        let data_dir = self.data_dir.clone().unwrap_or_else(|| format!("{}.etcd", self.name).into());
        let shown = data_dir.display();
        let failed = |error| Failure::new(format!("--data-dir {shown}"), error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&data_dir).map_err(failed)?;
        // kube-apiserver perhaps runs in another folder.
        let data_dir = std::path::absolute(&data_dir).map_err(failed)?;
        Ok(EtcdStore { data_dir, unsafe_no_fsync: self.unsafe_no_fsync })
    }

    async fn listen(&self, url: &str, store: &EtcdStore) -> Result<Server, Failure> {
        let wrong = |why: &dyn std::fmt::Display| Failure(format!("--listen-client-urls {url}: {why}"));
        let address = url.strip_prefix("http://").ok_or_else(|| {
            wrong(&"must be http://HOST:PORT, as http://127.0.0.1:2379, since TLS is not served")
        })?;
        let address = address_of(address.trim_end_matches('/')).await.map_err(|error| wrong(&error))?;
        let listener = bind(address).await.map_err(|error| wrong(&error))?;
        let server = Server::start(listener, None, service(store)).map_err(|error| wrong(&error))?;
        log(format!("serving client traffic on {}", server.address()));
        Ok(server)
    }
}

async fn address_of(text: &str) -> std::io::Result<SocketAddr> {
    let mut found: Vec<SocketAddr> = tokio::net::lookup_host(text).await?.collect();
    // `localhost` means the family that clients try first.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| std::io::Error::other("has no address"))
}

fn service(store: &EtcdStore) -> ApiService {
    let store = store.clone();
    ApiService::new(tower::service_fn(move |request: Request<Body>| {
        let answer = answer(&request, &store);
        async move { Ok(answer) }
    }))
}

/// `/health`, `/livez` and `/readyz` (`etcdhttp.HandleHealth`), `/version` (`HandleVersion`), and where the
/// store is.
fn answer(request: &Request<Body>, store: &EtcdStore) -> Response<Body> {
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if content_type.starts_with(b"application/grpc") {
        return no_grpc();
    }
    match request.uri().path() {
        "/health" => json_of(&json!({"health": "true", "reason": ""})),
        "/version" => json_of(&json!({"etcdserver": VERSION, "etcdcluster": "3.6.0"})),
        "/livez" | "/readyz" => Response::new(Body::from("ok\n")),
        STORE => json_of(&serde_json::to_value(store).unwrap_or_default()),
        _ => {
            let mut response = Response::new(Body::from(format!("404 page not found: {NO_GRPC}\n")));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    }
}

fn json_of(value: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer of gRPC that is an error from its first header on: `Unimplemented`, and why.
fn no_grpc() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static("12"));
    headers.insert("grpc-message", HeaderValue::from_static(NO_GRPC));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::stand_in::flags::Normal;

    fn read(words: &[&str]) -> Result<Normal, String> {
        let served = Etcd::command();
        let flags = Flags { served: &served, known: UNSERVED, is_plain_go: true };
        flags.read(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn what_suites_pass_is_taken() {
        let fabric8 = [
            "-data-dir",
            "/d",
            "-wal-dir",
            "/w",
            "--listen-client-urls",
            "http://0.0.0.0:1",
            "--advertise-client-urls",
            "http://0.0.0.0:1",
            "--initial-cluster",
            "default=http://localhost:2",
            "--initial-advertise-peer-urls",
            "http://localhost:2",
            "--listen-peer-urls",
            "http://localhost:2",
        ];
        let normal = read(&fabric8).unwrap();
        assert_eq!(normal.ignored.len(), 4, "{normal:?}");
        assert_eq!(normal.words[..2], ["--data-dir=/d", "--listen-client-urls=http://0.0.0.0:1"]);
        assert!(read(&["--cert-file=a"]).unwrap_err().contains("TLS is not served"));
        assert_eq!(read(&["--nonsense"]).unwrap_err(), "flag provided but not defined: -nonsense");
    }

    #[test]
    fn etcdctl_is_told_what_this_is() {
        let store = EtcdStore { data_dir: "/d".into(), unsafe_no_fsync: true };
        let ask = |path: &str, content_type: &str| {
            let request = Request::get(path).header(CONTENT_TYPE, content_type).body(Body::empty()).unwrap();
            answer(&request, &store)
        };
        let refused = ask("/etcdserverpb.KV/Range", "application/grpc+proto");
        assert_eq!(refused.headers()["grpc-status"], "12");
        assert!(refused.headers()["grpc-message"].to_str().unwrap().contains("none of etcd's API"));
        assert_eq!(ask("/v3/kv/range", "").status(), StatusCode::NOT_FOUND);
        assert_eq!(ask("/health", "").status(), StatusCode::OK);
    }
}
