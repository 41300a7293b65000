//! Of several clusters on one etcd one runs the controllers, and one the scheduler: whoever holds the Lease,
//! as among upstream's control planes. On a store of its own a cluster waits for none, since nobody else asks
//! for it: its components keep theirs beside their work ([`super::elections::Elections::kept_beside`]).
//!
//! Whoever loses a Lease stops what it was for and waits for it again; upstream's process ends instead, and
//! is started by somebody.

use std::sync::Arc;
use tokio::task::JoinSet;

use super::elections::{elected, of_component};
use super::inside::Inside;
use client_go::leader_election::LeaderElector;
use client_go::leader_election_times::LeaderElectionTimes;
use entropy::Entropy;

/// Lets the components that wait for a Lease run for it.
pub(super) fn begin(inside: &Arc<Inside>, background: &mut JoinSet<()>) {
    let Some(times) = inside.config.leader_election else { return };
    for name in elected(&inside.config) {
        background.spawn(inside.clock.named(name).tracked(lead(inside.clone(), name, times)));
    }
}

/// Runs a component whenever the Lease is ours, until the cluster ends.
async fn lead(inside: Arc<Inside>, name: &'static str, times: LeaderElectionTimes) {
    let mut ending = inside.for_handles.ending.subscribe();
    let context = inside.running.candidate(name);
    let _tasks = context.tasks.stop_on_drop();
    let elected = LeaderElector::new(of_component(name, times, &Entropy::from_system()), &context);
    let Ok(mut elector) = elected.inspect_err(|error| tracing::error!(%error, name, "nobody can lead"))
    else {
        return;
    };
    inside.running.elections.led_by(name, elector.hold());
    loop {
        tokio::select! {
            () = elector.acquire() => {}
            _ = ending.wait_for(|is_ending| *is_ending) => break,
        }
        inside.running.elections.won();
        inside.running.lead(name, elector.metrics());
        let is_lost = tokio::select! {
            () = elector.renew() => true,
            _ = ending.wait_for(|is_ending| *is_ending) => false,
        };
        inside.running.stand_by(name);
        if !is_lost && let Err(status) = elector.release().await {
            tracing::info!(status.message, name, "the Lease is not given up: it runs out");
        }
        inside.running.elections.over();
        if !is_lost {
            break;
        }
    }
}
