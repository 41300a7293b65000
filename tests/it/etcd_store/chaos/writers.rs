//! Clients that write, each through whichever server it finds.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::servers::{Targets, ask};
use super::*;
use crate::support::wire::{Answer, Target};

const WRITERS: usize = 4;

pub(super) struct Writers {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Writers {
    pub(super) fn start(servers: &Servers, ledger: &Ledger, seed: u64) -> Writers {
        let (stop, mut tasks) = (watch::Sender::new(false), JoinSet::new());
        for number in 0..WRITERS {
            let writer = Writer {
                number,
                targets: servers.targets(),
                ledger: ledger.clone(),
                entropy: Entropy::seeded(seed + 1 + number as u64),
                at: AtomicUsize::new(number),
            };
            tasks.spawn(writer.run(stop.subscribe()));
        }
        Writers { tasks, stop }
    }

    /// When what they have asked for last has been answered, or not.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.tasks.join_all().await;
    }
}

struct Writer {
    number: usize,
    targets: Targets,
    ledger: Ledger,
    entropy: Entropy,
    /// The server that it asks, until that fails.
    at: AtomicUsize,
}

impl Writer {
    async fn run(self, stop: watch::Receiver<bool>) {
        for at in 0_u64.. {
            if *stop.borrow() {
                return;
            }
            let name = format!("w{}-{at}", self.number);
            match self.entropy.below(3) {
                0 => self.create(name).await,
                1 => self.delete_one().await,
                _ => self.count_up().await,
            }
            // Three members, three servers and all of these share a machine.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn target(&self) -> Option<Target> {
        let targets = self.targets.lock();
        targets[self.at.load(Ordering::Relaxed) % targets.len()].clone()
    }

    /// What is no answer, or one that says nothing of what became of it, has the next server asked from now
    /// on; now and then that is done anyway, so that all are asked.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
        let answer = match self.target() {
            Some(target) => ask(&target, method, path, body).await.ok(),
            None => None,
        };
        let is_certain = answer.as_ref().is_some_and(|answer| answer.code < 500);
        if !is_certain || self.entropy.below(20) == 0 {
            self.at.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    async fn create(&self, name: String) {
        let body = json!({"metadata": {"name": name}});
        let answer = self.ask(Method::POST, &format!("{NAMESPACE}/configmaps"), Some(&body)).await;
        if answer.is_some_and(|answer| answer.code == 201) {
            self.ledger.acknowledge(|told| told.there.extend([name]));
        }
    }

    async fn delete_one(&self) {
        let own = format!("w{}-", self.number);
        // What is asked for may happen, whatever is answered.
        let Some(name) = self.ledger.try_to(|told| {
            let name = told.there.iter().find(|name| name.starts_with(&own))?.clone();
            told.there.take(&name)
        }) else {
            return;
        };
        let answer = self.ask(Method::DELETE, &format!("{NAMESPACE}/configmaps/{name}"), None).await;
        let answer = answer.map(|answer| (answer.code, answer.json()));
        assert!(!matches!(answer, Some((404, _))), "{name} was acknowledged, and is not there");
        if matches!(answer, Some((200, _))) {
            self.ledger.acknowledge(|told| told.gone.extend([name]));
        }
    }

    /// Nobody else writes this one, and so it counts one by one.
    async fn count_up(&self) {
        let name = format!("counter-{}", self.number);
        let path = format!("{NAMESPACE}/configmaps/{name}");
        let Some(found) = self.ask(Method::GET, &path, None).await else { return };
        let mut object = match found.code {
            200 => found.json(),
            404 => json!({"metadata": {"name": name}, "data": {"count": "0"}}),
            _ => return,
        };
        let count: u64 = object["data"]["count"].as_str().unwrap().parse().unwrap();
        let next = count + 1;
        object["data"]["count"] = next.to_string().into();
        self.ledger.try_to(|told| {
            let (acknowledged, tried) = told.counters.entry(name.clone()).or_default();
            let is_right = (*acknowledged..=*tried).contains(&count);
            assert!(is_right, "{name}: {acknowledged}..={tried}, {count}");
            *tried = next;
        });
        let answer = match found.code {
            200 => self.ask(Method::PUT, &path, Some(&object)).await,
            _ => self.ask(Method::POST, &format!("{NAMESPACE}/configmaps"), Some(&object)).await,
        };
        if answer.is_some_and(|answer| matches!(answer.code, 200 | 201)) {
            self.ledger.acknowledge(|told| told.counters.get_mut(&name).unwrap().0 = next);
        }
    }
}
