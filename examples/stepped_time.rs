//! Time that the test owns: a CronJob that runs every five minutes, seen twice, in milliseconds. Neither
//! envtest nor kind can do that, since their processes live by the clock of the machine.
//!
//! `cargo run --example stepped_time`

use std::error::Error;
use std::time::Duration;

use kubarium::kinds::{CRON_JOBS, JOBS};
use kubarium::{Clock, Cluster, Config, Entropy, ListOptions, WaitFor};
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

/// On one thread the same seed tells the same story, to the byte.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let clock = Clock::stepped("2030-01-01T00:00:00Z".parse()?);
    // The same seed gives the same names, UIDs and jitter, so a failure can be seen again.
    let config = Config::new().clock(clock).entropy(Entropy::seeded(7));
    let cluster = Cluster::start(config).await?;
    let client = cluster.client();

    let container = json!({"name": "c", "image": "busybox", "command": ["sh", "-c", "sleep 20; echo done"]});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let report = json!({
        "metadata": {"name": "report"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": pod}}},
    });
    client.create(&CRON_JOBS, "default", report).await?;

    // Eleven minutes, from wake to wake: nodes renew their leases meanwhile, and nothing sees time jump.
    cluster.pass(11 * MINUTE).await?;
    let jobs = client.list(&JOBS, "default", &ListOptions::default()).await?;
    let complete = jobs.items.iter().filter(|job| job.to_value()["status"]["succeeded"] == 1);
    assert_eq!(complete.count(), 2);

    // Or until something is true; what would have to be said if it does not come is who wakes next.
    let third = format!("job/report-{}", jobs_minute(&cluster) + 4);
    cluster.until(&WaitFor::parse(&third, "default", "Complete")?, 5 * MINUTE).await?;
    let passed = cluster.clock().elapsed();
    assert!(passed > 15 * MINUTE && passed < 16 * MINUTE, "{passed:?}");
    assert!(cluster.until(&WaitFor::parse("job/nothing", "default", "Complete")?, MINUTE).await.is_err());

    // Nothing goes on any more that does not wait for time.
    cluster.settled().await?;
    cluster.stop().await;
    Ok(())
}

/// Jobs are named after the minute for which they were made.
fn jobs_minute(cluster: &Cluster) -> i64 {
    cluster.clock().now().timestamp() / 60
}
