//! What becomes of a node while its kubelet runs: the conditions that somebody says it has, whether it
//! is being shut down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::node_refusal::NodeRefusal;
use serde::{Deserialize, Serialize};
use sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// As many conditions of others as a node has; one more is refused.
const MAX_CONDITIONS: usize = 32;
/// What a kubelet knows to be a pressure (`pkg/kubelet/eviction`); what others call so is theirs.
const PRESSURES: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];
/// Until somebody asks for it, a node has none of these: what it says then, and the Event that tells of it.
const UNWELL: &[(&str, &str, &str, &str, &str)] = &[
    (
        "MemoryPressure",
        "True",
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
        "NodeHasInsufficientMemory",
    ),
    ("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
    (
        "PIDPressure",
        "True",
        "KubeletHasInsufficientPID",
        "kubelet has insufficient PID available",
        "NodeHasInsufficientPID",
    ),
    ("Ready", "False", "KubeletNotReady", "container runtime is down", "NodeNotReady"),
];
/// The conditions of a healthy node: type, status, reason, message, and the Event that tells of it.
const WELL: &[(&str, &str, &str, &str, &str)] = &[
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
        "NodeHasSufficientMemory",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
        "NodeHasNoDiskPressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
        "NodeHasSufficientPID",
    ),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status", "NodeReady"),
];

/// A condition that a node is said to have. What is left empty is as a kubelet says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SaidCondition {
    /// As `MemoryPressure`, `Ready`, or one of the user's own.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`; empty is the unhealthy one.
    pub status: String,
    /// In one word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// The state of a node, other than of its pods.
#[derive(Default)]
pub(crate) struct NodeState {
    state: Mutex<NodeStateInner>,
    /// The status is not what it was.
    pub(crate) changed: Arc<Notify>,
    /// It may be under pressure.
    pub(crate) pressed: Notify,
    /// A pod says what it uses.
    pub(crate) usage_said: Notify,
    /// A mirror pod is gone, or there is a Node now to have some.
    pub(crate) mirror_gone: Notify,
    /// No pod is to be placed there, as it was told last.
    pub(crate) is_cordoned: AtomicBool,
    /// Others have written amounts that are not as a kubelet leaves them.
    pub(crate) is_amended: AtomicBool,
    /// That is so from now on.
    pub(crate) amended: Notify,
}

#[derive(Default)]
struct NodeStateInner {
    /// By type. Bound: [`MAX_CONDITIONS`].
    conditions: BTreeMap<String, SaidCondition>,
    /// The pressures that were observed.
    observed: Vec<&'static str>,
    is_shutting_down: bool,
}

impl NodeState {
    /// The node has this condition from now on.
    ///
    /// # Errors
    /// A condition that can be none; one too many.
    pub(crate) fn say(&self, said: SaidCondition) -> Result<(), NodeRefusal> {
        let said = complete(said)?;
        let mut state = self.lock();
        let is_new = !state.conditions.contains_key(&said.condition_type);
        if is_new && state.conditions.len() >= MAX_CONDITIONS {
            return Err(
                format!("a node has at most {MAX_CONDITIONS} conditions that it is told to have").into()
            );
        }
        state.conditions.insert(said.condition_type.clone(), said);
        drop(state);
        self.changed.notify_one();
        self.pressed.notify_one();
        Ok(())
    }

    /// It is as it would be by itself: of this condition, or of all. One that no kubelet has is `False`.
    pub(crate) fn recover(&self, condition_type: Option<&str>) {
        let mut state = self.lock();
        let is_meant = |said: &SaidCondition| condition_type.is_none_or(|it| it == said.condition_type);
        let is_own = |said: &SaidCondition| WELL.iter().any(|well| well.0 == said.condition_type);
        state.conditions.retain(|_, said| !(is_meant(said) && is_own(said)));
        for said in state.conditions.values_mut().filter(|said| is_meant(said)) {
            said.status = "False".into();
            said.reason = "Recovered".into();
            said.message.clear();
        }
        drop(state);
        self.changed.notify_one();
    }

    /// All conditions, in the order in which a kubelet writes them, those of others last.
    pub(crate) fn conditions(&self) -> Vec<SaidCondition> {
        let state = self.lock();
        let own = WELL.iter().map(|well| match state.conditions.get(well.0) {
            _ if well.0 == "Ready" && state.is_shutting_down => {
                SaidCondition { message: "node is shutting down".into(), ..of(&UNWELL[UNWELL.len() - 1]) }
            }
            Some(said) => said.clone(),
            None if state.observed.contains(&well.0) => {
                UNWELL.iter().find(|unwell| unwell.0 == well.0).map_or_else(|| of(well), of)
            }
            None => of(well),
        });
        let is_other = |said: &&SaidCondition| WELL.iter().all(|well| well.0 != said.condition_type);
        own.chain(state.conditions.values().filter(is_other).cloned()).collect()
    }

    /// The pressures that it is under, of those for which a kubelet drives pods out: what is said goes before
    /// what is observed.
    pub(crate) fn pressures(&self) -> Vec<String> {
        let state = self.lock();
        let is_under = |name: &&str| match state.conditions.get(*name) {
            Some(said) => said.status == "True",
            None => state.observed.contains(name),
        };
        PRESSURES.iter().filter(|name| is_under(name)).map(|name| (*name).to_owned()).collect()
    }

    /// Those that somebody says it has.
    pub(crate) fn said_pressures(&self) -> Vec<String> {
        let state = self.lock();
        let is_said = |name: &&str| state.conditions.get(*name).is_some_and(|said| said.status == "True");
        PRESSURES.iter().filter(|name| is_said(name)).map(|name| (*name).to_owned()).collect()
    }

    /// What was observed is this from now on.
    pub(crate) fn observe_pressures(&self, observed: &[&'static str]) {
        let mut state = self.lock();
        if state.observed != observed {
            state.observed = observed.to_vec();
            drop(state);
            self.changed.notify_one();
        }
    }

    /// It is being shut down: no pod is taken any more.
    pub(crate) fn shut_down(&self) {
        self.lock().is_shutting_down = true;
        self.changed.notify_one();
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.lock().is_shutting_down
    }

    fn lock(&self) -> MutexGuard<'_, NodeStateInner> {
        self.state.lock()
    }
}

/// The Event that tells that a node has such a condition now.
pub(crate) fn event_of(condition: &SaidCondition) -> Option<&'static str> {
    let known = WELL.iter().chain(UNWELL);
    let is_it = |known: &&(&str, &str, &str, &str, &'static str)| {
        known.0 == condition.condition_type && known.1 == condition.status
    };
    let ready_is_lost = condition.condition_type == "Ready" && condition.status != "True";
    known.into_iter().find(is_it).map(|known| known.4).or(ready_is_lost.then_some("NodeNotReady"))
}

fn of((condition_type, status, reason, message, _): &(&str, &str, &str, &str, &str)) -> SaidCondition {
    let [condition_type, status, reason, message] =
        [condition_type, status, reason, message].map(|text| (*text).to_owned());
    SaidCondition { condition_type, status, reason, message }
}

/// With what a kubelet says where nobody else does.
fn complete(said: SaidCondition) -> Result<SaidCondition, String> {
    if said.condition_type.is_empty() {
        return Err("the type of the condition is missing, as MemoryPressure".into());
    }
    let unwell = UNWELL.iter().find(|unwell| unwell.0 == said.condition_type);
    let status = match (said.status.as_str(), unwell) {
        ("", Some(unwell)) => unwell.1.to_owned(),
        ("", None) => "True".into(),
        ("True" | "False" | "Unknown", _) => said.status.clone(),
        (other, _) => return Err(format!("status {other:?}: must be True, False or Unknown")),
    };
    let is_it = |known: &&(&str, &str, &str, &str, &str)| known.0 == said.condition_type && known.1 == status;
    let known = UNWELL.iter().chain(WELL).find(is_it).map(of).unwrap_or_default();
    let or = |given: String, own: String| if given.is_empty() { own } else { given };
    Ok(SaidCondition {
        reason: or(said.reason, or(known.reason, "Simulated".into())),
        message: or(said.message, known.message),
        condition_type: said.condition_type,
        status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(condition_type: &str, status: &str) -> SaidCondition {
        SaidCondition {
            condition_type: condition_type.into(),
            status: status.into(),
            ..SaidCondition::default()
        }
    }

    #[test]
    fn what_is_said_stands_until_it_recovers() {
        let state = NodeState::default();
        assert_eq!(event_of(&state.conditions()[3]), Some("NodeReady"));
        state.say(said("MemoryPressure", "")).unwrap();
        state.say(said("GpuPressure", "")).unwrap();
        let conditions = state.conditions();
        assert_eq!(conditions[0].reason, "KubeletHasInsufficientMemory");
        assert_eq!(event_of(&conditions[0]), Some("NodeHasInsufficientMemory"));
        assert_eq!((conditions.len(), conditions[4].status.as_str()), (5, "True"));
        assert_eq!(state.pressures(), ["MemoryPressure"]);
        state.recover(Some("MemoryPressure"));
        assert_eq!((state.conditions()[0].status.as_str(), state.conditions().len()), ("False", 5));
        state.recover(None);
        assert_eq!(state.conditions()[4].status, "False");
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let state = NodeState::default();
        assert!(state.say(said("", "")).is_err_and(|why| why.0.contains("type")));
        assert!(state.say(said("Ready", "no")).is_err_and(|why| why.0.contains("True, False or Unknown")));
        (0..MAX_CONDITIONS).for_each(|at| state.say(said(&format!("C{at}"), "")).unwrap());
        assert!(state.say(said("Ready", "")).is_err_and(|why| why.0.contains("at most 32")));
        assert!(state.say(said("C0", "False")).is_ok());
    }

    #[test]
    fn a_node_that_is_shut_down_is_not_ready() {
        let state = NodeState::default();
        state.shut_down();
        let ready = state.conditions().remove(3);
        assert_eq!((ready.status.as_str(), ready.message.as_str()), ("False", "node is shutting down"));
        assert!(state.is_shutting_down());
    }
}
