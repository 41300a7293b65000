//! A kubeconfig as text, for whoever gets it over HTTP.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::Access;

impl Access {
    /// A kubeconfig with the one context `name`.
    pub fn kubeconfig(&self, name: &str) -> String {
        let mut cluster = json!({"server": self.server});
        let mut user = json!({});
        if let Some(pem) = &self.authority_pem {
            cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
        }
        if let Some(identity) = &self.identity {
            user["client-certificate-data"] = STANDARD.encode(&identity.certificate_pem).into();
            user["client-key-data"] = STANDARD.encode(&identity.key_pem).into();
        }
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        });
        serde_yaml::to_string(&config).unwrap_or_default()
    }
}
