//! The hash in `pod-template-hash` (`controller.ComputeHash`): one name per template.

use serde_json::Value;

use entropy::safe_encode;
use golang::fnv;

/// FNV-1a over the template's canonical JSON and the number of collisions so far, in the alphabet of names.
///
/// Upstream hashes a dump of its Go structs, so the values differ from a real cluster's; nothing compares
/// them.
pub(crate) fn pod_template_hash(template: &Value, collision_count: Option<i64>) -> String {
    let text = template.to_string();
    let count = collision_count.map(|count| (count as u64).to_le_bytes());
    let bytes = text.bytes().chain(count.into_iter().flatten());
    safe_encode(&fnv::sum_32a(bytes).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_templates_have_equal_hashes_until_they_collide() {
        let (a, b) = (json!({"spec": {"x": 1}, "metadata": {}}), json!({"metadata": {}, "spec": {"x": 1}}));
        assert_eq!(pod_template_hash(&a, None), pod_template_hash(&b, None));
        assert_ne!(pod_template_hash(&a, None), pod_template_hash(&a, Some(1)));
        assert_ne!(pod_template_hash(&a, None), pod_template_hash(&json!({"spec": {"x": 2}}), None));
        assert!(pod_template_hash(&a, None).len() <= 10);
    }
}
