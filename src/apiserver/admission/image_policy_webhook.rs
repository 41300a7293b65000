//! ImagePolicyWebhook: somebody outside says which images may run (`plugin/pkg/admission/imagepolicy`).

use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::config::BadAdmissionConfig;
use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use crate::webhook::{Answers, CallError, ClientConfig, ServiceResolver, WebhookClient};
use apimachinery::duration;
use apimachinery::status::Status;
use apis::tree::{at, flag, items, string_map, text};

/// Of the pod's annotations the webhook sees those that have this in their names.
const ANNOTATIONS: &str = ".image-policy.k8s.io/";
const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
const TIMEOUT: Duration = Duration::from_secs(30);
/// Answers that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Asks about the images of pods.
pub(super) struct ImagePolicyWebhook {
    client: WebhookClient,
    settings: Settings,
    remembered: Answers<String, Value>,
}

/// `imagePolicy` of the configuration; numbers are as they are written: seconds, and milliseconds of the
/// backoff.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ImagePolicyGiven {
    kube_config_file: String,
    #[serde(rename = "allowTTL")]
    allow_ttl: i64,
    #[serde(rename = "denyTTL")]
    deny_ttl: i64,
    retry_backoff: i64,
    default_allow: bool,
}

struct Settings {
    allow_ttl: Duration,
    deny_ttl: Duration,
    retry_backoff: Duration,
    default_allow: bool,
}

impl ImagePolicyWebhook {
    /// With its configuration.
    ///
    /// # Errors
    /// None, numbers that are too small or too large, a kubeconfig that cannot be used.
    pub(super) fn new(with: &Initializer) -> Result<ImagePolicyWebhook, BadAdmissionConfig> {
        let configuration = with.configuration("ImagePolicyWebhook");
        if configuration.is_null() {
            return Err("no config specified".into());
        }
        let given: Option<ImagePolicyGiven> = serde_json::from_value(configuration["imagePolicy"].clone())
            .map_err(|error| error.to_string())?;
        let given = given.unwrap_or_default();
        let settings = Settings::of(&given)?;
        let config = ClientConfig::from_kubeconfig(Path::new(&given.kube_config_file));
        let config = config.map_err(|why| why.0)?;
        let resolver = ServiceResolver::new(with.registry, with.entropy);
        let client = WebhookClient::new(config, &resolver, with.clock);
        let remembered = Answers::new(with.clock, MAX_REMEMBERED);
        Ok(ImagePolicyWebhook { client, settings, remembered })
    }

    async fn check(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<(), String> {
        let lists: &[&str] = match attributes.subresource {
            "" => &["spec.containers", "spec.initContainers"],
            _ => &["spec.ephemeralContainers"],
        };
        let containers = lists.iter().flat_map(|list| items(pod, list));
        let images: Vec<Value> =
            containers.map(|container| json!({"image": text(container, "image")})).collect();
        let annotations = string_map(pod, "metadata.annotations");
        let annotations: serde_json::Map<String, Value> = annotations
            .into_iter()
            .filter(|(name, _)| name.contains(ANNOTATIONS))
            .map(|(name, value)| (name, value.into()))
            .collect();
        let spec =
            json!({"containers": images, "annotations": annotations, "namespace": attributes.namespace});
        let status = match self.status(&spec).await {
            Ok(status) => status,
            Err(_) if self.settings.default_allow => {
                attributes.ctx.annotate(&format!("{AUDIT_PREFIX}failed-open"), "true");
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        };
        for (key, value) in string_map(&status, "auditAnnotations") {
            attributes.ctx.annotate(&format!("{AUDIT_PREFIX}{key}"), &value);
        }
        match (flag(&status, "allowed"), text(&status, "reason")) {
            (true, _) => Ok(()),
            (false, "") => Err("one or more images rejected by webhook backend".into()),
            (false, reason) => {
                Err(format!("image policy webhook backend denied one or more images: {reason}"))
            }
        }
    }

    /// What was said of the same not long ago, or what is said now.
    async fn status(&self, spec: &Value) -> Result<Value, CallError> {
        let key = spec.to_string();
        if let Some(status) = self.remembered.get(&key) {
            return Ok(status);
        }
        let review = json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview",
            "metadata": {"creationTimestamp": null}, "spec": spec, "status": {"allowed": false}});
        let Settings { allow_ttl, deny_ttl, retry_backoff, .. } = self.settings;
        let answer = self.client.call_until_it_passes(&review, TIMEOUT, retry_backoff).await?;
        let status = at(&answer, "status").clone();
        let time_to_live = if flag(&status, "allowed") { allow_ttl } else { deny_ttl };
        self.remembered.put(key, status.clone(), time_to_live);
        Ok(status)
    }
}

impl Settings {
    fn of(given: &ImagePolicyGiven) -> Result<Settings, String> {
        const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);
        let (seconds, milliseconds) = (Duration::from_secs(1), Duration::from_millis(1));
        let five_minutes = Duration::from_secs(300);
        Ok(Settings {
            allow_ttl: within(given.allow_ttl, seconds, five_minutes, (seconds, HALF_AN_HOUR))?,
            deny_ttl: within(given.deny_ttl, seconds, Duration::from_secs(30), (seconds, HALF_AN_HOUR))?,
            retry_backoff: within(
                given.retry_backoff,
                milliseconds,
                Duration::from_millis(500),
                (Duration::from_nanos(1), five_minutes),
            )?,
            default_allow: given.default_allow,
        })
    }
}

/// `normalizeConfigDuration`: -1 is none, 0 the default.
fn within(
    given: i64,
    unit: Duration,
    default: Duration,
    (least, most): (Duration, Duration),
) -> Result<Duration, String> {
    match given {
        -1 => return Ok(Duration::ZERO),
        0 => return Ok(default),
        _ => {}
    }
    let value = u32::try_from(given).ok().and_then(|given| unit.checked_mul(given));
    value.filter(|value| *value > least && *value <= most).ok_or_else(|| {
        let [least, most] = [least, most].map(duration::format);
        let unit = duration::format(unit);
        format!("valid value is between {least} and {most}, got {given} times {unit}")
    })
}

impl AdmissionPlugin for ImagePolicyWebhook {
    fn handles(&self, attributes: &Attributes) -> bool {
        matches!(attributes.operation, Operation::Create | Operation::Update)
            && matches!(attributes.subresource, "" | "ephemeralcontainers")
            && &*attributes.kind.plural == "pods"
            && attributes.kind.group_version.group.is_empty()
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(pod) = object else { return Ok(()) };
            self.check(attributes, pod).await.map_err(|why| forbidden(attributes, object, &why))
        })
    }
}
