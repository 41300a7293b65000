//! Whether the priority level of a FlowSchema exists: its `Dangling` condition (upstream's priority and
//! fairness controller, which looks whenever either changes; here it is said with each write of the schema).

use serde_json::{Value, json};

use super::Registry;
use apimachinery::time::rfc3339;
use apis::kind::Kind;

/// Who says it upstream.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

impl Registry {
    /// Puts the condition into a FlowSchema that is about to be written; nothing for other kinds.
    pub(super) async fn note_dangling(&self, kind: &Kind, new: &mut Value) {
        if &*kind.plural != "flowschemas" || &*kind.group_version.group != GROUP {
            return;
        }
        let name = new["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default().to_owned();
        let Ok(levels) = self.kind(GROUP, "v1", "prioritylevelconfigurations") else { return };
        // A store that fails here fails the write as well.
        drop(Box::pin(self.bootstrap(&levels)).await);
        let found = self.get(&levels, "", &name, None).await.is_ok();
        let (status, reason, rest) = if found {
            ("False", "Found", "exists")
        } else {
            ("True", "NotFound", "there is no such object")
        };
        let rest = if found { format!("and it {rest}") } else { format!("but {rest}") };
        let message =
            format!("This FlowSchema references the PriorityLevelConfiguration object named {name:?} {rest}");
        let conditions = new["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let known = conditions.iter().find(|one| one["type"] == "Dangling" && one["status"] == status);
        let since = known.map(|one| one["lastTransitionTime"].clone()).filter(|since| !since.is_null());
        let condition = json!({"type": "Dangling", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since.unwrap_or_else(|| rfc3339(self.0.clock.now()).into())});
        let mut conditions: Vec<Value> =
            conditions.into_iter().filter(|one| one["type"] != "Dangling").collect();
        conditions.push(condition);
        new["status"] = json!({"conditions": conditions});
        own_condition(new);
    }
}

/// The condition is applied, by the one who says it, when it says something else than before.
fn own_condition(new: &mut Value) {
    let condition = new["status"]["conditions"].as_array().and_then(|all| all.last());
    let time = condition.map_or(Value::Null, |condition| condition["lastTransitionTime"].clone());
    let fields: serde_json::Map<String, Value> =
        ["lastTransitionTime", "message", "reason", "status", "type"]
            .iter()
            .map(|field| (format!("f:{field}"), json!({})))
            .chain([(".".to_owned(), json!({}))])
            .collect();
    let entry = json!({"manager": MANAGER, "operation": "Apply", "subresource": "status", "time": time,
        "apiVersion": format!("{GROUP}/v1"), "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Dangling\"}": fields}}}});
    let Some(metadata) = new["metadata"].as_object_mut() else { return };
    let entries = metadata.entry("managedFields").or_insert_with(|| json!([]));
    let Some(entries) = entries.as_array_mut() else { return };
    entries.retain(|entry| entry["manager"] != MANAGER || entry["subresource"] != "status");
    // Those who apply come first.
    let at = entries.iter().take_while(|entry| entry["operation"] == "Apply").count();
    entries.insert(at, entry);
}
