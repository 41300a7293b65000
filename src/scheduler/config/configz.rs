//! `/configz`: what kube-scheduler goes by, as upstream writes it (`KubeSchedulerConfiguration`, the internal
//! type with Go's names).

use serde_json::{Map, Value, json};

use super::merge::merge;
use super::types::{KubeSchedulerConfiguration, PluginConfig, PluginName, PluginSet, Profile};
use crate::framework::points::Point;

/// The page, with the name under which it is registered there.
pub fn configz(config: Option<&KubeSchedulerConfiguration>) -> Value {
    let default = KubeSchedulerConfiguration::default();
    let config = config.unwrap_or(&default);
    let extenders: Vec<Value> =
        config.extenders.iter().map(|extender| json!({"URLPrefix": extender.url_prefix})).collect();
    json!({"componentconfig": {
        "Parallelism": config.parallelism.unwrap_or(16),
        "LeaderElection": {
            "LeaderElect": true, "LeaseDuration": "15s", "RenewDeadline": "10s", "RetryPeriod": "2s",
            "ResourceLock": "leases", "ResourceName": "kube-scheduler", "ResourceNamespace": "kube-system",
        },
        "PercentageOfNodesToScore": config.percentage_of_nodes_to_score,
        "PodInitialBackoffSeconds": config.pod_initial_backoff_seconds,
        "PodMaxBackoffSeconds": config.pod_max_backoff_seconds,
        "Profiles": config.profiles.iter().map(profile).collect::<Vec<_>>(),
        "Extenders": extenders,
        "DelayCacheUntilActive": false,
    }})
}

/// Its plugins as they were asked for by point, and below `MultiPoint` all that came of it.
fn profile(profile: &Profile) -> Value {
    let nothing = PluginSet::default();
    let mut plugins = Map::new();
    for point in Point::ALL {
        let set = profile.plugins.get(&point.key()).unwrap_or(&nothing);
        plugins.insert(format!("{point:?}"), plugin_set(set));
    }
    let multi = profile.plugins.get("multiPoint").unwrap_or(&nothing);
    let own: Vec<&str> =
        profile.plugins.values().flat_map(|set| &set.enabled).map(|plugin| plugin.name.as_str()).collect();
    let merged = merge(profile, &own).map(|merged| merged.plugins).unwrap_or_default();
    let enabled = merged.into_iter().map(|(name, weight)| PluginName { name, weight }).collect();
    let merged = PluginSet { enabled, disabled: multi.disabled.clone() };
    plugins.insert("MultiPoint".to_owned(), plugin_set(&merged));
    let args = |config: &PluginConfig| json!({"Name": config.name, "Args": config.args});
    json!({
        "SchedulerName": profile.name(),
        "PercentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "Plugins": plugins,
        "PluginConfig": profile.plugin_config.iter().map(args).collect::<Vec<_>>(),
    })
}

fn plugin_set(set: &PluginSet) -> Value {
    let plugins = |plugins: &[PluginName]| -> Value {
        let shown = |plugin: &PluginName| json!({"Name": plugin.name, "Weight": plugin.weight});
        if plugins.is_empty() { Value::Null } else { plugins.iter().map(shown).collect() }
    };
    json!({"Enabled": plugins(&set.enabled), "Disabled": plugins(&set.disabled)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_shown_with_what_came_of_them() {
        let page = configz(None);
        let profile = &page["componentconfig"]["Profiles"][0];
        assert_eq!(profile["SchedulerName"], "default-scheduler");
        let taints = json!({"Name": "TaintToleration", "Weight": 3});
        let all = profile["Plugins"]["MultiPoint"]["Enabled"].as_array().unwrap();
        assert!(all.contains(&taints), "{all:?}");
        assert_eq!(profile["Plugins"]["Score"], json!({"Enabled": null, "Disabled": null}));
        let config = json!({"podMaxBackoffSeconds": 20, "profiles": [{"schedulerName": "mine",
            "plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}}]});
        let config: KubeSchedulerConfiguration = serde_json::from_value(config).unwrap();
        let page = configz(Some(&config));
        assert_eq!(page["componentconfig"]["PodMaxBackoffSeconds"], 20);
        let plugins = &page["componentconfig"]["Profiles"][0]["Plugins"]["MultiPoint"];
        assert_eq!(plugins["Disabled"], json!([{"Name": "ImageLocality", "Weight": 0}]));
        assert!(!plugins["Enabled"].to_string().contains("ImageLocality"));
    }
}
