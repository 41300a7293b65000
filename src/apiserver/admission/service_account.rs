//! ServiceAccount: every pod runs as somebody, and finds that account's token in its file system
//! (`plugin/pkg/admission/serviceaccount`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{AdmissionPlugin, Attributes, Operation, forbidden};
use crate::registry::Registry;
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apis::tree::{annotation, is_set, items, text};
use clock::Clock;
use entropy::Entropy;

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Upstream's token lifetime: an hour and the seconds by which they are recognised.
const TOKEN_SECONDS: i64 = 3607;
/// The controller makes a namespace's default account a moment after the namespace: so long it is waited for.
const DEFAULT_ACCOUNT_WAIT: Duration = Duration::from_millis(1500);

/// Gives new pods an account, its token and its pull secrets.
pub(super) struct ServiceAccount {
    registry: Registry,
    accounts: Option<Arc<Kind>>,
    clock: Clock,
    entropy: Entropy,
}

impl ServiceAccount {
    /// Reads service accounts through the registry; `entropy` names the token's volume.
    pub(super) fn new(
        registry: &Registry,
        scheme: &Scheme,
        clock: &Clock,
        entropy: &Entropy,
    ) -> ServiceAccount {
        ServiceAccount {
            registry: registry.clone(),
            accounts: scheme.resource("", "v1", "serviceaccounts"),
            clock: clock.clone(),
            entropy: entropy.clone(),
        }
    }

    async fn admit_pod(&self, attributes: &Attributes<'_>, pod: &mut Value) -> Result<(), Status> {
        let Some(kind) = self.accounts.as_ref().filter(|_| pod["spec"].is_object()) else { return Ok(()) };
        if !pod["metadata"]["annotations"][MIRROR].is_null() {
            return refuse_mirror(attributes, pod);
        }
        let name = match pod["spec"]["serviceAccountName"].as_str() {
            None | Some("") => DEFAULT.to_owned(),
            Some(name) => name.to_owned(),
        };
        // The second name is the deprecated one, which upstream always fills in as well.
        pod["spec"]["serviceAccountName"] = name.as_str().into();
        pod["spec"]["serviceAccount"] = name.as_str().into();
        let account = self.find(kind, attributes.namespace, &name).await.map_err(|error| {
            // Upstream reads from a lister, which names the resource in the singular.
            let error = if error.is_not_found() {
                format!("serviceaccount {name:?} not found")
            } else {
                error.to_string()
            };
            let why = format!("error looking up service account {}/{name}: {error}", attributes.namespace);
            forbidden(attributes, Some(pod), &why)
        })?;
        let account = account.to_value();
        if should_automount(&account, pod) {
            self.mount_token(pod);
        }
        let pull_secrets = account["imagePullSecrets"].as_array().filter(|secrets| !secrets.is_empty());
        let has_own = pod["spec"]["imagePullSecrets"].as_array().is_some_and(|own| !own.is_empty());
        if let Some(secrets) = pull_secrets.filter(|_| !has_own) {
            pod["spec"]["imagePullSecrets"] = Value::Array(secrets.clone());
        }
        limit_secret_references(&account, &name, pod).map_err(|why| forbidden(attributes, Some(pod), &why))
    }

    async fn find(&self, kind: &Arc<Kind>, namespace: &str, name: &str) -> Result<Arc<Object>, Status> {
        if let Ok(account) = self.registry.get(kind, namespace, name, Some("0")).await {
            return Ok(account);
        }
        match self.registry.get(kind, namespace, name, None).await {
            Err(error) if error.is_not_found() && name == DEFAULT => {
                self.wait_for(kind, namespace, name).await.ok_or(error)
            }
            found => found,
        }
    }

    /// Waits by a watch, so that the wait ends with the account's creation and not at some tick after it.
    async fn wait_for(&self, kind: &Arc<Kind>, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let fields = FieldSelector::equal("metadata.name", name);
        let predicate = Predicate { fields, ..Predicate::default() };
        let options = ListOptions { predicate, ..ListOptions::default() };
        let appears = async {
            let mut events = self.registry.watch(kind, namespace, &options).await.ok()?;
            loop {
                if let WatchEvent::Added(account) | WatchEvent::Modified(account) = events.recv().await? {
                    return Some(account);
                }
            }
        };
        self.clock.timeout(DEFAULT_ACCOUNT_WAIT, appears).await.ok().flatten()
    }

    fn mount_token(&self, pod: &mut Value) {
        let named = |volume: &Value| {
            volume["name"].as_str().filter(|name| name.starts_with(VOLUME_PREFIX)).map(String::from)
        };
        let existing = pod["spec"]["volumes"].as_array().and_then(|volumes| volumes.iter().find_map(named));
        let is_new = existing.is_none();
        let name = existing.unwrap_or_else(|| format!("{VOLUME_PREFIX}{}", self.entropy.suffix(5)));
        let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
        let mut is_needed = false;
        for list in ["initContainers", "containers"] {
            for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                is_needed |= add_mount(container, &mount);
            }
        }
        if is_new && is_needed {
            push(&mut pod["spec"], "volumes", token_volume(&name));
        }
    }
}

impl AdmissionPlugin for ServiceAccount {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && &*attributes.kind.plural == "pods"
            && attributes.kind.group_version.group.is_empty()
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match object {
                Some(pod) => self.admit_pod(attributes, pod).await,
                None => Ok(()),
            }
        })
    }
}

fn refuse_mirror(attributes: &Attributes<'_>, pod: &Value) -> Result<(), Status> {
    let refuse = |why: &str| Err(forbidden(attributes, Some(pod), why));
    if !text(pod, "spec.serviceAccountName").is_empty() {
        return refuse("a mirror pod may not reference service accounts");
    }
    if uses_secrets(pod) {
        return refuse("a mirror pod may not reference secrets");
    }
    let sources = items(pod, "spec.volumes").iter().flat_map(|volume| items(volume, "projected.sources"));
    if sources.into_iter().any(|source| is_set(source, "serviceAccountToken")) {
        return refuse("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

fn uses_secrets(pod: &Value) -> bool {
    let in_volume = |volume: &Value| {
        is_set(volume, "secret") || items(volume, "projected.sources").iter().any(|it| is_set(it, "secret"))
    };
    let in_container = |container: &Value| {
        items(container, "env").iter().any(|variable| is_set(variable, "valueFrom.secretKeyRef"))
            || items(container, "envFrom").iter().any(|source| is_set(source, "secretRef"))
    };
    !items(pod, "spec.imagePullSecrets").is_empty()
        || items(pod, "spec.volumes").iter().any(in_volume)
        || CONTAINERS.iter().flat_map(|(list, _)| items(pod, list)).any(in_container)
}

/// The pod decides, then the account; otherwise yes.
fn should_automount(account: &Value, pod: &Value) -> bool {
    let says = |value: &Value| value["automountServiceAccountToken"].as_bool();
    says(&pod["spec"]).or_else(|| says(account)).unwrap_or(true)
}

/// Whether it was added: a container that mounts something of its own there keeps it.
fn add_mount(container: &mut Value, mount: &Value) -> bool {
    let there = |own: &Value| own["mountPath"] == MOUNT_PATH;
    if container["volumeMounts"].as_array().is_some_and(|mounts| mounts.iter().any(there)) {
        return false;
    }
    push(container, "volumeMounts", mount.clone());
    true
}

fn push(parent: &mut Value, list: &str, item: Value) {
    let Some(parent) = parent.as_object_mut() else { return };
    match parent.get_mut(list).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => {
            parent.insert(list.into(), json!([item]));
        }
    }
}

fn token_volume(name: &str) -> Value {
    json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [
            {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}]}}]}})
}

/// An account with the annotation lets its pods use only the secrets that it lists.
fn limit_secret_references(account: &Value, account_name: &str, pod: &Value) -> Result<(), String> {
    if annotation(account, ENFORCE_MOUNTABLE_SECRETS) != "true" {
        return Ok(());
    }
    let names =
        |list: &str| -> Vec<&str> { items(account, list).iter().map(|it| text(it, "name")).collect() };
    let (mountable, pullable) = (names("secrets"), names("imagePullSecrets"));
    let volumes = items(pod, "spec.volumes").iter().filter(|volume| is_set(volume, "secret"));
    for secret in volumes.map(|volume| text(volume, "secret.secretName")) {
        if !mountable.contains(&secret) {
            return Err(format!(
                "volume with secret.secretName={secret:?} is not allowed because service account \
                 {account_name} does not reference that secret"
            ));
        }
    }
    for (list, what) in CONTAINERS {
        for container in items(pod, list) {
            limit_environment(container, what, account_name, &mountable)?;
        }
    }
    for (at, secret) in items(pod, "spec.imagePullSecrets").iter().map(|it| text(it, "name")).enumerate() {
        if !pullable.contains(&secret) {
            return Err(format!(
                "imagePullSecrets[{at}].name={secret:?} is not allowed because service account \
                 {account_name} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// The lists of containers, and what upstream calls one of each.
const CONTAINERS: [(&str, &str); 3] = [
    ("spec.initContainers", "init container"),
    ("spec.containers", "container"),
    ("spec.ephemeralContainers", "ephemeral container"),
];

fn limit_environment(
    container: &Value,
    what: &str,
    account_name: &str,
    mountable: &[&str],
) -> Result<(), String> {
    let name = text(container, "name");
    let references =
        items(container, "env").iter().filter(|variable| is_set(variable, "valueFrom.secretKeyRef"));
    for variable in references {
        let secret = text(variable, "valueFrom.secretKeyRef.name");
        if !mountable.contains(&secret) {
            let variable = text(variable, "name");
            return Err(format!(
                "{what} {name} with envVar {variable} referencing secret.secretName={secret:?} is not allowed \
                 because service account {account_name} does not reference that secret"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_without_an_opinion_mounts_its_token() {
        let cases = [
            (json!({}), json!({}), true),
            (json!({"automountServiceAccountToken": false}), json!({}), false),
            (
                json!({"automountServiceAccountToken": false}),
                json!({"automountServiceAccountToken": true}),
                true,
            ),
        ];
        for (account, spec, expected) in cases {
            assert_eq!(should_automount(&account, &json!({"spec": spec})), expected);
        }
    }

    #[test]
    fn own_mounts_are_kept() {
        let mount = json!({"name": "kube-api-access-abcde", "readOnly": true, "mountPath": MOUNT_PATH});
        let mut container = json!({"volumeMounts": [{"name": "own", "mountPath": MOUNT_PATH}]});
        assert!(!add_mount(&mut container, &mount));
        assert!(add_mount(&mut json!({}), &mount));
    }

    #[test]
    fn secrets_are_limited_on_demand() {
        let pod = json!({"spec": {"volumes": [{"secret": {"secretName": "s"}}]}});
        assert!(limit_secret_references(&json!({}), "a", &pod).is_ok());
        let account = json!({"metadata": {"annotations": {ENFORCE_MOUNTABLE_SECRETS: "true"}}});
        assert!(limit_secret_references(&account, "a", &pod).unwrap_err().starts_with("volume with secret"));
        let variable = json!({"name": "V", "valueFrom": {"secretKeyRef": {"name": "s"}}});
        let pod = json!({"spec": {"initContainers": [{"name": "i", "env": [variable]}]}});
        let why = "init container i with envVar V referencing secret.secretName=\"s\" is not allowed because \
                   service account a does not reference that secret";
        assert_eq!(limit_secret_references(&account, "a", &pod).unwrap_err(), why);
        assert!(uses_secrets(&pod) && !uses_secrets(&json!({})));
    }
}
