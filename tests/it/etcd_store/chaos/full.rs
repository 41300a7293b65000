//! An etcd whose quota is spent: it raises the alarm NOSPACE, takes no writes, and everything else goes on;
//! when there is room again and the alarm is disarmed, so do the writes.

use super::servers::{COUNT, ask};
use super::*;

/// Room for what the rounds write; what fills it is quickly written.
pub(super) const FLAGS: [&str; 2] = ["--quota-backend-bytes", "33554432"];
/// The namespace of what fills it.
pub(super) const NAME: &str = "filler";
/// So many objects of that size are more than there is room for.
const MOST: usize = 60;
const LENGTH: usize = 900_000;

impl Chaos {
    pub(super) async fn be_full_for_a_while(&mut self, number: usize) {
        self.fill(number).await;
        // What was there is listed by each, and a write is refused in etcd's words.
        for at in 0..COUNT {
            assert!(!self.servers.list(at).await.is_empty());
        }
        self.a_write_is_refused(number).await;
        tokio::task::block_in_place(|| self.make_room());
        self.ledger.wait_for_more(WRITES).await;
    }

    async fn fill(&self, number: usize) {
        let path = format!("/api/v1/namespaces/{NAME}/configmaps");
        let large = "x".repeat(LENGTH);
        for at in 0..MOST {
            if tokio::task::block_in_place(|| self.is_alarmed()) {
                return;
            }
            let body = json!({"metadata": {"name": format!("f-{number}-{at}")}, "data": {"x": large}});
            self.servers.ask_until(Method::POST, &path, Some(&body), |_| true).await;
        }
        panic!("it is never full");
    }

    fn is_alarmed(&self) -> bool {
        self.etcd.ask_any(&["alarm", "list"]).contains("NOSPACE")
    }

    /// Each member learns of the alarm when it applies it; until then it may take one more.
    async fn a_write_is_refused(&self, number: usize) {
        let mut said = String::new();
        for at in 0.. {
            let body = json!({"metadata": {"name": format!("refused-{number}-{at}")}});
            let targets = self.servers.targets();
            let target = targets.lock()[at % COUNT].clone();
            let path = format!("{NAMESPACE}/configmaps");
            let answer = ask(&target.expect("all servers are there"), Method::POST, &path, Some(&body)).await;
            said = answer.map_or_else(|error| error.to_string(), |answer| answer.json().to_string());
            if said.contains("etcdserver: mvcc: database space exceeded") || at == MOST {
                break;
            }
        }
        assert!(said.contains("etcdserver: mvcc: database space exceeded"), "{said}");
    }

    fn make_room(&self) {
        self.etcd.ask_any(&["del", "--prefix", &format!("/registry/configmaps/{NAME}/f-")]);
        self.compact();
        self.etcd.ask_each(&["defrag"]);
        self.etcd.ask_any(&["alarm", "disarm"]);
    }
}
