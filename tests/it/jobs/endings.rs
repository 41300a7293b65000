//! A table of Jobs and what becomes of them.

use std::collections::BTreeSet;

use kubarium::apis::batch::job::JOBS;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::pod::PODS;
use kubarium::cluster::Components;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::controllers::support::{Fixture, NAMESPACE, name};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    spec: Value,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    restart_policy: Option<String>,
    /// Where an empty volume is mounted.
    #[serde(default)]
    volume: Option<String>,
    status: Value,
    /// The reasons of the events about it; none given: not looked at.
    #[serde(default)]
    events: Option<BTreeSet<String>>,
}

fn job(case: &Case) -> Value {
    let mut container = json!({"name": "c", "image": case.image.as_deref().unwrap_or("busybox")});
    if let Some(command) = &case.command {
        container["command"] = json!(["sh", "-c", command]);
    }
    let policy = case.restart_policy.as_deref().unwrap_or("Never");
    let mut pod = json!({"restartPolicy": policy});
    if let Some(path) = &case.volume {
        container["volumeMounts"] = json!([{"name": "v", "mountPath": path}]);
        pod["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    }
    pod["containers"] = json!([container]);
    let mut spec = case.spec.clone();
    spec["template"] = json!({"spec": pod});
    json!({"metadata": {"name": case.name}, "spec": spec})
}

/// The given part of what there is: members that are not given are left out, numbers that are not there are
/// 0.
fn part(there: &Value, given: &Value) -> Value {
    match given {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), part(&there[name], value))).collect()
        }
        Value::Array(items) if there.as_array().is_some_and(|list| list.len() == items.len()) => {
            items.iter().enumerate().map(|(at, value)| part(&there[at], value)).collect()
        }
        _ => there.clone(),
    }
}

#[tokio::test]
async fn jobs_come_to_their_ends() {
    let cases: Vec<Case> = serde_yaml::from_str(include_str!("endings.yaml")).unwrap();
    let fixture = Fixture::start_with(Components::ALL).await;
    for case in &cases {
        fixture.create(&JOBS, NAMESPACE, job(case)).await;
    }
    let differing = || async {
        let mut differing = Vec::new();
        for case in &cases {
            let job = fixture.get(&JOBS, &case.name).await.unwrap();
            let status = part(&job["status"], &case.status);
            if status != case.status {
                differing.push(format!("{}: {}", case.name, job["status"]));
            }
        }
        differing
    };
    for round in 0.. {
        let differing = differing().await;
        if differing.is_empty() {
            break;
        }
        assert!(round < 200, "{}", differing.join("\n"));
        fixture.pass(std::time::Duration::from_millis(500)).await;
    }
    tell_why(&fixture, &cases).await;
    nothing_stays_behind(&fixture, &cases).await;
}

async fn tell_why(fixture: &Fixture, cases: &[Case]) {
    for case in cases {
        let Some(wanted) = &case.events else { continue };
        let what = format!("{} has the events {wanted:?}", case.name);
        let look = || async {
            let events = fixture.list(&EVENTS, "").await;
            let own = events.iter().filter(|event| {
                event["involvedObject"]["name"] == case.name.as_str()
                    && event["involvedObject"]["kind"] == "Job"
            });
            let reasons: BTreeSet<String> =
                own.map(|event| event["reason"].as_str().unwrap().to_owned()).collect();
            (reasons == *wanted).then_some(())
        };
        fixture.eventually(&what, look).await;
    }
}

/// Ended Jobs have no running pods, and what they leave has no finalizer.
async fn nothing_stays_behind(fixture: &Fixture, cases: &[Case]) {
    for case in cases {
        for pod in fixture.list(&PODS, &format!("job-name={}", case.name)).await {
            let phase = pod["status"]["phase"].as_str().unwrap();
            assert!(matches!(phase, "Succeeded" | "Failed"), "{}: {phase}", name(&pod));
            assert!(pod["metadata"]["finalizers"].is_null(), "{}", name(&pod));
        }
    }
}
