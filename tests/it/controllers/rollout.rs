//! Deployments roll out, back, in proportion, and not while they are paused.

use std::time::Duration;

use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::apps::replica_set::REPLICA_SETS;
use kubarium::apis::core::pod::PODS;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition, deployment, name};

const REVISION: &str = "deployment.kubernetes.io/revision";

async fn sets(fixture: &Fixture, app: &str) -> Vec<Value> {
    let mut sets = fixture.list(&REPLICA_SETS, &format!("app={app}")).await;
    sets.sort_by_key(|set| set["metadata"]["annotations"][REVISION].as_str().map(str::to_owned));
    sets
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

#[tokio::test]
async fn a_deployment_rolls_out_and_back() {
    let fixture = Fixture::start().await;
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 3, "nginx:1", json!({}))).await;
    let first = fixture.rolled_out("web").await;
    let set = &sets(&fixture, "web").await[0];
    fixture.told("ScalingReplicaSet", &format!("Scaled up replica set {} from 0 to 3", name(set))).await;
    assert_eq!(first["metadata"]["annotations"][REVISION], "1");
    let hash = &set["metadata"]["labels"]["pod-template-hash"];
    assert_eq!(name(set), format!("web-{}", hash.as_str().unwrap()));
    assert_eq!(set["spec"]["selector"]["matchLabels"]["pod-template-hash"], *hash);
    assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"], "3");
    assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/max-replicas"], "4");
    let progressed = || async {
        let deployment = fixture.get(&DEPLOYMENTS, "web").await?;
        (condition(&deployment, "Progressing")["reason"] == "NewReplicaSetAvailable").then_some(deployment)
    };
    let first = fixture.eventually("it has progressed", progressed).await;
    let message = format!("ReplicaSet {:?} has successfully progressed.", name(set));
    assert_eq!(condition(&first, "Progressing")["message"], message);
    assert_eq!(condition(&first, "Available")["reason"], "MinimumReplicasAvailable");

    fixture.patch(&DEPLOYMENTS, "web", image("nginx:2")).await;
    let second = fixture.rolled_out("web").await;
    assert_eq!(second["metadata"]["annotations"][REVISION], "2");
    let both = sets(&fixture, "web").await;
    assert_eq!((both.len(), &both[0]["spec"]["replicas"]), (2, &json!(0)));

    fixture.patch(&DEPLOYMENTS, "web", image("nginx:1")).await;
    fixture.rolled_out("web").await;
    let rolled_back = || async {
        let sets = sets(&fixture, "web").await;
        let last = sets.last()?.clone();
        (last["metadata"]["annotations"][REVISION] == "3").then_some(last)
    };
    let last = fixture.eventually("the first set is the third revision", rolled_back).await;
    assert_eq!(name(&last), name(set));
    assert_eq!(last["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[tokio::test]
async fn a_rollout_stays_within_its_limits() {
    let fixture = Fixture::start().await;
    let rolling = json!({"maxSurge": 1, "maxUnavailable": 1});
    let strategy = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}});
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 4, "nginx:1", strategy)).await;
    fixture.rolled_out("web").await;
    fixture.patch(&DEPLOYMENTS, "web", image("nginx:2")).await;
    // Nobody runs the new pods: one more than desired, and one fewer of the old.
    let stuck = || async {
        let sizes: Vec<i64> =
            sets(&fixture, "web").await.iter().map(|set| set["spec"]["replicas"].as_i64().unwrap()).collect();
        (sizes == [3, 2]).then_some(())
    };
    fixture.eventually("3 old and 2 new", stuck).await;
    fixture.settle(50).await;
    assert!(stuck().await.is_some());
    fixture.rolled_out("web").await;
}

#[tokio::test]
async fn recreate_waits_for_the_old_to_be_gone() {
    let fixture = Fixture::start().await;
    let strategy = json!({"strategy": {"type": "Recreate"}});
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 2, "nginx:1", strategy)).await;
    fixture.rolled_out("web").await;
    let finalizers = json!({"metadata": {"finalizers": ["example.com/wait"]}});
    let held = name(&fixture.pods("").await[0]).to_owned();
    fixture.patch(&PODS, &held, finalizers).await;
    fixture.patch(&DEPLOYMENTS, "web", image("nginx:2")).await;
    let waits = || async {
        fixture.run_pods("").await;
        (fixture.list(&PODS, "").await.len() == 1).then_some(())
    };
    fixture.eventually("only the held pod is left", waits).await;
    fixture.settle(50).await;
    assert_eq!(sets(&fixture, "web").await.len(), 1);
    fixture.patch(&PODS, &held, json!({"metadata": {"finalizers": null}})).await;
    fixture.rolled_out("web").await;
}

#[tokio::test]
async fn a_paused_deployment_scales_but_does_not_roll_out() {
    let fixture = Fixture::start().await;
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 2, "nginx:1", json!({}))).await;
    fixture.rolled_out("web").await;
    fixture.patch(&DEPLOYMENTS, "web", json!({"spec": {"paused": true, "replicas": 3}})).await;
    fixture.patch(&DEPLOYMENTS, "web", image("nginx:2")).await;
    let paused = || async {
        fixture.run_pods("").await;
        let deployment = fixture.get(&DEPLOYMENTS, "web").await?;
        let is_told = condition(&deployment, "Progressing")["reason"] == "DeploymentPaused";
        (is_told && deployment["status"]["readyReplicas"] == 3).then_some(deployment)
    };
    fixture.eventually("paused at 3", paused).await;
    assert_eq!(sets(&fixture, "web").await.len(), 1);
    fixture.patch(&DEPLOYMENTS, "web", json!({"spec": {"paused": false}})).await;
    fixture.rolled_out("web").await;
    assert_eq!(sets(&fixture, "web").await.len(), 2);
}

#[tokio::test]
async fn a_rollout_that_is_stuck_times_out() {
    let fixture = Fixture::start().await;
    let deadline = json!({"progressDeadlineSeconds": 1000});
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 1, "nginx:1", deadline)).await;
    let look = |reason: &'static str| {
        let fixture = &fixture;
        move || async move {
            let deployment = fixture.get(&DEPLOYMENTS, "web").await?;
            (condition(&deployment, "Progressing")["reason"] == reason).then_some(deployment)
        }
    };
    fixture.eventually("it makes progress", look("ReplicaSetUpdated")).await;
    fixture.settle(20).await;
    fixture.clock.advance(Duration::from_secs(1005));
    let stuck = fixture.eventually("it times out", look("ProgressDeadlineExceeded")).await;
    assert_eq!(condition(&stuck, "Progressing")["status"], "False");
    assert_eq!(condition(&stuck, "Available")["reason"], "MinimumReplicasUnavailable");
}

#[tokio::test]
async fn history_is_kept_to_its_limit() {
    let fixture = Fixture::start().await;
    let limit = json!({"revisionHistoryLimit": 1});
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 1, "nginx:1", limit)).await;
    for number in 2..5 {
        fixture.rolled_out("web").await;
        fixture.patch(&DEPLOYMENTS, "web", image(&format!("nginx:{number}"))).await;
    }
    fixture.rolled_out("web").await;
    let cleaned = || async {
        let revisions = sets(&fixture, "web").await;
        let revisions: Vec<_> =
            revisions.iter().map(|set| set["metadata"]["annotations"][REVISION].clone()).collect();
        (revisions == ["3", "4"]).then_some(())
    };
    fixture.eventually("one old set is kept", cleaned).await;
}

#[tokio::test]
async fn a_deployment_rolls_back_when_it_says_so_itself() {
    let fixture = Fixture::start().await;
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 1, "nginx:1", json!({}))).await;
    fixture.rolled_out("web").await;
    fixture.patch(&DEPLOYMENTS, "web", image("nginx:2")).await;
    fixture.rolled_out("web").await;
    let wish = json!({"metadata": {"annotations": {"deprecated.deployment.rollback.to": "0"}}});
    fixture.patch(&DEPLOYMENTS, "web", wish).await;
    fixture.told("DeploymentRollback", "Rolled back deployment \"web\" to revision 1").await;
    let back = fixture.rolled_out("web").await;
    assert_eq!(back["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1");
    assert!(back["metadata"]["annotations"].get("deprecated.deployment.rollback.to").is_none());
}
