//! What may stand in a configuration, and which plugins come of it.

use serde_json::json;

use super::merge::{MergedProfile, merge};
use super::*;
use crate::framework::points::Point;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn parse(text: &str) -> Result<KubeSchedulerConfiguration, SchedulerConfigError> {
    KubeSchedulerConfiguration::parse(&format!("{HEAD}{text}"))
}

fn merged(plugins: &str) -> MergedProfile {
    let config = parse(&format!("profiles: [{{plugins: {plugins}}}]")).unwrap();
    merge(&config.profiles[0], &[]).unwrap()
}

#[test]
fn what_cannot_be_is_said_with_its_field() {
    let cases = [
        (
            "percentageOfNodesToScore: 101",
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: must be greater than 0"),
        ("podMaxBackoffSeconds: 0", "podMaxBackoffSeconds: must be greater than or equal to"),
        ("unknown: 1", "unknown field `unknown`"),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "profiles[1].schedulerName: Duplicate value: \"a\"",
        ),
        ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value"),
        ("profiles: [{plugins: {nowhere: {}}}]", "\"nowhere\" is no extension point"),
        ("profiles: [{plugins: {filter: {enabled: [{name: Foo}]}}}]", "\"Foo\" does not exist"),
        ("profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]", "does not extend Score plugin"),
        ("profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]", "at least one bind plugin is needed"),
        (
            "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]",
            "at least one queue sort plugin is needed",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {x: 1}}]}]",
            "arguments of NodeResourcesFit: unknown field",
        ),
        (
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]",
            "hardPodAffinityWeight: Invalid value: 101",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: [{name: cpu, weight: 0}]}}}]}]",
            "resource weight of cpu not in valid range [1-100]",
        ),
        (
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}]}]",
            "it must be List",
        ),
        (
            "profiles: [{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}]}]",
            "cannot be zero at the same time",
        ),
    ];
    refused(&cases);
    let other = KubeSchedulerConfiguration::parse("apiVersion: v1\nkind: Pod\n").unwrap_err().0;
    assert!(other.contains("Pod of \"v1\" is not known"), "{other}");
}

#[test]
fn arguments_and_extenders_that_cannot_be_are_said_with_their_field() {
    refused(&[
        ("parallelism: 0", "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        ("parallelism: many", "invalid type: string"),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {kind: InterPodAffinityArgs}}]}]",
            "args for plugin NodeResourcesFit were not of type \
             NodeResourcesFitArgs.kubescheduler.config.k8s.io, got \
             InterPodAffinityArgs.kubescheduler.config.k8s.io",
        ),
        (
            "profiles: [{pluginConfig: [{name: VolumeBinding, args: {apiVersion: kubescheduler.config.k8s.io/v1beta3}}]}]",
            "no kind \"VolumeBindingArgs\" is registered for version \"kubescheduler.config.k8s.io/v1beta3\"",
        ),
        (
            "extenders: [{urlPrefix: 'http://a', managedResources: [{name: cpu}]}]",
            "extenders[0].managedResources[0].name: Invalid value: \"cpu\": is an invalid extended resource name",
        ),
        (
            "extenders: [{urlPrefix: 'http://a', managedResources: [{name: a.b/c}]}, {urlPrefix: 'http://b', managedResources: [{name: a.b/c}]}]",
            "extenders[1].managedResources[0].name: Invalid value: \"a.b/c\": duplicate",
        ),
        ("extenders: [{urlPrefix: 'ftp://a'}]", "extenders[0].urlPrefix: Invalid value"),
        (
            "extenders: [{urlPrefix: 'http://a', prioritizeVerb: p}]",
            "extenders[0].weight: must have a positive weight",
        ),
        (
            "extenders: [{urlPrefix: 'http://a', bindVerb: b}, {urlPrefix: 'http://b', bindVerb: b}]",
            "found 2 extenders implementing bind",
        ),
    ]);
}

#[test]
fn what_extenders_manage_counts_instead_of_what_a_profile_ignores() {
    let ignored = |extenders: &str| {
        let own =
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a.b/own]}}]}]";
        let config = parse(&format!("{own}\n{extenders}")).unwrap().ignoring_what_extenders_manage();
        config.profiles[0].plugin_config[0].args["ignoredResources"].clone()
    };
    let managed = "{name: a.b/c, ignoredByScheduler: true}, {name: a.b/d}";
    let extenders = format!("extenders: [{{urlPrefix: 'http://a', managedResources: [{managed}]}}]");
    assert_eq!((ignored(""), ignored(&extenders)), (json!(["a.b/own"]), json!(["a.b/c"])));
}

fn refused(cases: &[(&str, &str)]) {
    for (text, said) in cases {
        let error = parse(text).err().unwrap_or_else(|| panic!("{text} is taken")).0;
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn what_a_file_of_a_real_scheduler_says_of_its_process_is_taken() {
    let config =
        parse("leaderElection: {leaderElect: true}\nclientConnection: {kubeconfig: /a}\nparallelism: 16\n");
    assert_eq!(config.unwrap().profiles[0].name(), "default-scheduler");
}

#[test]
fn plugins_are_disabled_enabled_and_weighed() {
    let all = merged("{}");
    assert_eq!(all.plugins.len(), crate::plugins::catalog::DEFAULT_PLUGINS.len());
    let without = merged("{score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 7}]}}");
    assert_eq!(without.names_at(Point::Score), ["ImageLocality"]);
    assert!(without.plugins.contains(&("ImageLocality".into(), 7)));
    assert_eq!(without.names_at(Point::Filter), all.names_at(Point::Filter));
    let heavier = merged("{multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}}");
    assert!(heavier.plugins.contains(&("NodeAffinity".into(), 9)));
    assert_eq!(heavier.orders, all.orders, "a weight changes no order");
    let gone = merged("{multiPoint: {disabled: [{name: NodePorts}]}}");
    assert!(!gone.names_at(Point::Filter).contains(&"NodePorts".to_owned()));
    let first = merged("{filter: {enabled: [{name: NodePorts}]}}");
    assert_eq!(first.names_at(Point::Filter)[0], "NodePorts", "what is named for a point goes first there");
}

#[test]
fn one_queue_has_one_order() {
    let text =
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {disabled: [{name: '*'}]}}}]";
    assert!(parse(text).is_err());
}
