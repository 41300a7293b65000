//! Several profiles, extenders, waiting to be permitted, and nominations that others made.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};

use super::config::KubeSchedulerConfiguration;
use super::extender::{Dial, Post};
use super::fixtures::{node, object, pod};
use super::framework::node_info::NodeInfo;
use super::framework::plugin::{CycleState, Plugin};
use super::framework::pod_info::PodInfo;
use super::framework::status::Status;
use super::framework::waiting_pods::WaitingPods;
use super::options::SchedulerOptions;
use super::own::OwnPlugins;
use super::schedule_one::Cursor;
use super::schedule_one::tests::{context, decide, decide_from, decide_on};
use super::scheduler::Scheduler;
use apimachinery::time::Time;
use clock::Clock;

fn configured(text: &str, dial: Option<Dial>) -> Scheduler {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let config = KubeSchedulerConfiguration::parse(&format!("{head}{text}")).unwrap();
    let options = SchedulerOptions { scheduler_config: Some(config), ..SchedulerOptions::default() };
    let scheduler = Scheduler::with_extenders(context(), &options, &OwnPlugins::default(), dial);
    for name in ["a", "b", "c"] {
        scheduler.parts.cache.set_node(&node(name, json!({})));
    }
    let taken =
        json!({"nodeName": "b", "containers": [{"resources": {"requests": {"cpu": "2", "memory": "4Gi"}}}]});
    scheduler.parts.cache.add_pod(pod("old", taken));
    scheduler
}

fn asks(scheduler_name: &str) -> Arc<PodInfo> {
    let requests = json!({"requests": {"cpu": "1", "memory": "2Gi"}});
    pod("new", json!({"schedulerName": scheduler_name, "containers": [{"resources": requests}]}))
}

#[tokio::test]
async fn each_profile_has_its_own_way() {
    let text = "profiles:\n- schedulerName: spread\n- schedulerName: pack\n  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}\n  pluginConfig:\n  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}\n";
    assert_eq!(decide_on(&configured(text, None), asks("pack")).unwrap(), "b");
    assert_ne!(decide_on(&configured(text, None), asks("spread")).unwrap(), "b");
    let scheduler = configured(text, None);
    assert!(scheduler.parts.profiles.has("pack") && !scheduler.parts.profiles.has("default-scheduler"));
}

/// An extender that answers the same each time.
fn answering(answer: Result<Value, &'static str>) -> Option<Dial> {
    Some(Arc::new(move |_, url: &str| {
        let (answer, is_scoring) = (answer.clone(), url.ends_with("/prioritize"));
        let post: Post = Arc::new(move |args: Value, timeout: Duration| {
            assert!(args["Pod"].is_object() && timeout == Duration::from_secs(2), "{args}");
            let answer = if is_scoring { Ok(json!([])) } else { answer.clone().map_err(str::to_owned) };
            async move { answer }.boxed()
        });
        Ok(post)
    }))
}

async fn extended(more: &str, answer: Result<Value, &'static str>) -> Result<String, String> {
    let text = format!(
        "extenders: [{{urlPrefix: 'http://x/s/', filterVerb: filter, httpTimeout: 2s, nodeCacheCapable: true{more}}}]\n"
    );
    decide(&configured(&text, answering(answer)), asks("")).await.map_err(|failure| failure.message)
}

#[tokio::test]
async fn an_extender_takes_nodes_away() {
    assert_eq!(extended("", Ok(json!({"nodenames": ["b"]}))).await.unwrap(), "b");
    let all = json!({"NodeNames": [], "FailedNodes": {"a": "no gpu", "b": "no gpu"},
        "FailedAndUnresolvableNodes": {"c": "broken"}});
    let said = extended("", Ok(all)).await.unwrap_err();
    assert!(said.starts_with("0/3 nodes are available: 1 broken, 2 no gpu."), "{said}");
}

#[tokio::test]
async fn an_extender_that_lies_or_fails_is_an_error_unless_it_can_be_ignored() {
    let said = extended("", Ok(json!({"NodeNames": ["z"]}))).await.unwrap_err();
    assert!(said.contains("claims a filtered node \"z\" which is not found"), "{said}");
    assert_eq!(
        extended("", Err("context deadline exceeded")).await.unwrap_err(),
        "context deadline exceeded"
    );
    assert_eq!(extended("", Ok(json!({"Error": "I am ill"}))).await.unwrap_err(), "I am ill");
    let ignored = extended(", ignorable: true", Err("context deadline exceeded")).await;
    assert_ne!(ignored.unwrap(), "b", "as without an extender");
    let not_its_business = ", managedResources: [{name: example.com/gpu}]";
    assert!(extended(not_its_business, Err("not asked")).await.is_ok());
}

#[tokio::test]
async fn an_extender_scores_within_bounds() {
    let text = "extenders: [{urlPrefix: 'http://x', prioritizeVerb: score, weight: 5}]\n";
    let score =
        json!([{"Host": "b", "Score": 9_000_000}, {"host": "z", "score": 10}, {"Host": "a", "Score": -3}]);
    let dial: Dial = Arc::new(move |_, _: &str| {
        let score = score.clone();
        let post: Post = Arc::new(move |args: Value, _| {
            assert_eq!(args["Nodes"]["items"].as_array().map(Vec::len), Some(3));
            let score = score.clone();
            async move { Ok(score) }.boxed()
        });
        Ok(post)
    });
    assert_eq!(decide(&configured(text, Some(dial)), asks("")).await.unwrap(), "b");
}

#[tokio::test]
async fn what_an_extender_manages_is_none_of_the_schedulers_business() {
    let asks = || {
        let requests = json!({"requests": {"example.com/gpu": "1"}});
        pod("new", json!({"containers": [{ "resources": requests }]}))
    };
    for (ignored, is_placed) in [(true, true), (false, false)] {
        let text = format!(
            "extenders: [{{urlPrefix: 'http://x', managedResources: [{{name: example.com/gpu, ignoredByScheduler: {ignored}}}]}}]\n"
        );
        let decided = decide(&configured(&text, answering(Ok(json!({})))), asks()).await;
        assert_eq!(decided.is_ok(), is_placed, "{ignored}: {decided:?}");
    }
}

/// An extender that is asked who may go: it will have `a` and `c` alone.
fn sparing_b(knows_pods: bool) -> Option<Dial> {
    Some(Arc::new(move |_, _: &str| {
        let post: Post = Arc::new(move |args: Value, _| {
            let fields = ["NodeNameToMetaVictims", "NodeNameToVictims"];
            let [given, other] = if knows_pods { fields } else { [fields[1], fields[0]] };
            let mut victims = args[given].clone();
            let victim = &victims["b"]["Pods"][0];
            let uid = if knows_pods { &victim["UID"] } else { &victim["metadata"]["uid"] };
            assert!(args[other].is_null() && *uid == "old-b", "{args}");
            victims.as_object_mut().unwrap().remove("b");
            for victims in victims.as_object_mut().unwrap().values_mut() {
                let uid = victims["Pods"][0].pointer("/metadata/uid").cloned();
                let uid = uid.unwrap_or_else(|| victims["Pods"][0]["UID"].clone());
                victims["Pods"] = json!([{ "UID": uid }]);
            }
            async move { Ok(json!({ "nodeNameToMetaVictims": victims })) }.boxed()
        });
        Ok(post)
    }))
}

#[tokio::test]
async fn an_extender_may_want_other_victims() {
    for knows_pods in [true, false] {
        let text = format!(
            "extenders: [{{urlPrefix: 'http://x', preemptVerb: preempt, nodeCacheCapable: {knows_pods}}}]\n"
        );
        let scheduler = configured(&text, sparing_b(knows_pods));
        for (node, priority) in [("a", 3), ("b", 1), ("c", 2)] {
            let requests = json!({"requests": {"cpu": "2"}});
            let spec =
                json!({"nodeName": node, "priority": priority, "containers": [{ "resources": requests }]});
            scheduler.parts.cache.add_pod(pod(&format!("old-{node}"), spec));
        }
        let requests = json!({"requests": {"cpu": "3"}});
        let wants = pod("new", json!({"priority": 9, "containers": [{ "resources": requests }]}));
        let chosen = decide(&scheduler, wants).await.unwrap_err().preemption.unwrap();
        assert_eq!(chosen.nominated_node.as_deref(), Some("c"), "b would have been the cheapest");
        assert_eq!(chosen.victims.iter().map(|victim| victim.uid()).collect::<Vec<_>>(), ["old-c"]);
    }
}

#[tokio::test]
async fn an_extender_that_names_a_victim_who_is_not_there_is_an_error() {
    for (answer, wanted) in [
        (
            json!({"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "ghost"}]}}}),
            "preemption: extender: http://x claims to preempt pod (UID: ghost) on node: b, but the pod is not found",
        ),
        (
            json!({"NodeNameToMetaVictims": {"b": {"Pods": []}}}),
            "preemption: expected at least one victim pod on node \"b\"",
        ),
        (
            json!({"NodeNameToMetaVictims": {"z": {"Pods": []}}}),
            "preemption: nodeinfo not found for node name \"z\"",
        ),
        (json!({}), "preemption: no candidate node for preemption"),
    ] {
        let scheduler = configured(
            "extenders: [{urlPrefix: 'http://x', preemptVerb: preempt}]\n",
            answering_always(answer),
        );
        for node in ["a", "c"] {
            let requests = json!({"requests": {"cpu": "4"}});
            let spec = json!({"nodeName": node, "priority": 9, "containers": [{ "resources": requests }]});
            scheduler.parts.cache.add_pod(pod(&format!("old-{node}"), spec));
        }
        let requests = json!({"requests": {"cpu": "3"}});
        let wants = pod("new", json!({"priority": 9, "containers": [{ "resources": requests }]}));
        let failure = decide(&scheduler, wants).await.unwrap_err();
        assert!(failure.message.contains(wanted), "{}", failure.message);
        assert!(failure.preemption.is_none(), "nobody has to go");
    }
}

fn answering_always(answer: Value) -> Option<Dial> {
    Some(Arc::new(move |_, _: &str| {
        let answer = answer.clone();
        let post: Post = Arc::new(move |_, _| {
            let answer = answer.clone();
            async move { Ok(answer) }.boxed()
        });
        Ok(post)
    }))
}

/// A filter that fails on node `c`.
struct FailingFilter;

impl Plugin for FailingFilter {
    fn name(&self) -> &'static str {
        "Failing"
    }

    fn filter(&self, _: &CycleState, _: &PodInfo, node: &NodeInfo) -> Status {
        if &*node.name == "c" { Status::error("no idea") } else { Status::success() }
    }
}

#[tokio::test]
async fn a_filter_that_fails_ends_the_attempt() {
    let own = OwnPlugins::new().with(1, |_| FailingFilter);
    let scheduler = Scheduler::with_options(context(), &SchedulerOptions::default(), &own);
    for name in ["a", "b", "c"] {
        scheduler.parts.cache.set_node(&node(name, json!({})));
    }
    let failure = decide_on(&scheduler, asks("")).unwrap_err();
    assert_eq!(
        (failure.reason, &*failure.message),
        ("SchedulerError", "running \"Failing\" filter plugin: no idea")
    );
}

#[tokio::test]
async fn a_filter_that_fails_leaves_the_next_attempt_to_the_nodes_behind() {
    let own = OwnPlugins::new().with(1, |_| FailingFilter);
    let scheduler = Scheduler::with_options(context(), &SchedulerOptions::default(), &own);
    for name in ["c", "d", "e"] {
        scheduler.parts.cache.set_node(&node(name, json!({})));
    }
    let mut cursor = Cursor::default();
    assert!(decide_from(&scheduler, asks(""), &mut cursor).await.is_err());
    assert_eq!(cursor.next_start_node, 1);
}

#[tokio::test]
async fn a_pod_waits_until_all_allow_it_or_its_time_is_over() {
    let clock = Clock::stepped(Time::UNIX_EPOCH);
    let waiting = WaitingPods::default();
    let (short, long) = (Duration::from_secs(5), Duration::from_secs(60));
    waiting.add("a", &[("One", short), ("Two", long)], &clock);
    waiting.allow("a", "One");
    assert!(waiting.wait("a", &clock).now_or_never().is_none(), "Two has not said yes");
    waiting.allow("a", "Two");
    assert!(waiting.wait("a", &clock).await.is_success());
    assert!(!waiting.has("a"), "nobody is remembered who does not wait");
    waiting.add("b", &[("One", short)], &clock);
    waiting.reject("b", "One", "not today");
    assert_eq!(waiting.wait("b", &clock).await.message(), "not today");
    waiting.add("c", &[("One", short), ("Two", long)], &clock);
    clock.advance(short);
    let status = waiting.wait("c", &clock).await;
    assert_eq!(
        (status.message(), status.plugin),
        ("rejected due to timeout after waiting at plugin One".into(), "One")
    );
    assert!(waiting.wait("nobody", &clock).await.is_success());
}

fn nominated(name: &str, node: &str, priority: i64) -> Arc<PodInfo> {
    let requests = json!({"requests": {"cpu": "4"}});
    Arc::new(PodInfo::new(object(json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"priority": priority, "containers": [{"resources": requests}]},
        "status": {"nominatedNodeName": node},
    }))))
}

#[tokio::test]
async fn where_room_was_made_is_looked_first_and_kept_from_others() {
    let scheduler = configured("", None);
    let small = Arc::new(PodInfo::new(object(json!({
        "metadata": {"name": "new", "namespace": "default", "uid": "new"},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        "status": {"nominatedNodeName": "b"},
    }))));
    assert_eq!(decide_on(&scheduler, small).unwrap(), "b", "although others are emptier");
    let scheduler = configured("", None);
    for (name, node) in [("first", "a"), ("second", "c")] {
        scheduler.parts.queue.add(nominated(name, node, 10));
    }
    assert_eq!(decide_on(&scheduler, asks("")).unwrap(), "b", "the room on the others is for pods that wait");
    scheduler.parts.queue.remove("first");
    assert_eq!(scheduler.parts.queue.nominated_before(&asks("")).len(), 1);
}
