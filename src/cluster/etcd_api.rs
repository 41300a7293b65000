//! etcd's API on a cluster's store, for those who ask for it (`--listen-client-urls`): what etcdctl shows
//! of a cluster, and what it changes, which reaches the watch caches as any write does.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sync::RwLock;

use apimachinery::object::Object;
use apimachinery::wire::ApiService;
use apis::apiextensions::kinds;
use apis::apiextensions::view::CustomResourceDefinition;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apiserver::server::{self, Server, Tls};
use clock::Clock;
use etcd::Kv;
use etcd_server::options::{ClientUrl, ListenOptions, TlsOptions};
use etcd_server::values::Values;
use etcd_server::{EtcdServer, ServerOptions};
use pki::Identity;

/// A flag of etcd's API that cannot be followed, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EtcdApiError(String);

/// What every stored value begins with: kubarium keeps kind and version of an object in its key alone.
const KEPT_HEAD: &[u8] = b"{\"metadata\":{";
const ROOT: &str = "/registry/";
/// Where definitions of custom kinds are.
const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// Serves etcd's API on a cluster's store.
///
/// # Errors
/// Which flag cannot be followed, and why.
pub(super) async fn serve_cluster(
    clock: &Clock,
    options: &ListenOptions,
    (kv, scheme): (&Kv, &Arc<Scheme>),
) -> Result<Vec<Server>, EtcdApiError> {
    if options.listen_client_urls.is_empty() {
        return Ok(Vec::new());
    }
    let values = Arc::new(ShownValues::new(scheme.clone()));
    let client_urls = options.listen_client_urls.iter().map(ToString::to_string).collect();
    let kv = kv.clone();
    let told = ServerOptions { client_urls, ..ServerOptions::default() };
    let etcd = EtcdServer::new(Arc::new(move || Ok(kv.clone())), values, told);
    serve(clock, options, &etcd).await
}

/// Whoever gets in there reads all Secrets.
fn refuse_exposed(options: &ListenOptions) -> Result<(), EtcdApiError> {
    match options.listen_client_urls.iter().find(|url| options.is_exposed(url)) {
        Some(url) => Err(EtcdApiError(format!(
            "--listen-client-urls {url} lets everybody read and write everything, Secrets too; use 127.0.0.1, or \
             https:// with --cert-file, --key-file, --trusted-ca-file and --client-cert-auth"
        ))),
        None => Ok(()),
    }
}

async fn serve(
    clock: &Clock,
    options: &ListenOptions,
    etcd: &EtcdServer,
) -> Result<Vec<Server>, EtcdApiError> {
    let etcd = etcd.clone();
    let service = ApiService::new(tower::service_fn(move |request| {
        let etcd = etcd.clone();
        async move { Ok(etcd.serve(request).await) }
    }));
    serve_with(clock, options, service).await
}

/// Whether these flags can be followed, as far as that can be told before anything is made or opened; with
/// what they say of TLS.
///
/// # Errors
/// Which flag cannot be followed, and why.
pub fn check(options: &ListenOptions) -> Result<Option<Tls>, EtcdApiError> {
    refuse_exposed(options)?;
    let tls = tls(&options.tls)?;
    match options.listen_client_urls.iter().find(|url| url.is_secure) {
        Some(url) if tls.is_none() => Err(wrong_url(url, &"https needs --cert-file and --key-file")),
        _ => Ok(tls),
    }
}

fn wrong_url(url: &ClientUrl, why: &dyn std::fmt::Display) -> EtcdApiError {
    EtcdApiError(format!("--listen-client-urls {url}: {why}"))
}

/// Listens at each URL for a service that answers what is asked of etcd, unless everybody would get in.
///
/// # Errors
/// Which flag cannot be followed, and why.
pub async fn serve_with(
    clock: &Clock,
    options: &ListenOptions,
    service: ApiService,
) -> Result<Vec<Server>, EtcdApiError> {
    let tls = check(options)?;
    let mut servers = Vec::new();
    for url in &options.listen_client_urls {
        let wrong = |why: &dyn std::fmt::Display| wrong_url(url, why);
        let tls = tls.as_ref().filter(|_| url.is_secure);
        let listener = server::bind(url.address).await.map_err(|error| wrong(&error))?;
        let server = Server::start_on(clock, listener, tls, service.clone());
        servers.push(server.map_err(|error| wrong(&error))?);
    }
    Ok(servers)
}

fn tls(options: &TlsOptions) -> Result<Option<Tls>, EtcdApiError> {
    let TlsOptions { cert_file: Some(certificate), key_file: Some(key), trusted_ca_file, .. } = options
    else {
        return Ok(None);
    };
    let identity =
        Identity { certificate_pem: read("--cert-file", certificate)?, key_pem: read("--key-file", key)? };
    let authority = trusted_ca_file.as_deref().map(|file| read("--trusted-ca-file", file)).transpose()?;
    let client_authorities: Vec<String> = authority.into_iter().collect();
    let demands_client_certificates = options.demands_certificates();
    Ok(Some(Tls { identity, client_authorities, demands_client_certificates }))
}

fn read(flag: &str, path: &Path) -> Result<String, EtcdApiError> {
    fs::read_to_string(path).map_err(|error| EtcdApiError(format!("{flag} {}: {error}", path.display())))
}

/// Shows objects as upstream's apiserver keeps them: with kind and version. What is encrypted, or was put in
/// another form, is shown as it is.
pub struct ShownValues {
    scheme: Arc<Scheme>,
    heads: RwLock<Heads>,
}

/// What comes before the metadata, by what keys begin with; of one state of the scheme.
#[derive(Default)]
struct Heads {
    generation: u64,
    by_prefix: HashMap<Arc<str>, Bytes>,
}

impl ShownValues {
    /// Of the built-in kinds, and of the custom ones whose definitions are in a store that stands still.
    pub(super) fn of_store(kv: &Kv) -> Result<ShownValues, etcd::StoreError> {
        let scheme = Scheme::builtin();
        for kept in kv.range(DEFINITIONS, None, None, None)?.kvs {
            let Ok(definition) = Object::from_stored(kept.value, kept.mod_revision, &[]) else { continue };
            let crd = CustomResourceDefinition::read(&definition.to_value());
            if crd.is("Established") {
                kinds::served(&definition, &crd).storage.into_iter().for_each(|kind| scheme.register(kind));
            }
        }
        Ok(ShownValues::new(Arc::new(scheme)))
    }

    /// Of the kinds of a scheme, as it grows.
    pub fn new(scheme: Arc<Scheme>) -> ShownValues {
        ShownValues { scheme, heads: RwLock::default() }
    }

    fn head(&self, key: &str) -> Option<Bytes> {
        let generation = self.scheme.generation();
        if self.heads.read().generation != generation {
            *self.heads.write() = Heads::of(&self.scheme);
        }
        let heads = self.heads.read();
        let rest = key.strip_prefix(ROOT)?;
        let slashes = rest.bytes().enumerate().filter(|(_, byte)| *byte == b'/').take(2);
        slashes.into_iter().find_map(|(at, _)| heads.by_prefix.get(&key[..=ROOT.len() + at])).cloned()
    }
}

impl Heads {
    fn of(scheme: &Scheme) -> Heads {
        let generation = scheme.generation();
        let all = scheme.all();
        let stored = all.iter().map(|kind| kind.storage_kind());
        let by_prefix = stored.map(|kind| (kind.storage_prefix().clone(), head(kind))).collect();
        Heads { generation, by_prefix }
    }
}

/// In the order in which Go writes structs, and maps.
fn head(kind: &Kind) -> Bytes {
    let (version, name) = (kind.group_version.to_string(), &kind.kind);
    if kind.is_custom {
        return format!("{{\"apiVersion\":\"{version}\",\"kind\":\"{name}\",").into();
    }
    format!("{{\"kind\":\"{name}\",\"apiVersion\":\"{version}\",").into()
}

impl Values for ShownValues {
    fn shown(&self, key: &str, value: &Bytes) -> Bytes {
        if !value.starts_with(KEPT_HEAD) {
            return value.clone();
        }
        match self.head(key) {
            Some(head) => [&head[..], &value[1..], b"\n"].concat().into(),
            None => value.clone(),
        }
    }
}

impl std::fmt::Debug for ShownValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShownValues of {} kinds", self.heads.read().by_prefix.len())
    }
}

#[cfg(test)]
mod tests {
    use etcd::{Expect, Op, Options};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn objects_of_definitions_that_are_stored_are_shown_with_theirs() {
        let kv = Kv::open(Options::default(), Clock::real()).unwrap();
        let versions = json!([{"name": "v1"}, {"name": "v2", "storage": true}]);
        for (plural, kind, established) in [("tabs", "Tab", "True"), ("others", "Other", "False")] {
            let names = json!({"plural": plural, "kind": kind});
            let conditions = [json!({"type": "Established", "status": established})];
            let definition = json!({
                "metadata": {"name": format!("{plural}.example.com"), "uid": "u"},
                "spec": {"group": "example.com", "names": names, "versions": versions},
                "status": {"acceptedNames": names, "conditions": conditions},
            });
            let key = format!("{DEFINITIONS}{plural}.example.com");
            kv.txn(&key, Expect::Any, Op::Put { value: definition.to_string().into(), lease: None })
                .await
                .unwrap();
        }
        let values = ShownValues::of_store(&kv).unwrap();
        let kept = Bytes::from_static(br#"{"metadata":{"name":"a"}}"#);
        let shown = |key: &str| String::from_utf8(values.shown(key, &kept).to_vec()).unwrap();
        let wanted = r#"{"apiVersion":"example.com/v2","kind":"Tab","metadata":{"name":"a"}}"#;
        for key in ["/registry/example.com/tabs/default/a", "/registry/example.com/tabs/a"] {
            assert_eq!(shown(key).trim(), wanted);
        }
        assert!(shown("/registry/configmaps/default/a").starts_with(r#"{"kind":"ConfigMap""#));
        assert_eq!(shown("/registry/example.com/others/a"), r#"{"metadata":{"name":"a"}}"#);
    }

    #[test]
    fn a_value_is_shown_with_its_kind_and_anything_else_as_it_is() {
        let values = ShownValues::new(Arc::new(Scheme::builtin()));
        let shown = |key: &str, value: &'static str| {
            let shown = values.shown(key, &Bytes::from_static(value.as_bytes()));
            String::from_utf8(shown.to_vec()).unwrap()
        };
        let kept = r#"{"metadata":{"name":"a"},"data":{}}"#;
        for (key, kind, version) in [
            ("/registry/configmaps/default/a", "ConfigMap", "v1"),
            ("/registry/deployments/default/a", "Deployment", "apps/v1"),
            ("/registry/services/specs/default/a", "Service", "v1"),
            ("/registry/minions/a", "Node", "v1"),
        ] {
            let head = format!(r#"{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"name":"a"}}"#);
            assert_eq!(shown(key, kept), format!("{head},\"data\":{{}}}}\n"), "{key}");
        }
        for (key, value) in [
            ("/registry/configmaps/default/a", "k8s:enc:aescbc:v1:x"),
            ("/registry/nothing/a", kept),
            ("/elsewhere/configmaps/a", kept),
            ("/registry/configmaps/default/a", r#"{"kind":"ConfigMap"}"#),
        ] {
            assert_eq!(shown(key, value), value, "{key}");
        }
    }
}
