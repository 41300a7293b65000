//! Whether the priority level of a FlowSchema exists: its `Dangling` condition (upstream's priority and
//! fairness controller, which looks whenever either changes; here it is said with each write of the schema).

use serde_json::{Value, json};

use super::Registry;
use crate::apimachinery::time::rfc3339;
use crate::apis::kind::Kind;

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
        let (status, reason, rest) = match found {
            true => ("False", "Found", "exists"),
            false => ("True", "NotFound", "there is no such object"),
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
    }
}
