//! Which taints of devices a claim tolerates, and for how long (`resourceclaim.ToleratesTaint`).

use serde_json::Value;

use crate::tree::text;

/// What a claim's tolerations make of one taint of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceTolerance {
    /// It is not tolerated.
    None,
    /// It is, for so many seconds since it was put on.
    Seconds(i64),
    /// It is.
    Forever,
}

/// Whether one toleration is for a taint.
pub fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let fits = |field: &str| {
        let wanted = text(toleration, field);
        wanted.is_empty() || wanted == text(taint, field)
    };
    let by_value = match text(toleration, "operator") {
        "" | "Equal" => text(toleration, "value") == text(taint, "value"),
        operator => operator == "Exists",
    };
    fits("effect") && fits("key") && by_value
}

/// Of tolerations that are for a time the shortest counts, unless one is for ever.
pub fn tolerance(tolerations: &[Value], taint: &Value) -> DeviceTolerance {
    let mut shortest: Option<i64> = None;
    for toleration in tolerations.iter().filter(|toleration| tolerates(toleration, taint)) {
        let Some(seconds) = toleration["tolerationSeconds"].as_i64() else { return DeviceTolerance::Forever };
        shortest = Some(shortest.map_or(seconds, |earlier| earlier.min(seconds)));
    }
    shortest.map_or(DeviceTolerance::None, DeviceTolerance::Seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn taints_are_tolerated_by_key_value_and_effect_for_a_time() {
        let taint = json!({"key": "k", "value": "v", "effect": "NoExecute"});
        let tolerated = |tolerations: Value| tolerance(tolerations.as_array().unwrap(), &taint);
        assert_eq!(tolerated(json!([])), DeviceTolerance::None);
        assert_eq!(tolerated(json!([{"key": "k", "value": "v"}])), DeviceTolerance::Forever);
        assert_eq!(tolerated(json!([{"key": "k", "value": "w"}])), DeviceTolerance::None);
        assert_eq!(tolerated(json!([{"operator": "Exists", "effect": "NoSchedule"}])), DeviceTolerance::None);
        let for_seconds = |seconds: i64| json!({"operator": "Exists", "tolerationSeconds": seconds});
        assert_eq!(tolerated(json!([for_seconds(9), for_seconds(5)])), DeviceTolerance::Seconds(5));
        assert_eq!(tolerated(json!([for_seconds(9), {"operator": "Exists"}])), DeviceTolerance::Forever);
    }
}
