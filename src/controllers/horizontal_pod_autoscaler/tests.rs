//! Upstream's tables, as data.

use chrono::TimeDelta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::behavior::{Normalization, limit, limit_with_behavior, stabilize, stabilize_with_behavior};
use super::group_pods::{Periods, TargetPod, group_pods, requests};
use super::memory::{AutoscalerMemory, Recommendation, ScaleEvent, change_in};
use super::metrics_client::{PodMetric, PodMetrics};
use super::metrics_error::MetricsError;
use super::replica_calculator::{Proposal, ReplicaCalculator, Tolerances};
use apimachinery::object::Object;
use apimachinery::time::{Time, rfc3339};
use apis::views::horizontal_pod_autoscaler::{
    HorizontalPodAutoscalerBehavior, HpaScalingPolicy, HpaScalingRules,
};

const PERIODS: Periods =
    Periods { cpu_initialization: TimeDelta::minutes(2), initial_readiness: TimeDelta::seconds(10) };

fn now() -> Time {
    Time::from_timestamp(1_767_225_600, 0).unwrap()
}

fn ago(seconds: i64) -> Time {
    now() - TimeDelta::seconds(seconds)
}

fn table<T: DeserializeOwned>(text: &str) -> Vec<T> {
    serde_yaml::from_str(text).unwrap()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReplicasCase {
    name: String,
    by: String,
    pods: usize,
    ready: Option<String>,
    phase: Option<String>,
    gone: String,
    started: String,
    tolerances: Option<(f64, f64)>,
    target: i64,
    container: String,
    requests: Value,
    levels: Vec<Value>,
    values: Vec<i64>,
    metrics_of: Option<String>,
    usage: i64,
    want: Vec<i64>,
    error: Option<String>,
}

impl ReplicasCase {
    fn pods(&self) -> Vec<TargetPod> {
        let count = self.phase.as_ref().map_or(self.pods, |phases| phases.len());
        (0..count).map(|number| self.pod(number)).collect()
    }

    fn pod(&self, number: usize) -> TargetPod {
        let letter = |text: &str| text.chars().nth(number);
        let ready = self.ready.as_deref().and_then(letter) != Some('F');
        let phase = match self.phase.as_deref().and_then(letter) {
            Some('P') => "Pending",
            Some('F') => "Failed",
            _ => "Running",
        };
        let started = match letter(&self.started) {
            Some('h') => now(),
            Some(_) => ago(180),
            None => Time::UNIX_EPOCH,
        };
        let request = match &self.requests {
            Value::Array(each) => each.get(number).cloned(),
            Value::Null => None,
            all => Some(all.clone()),
        };
        let container = |name: &str| {
            let requests = request.as_ref().map_or(json!({}), |cpu| json!({"cpu": cpu}));
            json!({"name": name, "image": "i", "resources": {"requests": requests}})
        };
        let mut metadata = json!({"name": format!("pod-{number}"), "namespace": "ns"});
        if letter(&self.gone) == Some('x') {
            metadata["deletionTimestamp"] = rfc3339(now()).into();
        }
        let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" },
            "lastTransitionTime": rfc3339(Time::UNIX_EPOCH)});
        let status = json!({"phase": phase, "startTime": rfc3339(started), "conditions": [condition]});
        let spec = json!({"containers": [container("container1"), container("container2")]});
        target(&json!({"metadata": metadata, "spec": spec, "status": status}))
    }

    fn metrics(&self) -> PodMetrics {
        let value = |level: &Value| match (level, self.container.as_str()) {
            (Value::Number(both), "") => both.as_i64().map(|both| both * 2),
            (Value::Number(each), _) => each.as_i64(),
            (each, "") => Some((0..2).filter_map(|at| each[at].as_i64()).sum()),
            (each, "container1") => each[0].as_i64(),
            (each, _) => each[1].as_i64(),
        };
        let levels = self.levels.iter().map(value);
        let all = levels.chain(self.values.iter().map(|value| Some(*value))).enumerate();
        let of_pod = |(number, value): (usize, Option<i64>)| {
            let name = self.metrics_of.clone().unwrap_or(format!("pod-{number}"));
            Some((
                name,
                PodMetric { timestamp: Time::UNIX_EPOCH, window: TimeDelta::minutes(1), value: value? },
            ))
        };
        all.filter_map(of_pod).collect()
    }

    fn propose(&self) -> Result<Proposal, MetricsError> {
        let (down, up) = self.tolerances.unwrap_or((0.1, 0.1));
        let (pods, tolerances) = (self.pods(), Tolerances { down, up });
        let calculator = ReplicaCalculator { pods: &pods, tolerances, periods: PERIODS, now: now() };
        let current = i64::try_from(self.pods).unwrap();
        match self.by.as_str() {
            "utilization" => {
                calculator.by_utilization(current, self.target, ("cpu", &self.container), self.metrics())
            }
            "value" => calculator.by_value(current, self.target, "", self.metrics()),
            "total" => calculator.by_total(current, self.target, self.usage),
            "share" => Ok(calculator.by_share(current, self.target, self.usage)),
            other => panic!("{other}"),
        }
    }
}

fn target(tree: &Value) -> TargetPod {
    TargetPod::of(&Object::from_value(tree, vec![]).unwrap())
}

#[test]
fn metrics_ask_for_as_many_replicas_as_upstream_counts() {
    let cases: Vec<ReplicasCase> = table(include_str!("testdata/replicas.yaml"));
    assert!(cases.len() >= 70, "{}", cases.len());
    for case in cases {
        match (case.propose(), &case.error) {
            (Err(why), Some(error)) => assert!(why.to_string().contains(error), "{}: {why}", case.name),
            (Ok(Proposal { replicas, usage, utilization }), None) => {
                let found: Vec<i64> = [replicas, usage].into_iter().chain(utilization).collect();
                assert_eq!(found, case.want, "{}", case.name);
            }
            (other, _) => panic!("{}: {other:?}", case.name),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BehaviorCase {
    rules: String,
    current: i64,
    desired: i64,
    bounds: (i64, i64),
    up: Option<Vec<Value>>,
    down: Option<Vec<Value>>,
    ups: Vec<i64>,
    downs: Vec<i64>,
    want: (i64, String),
}

fn rules(policies: &[(&str, i64, i64)], select: &str) -> HpaScalingRules {
    let policy = |(policy_type, value, period_seconds): &(&str, i64, i64)| HpaScalingPolicy {
        policy_type: (*policy_type).into(),
        value: *value,
        period_seconds: *period_seconds,
    };
    let policies = policies.iter().filter(|(_, value, _)| *value != 0).map(policy).collect();
    HpaScalingRules { select_policy: Some(select.into()), policies, ..HpaScalingRules::default() }
}

fn rules_of(written: Option<&Vec<Value>>, default: &[(&str, i64, i64)]) -> HpaScalingRules {
    let Some(written) = written else { return rules(default, "Max") };
    let number = |at: usize| written[at].as_i64().unwrap();
    let select = written.get(4).and_then(Value::as_str).unwrap_or("Max");
    rules(&[("Pods", number(0), number(1)), ("Percent", number(2), number(3))], select)
}

/// In the middle of as many equal parts of the last two minutes.
fn spread(changes: &[i64]) -> Vec<ScaleEvent> {
    let part = 120.0 / changes.len().max(1) as f64;
    let event = |(number, change): (usize, &i64)| {
        let before = 120.0 - part * (number + 1) as f64 + part / 2.0;
        ScaleEvent { change: *change, at: ago(before as i64), is_outdated: false }
    };
    changes.iter().enumerate().map(event).collect()
}

#[test]
fn numbers_change_as_fast_as_upstream_lets_them() {
    for case in table::<BehaviorCase>(include_str!("testdata/behavior.yaml")) {
        let (least, most) = case.bounds;
        let up = rules_of(case.up.as_ref(), &[("Pods", 4, 15), ("Percent", 100, 15)]);
        let down = rules_of(case.down.as_ref(), &[("Percent", 100, 15)]);
        let (scale_ups, scale_downs) = (spread(&case.ups), spread(&case.downs));
        let memory = AutoscalerMemory { scale_ups, scale_downs, ..AutoscalerMemory::default() };
        let BehaviorCase { current, desired, .. } = case;
        let args = Normalization { up: &up, down: &down, least, most, current, desired, now: now() };
        let found = match case.rules.as_str() {
            "none" => limit(current, desired, least, most),
            _ => limit_with_behavior(&memory, &args),
        };
        assert_eq!((found.replicas, found.reason), (case.want.0, &*case.want.1), "{case:?}");
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StabilizedCase {
    window: i64,
    windows: Option<(i64, i64)>,
    past: Vec<(i64, i64)>,
    current: i64,
    desired: i64,
    want: i64,
    left: Vec<i64>,
}

#[test]
fn recommendations_count_as_long_as_upstream_says() {
    for case in table::<StabilizedCase>(include_str!("testdata/stabilized.yaml")) {
        let past = case.past.iter();
        let recommendations =
            past.map(|(replicas, before)| Recommendation { replicas: *replicas, at: ago(*before) });
        let mut memory =
            AutoscalerMemory { recommendations: recommendations.collect(), ..AutoscalerMemory::default() };
        let found = match case.windows {
            None => stabilize(&mut memory, case.desired, TimeDelta::seconds(case.window), now()),
            Some((up, down)) => {
                let of = |window| HpaScalingRules {
                    stabilization_window_seconds: Some(window),
                    ..HpaScalingRules::default()
                };
                let StabilizedCase { current, desired, .. } = case;
                let args = Normalization {
                    up: &of(up),
                    down: &of(down),
                    least: 1,
                    most: 9,
                    current,
                    desired,
                    now: now(),
                };
                stabilize_with_behavior(&mut memory, &args)
            }
        };
        assert_eq!(found.replicas, case.want, "{case:?}");
        let left: Vec<i64> = memory.recommendations.iter().map(|one| one.replicas).collect();
        assert_eq!(left, case.left, "{case:?}");
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ChangesCase {
    past: Vec<(i64, i64)>,
    periods: Option<Vec<i64>>,
    left: Vec<String>,
    in_a_minute: i64,
}

#[test]
fn changes_are_remembered_as_long_as_a_policy_looks() {
    for case in table::<ChangesCase>(include_str!("testdata/changes.yaml")) {
        let event = |(change, before): &(i64, i64)| ScaleEvent {
            change: *change,
            at: ago(*before),
            is_outdated: false,
        };
        let past: Vec<ScaleEvent> = case.past.iter().map(event).collect();
        assert_eq!(change_in(60, &past, now()), case.in_a_minute, "{case:?}");
        let policies = |periods: &Vec<i64>| {
            let policies: Vec<_> = periods.iter().map(|period| ("Pods", 10, *period)).collect();
            let rules = Some(rules(&policies, "Max"));
            HorizontalPodAutoscalerBehavior { scale_up: rules.clone(), scale_down: rules }
        };
        let behavior = case.periods.as_ref().map(policies);
        let (scale_ups, scale_downs) = (past.clone(), past);
        let mut memory = AutoscalerMemory { scale_ups, scale_downs, ..AutoscalerMemory::default() };
        memory.store_scale_event(behavior.as_ref(), (10, 15), now());
        memory.store_scale_event(behavior.as_ref(), (10, 5), now());
        let shown = |events: &[ScaleEvent]| -> Vec<String> {
            let mark = |event: &ScaleEvent| if event.is_outdated { "x" } else { "" };
            events.iter().map(|event| format!("{}{}", event.change, mark(event))).collect()
        };
        assert_eq!(shown(&memory.scale_ups), case.left, "{case:?}");
        assert_eq!(shown(&memory.scale_downs), case.left, "{case:?}");
    }
}

#[test]
fn what_is_remembered_has_a_bound() {
    let mut memory = AutoscalerMemory::default();
    for replicas in 0..4000 {
        memory.note(replicas, now(), None);
    }
    let (first, last) = (memory.recommendations[0].replicas, memory.recommendations.last().unwrap().replicas);
    assert_eq!((memory.recommendations.len(), first, last), (3600, 400, 3999));
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupsCase {
    resource: String,
    pods: Vec<GroupedPod>,
    want: (i64, usize, usize, usize),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupedPod {
    phase: String,
    started: Option<i64>,
    ready: Option<(String, i64)>,
    #[serde(default)]
    gone: bool,
    metric: Option<(i64, i64)>,
}

#[test]
fn pods_count_or_not_as_upstream_groups_them() {
    for case in table::<GroupsCase>(include_str!("testdata/groups.yaml")) {
        let mut pods = Vec::new();
        let mut metrics = PodMetrics::new();
        for (number, pod) in case.pods.iter().enumerate() {
            let name = format!("pod-{number}");
            let mut tree = json!({"metadata": {"name": name}, "spec": {"containers": []}});
            tree["status"]["phase"] = pod.phase.as_str().into();
            if let Some(started) = pod.started {
                tree["status"]["startTime"] = rfc3339(ago(started)).into();
            }
            if let Some((status, since)) = &pod.ready {
                let since = rfc3339(ago(*since));
                tree["status"]["conditions"] =
                    json!([{"type": "Ready", "status": status, "lastTransitionTime": since}]);
            }
            if pod.gone {
                tree["metadata"]["deletionTimestamp"] = rfc3339(now()).into();
            }
            if let Some((before, window)) = pod.metric {
                let metric =
                    PodMetric { timestamp: ago(before), window: TimeDelta::seconds(window), value: 1 };
                metrics.insert(name, metric);
            }
            pods.push(target(&tree));
        }
        let groups = group_pods(&pods, &metrics, &case.resource, &PERIODS, now());
        let found = (groups.ready, groups.unready.len(), groups.missing.len(), groups.ignored.len());
        assert_eq!(found, case.want, "{case:?}");
    }
}

/// `TestCalculateRequests`
#[test]
fn requests_are_those_of_the_pod_or_of_its_containers() {
    let container = |name: &str, cpu: Option<&str>| {
        let requests = cpu.map_or(json!({}), |cpu| json!({"cpu": cpu}));
        json!({"name": name, "resources": {"requests": requests}})
    };
    let both = json!([container("container1", Some("100m")), container("container2", Some("50m"))]);
    let one = json!([container("container1", None), container("container2", Some("50m"))]);
    let whole = json!({"requests": {"cpu": "800m"}});
    let mut sidecar = container("restartable-container1", Some("50m"));
    sidecar["restartPolicy"] = "Always".into();
    let first = json!([container("init-container1", Some("20m")), sidecar]);
    let missing = "missing request for cpu in container container1 of Pod test-pod";
    let cases = [
        (json!({"containers": both}), "", Ok(150)),
        (json!({"containers": both, "resources": whole}), "", Ok(800)),
        (json!({"containers": one}), "", Err(missing)),
        (json!({"containers": one, "resources": whole}), "", Ok(800)),
        (json!({"containers": both}), "container1", Ok(100)),
        (json!({"containers": both, "resources": whole}), "container1", Ok(100)),
        (
            json!({"containers": [container("container1", Some("100m"))], "initContainers": first}),
            "",
            Ok(150),
        ),
        (json!({"containers": both}), "other", Err("container other not found in Pod test-pod")),
        (
            json!({"containers": [container("container1", None)], "resources": {"requests": {"memory": "1Gi"}}}),
            "",
            Err("missing pod-level request for cpu in Pod test-pod"),
        ),
    ];
    for (spec, name, want) in cases {
        let pod = target(&json!({"metadata": {"name": "test-pod"}, "spec": spec}));
        let found = requests(&[pod], name, "cpu").map(|requests| requests["test-pod"]);
        assert_eq!(found, want.map_err(MetricsError::from), "{spec}");
    }
}
