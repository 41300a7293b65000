//! Servers of pods that ask their clients who they are, and gRPC over TLS.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt;
use kubarium::apis::core::secret::SECRETS;
use kubarium::clock::Clock;
use kubarium::network::grpc::{self, GrpcCall};
use kubarium::network::tls::{self, PeerTrust};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use serde_json::{Value, json};

use super::Net;

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.63";

/// Who signs certificates.
struct Signer {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Signer {
    fn new() -> Signer {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Signer { issuer: Issuer::new(params, key), certificate }
    }

    /// A certificate and its key, one behind the other.
    fn sign(&self, name: SanType) -> String {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.subject_alt_names.push(name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.issuer).unwrap().pem() + &key.serialize_pem()
    }
}

impl Net {
    /// A pod of agnhost with files of a Secret below `/files`.
    async fn with_files(&self, name: &str, args: Value, files: &[(&str, &str)]) {
        let data: Value =
            files.iter().map(|(name, text)| ((*name).to_owned(), json!(STANDARD.encode(text)))).collect();
        self.create(&SECRETS, json!({"metadata": {"name": name}, "data": data})).await;
        let container = json!({"name": "main", "image": AGNHOST, "args": args,
            "volumeMounts": [{"name": "files", "mountPath": "/files"}]});
        let volumes = json!([{"name": "files", "secret": {"secretName": name}}]);
        let pod =
            json!({"metadata": {"name": name}, "spec": {"containers": [container], "volumes": volumes}});
        self.create(&kubarium::apis::core::pod::PODS, pod).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_known_by_their_certificates() {
    let net = Net::start().await;
    let (servers, clients) = (Signer::new(), Signer::new());
    let serves = json!([
        "mtlsserver",
        "--listen=0.0.0.0:443",
        "--server-creds=/files/own.pem",
        "--spiffe-trust-bundle=/files/clients.pem"
    ]);
    // Nobody knows the pod's address before it has one.
    let own = servers.sign(SanType::DnsName("server.default.svc".try_into().unwrap()));
    net.with_files("server", serves, &[("own.pem", &own), ("clients.pem", &clients.certificate)]).await;
    let address = net.address("server").await;
    let named = clients.sign(SanType::URI("spiffe://cluster.local/ns/default/sa/x".try_into().unwrap()));
    let strange = Signer::new().sign(SanType::URI("spiffe://cluster.local/strange".try_into().unwrap()));
    let nameless = clients.sign(SanType::DnsName("client".try_into().unwrap()));
    let asks = json!(["netexec"]);
    let files = [
        ("named", &*named),
        ("strange", &*strange),
        ("nameless", &*nameless),
        ("servers", &*servers.certificate),
    ];
    net.with_files("client", asks, &files).await;
    net.address("client").await;
    let asked = async |name: &str, flags: &str| {
        let to = format!("--resolve server.default.svc:443:{address}");
        let curl =
            format!("curl -s {flags} --cacert /files/servers {to} https://server.default.svc/spiffe-echo");
        net.ran_in("client", name, &curl).await
    };
    let wanted = "SPIFFE client certificate authentication required\n";
    assert_eq!(asked("nobody", "").await, wanted);
    assert_eq!(asked("strange", "--cert /files/strange --key /files/strange").await, wanted);
    assert_eq!(asked("nameless", "-E /files/nameless").await, "Malformed SPIFFE certificate\n");
    let told = "Client Identity: spiffe://cluster.local/ns/default/sa/x";
    assert_eq!(asked("named", "--cert /files/named").await, told);
    let polls = json!([
        "mtlsclient",
        format!("--fetch-url=https://{address}/spiffe-echo"),
        "--server-trust-bundle=/files/servers",
        "--client-cred-bundle=/files/named"
    ]);
    net.with_files("poller", polls, &files).await;
    net.address("poller").await;
    // It asks by an address, which the certificate does not have.
    let failed = "while sending requests to the server: while getting URL: Get";
    net.until(|| async { net.log("poller").await.contains(failed).then_some(()) }.boxed()).await;
    net.cluster.stop().await;
}

impl Net {
    /// What a command says in a pod that is there.
    async fn ran_in(&self, pod: &str, _: &str, command: &str) -> String {
        let escaped: String = url_text(command);
        let uri = format!("/api/v1/namespaces/default/pods/{pod}:8080/proxy/shell?cmd={escaped}");
        let said = self.client.get_path(&uri).await.unwrap();
        said["output"].as_str().unwrap_or_default().to_owned()
    }
}

fn url_text(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_asked_over_tls() {
    let net = Net::start().await;
    let signer = Signer::new();
    let own = signer.sign(SanType::DnsName("health.default.svc".try_into().unwrap()));
    let serves = json!([
        "grpc-health-checking",
        "--port=5000",
        "--service=own",
        "--tls-cert-file=/files/own",
        "--tls-private-key-file=/files/own"
    ]);
    net.with_files("health", serves, &[("own", &own)]).await;
    let address = net.address("health").await;
    let to = SocketAddr::new(address, 5000);
    let asked = async |service: &str, trust: PeerTrust| {
        let io = net.cluster.network().connect(address, to).await.unwrap();
        let io = tls::connect(io, "health.default.svc", &trust).await.ok()?;
        // Field 1 is the name of the service.
        let length = u8::try_from(service.len()).unwrap();
        let message = [&[0x0a, length], service.as_bytes()].concat();
        let authority = to.to_string();
        let call = GrpcCall {
            authority: &authority,
            path: "/grpc.health.v1.Health/Check",
            agent: "test",
            message: Bytes::from(message),
        };
        Some(grpc::call(&Clock::real(), io, call).await.unwrap())
    };
    let trust = PeerTrust { authorities: signer.certificate.clone(), ..PeerTrust::default() };
    // Field 1 is the status: serving.
    assert_eq!(asked("own", trust.clone()).await, Some(Ok(Bytes::from_static(&[0x08, 1]))));
    assert_eq!(asked("other", trust).await.unwrap().unwrap_err().code, 5);
    assert_eq!(asked("own", PeerTrust::default()).await, None);
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_half_closed_and_stays() {
    let net = Net::start().await;
    let run = |runner: &str, options: String| json!({"name": "main", "image": AGNHOST, "args": ["net", "--runner", runner, "--options", options]});
    let options = r#"{"LocalAddr": "0.0.0.0:9999", "PostFinTimeoutSeconds": 1}"#;
    let server = net.pod("server", run("nat-closewait-server", options.to_owned())).await;
    let options =
        format!(r#"{{"RemoteAddr": "{server}:9999", "PostFinTimeoutSeconds": 0, "TimeoutSeconds": 20}}"#);
    let spec = json!({"restartPolicy": "Never", "containers": [run("nat-closewait-client", options)]});
    net.create(&kubarium::apis::core::pod::PODS, json!({"metadata": {"name": "client"}, "spec": spec})).await;
    assert_eq!(net.ended("client").await, 0);
    let log = net.log("client").await;
    assert!(log.contains("Server has half-closed the connection") && log.ends_with("Done\n"), "{log}");
    net.cluster.stop().await;
}
