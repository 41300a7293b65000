//! Which plugins run where: the default ones and what a profile changes about them (`mergePlugins`,
//! `expandMultiPointPlugins`).

use super::types::{PluginName, PluginSet, Profile, SchedulerConfigError};
use crate::framework::points::{Orders, Point, points_of};
use crate::plugins::catalog::DEFAULT_PLUGINS;

/// The plugins of a profile, with their weights, and which run at each point.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedProfile {
    /// Each with how much its scores count.
    pub plugins: Vec<(String, i64)>,
    /// By their places in `plugins`.
    pub orders: Orders,
}

impl MergedProfile {
    /// Those that run at a point.
    pub fn names_at(&self, point: Point) -> Vec<String> {
        self.orders.at(point).iter().map(|at| self.plugins[*at].0.clone()).collect()
    }
}

/// A profile's plugins; `own` are names that are not built in.
///
/// # Errors
/// A plugin that nobody knows, or that has no say at a point.
pub fn merge(profile: &Profile, own: &[&str]) -> Result<MergedProfile, SchedulerConfigError> {
    let nothing = PluginSet::default();
    let multi = merge_multi_point(profile.plugins.get("multiPoint").unwrap_or(&nothing));
    let mut plugins = multi.clone();
    for set in profile.plugins.values() {
        for plugin in &set.enabled {
            if !plugins.iter().any(|(name, _)| *name == plugin.name) {
                plugins.push((plugin.name.clone(), default_weight(plugin)));
            }
        }
    }
    for (name, _) in &plugins {
        if points_of(name).is_none() && !own.contains(&name.as_str()) {
            return Err(SchedulerConfigError(format!("plugins: {name:?} does not exist")));
        }
    }
    let mut orders = Orders::default();
    for point in Point::ALL {
        let set = profile.plugins.get(&point.key()).unwrap_or(&nothing);
        let names = names_at(*point, set, &multi).map_err(SchedulerConfigError)?;
        let place = |name: &String| plugins.iter().position(|(other, _)| other == name);
        orders.set(*point, names.iter().filter_map(place).collect());
    }
    if let Some(score) = profile.plugins.get("score") {
        set_weights(&mut plugins, &score.enabled);
    }
    check_points(&orders).map_err(SchedulerConfigError)?;
    Ok(MergedProfile { plugins, orders })
}

/// The default ones without those that are disabled, with other weights, and then those that are added.
fn merge_multi_point(changes: &PluginSet) -> Vec<(String, i64)> {
    let is_disabled = |name: &str| changes.disabled.iter().any(|it| it.name == "*" || it.name == name);
    let enabled = |name: &str| changes.enabled.iter().find(|it| it.name == name);
    let mut merged: Vec<(String, i64)> = Vec::new();
    for (name, weight) in DEFAULT_PLUGINS {
        if is_disabled(name) {
            continue;
        }
        let weight = enabled(name).filter(|it| it.weight != 0).map_or(*weight, |it| it.weight);
        merged.push(((*name).to_owned(), weight));
    }
    for plugin in &changes.enabled {
        if !merged.iter().any(|(name, _)| *name == plugin.name) {
            merged.push((plugin.name.clone(), default_weight(plugin)));
        }
    }
    merged
}

/// A plugin that is enabled without a weight counts once.
fn default_weight(plugin: &PluginName) -> i64 {
    plugin.weight.max(1)
}

/// First those that run everywhere and are named here once more, then those that are named here alone, then
/// the others that run everywhere.
fn names_at(point: Point, set: &PluginSet, multi: &[(String, i64)]) -> Result<Vec<String>, String> {
    let extends = |name: &str| points_of(name).is_none_or(|points| points.contains(&point));
    for plugin in &set.enabled {
        if !extends(&plugin.name) {
            return Err(format!("plugins: plugin {:?} does not extend {point:?} plugin", plugin.name));
        }
    }
    let is_named = |name: &str| set.enabled.iter().any(|it| it.name == name);
    let is_disabled = |name: &str| set.disabled.iter().any(|it| it.name == "*" || it.name == name);
    let is_multi = |name: &str| multi.iter().any(|(other, _)| other == name);
    let mut names: Vec<String> = Vec::new();
    names.extend(multi.iter().map(|(name, _)| name.clone()).filter(|name| is_named(name)));
    names.extend(set.enabled.iter().map(|it| it.name.clone()).filter(|name| !is_multi(name)));
    let everywhere = multi.iter().map(|(name, _)| name.clone());
    names.extend(everywhere.filter(|name| !is_named(name) && !is_disabled(name) && extends(name)));
    Ok(names)
}

fn set_weights(plugins: &mut [(String, i64)], enabled: &[PluginName]) {
    for (name, weight) in plugins {
        if let Some(changed) = enabled.iter().find(|it| it.name == *name && it.weight != 0) {
            *weight = changed.weight;
        }
    }
}

fn check_points(orders: &Orders) -> Result<(), String> {
    match orders.at(Point::QueueSort) {
        [_] => {}
        [] => return Err("plugins.queueSort: at least one queue sort plugin is needed".into()),
        _ => return Err("plugins.queueSort: only one queue sort plugin can be enabled".into()),
    }
    if orders.at(Point::Bind).is_empty() {
        return Err("plugins.bind: at least one bind plugin is needed".into());
    }
    Ok(())
}
