//! When a node was last heard of. By our own clock: the times that nodes write only tell that they wrote.

use std::time::Duration;

use serde_json::{Value, json};

use apimachinery::time::{Time, rfc3339};

/// The conditions that a kubelet keeps up to date.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// What is known of a node (upstream's `nodeHealthData`).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeHealth {
    /// A node of the same name with another uid is another node.
    pub uid: String,
    /// The lease's renewal and the status's heartbeat, whichever there are.
    pub signs: (Option<Time>, Option<Time>),
    /// When a sign last was new.
    pub heard_at: Duration,
    /// The status of `Ready` then.
    pub ready: String,
    /// When it is to be looked at again, if that may be late as long as its kubelet beats.
    pub next_look: Option<Duration>,
}

impl NodeHealth {
    /// After another look. A sign of life is one that was not there before, or is newer; so is a node's first
    /// look.
    pub(super) fn next(
        known: Option<&NodeHealth>,
        uid: &str,
        signs: (Option<Time>, Option<Time>),
        ready: String,
        now: Duration,
    ) -> NodeHealth {
        let heard_at = match known {
            Some(known) if known.signs.0 >= signs.0 && known.signs.1 >= signs.1 => known.heard_at,
            _ => now,
        };
        NodeHealth { uid: uid.into(), signs, heard_at, ready, next_look: None }
    }

    /// A look that was late has missed signs of life: those between may not have come here yet, as little as
    /// the last of them, and the time counts for nothing.
    pub(super) fn without_missed(self, now: Duration) -> NodeHealth {
        let late = self.next_look.map_or(Duration::ZERO, |due| now.saturating_sub(due));
        NodeHealth { heard_at: self.heard_at + late, ..self }
    }
}

/// Sets what the kubelet should keep up to date to Unknown. False when it is so already.
pub(super) fn mark_unknown(node: &mut Value, now: Time) -> bool {
    let created = node["metadata"]["creationTimestamp"].clone();
    let mut conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut changed = false;
    for name in CONDITIONS {
        match conditions.iter_mut().find(|condition| condition["type"] == name) {
            Some(condition) if condition["status"] == "Unknown" => continue,
            Some(condition) => {
                condition["status"] = "Unknown".into();
                condition["reason"] = "NodeStatusUnknown".into();
                condition["message"] = "Kubelet stopped posting node status.".into();
                condition["lastTransitionTime"] = rfc3339(now).into();
            }
            None => conditions.push(json!({
                "type": name,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": created,
                "lastTransitionTime": rfc3339(now),
            })),
        }
        changed = true;
    }
    node["status"]["conditions"] = conditions.into();
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    #[test]
    fn only_a_newer_sign_is_a_sign_of_life() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0);
        let seconds = Duration::from_secs;
        let look = |known: Option<&NodeHealth>, signs, now| {
            NodeHealth::next(known, "u", signs, "True".into(), seconds(now))
        };
        let first = look(None, (at(1), None), 100);
        assert_eq!(first.heard_at, seconds(100));
        let silent = look(Some(&first), (at(1), None), 110);
        assert_eq!(silent.heard_at, seconds(100));
        let renewed = look(Some(&silent), (at(2), None), 120);
        assert_eq!(renewed.heard_at, seconds(120));
        let posted = look(Some(&renewed), (at(2), at(1)), 130);
        assert_eq!(posted.heard_at, seconds(130));
    }

    #[test]
    fn time_in_which_nobody_looked_is_no_silence() {
        let seconds = Duration::from_secs;
        let first = NodeHealth::next(None, "u", (None, None), "True".into(), seconds(100));
        assert_eq!(first.clone().without_missed(seconds(900)).heard_at, seconds(100));
        let looked = NodeHealth { next_look: Some(seconds(105)), ..first };
        assert_eq!(looked.clone().without_missed(seconds(103)).heard_at, seconds(100));
        assert_eq!(looked.without_missed(seconds(905)).heard_at, seconds(900));
    }

    #[test]
    fn a_silent_node_is_unknown() {
        let now = DateTime::from_timestamp(0, 0).unwrap();
        let ready = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": "x"});
        let mut node = json!({"metadata": {}, "status": {"conditions": [ready]}});
        assert!(mark_unknown(&mut node, now));
        let conditions = &node["status"]["conditions"];
        assert_eq!(conditions[0]["reason"], "NodeStatusUnknown");
        assert_eq!(conditions[0]["lastHeartbeatTime"], "x");
        assert_eq!(conditions[3]["reason"], "NodeStatusNeverUpdated");
        assert!(!mark_unknown(&mut node, now));
    }
}
