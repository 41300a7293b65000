//! A webhook that a kubeconfig file names (`webhook.LoadKubeconfig`): the clusters entry is the webhook, the
//! users entry is the apiserver.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::config::{ClientConfig, WebhookTarget, decode_base64};
use apimachinery::yaml;
use apis::tree::{flag, text};

impl ClientConfig {
    /// Reads a kubeconfig file; paths in it are from its folder.
    ///
    /// # Errors
    /// Which file cannot be read, or what is missing in it.
    pub fn from_kubeconfig(path: &Path) -> Result<ClientConfig, String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let config: Value = yaml::from_str(&text).map_err(|error| format!("{shown} is not YAML: {error}"))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        read(&config, folder).map_err(|error| format!("{shown}: {error}"))
    }
}

fn read(config: &Value, folder: &Path) -> Result<ClientConfig, String> {
    let context = named(config, "contexts", "context", text(config, "current-context"))?;
    let cluster = named(config, "clusters", "cluster", text(context, "cluster"))?;
    let server = text(cluster, "server");
    if server.is_empty() {
        return Err("invalid configuration: no server found".into());
    }
    let mut client = ClientConfig::new(WebhookTarget::Url(server.into()));
    let bytes = |tree: &Value, name: &str| bytes(tree, name, folder);
    client.ca_bundle = bytes(cluster, "certificate-authority")?.unwrap_or_default();
    client.insecure_skip_tls_verify = flag(cluster, "insecure-skip-tls-verify");
    let server_name = text(cluster, "tls-server-name");
    client.server_name = (!server_name.is_empty()).then(|| server_name.into());
    if text(context, "user").is_empty() {
        return Ok(client);
    }
    let user = named(config, "users", "user", text(context, "user"))?;
    let certificate = bytes(user, "client-certificate")?;
    client.identity = certificate.zip(bytes(user, "client-key")?);
    client.authorization = authorization(user, folder)?;
    Ok(client)
}

/// What stands in `NAME-data`, or in the file that `NAME` names.
fn bytes(tree: &Value, name: &str, folder: &Path) -> Result<Option<Vec<u8>>, String> {
    let data = text(tree, &format!("{name}-data"));
    if !data.is_empty() {
        let fault = || format!("{name}-data is not base64");
        return decode_base64(data).map(Some).ok_or_else(fault);
    }
    match text(tree, name) {
        "" => Ok(None),
        file => read_file(folder, file).map(Some),
    }
}

fn authorization(user: &Value, folder: &Path) -> Result<Option<String>, String> {
    use base64::Engine;
    let token = match (text(user, "token"), text(user, "tokenFile")) {
        ("", "") => String::new(),
        ("", file) => String::from_utf8_lossy(&read_file(folder, file)?).trim().to_owned(),
        (token, _) => token.to_owned(),
    };
    let (name, password) = (text(user, "username"), text(user, "password"));
    Ok(match (token.as_str(), name) {
        ("", "") => None,
        ("", _) => {
            let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
            Some(format!("Basic {pair}"))
        }
        (token, _) => Some(format!("Bearer {token}")),
    })
}

fn read_file(folder: &Path, file: &str) -> Result<Vec<u8>, String> {
    fs::read(folder.join(file)).map_err(|error| format!("unable to read {file}: {error}"))
}

/// The entry of that name. Without a name: the only one there is.
fn named<'a>(config: &'a Value, list: &str, member: &str, name: &str) -> Result<&'a Value, String> {
    let entries = config[list].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = match (name, entries) {
        ("", [only]) => Some(only),
        _ => entries.iter().find(|entry| entry["name"] == name),
    };
    found.map(|entry| &entry[member]).ok_or_else(|| format!("no {member} {name:?} was found in {list}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_names_the_webhook_and_us() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.crt"), "pem").unwrap();
        let file = folder.path().join("config");
        let text = "
current-context: webhook
clusters:
- {name: review, cluster: {server: 'https://127.0.0.1:1/review', certificate-authority: ca.crt}}
users:
- {name: apiserver, user: {token: secret}}
contexts:
- {name: webhook, context: {cluster: review, user: apiserver}}
";
        fs::write(&file, text).unwrap();
        let config = ClientConfig::from_kubeconfig(&file).ok().unwrap();
        assert_eq!(config.target, WebhookTarget::Url("https://127.0.0.1:1/review".into()));
        assert_eq!(
            (config.ca_bundle.as_slice(), config.authorization.as_deref()),
            (&b"pem"[..], Some("Bearer secret"))
        );
        fs::write(&file, text.replace("cluster: review", "cluster: other")).unwrap();
        let error = ClientConfig::from_kubeconfig(&file).err().unwrap();
        assert!(error.ends_with("no cluster \"other\" was found in clusters"), "{error}");
    }
}
