//! The real thing: etcd, kube-apiserver and what else of a control plane is in a folder, so that what our tests
//! expect can be held against it (`make upstream KUBE_BIN=FOLDER`).
//!
//! A control plane has a folder, ports and certificates of its own and ends when it is dropped. Nodes are ours:
//! kubelets that simulate, over the wire.

use std::convert::Infallible;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kubarium::apimachinery::user::UserInfo;
use kubarium::apimachinery::wire::{ApiRequest, ApiResponse, ApiService, DecodedBody, text_response};
use kubarium::apis::networking::service_ranges::ServiceRanges;
use kubarium::client_go::ComponentContext;
use kubarium::client_go::client::Client;
use kubarium::clock::Clock;
use kubarium::entropy::Entropy;
use kubarium::flow::Flow;
use kubarium::kubelet::kubelet::Kubelet;
use kubarium::kubelet::node_config::NodeConfig;
use kubarium::kubelet::players::Players;
use kubarium::network::Network;
use kubarium::pki::{Authority, Identity};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tower::ServiceExt;

use super::PATIENCE;
use super::programs::free_port;

/// Names the folder with the programs; without it everything is held against ours.
pub(crate) const VARIABLE: &str = "KUBARIUM_UPSTREAM";
/// Set, `kubarium etcd` is beneath the real server in place of etcd: both have to keep the same for it.
const ON_OURS: &str = "KUBARIUM_UPSTREAM_ON_OURS";
/// Without these there is nothing to ask.
pub(crate) const NEEDED: [&str; 2] = ["etcd", "kube-apiserver"];
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";

/// The folder, if the real thing is to be asked.
pub(crate) fn asked() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Whether whoever makes pods run is in the folder.
pub(crate) fn has_components(bin: &Path) -> bool {
    bin.join(CONTROLLER_MANAGER).exists() && bin.join(SCHEDULER).exists()
}

/// A control plane. Dropped, its processes end and its folder goes.
pub(crate) struct ControlPlane {
    /// Where the apiserver is reached: host and port.
    pub server: String,
    /// Who signs for everybody.
    pub authority: Authority,
    contexts: Vec<ComponentContext>,
    /// etcd, the apiserver, then the others.
    pub processes: Vec<Child>,
    /// Where etcd is reached: a URL.
    pub etcd: String,
    bin: PathBuf,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts one: etcd and the apiserver, and with `nodes` the controllers, the scheduler, and so many nodes.
    pub(crate) async fn start(bin: &Path, nodes: Option<u32>) -> ControlPlane {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::real();
        let authority = Authority::load_or_generate(&folder.path().join("pki"), clock.now()).unwrap();
        let server = format!("127.0.0.1:{}", free_port());
        let (contexts, processes, bin) = (vec![], vec![], bin.to_owned());
        let etcd = format!("http://127.0.0.1:{}", free_port());
        let mut plane = ControlPlane { server, authority, contexts, processes, etcd, bin, folder };
        plane.start_etcd_and_apiserver(&clock);
        plane.wait_until_ready().await;
        if let Some(nodes) = nodes {
            plane.start_components(&clock);
            (1..=nodes).for_each(|number| plane.start_node(number, &clock));
        }
        plane
    }

    /// The apiserver in the name of an administrator.
    pub(crate) fn service(&self) -> ApiService {
        self.service_as("kubernetes-admin", "system:masters")
    }

    fn service_as(&self, user: &str, group: &str) -> ApiService {
        let identity = self.authority.client(user, group, Clock::real().now()).unwrap();
        over_the_wire(&self.server, self.authority.certificate_pem(), &identity)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn start_etcd_and_apiserver(&mut self, clock: &Clock) {
        self.start_etcd();
        let ranges = ServiceRanges::default();
        let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), ranges.api_server()];
        let identity = self.authority.server(&["localhost", "kubernetes"], &addresses, clock.now()).unwrap();
        fs::write(self.path("tls.crt"), &identity.certificate_pem).unwrap();
        fs::write(self.path("tls.key"), &identity.key_pem).unwrap();
        let port = self.server.rsplit(':').next().unwrap().to_owned();
        self.run(
            "kube-apiserver",
            &[
                format!("--etcd-servers={}", self.etcd),
                "--bind-address=127.0.0.1".into(),
                format!("--secure-port={port}"),
                format!("--cert-dir={}", self.path("certificates")),
                format!("--tls-cert-file={}", self.path("tls.crt")),
                format!("--tls-private-key-file={}", self.path("tls.key")),
                format!("--client-ca-file={}", self.path("pki/ca.crt")),
                "--authorization-mode=Node,RBAC".into(),
                "--enable-bootstrap-token-auth=true".into(),
                "--allow-privileged=true".into(),
                format!("--service-cluster-ip-range={ranges}"),
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
                format!("--service-account-key-file={}", self.path("pki/sa.pub")),
                format!("--service-account-signing-key-file={}", self.path("pki/sa.key")),
            ],
        );
    }

    fn start_etcd(&mut self) {
        let client = &self.etcd;
        let mut arguments = vec![
            format!("--data-dir={}", self.path("etcd-data")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
        ];
        if std::env::var_os(ON_OURS).is_some_and(|value| !value.is_empty()) {
            arguments.insert(0, "etcd".into());
            return self.run_program(Path::new(env!("CARGO_BIN_EXE_kubarium")), "etcd", &arguments);
        }
        arguments.push(format!("--listen-peer-urls=http://127.0.0.1:{}", free_port()));
        self.run("etcd", &arguments);
    }

    fn start_components(&mut self, clock: &Clock) {
        let kubeconfig = |name: &str| {
            let identity = self.authority.client(&format!("system:{name}"), "", clock.now()).unwrap();
            let path = self.path(&format!("{name}.kubeconfig"));
            fs::write(&path, kubeconfig(&self.server, self.authority.certificate_pem(), &identity)).unwrap();
            format!("--kubeconfig={path}")
        };
        let (manager, scheduler) = (kubeconfig(CONTROLLER_MANAGER), kubeconfig(SCHEDULER));
        let common = || ["--leader-elect=false".to_owned(), format!("--secure-port={}", free_port())];
        let own = [
            manager,
            "--controllers=*,bootstrap-signer-controller,token-cleaner-controller".into(),
            "--use-service-account-credentials=true".into(),
            format!("--root-ca-file={}", self.path("pki/ca.crt")),
            format!("--cluster-signing-cert-file={}", self.path("pki/ca.crt")),
            format!("--cluster-signing-key-file={}", self.path("pki/ca.key")),
            format!("--service-account-private-key-file={}", self.path("pki/sa.key")),
        ];
        self.run(CONTROLLER_MANAGER, &[own.as_slice(), &common()].concat());
        self.run(SCHEDULER, &[[scheduler].as_slice(), &common()].concat());
    }

    /// A node of ours, which knows the server as any client does.
    fn start_node(&mut self, number: u32, clock: &Clock) {
        let config = NodeConfig::numbered(number);
        let user = UserInfo::authenticated(&config.user_name(), &["system:nodes"]);
        let service = self.service_as(&config.user_name(), "system:nodes");
        let client = Client::new(service, Arc::new(user), clock.clone(), Flow::off());
        let name = format!("kubelet/{}", config.name);
        let entropy = Entropy::seeded(number.into());
        let context = ComponentContext::new(&name, ("kubelet", &config.name), client, clock.clone(), entropy);
        let network = Network::nobody(clock.clone(), context.entropy.clone());
        let kubelet = Kubelet::new(context.clone(), config, Players::new(clock), network);
        kubelet.expect("numbered nodes have usable addresses").start();
        self.contexts.push(context);
    }

    fn run(&mut self, name: &str, arguments: &[String]) {
        self.run_program(&self.bin.join(name), name, arguments);
    }

    fn run_program(&mut self, program: &Path, name: &str, arguments: &[String]) {
        let log = File::create(self.path(&format!("{name}.log"))).unwrap();
        let child = Command::new(program)
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.processes.push(child.unwrap_or_else(|error| panic!("{}: {error}", program.display())));
    }

    /// Ready is who says so, and has the namespace that everybody uses.
    async fn wait_until_ready(&mut self) {
        let (start, service) = (Instant::now(), self.service());
        for path in ["/readyz", "/api/v1/namespaces/default"] {
            loop {
                let request = http::Request::get(path).body(Body::empty()).unwrap();
                let answer = service.clone().oneshot(request).await.expect("answers are infallible");
                if answer.status() == 200 {
                    break;
                }
                let ended = self.processes.iter_mut().any(|child| child.try_wait().unwrap().is_some());
                assert!(!ended && start.elapsed() < PATIENCE, "it did not start:\n{}", self.logs());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// The last lines of each.
    fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {name}\n{}", lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        NEEDED.map(tail).join("\n")
    }
}

impl Drop for ControlPlane {
    /// The last that was started is stopped first; who does not go is made to.
    fn drop(&mut self) {
        self.contexts.iter().for_each(ComponentContext::stop);
        for mut child in self.processes.drain(..).rev() {
            if child.try_wait().is_ok_and(|status| status.is_none()) {
                let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
            }
            let start = Instant::now();
            while child.try_wait().is_ok_and(|status| status.is_none()) {
                if start.elapsed() > Duration::from_secs(5) {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

fn kubeconfig(server: &str, authority_pem: &str, identity: &Identity) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {
            "server": format!("https://{server}"), "certificate-authority-data": encode(authority_pem)}}],
        "users": [{"name": "c", "user": {"client-certificate-data": encode(&identity.certificate_pem),
            "client-key-data": encode(&identity.key_pem)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    })
    .to_string()
}

type Https = hyper_rustls::HttpsConnector<legacy::connect::HttpConnector>;

/// A server elsewhere as what a test asks.
fn over_the_wire(server: &str, authority_pem: &str, identity: &Identity) -> ApiService {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap()).unwrap();
    let certificate = CertificateDer::from_pem_slice(identity.certificate_pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate], key)
        .unwrap();
    let connector =
        hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_all_versions();
    let client = legacy::Client::builder(TokioExecutor::new()).build(connector.build());
    let server = server.to_owned();
    ApiService::new(tower::service_fn(move |request| {
        let (client, server) = (client.clone(), server.clone());
        async move { Ok::<_, Infallible>(forward(&client, &server, request).await) }
    }))
}

/// Who could not be asked has not answered 200, which is all that a test wants to know.
async fn forward(client: &legacy::Client<Https, Body>, server: &str, mut request: ApiRequest) -> ApiResponse {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = format!("https://{server}{path}").parse().unwrap();
    if let Some(DecodedBody(tree)) = request.extensions_mut().remove() {
        *request.body_mut() = Body::from(tree.to_string());
        let json = http::HeaderValue::from_static("application/json");
        request.headers_mut().entry(http::header::CONTENT_TYPE).or_insert(json);
    }
    match client.request(request).await {
        Ok(answer) => answer.map(|body| Body::new(body.map_err(std::io::Error::other))),
        Err(error) => text_response(http::StatusCode::BAD_GATEWAY, error.to_string()),
    }
}
