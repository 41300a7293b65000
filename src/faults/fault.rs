//! `Fault`: one rule, as Rust, YAML and JSON say it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::network_fault::NetworkFault;
use super::span::Span;

/// Which requests go wrong, when, and how. Lists of patterns are empty for all; `*` stands for anything.
///
/// Without `users` it is about everybody but the cluster's own components (`system:kube-controller-manager`,
/// `system:kube-scheduler`, `system:node:*`), which have to be named: `users: ["*"]` are really all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Fault {
    /// What it is called; without, it gets a number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Who asks: `system:serviceaccount:default:*`. Behind impersonation, who acts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// By what program: `kubectl/*`, `*operator*`. ComponentSwitch of the cluster's own process say none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_agents: Vec<String>,
    /// `get`, `list`, `watch`, ...; `read` and `write` are those of their kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<String>,
    /// `pods`, `pods/status`, `deployments.apps`, `pods/*`. One that may be defined later is named with its
    /// group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Of the objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Of the objects. A create has none in its path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,

    /// How likely each of them is hit: above 0, at most 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Only this one of them, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Not before so long after it was added, by the cluster's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
    /// For so long, from then on.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Span>,

    /// They wait for so long before anything else happens, by the cluster's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// They are answered so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<FaultAnswer>,
    /// They are served, but the answer does not arrive, or not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<FaultCut>,
    /// What goes wrong with watches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchFault>,
    /// Gets and lists that take any state (`resourceVersion=0`, or at least some) are answered from the past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleReads>,
    /// Admission webhooks of these names do not answer in time; `failurePolicy` decides what follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent_webhooks: Vec<String>,
    /// Nothing of theirs arrives: connections end before anything is done, watches too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partition: bool,
    /// This component stands still: `kube-scheduler`, `kubelet/node-1`. It is about no requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// What is wrong on the network of the pods. It is about no requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFault>,
}

/// An answer instead of the real one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FaultAnswer {
    /// 400 to 599.
    pub code: u16,
    /// The `reason` of the Status; else what a real apiserver says with this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its words; else those of a real apiserver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Seconds, in `Retry-After` and the details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// The request is carried out first: a write has happened, and its client does not know.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub executed: bool,
}

/// The connection ends before the answer does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FaultCut {
    /// Behind so many bytes of its body; without, before anything of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<u64>,
}

/// What goes wrong with a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WatchFault {
    /// It ends, and how. One that is open already ends, too, unless `after_events` is said: it is taken for
    /// one that is asked for when the fault begins, with its chance and its number. One that expires so ends
    /// without a word, and whoever begins again where it was is told that this is too old, until they list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<WatchEnd>,
    /// Behind so many events, bookmarks not counted. With a number it is about watches that begin, and leaves
    /// those that are open.
    #[serde(skip_serializing_if = "is_zero")]
    pub after_events: u64,
    /// Each object that is added or modified is told of once more, as modified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    /// Each event comes so much later, by the cluster's clock, and those behind it with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchEnd {
    /// Without a word, as when a server restarts or the time is over.
    Close,
    /// With an event that says that its resourceVersion is too old (410, `Expired`).
    Expire,
}

/// Reads of the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StaleReads {
    /// So many revisions ago; without, the state in which the rule was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Fault {
    /// Requests are answered with this code, and nothing is done.
    pub fn answer(code: u16) -> Fault {
        Fault { answer: Some(FaultAnswer { code, ..FaultAnswer::default() }), ..Fault::default() }
    }

    /// Requests are refused with 429 and told when to come again.
    pub fn too_many_requests(retry_after_seconds: u32) -> Fault {
        let answer =
            FaultAnswer { code: 429, retry_after: Some(retry_after_seconds), ..FaultAnswer::default() };
        Fault { answer: Some(answer), ..Fault::default() }
    }

    /// Requests are carried out, and answered with this code all the same.
    pub fn lost_answer(code: u16) -> Fault {
        Fault {
            answer: Some(FaultAnswer { code, executed: true, ..FaultAnswer::default() }),
            ..Fault::default()
        }
    }

    /// Requests wait.
    pub fn latency(latency: Duration) -> Fault {
        Fault { latency: Some(latency.into()), ..Fault::default() }
    }

    /// Connections end before anything of the answer has come.
    pub fn cut() -> Fault {
        Fault { cut: Some(FaultCut::default()), ..Fault::default() }
    }

    /// Connections end in the middle of an answer's body.
    pub fn cut_after(bytes: u64) -> Fault {
        Fault { cut: Some(FaultCut { after_bytes: Some(bytes) }), ..Fault::default() }
    }

    /// Watches end without a word behind so many events.
    pub fn close_watch(after_events: u64) -> Fault {
        Fault::watch(WatchFault { end: Some(WatchEnd::Close), after_events, ..WatchFault::default() })
    }

    /// Watches end behind so many events with 410.
    pub fn expire_watch(after_events: u64) -> Fault {
        Fault::watch(WatchFault { end: Some(WatchEnd::Expire), after_events, ..WatchFault::default() })
    }

    /// Watches say things twice.
    pub fn duplicate_events() -> Fault {
        Fault::watch(WatchFault { duplicate: true, ..WatchFault::default() })
    }

    /// Watches are late.
    pub fn delay_events(delay: Duration) -> Fault {
        Fault::watch(WatchFault { delay: Some(delay.into()), ..WatchFault::default() })
    }

    /// Reads that take any state get the one in which the rule was added.
    pub fn stale_reads() -> Fault {
        Fault { stale: Some(StaleReads::default()), ..Fault::default() }
    }

    /// An admission webhook does not answer in time.
    pub fn silent_webhook(name: &str) -> Fault {
        Fault { silent_webhooks: vec![name.into()], ..Fault::default() }
    }

    /// A leader or a node cannot renew its lease: `user` is `system:kube-scheduler`, `system:node:node-1`.
    pub fn lost_leases(user: &str) -> Fault {
        let leases = Fault::answer(500).user(user).resource("leases.coordination.k8s.io");
        leases.verb("update").verb("patch")
    }

    /// Nothing of a user arrives.
    pub fn partition(user: &str) -> Fault {
        Fault { partition: true, ..Fault::default() }.user(user)
    }

    /// A component stands still.
    pub fn stop(component: &str) -> Fault {
        Fault { stop: Some(component.into()), ..Fault::default() }
    }

    /// Something is wrong between pods.
    pub fn network(network: NetworkFault) -> Fault {
        Fault { network: Some(network), ..Fault::default() }
    }

    fn watch(watch: WatchFault) -> Fault {
        Fault { watch: Some(watch), ..Fault::default() }
    }

    /// Calls it so.
    pub fn named(mut self, name: &str) -> Fault {
        self.name = name.into();
        self
    }

    /// About this user, too.
    pub fn user(mut self, pattern: &str) -> Fault {
        self.users.push(pattern.into());
        self
    }

    /// About this verb, too.
    pub fn verb(mut self, pattern: &str) -> Fault {
        self.verbs.push(pattern.into());
        self
    }

    /// About this resource, too.
    pub fn resource(mut self, pattern: &str) -> Fault {
        self.resources.push(pattern.into());
        self
    }

    /// About this namespace, too.
    pub fn namespace(mut self, pattern: &str) -> Fault {
        self.namespaces.push(pattern.into());
        self
    }

    /// About objects of this name, too.
    pub fn object(mut self, pattern: &str) -> Fault {
        self.names.push(pattern.into());
        self
    }

    /// Hits each with this probability.
    pub fn probability(mut self, probability: f64) -> Fault {
        self.probability = Some(probability);
        self
    }

    /// Hits this one alone, counted from 1.
    pub fn nth(mut self, nth: u64) -> Fault {
        self.nth = Some(nth);
        self
    }

    /// Hits at most so many.
    pub fn count(mut self, count: u64) -> Fault {
        self.count = Some(count);
        self
    }

    /// Begins so long after it is added.
    pub fn after(mut self, after: Duration) -> Fault {
        self.after = Some(after.into());
        self
    }

    /// Ends so long after it began.
    pub fn lasting(mut self, lasting: Duration) -> Fault {
        self.lasting = Some(lasting.into());
        self
    }
}

/// As JSON, in which it can be added.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
