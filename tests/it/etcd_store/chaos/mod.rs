//! Three whole clusters on an etcd of three members, to which bad things happen while clients write and watch:
//! nothing that was acknowledged is lost, no watcher misses an event or gets one twice, controllers go on, and
//! no two of them act.

pub(super) mod audit;
mod full;
pub(super) mod leaders;
mod ledger;
pub(super) mod servers;
mod watchers;
mod writers;

use std::time::Duration;

use entropy::Entropy;
use http::Method;
use serde_json::{Value, json};

use super::trio::EtcdOfThree;
use super::way::Passage;
use super::*;
use ledger::Ledger;
use servers::Servers;
use watchers::Watchers;
use writers::Writers;

/// So many writes are to be acknowledged while something is broken.
const WRITES: u64 = 25;
/// Of what the rounds draw.
const SEED: u64 = 7;
const NAMESPACE: &str = "/api/v1/namespaces/chaos";

/// What happens in a round.
#[derive(Clone, Copy, Debug)]
enum Disaster {
    KillServer,
    KillMember,
    KillLeader,
    /// A member reaches no other one and is reached by none, and clients reach it.
    PartMember,
    PartLeader,
    /// A server sees its connections to the etcd break, and finds nobody there.
    CutServer,
    /// A server's connections to the etcd stay, and nothing arrives.
    SilenceServer,
    /// The etcd is as large as it may be, and takes no writes.
    FillQuota,
}

const DISASTERS: [Disaster; 8] = [
    Disaster::KillServer,
    Disaster::FillQuota,
    Disaster::PartLeader,
    Disaster::SilenceServer,
    Disaster::KillLeader,
    Disaster::CutServer,
    Disaster::PartMember,
    Disaster::KillMember,
];
/// So many of them `make test` sees; `make chaos` sets how many.
const FEW_ROUNDS: usize = 5;
/// The controllers go on within that time, whatever breaks; asserted where nobody else keeps the machine busy.
const GO_ON_WITHIN: Duration = Duration::from_secs(15);

/// What is broken, until it is mended.
enum Broken {
    Server(usize),
    Member(usize),
    Way(usize),
    Partition,
}

impl Broken {
    /// The server that answers nobody, if it is one.
    fn server(&self) -> Option<usize> {
        match self {
            Broken::Server(at) | Broken::Way(at) => Some(*at),
            Broken::Member(_) | Broken::Partition => None,
        }
    }
}

/// The servers end before what they stand on.
struct Chaos {
    servers: Servers,
    etcd: EtcdOfThree,
    ledger: Ledger,
    entropy: Entropy,
}

impl Chaos {
    async fn start(seed: u64) -> Chaos {
        let etcd = tokio::task::block_in_place(|| EtcdOfThree::start_with(&full::FLAGS));
        let servers = Servers::start(&etcd.addresses()).await;
        Chaos { etcd, servers, ledger: Ledger::default(), entropy: Entropy::seeded(seed) }
    }

    /// Something breaks, goes on so for a while, and is mended.
    async fn round(&mut self, number: usize, disaster: Disaster) {
        eprintln!("round {number}: {disaster:?}");
        match disaster {
            Disaster::FillQuota => self.be_full_for_a_while(number).await,
            _ => self.be_broken_for_a_while(number, disaster).await,
        }
        self.servers.wait_until_all_write(&format!("probe-{number}")).await;
        self.controllers_go_on(&format!("round-{number}"), None).await;
    }

    async fn be_broken_for_a_while(&mut self, number: usize, disaster: Disaster) {
        let broken = tokio::task::block_in_place(|| self.break_one(disaster));
        let since = std::time::Instant::now();
        self.controllers_go_on(&format!("broken-{number}"), broken.server()).await;
        let took = since.elapsed();
        eprintln!("round {number}: controllers have gone on after {took:?}");
        assert!(took < GO_ON_WITHIN || asked_rounds().is_none(), "{disaster:?}: {took:?}");
        self.ledger.wait_for_more(WRITES).await;
        tokio::task::block_in_place(|| self.compact());
        self.ledger.wait_for_more(WRITES).await;
        self.mend(broken).await;
    }

    fn break_one(&mut self, disaster: Disaster) -> Broken {
        let server = self.entropy.below(servers::COUNT);
        let leader = self.etcd.leader();
        let member = match disaster {
            Disaster::KillLeader | Disaster::PartLeader => leader,
            _ => (leader + 1 + self.entropy.below(2)) % 3,
        };
        match disaster {
            Disaster::KillServer => {
                self.servers.kill(server);
                Broken::Server(server)
            }
            Disaster::KillMember | Disaster::KillLeader => {
                self.etcd.kill(member);
                Broken::Member(member)
            }
            Disaster::PartMember | Disaster::PartLeader => {
                self.etcd.part(Some(member));
                Broken::Partition
            }
            Disaster::CutServer => {
                self.servers.set_way(server, Passage::Cut);
                Broken::Way(server)
            }
            Disaster::SilenceServer => {
                self.servers.set_way(server, Passage::Silent);
                Broken::Way(server)
            }
            Disaster::FillQuota => unreachable!("nothing of it is broken by hand"),
        }
    }

    async fn mend(&mut self, broken: Broken) {
        match broken {
            Broken::Server(at) => self.servers.start_again(at).await,
            Broken::Member(at) => tokio::task::block_in_place(|| self.etcd.start_again(at)),
            Broken::Partition => self.etcd.part(None),
            Broken::Way(at) => self.servers.set_way(at, Passage::Open),
        }
    }

    /// What watchers that are behind would have asked for is gone.
    fn compact(&self) {
        let found = self.etcd.ask_any(&["get", "compacted", "--write-out=json"]);
        let found: Value = serde_json::from_str(&found).unwrap();
        self.etcd.ask_any(&["compaction", &found["header"]["revision"].to_string()]);
    }

    /// A Deployment gets a pod, and the pod a node. A server that is broken is not asked: how long it leaves one
    /// without an answer says nothing of the others.
    async fn controllers_go_on(&self, name: &str, broken: Option<usize>) {
        let path = "/apis/apps/v1/namespaces/chaos/deployments";
        let labels = json!({"round": name});
        let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        let spec = json!({"selector": {"matchLabels": labels}, "template": pod});
        let deployment = json!({"metadata": {"name": name}, "spec": spec});
        let created =
            self.servers.ask_others_until(broken, Method::POST, path, Some(&deployment), |it| it.is_some());
        created.await;
        let pods = format!("{NAMESPACE}/pods?labelSelector=round%3D{name}");
        let has_node = |answer: Option<&Value>| {
            let items = answer.and_then(|list| list["items"].as_array());
            items.is_some_and(|items| items.iter().any(|pod| pod["spec"]["nodeName"].is_string()))
        };
        self.servers.ask_others_until(broken, Method::GET, &pods, None, has_node).await;
        let path = format!("{path}/{name}");
        self.servers.ask_others_until(broken, Method::DELETE, &path, None, |answer| answer.is_some()).await;
    }
}

async fn run(rounds: usize, seed: u64) {
    let mut chaos = Chaos::start(seed).await;
    for name in ["chaos", full::NAME] {
        let body = json!({"metadata": {"name": name}});
        let made =
            chaos.servers.ask_until(Method::POST, "/api/v1/namespaces", Some(&body), |it| it.is_some());
        made.await;
    }
    let writers = Writers::start(&chaos.servers, &chaos.ledger, seed);
    let watchers = Watchers::start(&chaos.servers);
    for round in 0..rounds {
        let drawn = if round < DISASTERS.len() { round } else { chaos.entropy.below(DISASTERS.len()) };
        chaos.round(round, DISASTERS[drawn]).await;
    }
    writers.stop().await;
    let fence = json!({"metadata": {"name": "fence"}});
    let path = format!("{NAMESPACE}/configmaps");
    // Of one server, since another would say that it is there already.
    let fence =
        chaos.servers.ask_one_until(0, Method::POST, &path, Some(&fence), |made| made.is_some()).await;
    let revision = fence["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let seen = watchers.stop_at(revision).await;
    for at in 0..servers::COUNT {
        let listed = chaos.servers.list(at).await;
        chaos.ledger.check(&listed);
        for (watcher, state) in seen.iter().enumerate() {
            assert_eq!(*state, listed, "what watcher {watcher} has seen is what server {at} lists");
        }
    }
    leaders::check(&chaos.servers, &chaos.etcd);
}

/// How many `make chaos` wants.
fn asked_rounds() -> Option<usize> {
    std::env::var("KUBARIUM_CHAOS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_missed_or_done_twice_whatever_breaks() {
    run(asked_rounds().unwrap_or(FEW_ROUNDS), SEED).await;
}
