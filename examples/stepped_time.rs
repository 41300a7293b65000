//! Time that the test owns: a CronJob that runs every five minutes, seen twice, in milliseconds. Neither
//! envtest nor kind can do that, since their processes live by the clock of the machine.
//!
//! `cargo run --example stepped_time`

use std::error::Error;

use chrono::{DateTime, TimeDelta, Utc};
use kubarium::kinds::{CRON_JOBS, JOBS};
use kubarium::{Clock, Cluster, Config, Entropy, ListOptions};
use serde_json::json;

/// After so many rounds in which nobody had anything to do, everybody waits for time.
const ROUNDS: usize = 200;

/// One thread, so that "nothing else can happen" means something.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let start: DateTime<Utc> = "2030-01-01T00:00:00Z".parse()?;
    let clock = Clock::stepped(start);
    // The same seed gives the same names, UIDs and jitter, so a failure can be seen again.
    let entropy = Entropy::seeded(7);
    let config = Config::new().clock(clock.clone()).entropy(entropy);

    let cluster = with_time(&clock, Cluster::start(config)).await?;
    with_time(&clock, two_runs(&cluster)).await?;

    let passed = clock.now() - start;
    assert!(passed >= TimeDelta::minutes(10) && passed < TimeDelta::minutes(11), "{passed}");
    Ok(())
}

async fn two_runs(cluster: &Cluster) -> Result<(), Box<dyn Error>> {
    let client = cluster.client();
    let container = json!({"name": "c", "image": "busybox", "command": ["sh", "-c", "sleep 20; echo done"]});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let report = json!({
        "metadata": {"name": "report"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": pod}}},
    });
    client.create(&CRON_JOBS, "default", report).await?;
    loop {
        let jobs = client.list(&JOBS, "default", &ListOptions::default()).await?;
        let is_complete = |status: &serde_json::Value| status["succeeded"] == 1;
        if jobs.items.iter().filter(|job| is_complete(&job.to_value()["status"])).count() == 2 {
            return Ok(());
        }
        // The cluster's time, not the machine's: it passes when everybody waits.
        cluster.clock().sleep(std::time::Duration::from_secs(1)).await;
    }
}

/// Runs a future to its end; whenever nobody has anything to do, time goes on to the next thing that waits.
async fn with_time<T>(clock: &Clock, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        for _ in 0..ROUNDS {
            tokio::select! {
                biased;
                output = &mut future => return output,
                () = tokio::task::yield_now() => {}
            }
        }
        if let Some(pause) = clock.next_wake() {
            clock.advance(pause);
        }
    }
}
