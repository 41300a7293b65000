//! The fields that pods are selected by. Their order is that of `Object::fields`, in which views find them.

/// Name, which is the path, and the value of a pod that has none.
pub const FIELDS: [(&str, &str); 9] = [
    ("spec.nodeName", ""),
    ("spec.restartPolicy", ""),
    ("spec.schedulerName", ""),
    ("spec.serviceAccountName", ""),
    ("spec.hostNetwork", "false"),
    ("status.phase", ""),
    ("status.podIP", ""),
    ("status.podIPs", ""),
    ("status.nominatedNodeName", ""),
];

/// The place of a field among them. One that is not there does not compile where the place is a constant.
pub const fn place_of(name: &str) -> usize {
    let mut at = 0;
    while at < FIELDS.len() {
        if is_same(FIELDS[at].0.as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("pods are not selected by a field of that name")
}

/// `==`, which is not for constants.
const fn is_same(left: &[u8], right: &[u8]) -> bool {
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::pod::PODS;

    #[test]
    fn the_declaration_has_them_in_their_order() {
        let names = FIELDS.map(|(name, _)| name);
        assert_eq!(PODS.field_names(), names);
        assert_eq!(names.map(place_of), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
