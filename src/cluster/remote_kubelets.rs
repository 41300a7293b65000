//! `RemoteKubelets`: the way to kubelets that are in other processes: HTTPS to the address and port that
//! their Nodes name (`pkg/kubelet/client`'s `NodeConnectionInfoGetter`).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::config::Config;
use super::serving::made_at;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apimachinery::user::MASTERS;
use apimachinery::wire::ApiResponse;
use apis::core::node::NODES;
use apis::tree::{items, number, text};
use apiserver::kubelet_client::{LogRequest, PodLogOptions};
use apiserver::kubelet_options::KubeletFileError;
use apiserver::registry::Registry;
use apiserver::webhook::{ClientConfig, ServiceResolver, Transport, WebhookTarget};
use clock::Clock;
use kubelet::ports::KUBELET_PORT;
use pki::Authority;

/// Who the apiserver is to kubelets (kubeadm's `apiserver-kubelet-client.crt`).
const USER: &str = "kube-apiserver-kubelet-client";
/// An answer that says what went wrong is read so far.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// Finds and asks them.
pub(super) struct RemoteKubelets {
    registry: Registry,
    /// Made when somebody first asks: most clusters have no such kubelets.
    transport: OnceLock<Result<Transport, String>>,
    config: ClientConfig,
    authority: Arc<Authority>,
    resolver: ServiceResolver,
    /// In the order in which they are preferred.
    address_types: Vec<String>,
    timeout: Duration,
    clock: Clock,
}

impl RemoteKubelets {
    /// As the flags say; a certificate is of the cluster's own authority where they name none.
    pub(super) fn new(
        config: &Config,
        registry: &Registry,
        authority: &Arc<Authority>,
    ) -> Result<RemoteKubelets, KubeletFileError> {
        let Config { clock, entropy, .. } = config;
        let options = &config.apiserver.kubelet_client;
        let mut config = ClientConfig::new(WebhookTarget::Url(String::new()));
        let trusted = options.authority()?;
        config.insecure_skip_tls_verify = trusted.is_none();
        config.ca_bundle = trusted.unwrap_or_default();
        config.identity = options.identity()?;
        Ok(RemoteKubelets {
            registry: registry.clone(),
            transport: OnceLock::new(),
            config,
            authority: authority.clone(),
            resolver: ServiceResolver::nowhere(entropy),
            address_types: options.kubelet_preferred_address_types.clone(),
            timeout: options.kubelet_timeout,
            clock: clock.clone(),
        })
    }

    fn connect(&self) -> Result<Transport, String> {
        let mut config = self.config.clone();
        if config.identity.is_none() {
            let made = self.authority.client(USER, MASTERS, made_at(&self.clock));
            let made = made.map_err(|error| error.to_string())?;
            config.identity = Some((made.certificate_pem.into_bytes(), made.key_pem.into_bytes()));
        }
        Ok(Transport::new(&config, &self.resolver))
    }

    /// Asks the kubelet of a node at a path with its query.
    pub(super) async fn ask(&self, node: &str, mut request: Request<Body>) -> Result<ApiResponse, Status> {
        let found = self.registry.get(&NODES, "", node, None).await?.to_value();
        let authority = authority_of(&self.address_types, node, &found)?;
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let url = format!("https://{authority}{path}");
        let wrong = |error| Status::bad_request(format!("{url}: {error}"));
        *request.uri_mut() = url.parse::<Uri>().map_err(wrong)?;
        let transport = self.transport.get_or_init(|| self.connect()).as_ref().map_err(Status::internal)?;
        let failed = |why: &str| Status::internal(format!("error dialing backend: {why}"));
        let late = |_| failed(&format!("Get {url:?}: net/http: timeout awaiting response headers"));
        let sent = self.clock.timeout_outside(self.timeout, transport.send(request)).await.map_err(late)?;
        Ok(sent.map_err(|error| failed(&error.message))?.map(Body::new))
    }

    /// The log of a container; what the kubelet refuses is said in its words.
    pub(super) async fn logs(&self, wanted: &LogRequest) -> Result<Body, Status> {
        let LogRequest { node, namespace, pod, container, options } = wanted;
        let path = format!("/containerLogs/{namespace}/{pod}/{container}{}", query(options));
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().map_err(Status::internal)?;
        let response = self.ask(node, request).await?;
        let code = response.status();
        if code.is_success() {
            return Ok(response.into_body());
        }
        let said = axum::body::to_bytes(response.into_body(), MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let reason = match code.as_u16() {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            _ => "InternalError",
        };
        Err(Status::failure(code.as_u16(), reason, String::from_utf8_lossy(&said).trim()))
    }
}

/// The first address of the types that are preferred, and the kubelet's port.
fn authority_of(wanted: &[String], name: &str, node: &Value) -> Result<String, Status> {
    let addresses: BTreeMap<&str, &str> = items(node, "status.addresses")
        .iter()
        .rev()
        .map(|address| (text(address, "type"), text(address, "address")))
        .collect();
    let found = wanted.iter().find_map(|wanted| addresses.get(wanted.as_str()));
    let none = || {
        let wanted = wanted.join(" ");
        Status::internal(format!(
            "no preferred addresses found; node {name} has {addresses:?}, and wanted is one of [{wanted}]"
        ))
    };
    let host = found.ok_or_else(none)?;
    let host = if host.contains(':') { format!("[{host}]") } else { (*host).to_owned() };
    let port = number(node, "status.daemonEndpoints.kubeletEndpoint.Port");
    let port = u16::try_from(port).ok().filter(|port| *port != 0).unwrap_or(KUBELET_PORT);
    Ok(format!("{host}:{port}"))
}

/// `v1.PodLogOptions` as a query.
fn query(options: &PodLogOptions) -> String {
    let flag = |is_set: bool| is_set.then(|| "true".to_owned());
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let since: Option<Time> = options.since_time;
    let parameters = [
        ("follow", flag(options.follow)),
        ("previous", flag(options.previous)),
        ("timestamps", flag(options.timestamps)),
        ("sinceSeconds", number(options.since_seconds)),
        ("sinceTime", since.map(rfc3339)),
        ("tailLines", number(options.tail_lines)),
        ("limitBytes", number(options.limit_bytes)),
    ];
    let mut out = String::new();
    for (name, value) in parameters {
        let Some(value) = value else { continue };
        let mark = if out.is_empty() { '?' } else { '&' };
        out += &format!("{mark}{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_is_asked_at_the_address_that_is_preferred() {
        let address = |kind: &str, address: &str| serde_json::json!({"type": kind, "address": address});
        let addresses = [address("InternalIP", "fd00::1"), address("Hostname", "10.0.0.1")];
        let endpoint = serde_json::json!({"kubeletEndpoint": {"Port": 4711}});
        let node = serde_json::json!({"status": {"addresses": addresses, "daemonEndpoints": endpoint}});
        let of = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|wanted| (*wanted).to_owned()).collect();
            authority_of(&wanted, "n", &node).map_err(|status| status.message)
        };
        assert_eq!(of(&["Hostname", "InternalIP"]).unwrap(), "10.0.0.1:4711");
        assert_eq!(of(&["ExternalIP", "InternalIP"]).unwrap(), "[fd00::1]:4711");
        assert!(of(&["ExternalIP"]).unwrap_err().contains("no preferred addresses found; node n has"));
    }

    #[test]
    fn a_log_is_asked_for_as_it_is_wanted() {
        assert_eq!(query(&PodLogOptions::default()), "");
        let options = PodLogOptions {
            follow: true,
            tail_lines: Some(5),
            since_time: chrono::DateTime::from_timestamp(0, 0),
            ..PodLogOptions::default()
        };
        assert_eq!(query(&options), "?follow=true&sinceTime=1970%2D01%2D01T00%3A00%3A00Z&tailLines=5");
    }
}
