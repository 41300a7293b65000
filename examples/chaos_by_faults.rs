//! An operator under faults that are drawn from seeds: the order of things that breaks it is found, shrunk
//! to what is needed, and can be played again. No real cluster does that when asked.
//!
//! `cargo run --example chaos_by_faults`; for an operator in another process, `kubarium explore -- command`.

use std::error::Error;
use std::time::Duration;

use kubarium::apimachinery::user::UserInfo;
use kubarium::kinds::CONFIG_MAPS;
use kubarium::{Client, Cluster, PatchType, Status};
use serde_json::json;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let found = Cluster::explore()
        .user("operator")
        .run(async |cluster: &Cluster| greeted(cluster, hope).await)
        .expect_err("it writes once and hopes");
    assert_eq!(found.schedule.faults.len(), 1, "one fault is enough: {found}");

    // Mended, it survives the schedule that broke it, and others.
    let mended = async |cluster: &Cluster| greeted(cluster, try_again).await;
    let explorer = Cluster::explore().user("operator").seeds(0..3);
    explorer.play(&found.schedule, &mended)?;
    assert_eq!(explorer.run(mended)?, 3);
    Ok(())
}

/// What is expected: a minute after it was started, the operator has written its greeting.
async fn greeted(cluster: &Cluster, operator: impl AsyncFn(&Cluster, &Client)) -> Result<(), String> {
    let admin = cluster.client();
    let settings = json!({"metadata": {"name": "settings"}});
    let made = admin.create(&CONFIG_MAPS, "default", settings).await;
    made.map_err(|status| status.message)?;
    operator(cluster, &admin.acting_as(UserInfo::authenticated("operator", &["system:masters"]))).await;
    let settings = admin.get(&CONFIG_MAPS, "default", "settings").await.map_err(|status| status.message)?;
    if settings.to_value()["data"]["greeting"] == "hello" { Ok(()) } else { Err("nobody was greeted".into()) }
}

async fn greet(client: &Client) -> Result<(), Status> {
    let greeting = json!({"data": {"greeting": "hello"}});
    client.patch(&CONFIG_MAPS, "default", "settings", PatchType::Merge, &greeting).await.map(drop)
}

async fn hope(_: &Cluster, client: &Client) {
    let _ = greet(client).await;
}

async fn try_again(cluster: &Cluster, client: &Client) {
    while greet(client).await.is_err() {
        cluster.clock().sleep(Duration::from_secs(1)).await;
    }
}
