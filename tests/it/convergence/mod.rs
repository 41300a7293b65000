//! Whatever happens in between, a cluster gets where it was to get: random objects, any component stopped at any
//! point, conflicts, lost answers, watches that end or are late, all in an order that the seed draws. Then
//! everything is healed, and what must be true is.
//!
//! `KUBARIUM_SEEDS=n` runs so many seeds, `KUBARIUM_SEED=n` that one alone.

mod invariants;
mod script;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use kubarium::kinds::DEPLOYMENTS;
use kubarium::{Clock, Cluster, Config, Entropy};

use script::Happenings;

/// Seeds in `make test`; `make sim` runs as many as it is told.
const SEEDS: u64 = 200;
/// How long a cluster has for it once everything is healed: a pod is evicted five minutes after its node was
/// lost, and what failed while all went wrong is tried again before.
const HEALS_WITHIN: Duration = Duration::from_secs(420);

/// Those that are asked for.
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    };
    match number("KUBARIUM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("KUBARIUM_SEEDS").unwrap_or(usual),
    }
}

#[test]
fn a_cluster_gets_where_it_was_to_get() {
    let (seeds, processors) = (seeds(SEEDS), thread::available_parallelism().map_or(1, usize::from));
    let next = AtomicU64::new(seeds.start);
    let run_some = || {
        let mut wrong = vec![];
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || wrong.len() > 2 {
                return wrong;
            }
            // Once more, since the same seed does the same, with a record of what happened.
            let outcome = run(seed, false).or_else(|_| run(seed, true));
            wrong.extend(outcome.err().map(|why| format!("KUBARIUM_SEED={seed}: {why}")));
        }
    };
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(run_some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn run(seed: u64, is_recorded: bool) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
        clock.disorder(seed);
        let config = Config::new().nodes(2).clock(clock).entropy(Entropy::seeded(seed)).flow(is_recorded);
        let cluster = Cluster::start(config).await.map_err(|error| error.to_string())?;
        let mut script = Happenings::new(seed);
        let outcome = play(&cluster, &mut script).await;
        cluster.stop().await;
        outcome.map_err(|why| format!("{why}\n  after {}", script.told().join("\n  ")))
    })
}

async fn play(cluster: &Cluster, script: &mut Happenings) -> Result<(), String> {
    script.play(cluster).await?;
    cluster.faults().clear();
    for component in cluster.component_states() {
        cluster.start_component(&component.name).map_err(|error| error.to_string())?;
    }
    cluster.pass(HEALS_WITHIN).await.map_err(|error| error.to_string())?;
    let wrong = invariants::broken(cluster, script.expected()).await;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n  ")) }
}

/// A cluster that did not get there is found out, whatever is missing.
#[tokio::test]
async fn what_is_not_as_it_is_to_be_is_found() {
    let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::start(Config::new().nodes(2).clock(clock)).await.unwrap();
    let client = cluster.client();
    let expected = [(("deployments", "web".to_owned()), 1)].into();
    assert_eq!(invariants::broken(&cluster, &expected).await, ["(\"deployments\", \"web\") is gone"]);
    cluster.stop_component("kube-scheduler").unwrap();
    client.create(&DEPLOYMENTS, "default", script::object("deployments", "web", 1)).await.unwrap();
    cluster.pass(HEALS_WITHIN).await.unwrap();
    let wrong = invariants::broken(&cluster, &expected).await.join("; ");
    assert!(wrong.contains("web has [0, 1, 1] of 1 pods") && wrong.contains("pod web-"), "{wrong}");
    let wrong = invariants::broken(&cluster, &Default::default()).await.join("; ");
    assert!(wrong.contains("deployments web was deleted, and is there"), "{wrong}");
    cluster.start_component("kube-scheduler").unwrap();
    cluster.pass(Duration::from_secs(60)).await.unwrap();
    assert_eq!(invariants::broken(&cluster, &expected).await, [""; 0]);
    cluster.stop_component("kubelet/node-2").unwrap();
    cluster.pass(Duration::from_secs(60)).await.unwrap();
    let wrong = invariants::broken(&cluster, &expected).await.join("; ");
    assert!(wrong.contains("node node-2 is "), "{wrong}");
    cluster.stop().await;
}
