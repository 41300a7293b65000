//! The cleaner of legacy tokens (`pkg/controller/serviceaccount.LegacySATokenCleaner`): tokens in Secrets
//! that were made by themselves for accounts, and that nobody uses, are declared invalid, and later deleted.

use std::sync::Arc;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use serde_json::{Value, json};

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, PatchType, Preconditions};
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::pod::PODS;
use apis::core::secret::{
    LEGACY_TOKEN_INVALID_SINCE, LEGACY_TOKEN_LAST_USED, LEGACY_TOKEN_TRACKING, SECRETS,
};
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::tree::{annotation, items, text};
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// Upstream's `DefaultCleanerSyncInterval`.
const CHECK_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);
const EVERYTHING: &str = "secrets";
const TYPE: &str = "kubernetes.io/service-account-token";
/// Since when the server notes who uses such tokens.
const TRACKING: (&str, &str) = ("kube-system", LEGACY_TOKEN_TRACKING);

/// Looks once a day.
pub(crate) struct LegacyTokenCleaner {
    secrets: Lister,
    accounts: Lister,
    pods: Lister,
    /// So long a token may be out of use (`--legacy-service-account-token-clean-up-period`).
    period: TimeDelta,
}

/// What becomes of a token that nothing else speaks for.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Invalidated,
    Deleted,
}

impl LegacyTokenCleaner {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext, period: Duration) -> LegacyTokenCleaner {
        let [secrets, accounts, pods] =
            [&SECRETS, &SERVICE_ACCOUNTS, &PODS].map(|kind| ctx.informers.informer(kind).lister());
        let period = TimeDelta::from_std(period).unwrap_or(TimeDelta::MAX);
        LegacyTokenCleaner { secrets, accounts, pods, period }
    }

    /// Whether use has been noted for so long that what has no note is out of use.
    async fn is_tracked_long_enough(&self, ctx: &Reconcile) -> Result<bool, Status> {
        let (namespace, name) = TRACKING;
        let tracking = ctx.client.get(&CONFIG_MAPS, namespace, name).await?.to_value();
        let since = tracking["data"]["since"].as_str().and_then(date);
        let since = since.ok_or_else(|| Status::internal("error parsing trackedSince time"))?;
        Ok(start_of(since).is_some_and(|since| ctx.clock.now() >= since + TimeDelta::days(1) + self.period))
    }

    /// Only tokens that the account lists were made by themselves; those of pods are in use.
    fn may_go(&self, secret: &Object) -> bool {
        let (tree, metadata) = (secret.to_value(), &secret.metadata);
        let name = annotation(&tree, "kubernetes.io/service-account.name");
        let uid = annotation(&tree, "kubernetes.io/service-account.uid");
        let Some(account) = self.accounts.get(&metadata.namespace, name) else { return false };
        let is_its = uid.is_empty() || account.metadata.uid == uid;
        let lists =
            |account: &Value| items(account, "secrets").iter().any(|it| text(it, "name") == metadata.name);
        is_its && lists(&account.to_value()) && !self.is_mounted(secret)
    }

    fn is_mounted(&self, secret: &Object) -> bool {
        let name = &secret.metadata.name;
        let pods = self.pods.list(&secret.metadata.namespace, &Selector::everything());
        pods.iter().any(|pod| pod.mentions(name) && names_secret(&pod.to_value()["spec"], name))
    }

    async fn clean(&self, ctx: &Reconcile, secret: &Arc<Object>) -> Result<(), Status> {
        let (metadata, now) = (&secret.metadata, ctx.clock.now());
        let (namespace, name) = (&metadata.namespace, &metadata.name);
        let done = match fate(secret, now, self.period) {
            Fate::Stays => return Ok(()),
            _ if !self.may_go(secret) => return Ok(()),
            Fate::Invalidated => {
                let labels = json!({LEGACY_TOKEN_INVALID_SINCE: now.date_naive().to_string()});
                let patch = json!({"metadata": {"uid": metadata.uid, "labels": labels}});
                ctx.client.patch(&SECRETS, namespace, name, PatchType::Merge, &patch).await.map(drop)
            }
            Fate::Deleted => {
                let resource_version = Some(metadata.resource_version.to_string());
                let preconditions = Some(Preconditions { uid: None, resource_version });
                let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
                ctx.client.delete(&SECRETS, namespace, name, &options).await
            }
        };
        done.or_else(
            |status| if status.is_not_found() || status.is_conflict() { Ok(()) } else { Err(status) },
        )
    }
}

impl Controller for LegacyTokenCleaner {
    const NAME: &'static str = "legacy-service-account-token-cleaner";
    const EVENT_SOURCE: &'static str = "legacy-service-account-token-cleaner";
    const SERVICE_ACCOUNT: &'static str = "legacy-service-account-token-cleaner";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::none().at_start(EVERYTHING)
    }

    async fn reconcile(&self, ctx: &Reconcile, _: &Key) -> Result<Action, Status> {
        let is_token = |secret: &Arc<Object>| secret.fields.iter().any(|field| field == TYPE);
        let tokens: Vec<Arc<Object>> = self.secrets.all().into_iter().filter(is_token).collect();
        // Few clusters have any.
        if tokens.is_empty() || !self.is_tracked_long_enough(ctx).await? {
            return Ok(Action::RequeueAfter(CHECK_PERIOD));
        }
        for secret in &tokens {
            self.clean(ctx, secret).await?;
        }
        Ok(Action::RequeueAfter(CHECK_PERIOD))
    }
}

fn date(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

fn start_of(day: NaiveDate) -> Option<Time> {
    Some(day.and_hms_opt(0, 0, 0)?.and_utc())
}

/// What becomes of it by its age and its labels alone. One whose label cannot be read stays.
fn fate(secret: &Object, now: Time, period: TimeDelta) -> Fate {
    let Some(before) = now.checked_sub_signed(period) else { return Fate::Stays };
    let metadata = &secret.metadata;
    let is_young = metadata.creation_timestamp.is_none_or(|created| created >= before);
    let last_used = metadata.labels.get(LEGACY_TOKEN_LAST_USED);
    let is_used = last_used.is_some_and(|day| date(day).is_none_or(|day| day >= before.date_naive()));
    if is_young || secret.is_deleting() || is_used {
        return Fate::Stays;
    }
    match metadata.labels.get(LEGACY_TOKEN_INVALID_SINCE).and_then(|day| date(day)) {
        None => Fate::Invalidated,
        Some(day) if day >= before.date_naive() => Fate::Stays,
        Some(_) => Fate::Deleted,
    }
}

/// Whether a pod's spec names a Secret in one of the places where it may (`podutil.VisitPodSecretNames`).
fn names_secret(spec: &Value, name: &str) -> bool {
    let is_it = |value: &Value| value == name;
    let named = |(key, value): (&String, &Value)| match key.as_str() {
        "secretName" => is_it(value),
        "secretRef" | "secretKeyRef" | "nodePublishSecretRef" | "secret" if is_it(&value["name"]) => true,
        "imagePullSecrets" => value.as_array().into_iter().flatten().any(|it| is_it(&it["name"])),
        _ => names_secret(value, name),
    };
    match spec {
        Value::Object(members) => members.iter().any(named),
        Value::Array(items) => items.iter().any(|item| names_secret(item, name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_out_of_use_become_invalid_and_go() {
        let now: Time = "2026-06-30T12:00:00Z".parse().unwrap();
        let of = |created: &str, used: Option<&str>, invalid: Option<&str>| {
            let labels = json!({LEGACY_TOKEN_LAST_USED: used, LEGACY_TOKEN_INVALID_SINCE: invalid});
            let mut tree = json!({"metadata": {"name": "a", "creationTimestamp": created, "labels": labels}});
            let labels = tree["metadata"]["labels"].as_object_mut().unwrap();
            labels.retain(|_, value| !value.is_null());
            fate(&Object::from_value(&tree, vec![]).unwrap(), now, TimeDelta::days(30))
        };
        let old = "2026-01-01T00:00:00Z";
        assert_eq!(of("2026-06-01T00:00:00Z", None, None), Fate::Stays);
        assert_eq!(of(old, None, None), Fate::Invalidated);
        assert_eq!(of(old, Some("2026-05-31"), None), Fate::Stays, "used on the last day");
        assert_eq!(of(old, Some("2026-05-30"), None), Fate::Invalidated);
        assert_eq!(of(old, Some("yesterday"), None), Fate::Stays);
        assert_eq!(of(old, None, Some("2026-05-31")), Fate::Stays);
        assert_eq!(of(old, None, Some("2026-05-30")), Fate::Deleted);
        assert_eq!(of(old, None, Some("soon")), Fate::Invalidated);
    }

    #[test]
    fn secrets_of_pods_are_found_where_pods_name_them() {
        let specs = [
            json!({"imagePullSecrets": [{"name": "s"}]}),
            json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
            json!({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]}),
            json!({"volumes": [{"name": "v", "csi": {"nodePublishSecretRef": {"name": "s"}}}]}),
            json!({"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}),
            json!({"initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s"}}}]}]}),
        ];
        assert!(specs.iter().all(|spec| names_secret(spec, "s") && !names_secret(spec, "t")));
        assert!(!names_secret(&json!({"containers": [{"name": "s"}], "serviceAccountName": "s"}), "s"));
    }
}
