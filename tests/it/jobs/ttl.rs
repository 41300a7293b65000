//! Jobs that are deleted some time after their end.

use std::time::Duration;

use kubarium::apis::batch::job::JOBS;
use kubarium::apis::core::pod::PODS;
use kubarium::cluster::Components;
use serde_json::json;

use crate::controllers::support::{Fixture, NAMESPACE, condition};

#[tokio::test]
async fn ended_jobs_go_when_their_time_is_over() {
    let fixture = Fixture::start_with(Components::ALL).await;
    for (name, seconds) in [("at-once", json!(0)), ("later", json!(100)), ("never", json!(null))] {
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "busybox", "command": ["true"]}]}});
        let spec = json!({"ttlSecondsAfterFinished": seconds, "template": template});
        fixture.create(&JOBS, NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    for name in ["later", "never"] {
        let is_complete = || async {
            let job = fixture.get(&JOBS, name).await?;
            (condition(&job, "Complete")["status"] == "True").then_some(())
        };
        fixture.eventually(&format!("{name} is complete"), is_complete).await;
    }
    fixture.gone(&JOBS, "at-once").await;
    assert!(fixture.list(&PODS, "job-name=at-once").await.is_empty(), "its pods went before it");
    assert!(fixture.get(&JOBS, "later").await.is_some());
    fixture.pass(Duration::from_secs(101)).await;
    fixture.gone(&JOBS, "later").await;
    assert!(fixture.get(&JOBS, "never").await.is_some());
}
