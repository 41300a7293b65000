//! What of its Node and its certificates is a kubelet's own: labels, names.

use std::collections::BTreeSet;

use base64::Engine;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use apis::core::node_labels::KUBELET_LABELS;

golang::text_error! {
    /// Why nobody knows in whose name a certificate is asked for.
    pub(super) struct NoCommonName;
}

/// Beside [`KUBELET_LABELS`], a kubelet may set all labels with these prefixes.
const KUBELET_PREFIXES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// For administrators alone.
const RESTRICTED_PREFIX: &str = "node-restriction.kubernetes.io";

/// The labels that differ and are none of a kubelet's, in order, divided by commas.
pub(super) fn forbidden_labels(new: &Value, old: &Value) -> String {
    let names = |labels: &Value| -> BTreeSet<String> {
        labels.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let all: BTreeSet<String> = names(new).union(&names(old)).cloned().collect();
    let changed = all.into_iter().filter(|name| new.get(name) != old.get(name));
    changed.filter(|name| is_forbidden_label(name)).collect::<Vec<_>>().join(", ")
}

fn is_forbidden_label(label: &str) -> bool {
    let prefix = label.split_once('/').map_or("", |(prefix, _)| prefix);
    let below = |domain: &str| prefix == domain || prefix.ends_with(&format!(".{domain}"));
    let is_kubernetes = below("kubernetes.io") || below("k8s.io");
    let is_kubelets = KUBELET_LABELS.contains(&label) || KUBELET_PREFIXES.iter().any(|domain| below(domain));
    below(RESTRICTED_PREFIX) || is_kubernetes && !is_kubelets
}

/// Of a certificate signing request: PEM, in base64.
pub(super) fn common_name(request: &str) -> Result<String, NoCommonName> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(request).map_err(|why| why.to_string())?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(&bytes)
        .map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).map_err(|why| why.to_string())?;
    let subject = &request.certification_request_info.subject;
    let name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    Ok(name.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_of_kubernetes_are_not_a_kubelets_to_set() {
        let new = json!({"kubernetes.io/os": "linux", "node-role.kubernetes.io/master": "", "own": "yes",
            "node-restriction.kubernetes.io/a": "b", "gpu.node.kubernetes.io/b": "", "example.k8s.io/c": ""});
        let found = "example.k8s.io/c, node-restriction.kubernetes.io/a, node-role.kubernetes.io/master";
        assert_eq!(forbidden_labels(&new, &Value::Null), found);
        assert_eq!(forbidden_labels(&new, &new), "");
        let other = json!({"node-role.kubernetes.io/master": ""});
        assert_eq!(forbidden_labels(&Value::Null, &other), "node-role.kubernetes.io/master");
    }
}
