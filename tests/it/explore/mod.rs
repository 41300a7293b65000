//! Explore finds the bugs that are planted in small operators, and none in the mended ones.

mod operators;

use std::time::Duration;

use kubarium::cluster::explore::{Explorer, FailingSchedule};
use kubarium::kinds::{CONFIG_MAPS, SECRETS};
use kubarium::{Client, Cluster, ListOptions, PatchType, Schedule};
use serde_json::{Value, json};

use crate::convergence::seeds;
use operators::{FINALIZER, NAMESPACE, operator};

/// How many seeds the mended ones run under in `make test`; each is a cluster. `make sim` says how many else.
const CLEAN: u64 = 50;

fn explorer() -> Explorer {
    Cluster::explore().user("operator").patience(Duration::from_secs(300))
}

fn seconds(cluster: &Cluster, seconds: u64) -> impl Future<Output = ()> {
    let clock = cluster.clock().clone();
    async move { clock.sleep(Duration::from_secs(seconds)).await }
}

async fn parent(client: &Client, name: &str) -> Result<(), String> {
    let map = json!({"metadata": {"name": name, "labels": {"role": "parent"}}});
    client.create(&CONFIG_MAPS, NAMESPACE, map).await.map(drop).map_err(|status| status.message)
}

async fn touch(client: &Client, name: &str, text: &str) -> Result<(), String> {
    let patch = json!({"data": {"text": text}});
    let touched = client.patch(&CONFIG_MAPS, NAMESPACE, name, PatchType::Merge, &patch).await;
    touched.map(drop).map_err(|status| status.message)
}

/// The maps whose label `of` is the parent's name.
async fn children(client: &Client, parent: &str) -> Vec<Value> {
    let list = client.list(&CONFIG_MAPS, NAMESPACE, &ListOptions::default()).await.unwrap();
    let maps = list.items.iter().map(|map| map.to_value());
    maps.filter(|map| map["metadata"]["labels"]["of"] == parent).collect()
}

/// The bug is found within 200 seeds, and the seed that is reported plays it again; the mended one is clean.
fn is_found_and_mended(
    explorer: &Explorer,
    with_bug: impl AsyncFn(&Cluster) -> Result<(), String>,
    mended: impl AsyncFn(&Cluster) -> Result<(), String>,
) -> FailingSchedule {
    let found = explorer.run(&with_bug).expect_err("the bug is there");
    let again = explorer.play(&found.schedule, &with_bug);
    assert_eq!(again, Err(found.why.clone()), "{found}");
    for seed in seeds(CLEAN) {
        let schedule = kubarium::faults::Schedule::draw(seed, &["operator".to_owned()]);
        if let Err(why) = explorer.play(&schedule, &mended) {
            panic!("the mended one fails: {why}: {schedule}");
        }
    }
    *found
}

/// One child for each parent, however often the parent changes.
async fn one_child(cluster: &Cluster, generates_names: bool) -> Result<(), String> {
    operator(cluster, operators::Bugs { generates_names, ..operators::Bugs::NONE });
    let client = cluster.client();
    parent(&client, "p").await?;
    for text in ["1", "2"] {
        seconds(cluster, 8).await;
        touch(&client, "p", text).await?;
    }
    seconds(cluster, 120).await;
    match children(&client, "p").await.len() {
        1 => Ok(()),
        number => Err(format!("p has {number} children")),
    }
}

#[test]
fn an_operator_that_reads_its_own_stale_cache_is_found() {
    let found = is_found_and_mended(
        &explorer(),
        async |cluster| one_child(cluster, true).await,
        async |cluster| one_child(cluster, false).await,
    );
    assert!(found.why.contains("children"), "{found}");
    assert!(found.schedule.faults.len() <= 2, "the smallest: {found}");
}

/// What is deleted goes.
async fn goes(cluster: &Cluster, forgets_finalizer: bool) -> Result<(), String> {
    operator(cluster, operators::Bugs { forgets_finalizer, ..operators::Bugs::NONE });
    let client = cluster.client();
    parent(&client, "p").await?;
    seconds(cluster, 60).await;
    let map = client.get(&CONFIG_MAPS, NAMESPACE, "p").await.map_err(|status| status.message)?;
    if map.to_value()["metadata"]["finalizers"] != json!([FINALIZER]) {
        return Err("it has no finalizer".into());
    }
    let deleted = client.delete(&CONFIG_MAPS, NAMESPACE, "p", &Default::default()).await;
    deleted.map_err(|status| status.message)?;
    seconds(cluster, 60).await;
    match client.get(&CONFIG_MAPS, NAMESPACE, "p").await {
        Ok(_) => Err("its finalizer is still there".into()),
        Err(_) => Ok(()),
    }
}

#[test]
fn an_operator_that_forgets_a_finalizer_is_found() {
    let found = is_found_and_mended(
        &explorer(),
        async |cluster| goes(cluster, true).await,
        async |cluster| goes(cluster, false).await,
    );
    assert!(found.why.contains("finalizer"), "{found}");
    assert_eq!(found.schedule.faults.len(), 1, "the smallest: {found}");
}

/// Whatever comes later is seen, too.
async fn sees_all(cluster: &Cluster, ignores_expiry: bool) -> Result<(), String> {
    operator(cluster, operators::Bugs { ignores_expiry, ..operators::Bugs::NONE });
    let client = cluster.client();
    for name in ["p1", "p2", "p3"] {
        parent(&client, name).await?;
        seconds(cluster, 60).await;
    }
    for name in ["p1", "p2", "p3"] {
        if children(&client, name).await.is_empty() {
            return Err(format!("{name} was never seen"));
        }
    }
    Ok(())
}

#[test]
fn an_operator_that_never_handles_410_is_found() {
    let found = is_found_and_mended(
        &explorer(),
        async |cluster| sees_all(cluster, true).await,
        async |cluster| sees_all(cluster, false).await,
    );
    assert!(found.why.contains("never seen"), "{found}");
    let [fault] = &found.schedule.faults[..] else { panic!("the smallest: {found}") };
    assert_eq!(fault.watch.as_ref().unwrap().end, Some(kubarium::faults::WatchEnd::Expire));
}

/// Two who want the same field, or each their own.
async fn rests(cluster: &Cluster, fields: [&str; 2]) -> Result<(), String> {
    for (name, field) in ["one", "other"].iter().zip(fields) {
        operators::keeps(cluster, name, field);
    }
    parent(&cluster.client(), "p").await?;
    seconds(cluster, 30).await;
    Ok(())
}

#[test]
fn an_operator_that_fights_another_controller_is_found() {
    let explorer = Cluster::explore().user("o*").patience(Duration::from_secs(300));
    let found = is_found_and_mended(
        &explorer,
        async |cluster| rests(cluster, ["owner", "owner"]).await,
        async |cluster| rests(cluster, ["owner", "other"]).await,
    );
    assert!(found.why.starts_with("it does not come to rest: in 60s one wrote configmaps "), "{found}");
    assert!(found.schedule.faults.is_empty(), "no fault is needed: {found}");
}

/// Nothing goes wrong but that of two watches the later one is told first.
async fn keeps_secret(cluster: &Cluster, looks_again: bool) -> Result<(), String> {
    operators::trusts_order(cluster, looks_again);
    seconds(cluster, 5).await;
    let client = cluster.client();
    parent(&client, "p").await?;
    let secret = json!({"metadata": {"name": "p"}});
    client.create(&SECRETS, NAMESPACE, secret).await.map_err(|status| status.message)?;
    seconds(cluster, 30).await;
    let kept = client.get(&SECRETS, NAMESPACE, "p").await;
    kept.map(drop).map_err(|_| "the secret was taken for one without a map".into())
}

#[test]
fn an_operator_that_trusts_the_order_of_two_watches_is_found_by_order_alone() {
    let explorer = explorer();
    let alone = |seed, order| Schedule { seed, order, faults: vec![] };
    let with_bug = async |cluster: &Cluster| keeps_secret(cluster, false).await;
    let fails = |seed: &u64| explorer.play(&alone(*seed, Some(*seed)), &with_bug).is_err();
    let found = (0..200).find(fails).expect("it is found within 200 seeds");
    assert!(fails(&found), "and again");
    assert_eq!(explorer.play(&alone(found, None), &with_bug), Ok(()), "the usual order hides it");
    for seed in seeds(CLEAN) {
        let mended = async |cluster: &Cluster| keeps_secret(cluster, true).await;
        assert_eq!(explorer.play(&alone(seed, Some(seed)), &mended), Ok(()), "{seed}");
    }
}

#[test]
fn a_test_that_panics_or_does_not_end_has_failed() {
    let short = Cluster::explore().seeds(7..8).patience(Duration::from_secs(5));
    let panics = short.run(async |_: &Cluster| panic!("oh no")).unwrap_err();
    assert!(panics.why == "oh no" && panics.schedule.seed == 7, "{panics}");
    let endless = short.run(async |_: &Cluster| std::future::pending().await).unwrap_err();
    assert!(endless.why.contains("not done after 5s"), "{endless}");
    assert!(endless.to_string().contains("seed 7, without any fault"), "{endless}");
}

/// A test in another process: its operator writes once and hopes.
#[test]
fn the_command_line_explores_any_test() {
    let folder = tempfile::tempdir().unwrap();
    let kubectl = crate::support::kubectls().pop().unwrap();
    let script = format!(
        "set -e; k={}; $k create configmap a >/dev/null; \
         $k --kubeconfig $KUBARIUM_OPERATOR_KUBECONFIG label configmap a greeting=hello >/dev/null",
        kubectl.display()
    );
    let explore_with = |more: &[&str], script: &str| {
        let mut command = crate::support::command(folder.path());
        command.env("TMPDIR", folder.path());
        let output =
            command.arg("explore").args(["--nodes", "0"]).args(more).args(["--", "sh", "-c", script]);
        let output = output.output().unwrap();
        let (out, err) = crate::support::texts(&output);
        (output.status.success(), out, err)
    };
    let explore = |more: &[&str]| explore_with(more, &script);
    let (is_well, out, err) = explore(&["--seeds", "60"]);
    assert!(!is_well && err.contains("sh ended with exit status: 1, with seed"), "{out}{err}");
    let (_, schedule) = out.split_once("--schedule FILE):\n").expect("the schedule is printed");
    let file = folder.path().join("schedule.yaml");
    std::fs::write(&file, schedule).unwrap();
    let (is_well, out, err) = explore(&["--schedule", file.to_str().unwrap()]);
    assert!(!is_well && err.contains("sh ended with"), "it plays again: {out}{err}");
    std::fs::write(&file, "seed: 1\nfaults: []\n").unwrap();
    let (is_well, out, err) = explore(&["--schedule", file.to_str().unwrap()]);
    assert!(is_well, "without faults: {out}{err}");
    // The operator has a certificate of its own, which every client shows, and `kubarium` finds the cluster.
    let whoami = format!(
        "set -e; k={}; test operator = \"$($k --kubeconfig $KUBARIUM_OPERATOR_KUBECONFIG auth whoami \
         -o jsonpath={{.status.userInfo.username}})\"; \
         grep -q ' as:' $KUBARIUM_OPERATOR_KUBECONFIG && exit 1; {} time now",
        kubectl.display(),
        env!("CARGO_BIN_EXE_kubarium")
    );
    std::fs::write(&file, "seed: 1\nfaults: []\n").unwrap();
    let (is_well, out, err) = explore_with(&["--schedule", file.to_str().unwrap()], &whoami);
    assert!(is_well, "{out}{err}");
    let (is_well, out, err) = explore_with(&["--seeds", "1"], "true");
    assert!(!is_well && err.contains("no fault was for anybody in 1 runs"), "{out}{err}");
    let (is_well, _, err) = explore_with(&["--seeds", "0"], "true");
    assert!(!is_well && err.contains("--seeds"), "{err}");
    let left = std::fs::read_dir(folder.path()).unwrap().filter_map(Result::ok);
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("explore")).collect();
    assert!(left.is_empty(), "{left:?}");
}
