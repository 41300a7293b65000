//! CronJobs: which Jobs they make, when, and what they remember of them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use kubarium::Fault;
use kubarium::apimachinery::time::rfc3339;
use kubarium::apis::batch::cron_job::CRON_JOBS;
use kubarium::apis::batch::job::JOBS;
use kubarium::cluster::Components;
use serde_json::{Value, json};

use crate::controllers::support::{Fixture, NAMESPACE, name};

/// The fixture's time, in minutes since the epoch: a full hour.
const START: i64 = 1_767_225_600 / 60;

fn cron_job(name: &str, command: &[&str], change: Value) -> Value {
    let container = json!({"name": "c", "image": "busybox", "command": command});
    let template = json!({"spec": {"containers": [container], "restartPolicy": "Never"}});
    let job = json!({"metadata": {"labels": {"app": name}}, "spec": {"template": template}});
    let mut spec = json!({"schedule": "* * * * *", "jobTemplate": job});
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn jobs(fixture: &Fixture, app: &str) -> Vec<String> {
    fixture.list(&JOBS, &format!("app={app}")).await.iter().map(|job| name(job).to_owned()).collect()
}

async fn has_jobs(fixture: &Fixture, app: &str, wanted: &[String]) {
    let look = || async { (jobs(fixture, app).await == wanted).then_some(()) };
    fixture.eventually(&format!("{app} has the jobs {wanted:?}"), look).await;
}

fn minute(number: i64) -> String {
    rfc3339(DateTime::from_timestamp((START + number) * 60, 0).unwrap())
}

/// Until the clock shows a few seconds after a minute.
async fn pass_until(fixture: &Fixture, number: i64) {
    let at = DateTime::from_timestamp((START + number) * 60, 0).unwrap() + TimeDelta::seconds(3);
    fixture.pass((at - fixture.clock.now()).to_std().unwrap_or_default()).await;
}

#[tokio::test]
async fn jobs_are_made_by_the_clock_and_the_oldest_go() {
    let fixture = Fixture::start_with(Components::ALL).await;
    let zone = json!({"timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 2});
    fixture.create(&CRON_JOBS, NAMESPACE, cron_job("tick", &["true"], zone)).await;
    pass_until(&fixture, 1).await;
    let first = format!("tick-{}", START + 1);
    has_jobs(&fixture, "tick", std::slice::from_ref(&first)).await;
    let job = fixture.get(&JOBS, &first).await.unwrap();
    let annotations = &job["metadata"]["annotations"];
    let scheduled = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    assert_eq!(annotations[scheduled], "2026-01-01T01:01:00+01:00");
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
    fixture.told("SuccessfulCreate", &format!("Created job {first}")).await;
    fixture.told("SawCompletedJob", &format!("Saw completed job: {first}, condition: Complete")).await;
    let done = || async {
        let status = fixture.get(&CRON_JOBS, "tick").await?["status"].clone();
        let is_done = status["active"].is_null() && status["lastSuccessfulTime"].is_string();
        (is_done && status["lastScheduleTime"] == minute(1)).then_some(())
    };
    fixture.eventually("the first is over", done).await;
    pass_until(&fixture, 4).await;
    let kept = [3, 4].map(|number| format!("tick-{}", START + number));
    has_jobs(&fixture, "tick", &kept).await;
    fixture.told("SuccessfulDelete", &format!("Deleted job {first}")).await;
    // Another schedule holds from now on: what it would have asked for before is not made up for.
    fixture.patch(&CRON_JOBS, "tick", json!({"spec": {"schedule": "@hourly"}})).await;
    pass_until(&fixture, 6).await;
    has_jobs(&fixture, "tick", &kept).await;
}

/// Row: cron jobs - a second job is forbidden while one runs
#[tokio::test]
async fn what_still_runs_is_left_alone_forbids_or_is_replaced() {
    let fixture = Fixture::start_with(Components::ALL).await;
    for policy in ["Allow", "Forbid", "Replace"] {
        let name = policy.to_lowercase();
        let change = json!({"concurrencyPolicy": policy});
        fixture.create(&CRON_JOBS, NAMESPACE, cron_job(&name, &["sleep", "3000"], change)).await;
    }
    pass_until(&fixture, 2).await;
    let of = |name: &str, minutes: &[i64]| -> Vec<String> {
        minutes.iter().map(|minute| format!("{name}-{}", START + minute)).collect()
    };
    has_jobs(&fixture, "allow", &of("allow", &[1, 2])).await;
    has_jobs(&fixture, "forbid", &of("forbid", &[1])).await;
    has_jobs(&fixture, "replace", &of("replace", &[2])).await;
    let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
    fixture.told("JobAlreadyActive", message).await;
    for (name, count) in [("allow", 2), ("forbid", 1), ("replace", 1)] {
        let look = || async {
            let status = fixture.get(&CRON_JOBS, name).await?["status"].clone();
            (status["active"].as_array().map_or(0, Vec::len) == count).then_some(())
        };
        fixture.eventually(&format!("{name} has {count} active jobs"), look).await;
    }
    let active = &fixture.get(&CRON_JOBS, "forbid").await.unwrap()["status"]["active"][0];
    assert_eq!((&active["apiVersion"], &active["kind"]), (&json!("batch/v1"), &json!("Job")));
    // What forbade is gone: the one that is overdue is made at once.
    fixture.delete(&JOBS, &of("forbid", &[1])[0], "Background").await;
    has_jobs(&fixture, "forbid", &of("forbid", &[2])).await;
}

#[tokio::test]
async fn missed_times_are_told_and_made_up_for_once() {
    let fixture = Fixture::start().await;
    let names = [("late", json!({})), ("strict", json!({"startingDeadlineSeconds": 10}))];
    for (name, change) in names {
        let mut change = change;
        change["suspend"] = true.into();
        fixture.create(&CRON_JOBS, NAMESPACE, cron_job(name, &["true"], change)).await;
    }
    fixture.settle(5).await;
    fixture.clock.advance(Duration::from_secs(150 * 60 + 30));
    fixture.settle(5).await;
    assert!(jobs(&fixture, "late").await.is_empty());
    for name in ["late", "strict"] {
        fixture.patch(&CRON_JOBS, name, json!({"spec": {"suspend": false}})).await;
    }
    has_jobs(&fixture, "late", &[format!("late-{}", START + 150)]).await;
    let message =
        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
    fixture.told("TooManyMissedTimes", message).await;
    assert!(jobs(&fixture, "strict").await.is_empty());
    fixture.clock.advance(Duration::from_secs(30));
    has_jobs(&fixture, "strict", &[format!("strict-{}", START + 151)]).await;
}

#[tokio::test]
async fn a_job_that_was_replaced_is_nobody_elses() {
    let fixture = Fixture::start_with(Components::ALL).await;
    let change = json!({"concurrencyPolicy": "Replace"});
    fixture.create(&CRON_JOBS, NAMESPACE, cron_job("again", &["sleep", "3000"], change)).await;
    pass_until(&fixture, 1).await;
    has_jobs(&fixture, "again", &[format!("again-{}", START + 1)]).await;
    // The cache has the first one for a while after it is gone.
    let late = Fault::delay_events(Duration::from_secs(30)).user("system:kube-controller-manager");
    fixture.cluster.faults().add(late.resource("jobs").named("late")).unwrap();
    pass_until(&fixture, 2).await;
    has_jobs(&fixture, "again", &[format!("again-{}", START + 2)]).await;
    fixture.patch(&CRON_JOBS, "again", json!({"metadata": {"labels": {"looked": "at"}}})).await;
    fixture.settle(20).await;
    fixture.cluster.faults().remove("late").unwrap();
    assert_eq!(fixture.events("UnexpectedJob").await, BTreeMap::new());
}

#[tokio::test]
async fn a_job_that_the_cache_still_has_is_not_deleted_again() {
    let fixture = Fixture::start_with(Components::ALL).await;
    let change = json!({"successfulJobsHistoryLimit": 3});
    fixture.create(&CRON_JOBS, NAMESPACE, cron_job("tick", &["true"], change)).await;
    pass_until(&fixture, 3).await;
    let all = [1, 2, 3].map(|number| format!("tick-{}", START + number));
    has_jobs(&fixture, "tick", &all).await;
    for job in &all {
        fixture.told("SawCompletedJob", &format!("Saw completed job: {job}, condition: Complete")).await;
    }
    let late = Fault::delay_events(Duration::from_secs(30)).user("system:kube-controller-manager");
    fixture.cluster.faults().add(late.resource("jobs").named("late")).unwrap();
    let fewer = json!({"spec": {"suspend": true, "successfulJobsHistoryLimit": 1}});
    fixture.patch(&CRON_JOBS, "tick", fewer).await;
    has_jobs(&fixture, "tick", &all[2..]).await;
    // Each change makes the controller look again.
    for number in 0..3 {
        let labels = json!({"number": number.to_string()});
        fixture.patch(&CRON_JOBS, "tick", json!({"metadata": {"labels": labels}})).await;
        fixture.settle(20).await;
    }
    fixture.cluster.faults().remove("late").unwrap();
    fixture.settle(20).await;
    assert_eq!(fixture.events("SuccessfulDelete").await.values().sum::<i64>(), 2);
    assert!(fixture.events("FailedDelete").await.is_empty(), "they are known to be gone");
}
