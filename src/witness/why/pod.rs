//! Why a pod is Pending, not ready, or has restarted.

use serde_json::Value;

use super::told::{Explanation, Witnesses, condition_words, text};
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::node::NODES;

/// So many nodes are told of one by one.
const MAX_NODES: usize = 20;
/// What a container waits for while nothing is wrong.
const ON_THE_WAY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// What kubectl shows as its status; of other kinds nothing.
pub(crate) fn state(object: &Value) -> String {
    let status = &object["status"];
    let Some(phase) = status["phase"].as_str() else { return String::new() };
    let is_pod = object["spec"]["containers"].is_array();
    let ready = if !is_pod || phase != "Running" {
        ""
    } else if is_condition(object, "Ready", "True") {
        " and ready"
    } else {
        " and not ready"
    };
    format!(" is {phase}{ready}")
}

/// Whether there is nothing to ask about.
pub(crate) fn is_well(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null()
        && (pod["status"]["phase"] == "Succeeded" || is_condition(pod, "Ready", "True"))
}

fn is_condition(object: &Value, name: &str, status: &str) -> bool {
    condition(object, name).is_some_and(|condition| condition["status"] == status)
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

impl Witnesses<'_> {
    pub(super) async fn of_pod(&self, pod: &Value, told: &mut Explanation) -> Result<(), Status> {
        let status = &pod["status"];
        let reason = text(&status["reason"]);
        if !reason.is_empty() {
            told.add(format!("{reason}: {}", text(&status["message"])));
        }
        if text(&pod["spec"]["nodeName"]).is_empty() {
            told.because.push(self.unplaced(pod).await?);
            return Ok(());
        }
        self.node(pod, told).await?;
        for field in ["initContainerStatuses", "containerStatuses"] {
            for container in status[field].as_array().map(Vec::as_slice).unwrap_or_default() {
                told.because.extend(of_container(container));
            }
        }
        let gates = pod["spec"]["readinessGates"].as_array().map(Vec::as_slice).unwrap_or_default();
        for gate in gates {
            let name = text(&gate["conditionType"]);
            if !is_condition(pod, name, "True") {
                told.add(format!(
                    "its readiness gate {name} is not True: whoever sets that condition has not"
                ));
            }
        }
        if let Some(ready) = condition(pod, "Ready").filter(|ready| ready["status"] != "True") {
            told.because.push(condition_words(ready));
        }
        Ok(())
    }

    /// Why no node has it, with what the scheduler says, and what each node says of itself.
    async fn unplaced(&self, pod: &Value) -> Result<Explanation, Status> {
        let mut told = Explanation::new("no node has been chosen for it");
        for gate in pod["spec"]["schedulingGates"].as_array().map(Vec::as_slice).unwrap_or_default() {
            told.add(format!("its scheduling gate {} has not been removed", text(&gate["name"])));
        }
        let Some(scheduled) = condition(pod, "PodScheduled") else {
            let scheduler = text(&pod["spec"]["schedulerName"]);
            told.add(format!("no scheduler has looked at it: is {scheduler} running?"));
            return Ok(told);
        };
        // "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had ... . preemption: ..."
        let message = text(&scheduled["message"]);
        let (head, rest) = message.split_once(": ").unwrap_or((message, ""));
        let mut said = Explanation::new(format!("the scheduler says: {head}"));
        let (reasons, preemption) = rest.split_once(". preemption: ").unwrap_or((rest, ""));
        for reason in reasons.split(", ").filter(|reason| !reason.is_empty()) {
            said.add(reason.trim_end_matches('.'));
        }
        if !preemption.is_empty() {
            said.add(format!("nobody can be evicted for it: {}", preemption.trim_end_matches('.')));
        }
        told.because.push(said);
        let nodes = self.client.list(&NODES, "", &ListOptions::default()).await?;
        if nodes.items.is_empty() {
            told.add("there are no nodes");
        }
        for node in nodes.items.iter().take(MAX_NODES) {
            told.because.extend(against(&node.to_value()));
        }
        Ok(told)
    }

    /// What is wrong with its node.
    async fn node(&self, pod: &Value, told: &mut Explanation) -> Result<(), Status> {
        let name = text(&pod["spec"]["nodeName"]);
        match self.client.get(&NODES, "", name).await {
            Ok(node) => told.because.extend(against(&node.to_value()).filter(|_| !is_well(pod))),
            Err(status) if status.is_not_found() => {
                told.add(format!("its node {name} is no longer there: nobody runs it"));
            }
            Err(status) => return Err(status),
        }
        Ok(())
    }
}

/// What speaks against a node, if anything does.
fn against(node: &Value) -> Option<Explanation> {
    let mut told = Explanation::new(format!("node {}", text(&node["metadata"]["name"])));
    if node["spec"]["unschedulable"] == true {
        told.add("it is cordoned: kubectl uncordon lets pods come again");
    }
    for taint in node["spec"]["taints"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let (key, value, effect) = (text(&taint["key"]), text(&taint["value"]), text(&taint["effect"]));
        let equals = if value.is_empty() { "" } else { "=" };
        told.add(format!("taint {key}{equals}{value}:{effect}"));
    }
    if let Some(ready) = condition(node, "Ready").filter(|ready| ready["status"] != "True") {
        told.because.push(condition_words(ready));
    }
    (!told.because.is_empty()).then_some(told)
}

fn of_container(container: &Value) -> Option<Explanation> {
    let mut told = Explanation::new(format!("container {}", text(&container["name"])));
    let waiting = &container["state"]["waiting"];
    if !waiting.is_null() && !ON_THE_WAY.contains(&text(&waiting["reason"])) {
        told.add(format!("it waits: {}", said(waiting)));
    }
    if let Some(ended) = ended(&container["state"]["terminated"]) {
        told.add(format!("it has ended: {ended}"));
    }
    let restarts = container["restartCount"].as_u64().unwrap_or(0);
    if restarts > 0 {
        let last = ended(&container["lastState"]["terminated"]);
        let last = last.map(|last| format!("; the last time it ended with {last}")).unwrap_or_default();
        told.add(format!("it has restarted {restarts} times{last}"));
    }
    if container["started"] == false && !container["state"]["running"].is_null() {
        told.add("its startup probe has not succeeded yet");
    } else if container["ready"] == false && !container["state"]["running"].is_null() {
        told.add("it runs, and its readiness probe does not succeed");
    }
    (!told.because.is_empty()).then_some(told)
}

/// How a container ended that should not have.
fn ended(terminated: &Value) -> Option<String> {
    let code = terminated["exitCode"].as_i64().filter(|code| *code != 0)?;
    Some(format!("exit code {code} ({})", said(terminated)))
}

fn said(state: &Value) -> String {
    match (text(&state["reason"]), text(&state["message"]).trim()) {
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_says_how_it_ended_and_how_often() {
        let container = json!({"name": "c", "restartCount": 3, "ready": false,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}});
        let told = of_container(&container).unwrap().render();
        let expected = "container c\n- it waits: CrashLoopBackOff: back-off 40s\n- it has restarted 3 times; the last \
                        time it ended with exit code 3 (Error)\n";
        assert_eq!(told, expected);
        let well =
            json!({"name": "c", "ready": true, "started": true, "state": {"running": {}}, "restartCount": 0});
        assert_eq!(of_container(&well), None);
    }

    #[test]
    fn a_node_says_what_speaks_against_it() {
        let taint = json!({"key": "a", "value": "b", "effect": "NoSchedule"});
        let node = json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true, "taints": [taint]}});
        let told = against(&node).unwrap().render();
        assert_eq!(
            told,
            "node n\n- it is cordoned: kubectl uncordon lets pods come again\n- taint a=b:NoSchedule\n"
        );
        assert_eq!(against(&json!({"metadata": {"name": "n"}})), None);
    }
}
