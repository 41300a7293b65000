//! The types of `kubescheduler.config.k8s.io/v1`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use apis::tree::object_mut;

/// What pods have as `spec.schedulerName` that leave the choice to the server.
pub const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";
pub(super) const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
pub(super) const KIND: &str = "KubeSchedulerConfiguration";

/// What about a configuration cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerConfigError(pub String);

impl std::fmt::Display for SchedulerConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SchedulerConfigError {}

/// The configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct KubeSchedulerConfiguration {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// How many nodes are asked at once. One after the other is asked here; a number below 1 is refused.
    pub(super) parallelism: Option<i64>,
    leader_election: Value,
    client_connection: Value,
    enable_profiling: Value,
    enable_contention_profiling: Value,
    delay_cache_until_active: Value,
    /// Of the nodes that fit so many percent are scored; 0 for a share that shrinks with their number.
    pub percentage_of_nodes_to_score: Option<i64>,
    /// The back-off after the first failure.
    pub pod_initial_backoff_seconds: u64,
    /// The longest back-off.
    pub pod_max_backoff_seconds: u64,
    /// One for each scheduler name.
    pub profiles: Vec<Profile>,
    /// Who is asked beside the plugins.
    pub extenders: Vec<Extender>,
}

/// `KubeSchedulerProfile`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Profile {
    /// Of the pods that it is for.
    pub scheduler_name: Option<String>,
    /// As [`KubeSchedulerConfiguration::percentage_of_nodes_to_score`], for this profile.
    pub percentage_of_nodes_to_score: Option<i64>,
    /// What differs from the default plugins, by extension point; `multiPoint` is all of them.
    pub plugins: BTreeMap<String, PluginSet>,
    /// What plugins are told.
    pub plugin_config: Vec<PluginConfig>,
}

/// `PluginSet`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginSet {
    /// Beside the default ones, or instead of them with another weight.
    pub enabled: Vec<PluginName>,
    /// Of the default ones; `*` is all of them.
    pub disabled: Vec<PluginName>,
}

/// `Plugin`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginName {
    /// As `NodeResourcesFit`.
    pub name: String,
    /// How much its scores count; 0 for as much as by default.
    pub weight: i64,
}

/// `PluginConfig`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginConfig {
    /// Which plugin.
    pub name: String,
    /// As `NodeResourcesFitArgs`.
    pub args: Value,
}

/// `Extender`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Extender {
    /// Where it is.
    pub url_prefix: String,
    /// What is appended to ask which nodes will do; empty: it is not asked.
    pub filter_verb: String,
    /// Which pods may go for another.
    pub preempt_verb: String,
    /// How well nodes do.
    pub prioritize_verb: String,
    /// To bind a pod.
    pub bind_verb: String,
    /// How much its scores count.
    pub weight: i64,
    /// Whether `https` is used where the prefix does not say.
    #[serde(rename = "enableHTTPS")]
    pub enable_https: bool,
    /// Whom to trust, who we are.
    pub tls_config: Option<ExtenderTls>,
    /// How long an answer may take, as `5s`.
    pub http_timeout: Option<String>,
    /// Whether it knows the nodes itself: it gets names alone.
    pub node_cache_capable: bool,
    /// Only pods that ask for one of these are its business; none: all are.
    pub managed_resources: Vec<ManagedResource>,
    /// Whether pods are scheduled although it does not answer.
    pub ignorable: bool,
}

/// `ExtenderManagedResource`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ManagedResource {
    /// As `example.com/gpu`.
    pub name: String,
    /// Whether NodeResourcesFit looks away.
    pub ignored_by_scheduler: bool,
}

/// `ExtenderTLSConfig`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ExtenderTls {
    /// Whether any certificate will do.
    pub insecure: bool,
    /// The name that its certificate must bear, where that is not the host's.
    pub server_name: String,
    /// Our certificate, a file of PEM.
    pub cert_file: String,
    /// Its key.
    pub key_file: String,
    /// Whom to trust.
    pub ca_file: String,
    /// Our certificate, PEM in base64.
    pub cert_data: String,
    /// Its key.
    pub key_data: String,
    /// Whom to trust.
    pub ca_data: String,
}

impl Default for KubeSchedulerConfiguration {
    fn default() -> KubeSchedulerConfiguration {
        KubeSchedulerConfiguration {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            parallelism: None,
            leader_election: Value::Null,
            client_connection: Value::Null,
            enable_profiling: Value::Null,
            enable_contention_profiling: Value::Null,
            delay_cache_until_active: Value::Null,
            percentage_of_nodes_to_score: None,
            pod_initial_backoff_seconds: 1,
            pod_max_backoff_seconds: 10,
            profiles: vec![Profile::default()],
            extenders: Vec::new(),
        }
    }
}

impl KubeSchedulerConfiguration {
    /// NodeResourcesFit of all profiles looks away from what extenders say that it is to ignore, and from
    /// nothing else (`buildExtenders`).
    #[must_use]
    pub(crate) fn ignoring_what_extenders_manage(mut self) -> KubeSchedulerConfiguration {
        let managed = self.extenders.iter().flat_map(|extender| &extender.managed_resources);
        let ignored = managed.filter(|resource| resource.ignored_by_scheduler);
        let ignored: Vec<Value> = ignored.map(|resource| resource.name.as_str().into()).collect();
        if !ignored.is_empty() {
            self.profiles.iter_mut().for_each(|profile| profile.ignore(&ignored));
        }
        self
    }
}

impl Profile {
    fn ignore(&mut self, resources: &[Value]) {
        const PLUGIN: &str = "NodeResourcesFit";
        if !self.plugin_config.iter().any(|config| config.name == PLUGIN) {
            self.plugin_config.push(PluginConfig { name: PLUGIN.into(), args: Value::Null });
        }
        for config in self.plugin_config.iter_mut().filter(|config| config.name == PLUGIN) {
            let args = object_mut(&mut config.args, "");
            args.insert("ignoredResources".into(), resources.into());
        }
    }

    /// The name of the pods that it is for.
    pub fn name(&self) -> &str {
        self.scheduler_name.as_deref().unwrap_or(DEFAULT_SCHEDULER_NAME)
    }

    /// What a plugin is told; the default where it is told nothing.
    ///
    /// # Errors
    /// What is not among its arguments.
    pub fn args<T: Default + for<'de> Deserialize<'de>>(
        &self,
        plugin: &str,
    ) -> Result<T, SchedulerConfigError> {
        let Some(config) = self.plugin_config.iter().find(|config| config.name == plugin) else {
            return Ok(T::default());
        };
        let mut args = config.args.clone();
        if let Some(fields) = args.as_object_mut() {
            let [version, kind] = ["apiVersion", "kind"].map(|field| fields.remove(field));
            check_type_of_args(plugin, version.as_ref(), kind.as_ref()).map_err(SchedulerConfigError)?;
        }
        if args.is_null() {
            return Ok(T::default());
        }
        T::deserialize(args)
            .map_err(|error| SchedulerConfigError(format!("the arguments of {plugin}: {error}")))
    }
}

/// Arguments that say what they are are those of this plugin (`decodeNestedObjects`).
fn check_type_of_args(plugin: &str, version: Option<&Value>, kind: Option<&Value>) -> Result<(), String> {
    let own = format!("{plugin}Args");
    let kind = kind.and_then(Value::as_str).unwrap_or(&own);
    let version = version.and_then(Value::as_str).unwrap_or(API_VERSION);
    let group = |version: &str| version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let (wanted, given) = (group(API_VERSION), group(version));
    if kind != own || wanted != given {
        return Err(format!("args for plugin {plugin} were not of type {own}.{wanted}, got {kind}.{given}"));
    }
    if version != API_VERSION {
        return Err(format!("no kind {kind:?} is registered for version {version:?}"));
    }
    Ok(())
}
