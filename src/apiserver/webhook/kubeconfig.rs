//! A webhook that a kubeconfig file names (`webhook.LoadKubeconfig`): the clusters entry is the webhook, the
//! users entry is the apiserver.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::config::{ClientConfig, WebhookTarget, decode_base64};
use apimachinery::yaml;
use apis::tree::{flag, is_set, text};

/// Why a kubeconfig leads to no server. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KubeconfigError(pub String);

impl ClientConfig {
    /// Reads a kubeconfig file; paths in it are from its folder.
    ///
    /// # Errors
    /// Which file cannot be read, or what is missing in it.
    pub fn from_kubeconfig(path: &Path) -> Result<ClientConfig, KubeconfigError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let config = load(path).map_err(KubeconfigError)?;
        read(&config, folder).map_err(|error| KubeconfigError(format!("{}: {error}", path.display())))
    }
}

impl ClientConfig {
    /// Reads kubeconfig files as kubectl does: where they say different things the first counts, and those of
    /// several that are not there say nothing. `context` is the current one where nobody names another.
    ///
    /// # Errors
    /// Which file cannot be read, or what is missing in them; credentials that a program would have to give.
    pub fn from_kubeconfigs(
        paths: &[PathBuf],
        context: Option<&str>,
    ) -> Result<ClientConfig, KubeconfigError> {
        let shown = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let mut merged = json!({"clusters": [], "contexts": [], "users": []});
        for path in paths.iter().filter(|path| paths.len() == 1 || path.exists()) {
            merge(
                &mut merged,
                &load(path).map_err(KubeconfigError)?,
                path.parent().unwrap_or(Path::new(".")),
            );
        }
        if let Some(context) = context {
            merged["current-context"] = context.into();
        }
        if text(&merged, "current-context").is_empty() {
            let why = "no context is current; name one with --context";
            return Err(KubeconfigError(format!("{shown}: {why}")));
        }
        read(&merged, Path::new("")).map_err(|error| KubeconfigError(format!("{shown}: {error}")))
    }
}

fn load(path: &Path) -> Result<Value, String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    yaml::from_str(&text).map_err(|error| format!("{shown} is not YAML: {error}"))
}

/// Takes over what another file says, with paths from its folder.
fn merge(into: &mut Value, other: &Value, folder: &Path) {
    for (list, member) in [("clusters", "cluster"), ("contexts", "context"), ("users", "user")] {
        for entry in other[list].as_array().into_iter().flatten() {
            let mut entry = entry.clone();
            for name in ["certificate-authority", "client-certificate", "client-key", "tokenFile"] {
                if let Some(file) = entry[member][name].as_str().filter(|file| !file.is_empty()) {
                    entry[member][name] = folder.join(file).display().to_string().into();
                }
            }
            into[list].as_array_mut().into_iter().for_each(|all| all.push(entry.clone()));
        }
    }
    if text(into, "current-context").is_empty() {
        into["current-context"] = other["current-context"].clone();
    }
}

/// What would have to be asked for credentials, which nobody does here.
fn refuse_programs(user: &Value) -> Result<(), String> {
    for name in ["exec", "auth-provider"] {
        if is_set(user, name) {
            return Err(format!(
                "its user has {name:?}, which is not supported; give a certificate, a token or a tokenFile"
            ));
        }
    }
    Ok(())
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
    refuse_programs(user)?;
    let certificate = bytes(user, "client-certificate")?;
    client.identity = certificate.zip(bytes(user, "client-key")?);
    client.authorization = authorization(user, folder)?;
    let file =
        Some(text(user, "tokenFile")).filter(|file| !file.is_empty() && text(user, "token").is_empty());
    client.token_file = file.map(|file| folder.join(file));
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
        assert!(error.0.ends_with("no cluster \"other\" was found in clusters"), "{error}");
    }
    #[test]
    fn of_several_files_the_first_that_says_something_counts() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, second) = (one.path().join("a"), two.path().join("b"));
        fs::write(two.path().join("token"), "secret\n").unwrap();
        fs::write(&first, "contexts: [{name: dev, context: {cluster: c, user: u}}]").unwrap();
        let text = "
current-context: dev
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}, {name: d, cluster: {server: 'https://d'}}]
users: [{name: u, user: {tokenFile: token}}, {name: v, user: {exec: {command: aws}}}]
contexts:
- {name: dev, context: {cluster: d, user: u}}
- {name: cloud, context: {cluster: d, user: v}}
";
        fs::write(&second, text).unwrap();
        let files = [first, one.path().join("none"), second.clone()];
        let config = ClientConfig::from_kubeconfigs(&files, None).ok().unwrap();
        assert_eq!(config.target, WebhookTarget::Url("https://127.0.0.1:1".into()));
        assert_eq!(config.authorization.as_deref(), Some("Bearer secret"));
        assert_eq!(config.token_file, Some(two.path().join("token")));
        let why = ClientConfig::from_kubeconfigs(&files, Some("cloud")).err().unwrap().0;
        assert!(why.ends_with("give a certificate, a token or a tokenFile"), "{why}");
        let why = ClientConfig::from_kubeconfigs(&files[..1], None).err().unwrap().0;
        assert!(why.ends_with("no context is current; name one with --context"), "{why}");
        assert!(ClientConfig::from_kubeconfigs(&files[1..2], None).is_err(), "it is not there");
    }
}
