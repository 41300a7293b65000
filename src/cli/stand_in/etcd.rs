//! etcd, alone: kubarium called `etcd`, and `kubarium etcd`. It keeps a store, serves etcd's API on it,
//! answers who looks whether it is well, and ends.
//!
//! A `kube-apiserver` that is kubarium too asks where the store is, and opens it itself: what is between the
//! two would otherwise be a second way of every request. From then on this process answers that it has given
//! the store away; once nobody holds it, it serves it again.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use sync::Mutex;

use super::ending::{Ending, PATIENCE};
use super::flags::Flags;
use super::place::{DEFAULT_PREFIX, EtcdStore, STORE};
use super::program::{ETCD, log, runtime, said};
use crate::cli::outcome::{Failure, say};
use crate::cluster::etcd_api::{self, ShownValues};
use apimachinery::duration::parse_flag;
use apimachinery::wire::ApiService;
use apis::scheme::Scheme;
use apiserver::endpoints::routes::debug::Verbosity;
use clock::Clock;
use etcd::{Kv, Options, StoreError};
use etcd_server::options::ListenOptions;
use etcd_server::status::{EtcdStatus, UNAVAILABLE};
use etcd_server::{EtcdServer, ServerOptions, VERSION};

const UNSERVED: &str = include_str!("etcd_flags.txt");
const DEFAULT_URL: &str = "http://localhost:2379";
/// Where alarms are kept, beside the store.
const ALARMS: &str = "alarms";
/// So long a kube-apiserver that has asked for the store may take to open it, before it is opened here again.
const FOR_APISERVER: Duration = Duration::from_secs(10);

/// Keep a store and serve etcd's API on it, without Kubernetes.
#[derive(Parser)]
#[command(name = "etcd", disable_version_flag = true, args_override_self = true)]
pub struct Etcd {
    /// Human-readable name for this member.
    #[arg(long, default_value = "default")]
    name: String,
    /// Path to the data directory; NAME.etcd when not given.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where clients are served; http://localhost:2379 when nothing is said.
    #[command(flatten)]
    listen: ListenOptions,
    /// List of this member's client URLs to advertise to the public; those that are listened on when
    /// nothing is said.
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    advertise_client_urls: Vec<String>,
    /// How often a quiet watch that wants it is told how far it is.
    #[arg(long, default_value = "10m", value_parser = parse_flag, value_name = "DURATION")]
    watch_progress_notify_interval: Duration,
    /// Raises the alarm NOSPACE and refuses what needs room when the store has so many bytes; 0 is 2 GiB, and
    /// less is no quota.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_name = "BYTES")]
    quota_backend_bytes: i64,
    /// Disables fsync, unsafe, will cause data loss.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true")]
    unsafe_no_fsync: bool,
}

/// How it was started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CalledAs {
    /// By a test suite, for its server.
    Etcd,
    /// By somebody who wants an etcd.
    Subcommand,
}

/// Runs until it is told to end.
pub fn run(words: Vec<String>, _verbosity: Verbosity) -> Result<(), Failure> {
    let mut command = Etcd::command();
    let flags = Flags { served: &command, known: UNSERVED, is_plain_go: true };
    let normal = flags.read(words).map_err(|why| Failure(why.into()))?;
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
    let mut etcd = matches.map_err(|error| said(&error))?;
    // Suites say 0.0.0.0 and ask at this machine.
    etcd.listen.keep_to_loopback();
    runtime()?.block_on(etcd.serve(CalledAs::Etcd))
}

impl Etcd {
    /// `kubarium etcd`: runs until it is told to end, as a service does, also when whoever started it is
    /// gone. A store that cannot be opened is said at once.
    pub fn run(self) -> Result<(), Failure> {
        runtime()?.block_on(self.serve(CalledAs::Subcommand))
    }

    async fn serve(mut self, called: CalledAs) -> Result<(), Failure> {
        let mut ending = match called {
            CalledAs::Etcd => Ending::listen()?,
            CalledAs::Subcommand => Ending::of_service()?,
        };
        // Who cannot be served leaves no folder behind.
        etcd_api::check(&self.listen).map_err(|error| Failure(error.to_string()))?;
        let held = Arc::new(HeldStore::new(self.store()?));
        if called == CalledAs::Subcommand {
            held.kv().map_err(|status| Failure(status.message))?;
        }
        if self.listen.listen_client_urls.is_empty() {
            self.listen.listen_client_urls.push(DEFAULT_URL.parse().map_err(Failure)?);
        }
        let mut servers = Vec::new();
        let etcd = self.api(&held);
        let clock = Clock::real();
        let serving = etcd_api::serve_with(&clock, &self.listen, service(&etcd, &held));
        for server in serving.await.map_err(|error| Failure(error.to_string()))? {
            log(format!("serving client traffic on {}", server.address()));
            servers.push(server);
        }
        ending.wait().await;
        let stopping = async {
            held.close().await;
            for server in servers {
                server.stop().await;
            }
        };
        // Whoever keeps a connection open is not waited for.
        let _ = clock.timeout(PATIENCE, stopping).await;
        Ok(())
    }

    fn api(&self, held: &Arc<HeldStore>) -> EtcdServer {
        let values = Arc::new(ShownValues::new(Arc::new(Scheme::builtin())));
        let held = held.clone();
        let options = ServerOptions {
            name: self.name.clone(),
            client_urls: self.advertised(),
            progress_interval: self.watch_progress_notify_interval,
            quota_bytes: self.quota_backend_bytes,
            alarms_file: Some(held.place.data_dir.join(ALARMS)),
        };
        EtcdServer::new(Arc::new(move || held.kv()), values, options)
    }

    fn advertised(&self) -> Vec<String> {
        if !self.advertise_client_urls.is_empty() {
            return self.advertise_client_urls.clone();
        }
        self.listen.listen_client_urls.iter().map(ToString::to_string).collect()
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
}

/// The store, as long as no kube-apiserver has it.
struct HeldStore {
    place: EtcdStore,
    clock: Clock,
    state: Mutex<HeldState>,
}

#[derive(Default)]
struct HeldState {
    /// Open from the first request on.
    kv: Option<Kv>,
    /// When a kube-apiserver has asked for it last.
    given: Option<Duration>,
    is_over: bool,
}

impl HeldStore {
    fn new(place: EtcdStore) -> HeldStore {
        HeldStore { place, clock: Clock::real(), state: Mutex::default() }
    }

    fn kv(&self) -> Result<Kv, EtcdStatus> {
        let mut state = self.state.lock();
        if let Some(kv) = &state.kv {
            return Ok(kv.clone());
        }
        let is_awaited = |given| self.clock.elapsed() < given + FOR_APISERVER;
        if state.is_over || state.given.is_some_and(is_awaited) {
            return Err(given_away("kube-apiserver"));
        }
        let kv = self.open().map_err(|error| match error {
            StoreError::Locked { process: Some(process), .. } => given_away(&format!("process {process}")),
            StoreError::Locked { .. } => given_away("another process"),
            error => EtcdStatus::from(error),
        })?;
        state.kv = Some(kv.clone());
        Ok(kv)
    }

    /// Where a kube-apiserver has it, too.
    fn open(&self) -> Result<Kv, StoreError> {
        let options = Options {
            data_dir: Some(self.place.folder(DEFAULT_PREFIX).join("etcd")),
            unsafe_no_fsync: self.place.unsafe_no_fsync,
            ..Options::default()
        };
        tokio::task::block_in_place(|| Kv::open(options, self.clock.clone()))
    }

    /// Lets go of it for a kube-apiserver.
    async fn give(&self) -> EtcdStore {
        let kv = {
            let mut state = self.state.lock();
            state.given = Some(self.clock.elapsed());
            state.kv.take()
        };
        if let Some(kv) = kv {
            kv.close().await;
        }
        self.place.clone()
    }

    async fn close(&self) {
        let kv = {
            let mut state = self.state.lock();
            state.is_over = true;
            state.kv.take()
        };
        if let Some(kv) = kv {
            kv.close().await;
        }
    }
}

fn given_away(holder: &str) -> EtcdStatus {
    let words = format!(
        "etcdserver: the store is in the hands of {holder}: kubarium's kube-apiserver opens it itself; look at \
         objects with kubectl, or use kubarium up --listen-client-urls"
    );
    EtcdStatus::new(UNAVAILABLE, words)
}

fn service(etcd: &EtcdServer, held: &Arc<HeldStore>) -> ApiService {
    let (etcd, held) = (etcd.clone(), held.clone());
    ApiService::new(tower::service_fn(move |request| {
        let (etcd, held) = (etcd.clone(), held.clone());
        async move { Ok(answer(request, &etcd, &held).await) }
    }))
}

/// Where the store is, and whatever etcd answers. It is well as long as it is there: a kube-apiserver that
/// has the store says itself how that is.
async fn answer(request: Request<Body>, etcd: &EtcdServer, held: &HeldStore) -> Response<Body> {
    match request.uri().path() {
        STORE => {
            let place = serde_json::to_value(held.give().await).unwrap_or_default();
            let mut response = Response::new(Body::from(place.to_string()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        "/health" => Response::new(Body::from(r#"{"health":"true","reason":""}"#)),
        "/livez" | "/readyz" => Response::new(Body::from("ok\n")),
        _ => etcd.serve(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::stand_in::flags::{Normal, RefusedFlag};

    fn read(words: &[&str]) -> Result<Normal, RefusedFlag> {
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
        assert_eq!(read(&["--cert-file=a"]).unwrap().words, ["--cert-file=a"]);
        assert_eq!(read(&["--nonsense"]).unwrap_err(), "flag provided but not defined: -nonsense");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_store_is_served_until_a_kube_apiserver_asks_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = EtcdStore { data_dir: folder.path().to_owned(), unsafe_no_fsync: true };
        let held = HeldStore::new(place.clone());
        let kv = held.kv().unwrap();
        assert!(kv.writable().is_ok() && held.kv().is_ok());
        assert_eq!(held.give().await, place);
        assert!(kv.writable().is_err(), "it is closed");
        let refused = held.kv().unwrap_err();
        assert!(refused.code == UNAVAILABLE && refused.message.contains("in the hands of kube-apiserver"));
        drop(kv);
        let other = HeldStore::new(place);
        other.kv().unwrap();
        other.close().await;
        assert!(other.kv().is_err());
    }
}
