//! How the scheduler reaches its extenders: through the one HTTP client to the outside.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use serde_json::Value;

use apiserver::webhook::{
    CallError, ClientConfig, ServiceReference, ServiceResolver, WebhookClient, WebhookTarget,
};
use clock::Clock;
use scheduler::config::{Extender, ExtenderTls};
use scheduler::extender::{Dial, Post};

/// Makes the ways to extenders; nothing is connected before the first pod.
pub(super) fn dial(outside: &ServiceResolver, clock: &Clock) -> Dial {
    let (outside, clock) = (outside.clone(), clock.clone());
    Arc::new(move |extender: &Extender, url: &str| {
        let client = WebhookClient::new(client_config(extender, url)?, &outside, &clock);
        let url: Arc<str> = url.into();
        let post: Post = Arc::new(move |args: Value, timeout: Duration| {
            let (client, url) = (client.clone(), url.clone());
            async move { client.call_for_json(&args, timeout).await.map_err(|error| described(&error, &url)) }
                .boxed()
        });
        Ok(post)
    })
}

/// Why there is no answer, as kube-scheduler says it (`HTTPExtender.send`).
fn described(error: &CallError, url: &str) -> String {
    let verb = url.rsplit('/').next().unwrap_or_default();
    match error.code {
        Some(code) => format!("failed {verb} with extender at URL {url}, code {code}"),
        None => error.message.clone(),
    }
}

fn client_config(extender: &Extender, url: &str) -> Result<ClientConfig, String> {
    let target = service(url).map_or_else(|| WebhookTarget::Url(url.to_owned()), WebhookTarget::Service);
    let mut config = ClientConfig::new(target);
    config.user_agent = "kube-scheduler";
    config.tells_timeout = false;
    if let Some(tls) = &extender.tls_config {
        config.insecure_skip_tls_verify = tls.insecure;
        config.server_name = (!tls.server_name.is_empty()).then(|| tls.server_name.clone());
        config.ca_bundle = read(&tls.ca_data, &tls.ca_file)?;
        config.identity = identity(tls)?;
    }
    Ok(config)
}

/// A certificate and its key.
type PemPair = (Vec<u8>, Vec<u8>);

fn identity(tls: &ExtenderTls) -> Result<Option<PemPair>, String> {
    let certificate = read(&tls.cert_data, &tls.cert_file)?;
    let key = read(&tls.key_data, &tls.key_file)?;
    Ok((!certificate.is_empty()).then_some((certificate, key)))
}

/// What stands in the configuration itself goes before a file; nothing where there is neither.
fn read(data: &str, file: &str) -> Result<Vec<u8>, String> {
    match (data, file) {
        ("", "") => Ok(Vec::new()),
        ("", file) => std::fs::read(file).map_err(|error| format!("{file}: {error}")),
        (data, _) => STANDARD.decode(data).map_err(|error| format!("tlsConfig: {error}")),
    }
}

/// `https://name.namespace.svc:port/path` is a Service of the cluster.
fn service(url: &str) -> Option<ServiceReference> {
    let url: http::Uri = url.parse().ok().filter(|url: &http::Uri| url.scheme_str() == Some("https"))?;
    let host = url.host()?.strip_suffix(".svc")?;
    let (name, namespace) = host.split_once('.')?;
    Some(ServiceReference {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        path: url.path().to_owned(),
        port: url.port_u16().unwrap_or(443),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_the_cluster_is_told_from_other_hosts() {
        let found = service("https://gpu.kube-system.svc:8443/scheduler/filter").unwrap();
        assert_eq!((&*found.name, &*found.namespace, found.port), ("gpu", "kube-system", 8443));
        assert_eq!(found.path, "/scheduler/filter");
        for url in ["http://gpu.kube-system.svc/filter", "https://example.com/filter", "nonsense"] {
            assert!(service(url).is_none(), "{url}");
        }
    }

    #[test]
    fn a_certificate_that_cannot_be_read_is_told() {
        let tls = ExtenderTls { ca_file: "/no/such/file".into(), ..ExtenderTls::default() };
        let extender = Extender { tls_config: Some(tls), ..Extender::default() };
        let error = client_config(&extender, "https://example.com/filter").err().unwrap();
        assert!(error.starts_with("/no/such/file: "), "{error}");
    }
}
