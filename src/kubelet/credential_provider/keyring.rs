//! `DockerKeyring`: the logins that Secrets hold, by what they are for (`keyring.go`, `config.go`).

use std::fmt::{self, Debug, Formatter};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What logins for Docker's own registry are kept under.
const DEFAULT_REGISTRY: &str = "index.docker.io";
/// A Secret holds no more logins; what comes after them is not looked at. Upstream has no bound but the
/// size of a Secret.
const MAX_LOGINS: usize = 1000;

/// A user and the password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RegistryLogin {
    /// Who wants something.
    pub user: String,
    /// By which it is known that it is them.
    pub password: String,
}

/// Flags are shown on pages, passwords nowhere.
impl Debug for RegistryLogin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.user)
    }
}

/// The logins of a pod (`BasicDockerKeyring`).
#[derive(Debug, Default)]
pub struct DockerKeyring(Vec<(String, RegistryLogin)>);

impl DockerKeyring {
    /// Takes the logins of a Secret: `.dockerconfigjson`, or `.dockercfg` of old. What cannot be read is as
    /// if it were not there.
    pub fn add(&mut self, key: &str, content: &[u8]) {
        let Ok(tree) = serde_json::from_slice::<Value>(content) else { return };
        let logins = match key {
            ".dockerconfigjson" => &tree["auths"],
            ".dockercfg" => &tree,
            _ => return,
        };
        for (place, entry) in logins.as_object().into_iter().flatten().take(MAX_LOGINS) {
            if let Some(login) = login(entry) {
                self.0.push((normalized(place), login));
            }
        }
        // More of a path goes before less of it; those of one place stay in the order of the Secrets.
        self.0.sort_by(|a, b| b.0.cmp(&a.0));
    }

    /// The logins for a repository, as `docker.io/library/nginx`, in the order in which they are tried.
    pub fn lookup(&self, repository: &str) -> Vec<RegistryLogin> {
        let found = |is_it: &dyn Fn(&str) -> bool| -> Vec<RegistryLogin> {
            self.0.iter().filter(|(place, _)| is_it(place)).map(|(_, login)| login.clone()).collect()
        };
        let logins = found(&|place| matches(place, repository));
        if logins.is_empty() && repository.starts_with("docker.io/") {
            return found(&|place| place == DEFAULT_REGISTRY);
        }
        logins
    }
}

/// By name and password, or both in one (`decodeDockerConfigFieldAuth`).
fn login(entry: &Value) -> Option<RegistryLogin> {
    let field = |name: &str| entry[name].as_str().unwrap_or_default().trim().to_owned();
    let auth = field("auth");
    if auth.is_empty() {
        return Some(RegistryLogin { user: field("username"), password: field("password") });
    }
    let decoded = String::from_utf8(STANDARD.decode(auth).ok()?).ok()?;
    let (user, password) = decoded.trim_end_matches('\0').split_once(':')?;
    Some(RegistryLogin { user: user.trim().into(), password: password.trim().into() })
}

/// A place without scheme and version: `https://index.docker.io/v1/` is `index.docker.io`.
fn normalized(place: &str) -> String {
    let place = place.strip_prefix("https://").or_else(|| place.strip_prefix("http://")).unwrap_or(place);
    let (host, path) =
        place.split_once('/').map_or((place, String::new()), |(host, path)| (host, format!("/{path}")));
    let path = path
        .strip_prefix("/v1")
        .or_else(|| path.strip_prefix("/v2"))
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(&path);
    if path == "/" { host.to_owned() } else { format!("{host}{path}") }
}

/// Whether a place is that of a repository (`URLsMatch`): host by host, where a `*` stands for anything in
/// one label, the same port, and the beginning of the path.
fn matches(place: &str, repository: &str) -> bool {
    let parts = |name: &str| -> (Vec<String>, String, String) {
        let (host, path) = name.split_once('/').unwrap_or((name, ""));
        let (host, port) = host.split_once(':').unwrap_or((host, ""));
        (host.split('.').map(str::to_owned).collect(), port.to_owned(), path.to_owned())
    };
    let (hosts, port, path) = parts(place);
    let (labels, target_port, target_path) = parts(repository);
    port == target_port
        && hosts.len() == labels.len()
        && target_path.starts_with(&path)
        && hosts.iter().zip(&labels).all(|(pattern, label)| is_like(pattern.as_bytes(), label.as_bytes()))
}

/// `filepath.Match` of one label, of which users write the stars and question marks: the last star takes more
/// when what follows it does not fit, so that it costs the product of both lengths at most.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let mut at = 0;
    let mut here = 0;
    let mut star = None;
    while here < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == text[here] => {
                at += 1;
                here += 1;
            }
            _ => {
                let Some((star_at, reach)) = &mut star else { return false };
                *reach += 1;
                at = *star_at + 1;
                here = *reach;
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_like_patterns() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a?c", "abc", true),
            ("*b*", "abc", true),
            ("a*b*d", "abcbd", true),
            ("a*b", "abc", false),
            ("?", "", false),
            ("abc", "ab", false),
        ] {
            assert_eq!(is_like(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
        assert!(is_like(&[b'*'; 100_000], b"registry"));
        assert!(!is_like(&[&b"*a".repeat(50_000)[..], b"x"].concat(), &[b'a'; 200]));
    }

    fn of(entries: &[(&str, &str)]) -> DockerKeyring {
        let mut keyring = DockerKeyring::default();
        for (place, user) in entries {
            let config = json!({"auths": {*place: {"auth": STANDARD.encode(format!("{user}:p:w"))}}});
            keyring.add(".dockerconfigjson", config.to_string().as_bytes());
        }
        keyring
    }

    fn users(keyring: &DockerKeyring, repository: &str) -> Vec<String> {
        keyring.lookup(repository).into_iter().map(|login| login.user).collect()
    }

    /// As upstream's `TestUrlsMatch` and `TestDockerKeyringForGlob` have it.
    #[test]
    fn places_are_those_of_upstream() {
        for (place, repository, is_match) in [
            ("foo.bar", "foo.bar/a/b", true),
            ("foo.bar/a", "foo.bar/a/b", true),
            ("foo.bar/b", "foo.bar/a/b", false),
            ("https://foo.bar/v1/", "foo.bar/a", true),
            ("https://foo.bar/v2/a", "foo.bar/a", true),
            ("*.bar", "foo.bar/a", true),
            ("*.bar", "foo.baz.bar/a", false),
            ("f?o.*", "foo.bar/a", true),
            ("foo.bar", "foo.bar:5000/a", false),
            ("foo.bar:5000", "foo.bar:5000/a", true),
            ("*.*.com", "a.b.com/x", true),
            ("prefix-*.com", "prefix-a.com/x", true),
            ("https://index.docker.io/v1/", "docker.io/library/nginx", true),
            ("docker.io/acme", "docker.io/acme/web", true),
            ("docker.io/acme", "docker.io/library/nginx", false),
        ] {
            assert_eq!(!users(&of(&[(place, "u")]), repository).is_empty(), is_match, "{place} {repository}");
        }
    }

    #[test]
    fn more_of_a_path_goes_before_less_and_secrets_keep_their_order() {
        let keyring = of(&[("a.io", "host"), ("a.io/team", "team"), ("a.io", "second")]);
        assert_eq!(users(&keyring, "a.io/team/x"), ["team", "host", "second"]);
        assert_eq!(users(&keyring, "a.io/x"), ["host", "second"]);
        assert_eq!(keyring.lookup("a.io/x")[0].password, "p:w");
        assert!(!format!("{keyring:?}").contains("p:w"));
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        let mut keyring = DockerKeyring::default();
        keyring.add(".dockerconfigjson", b"{");
        keyring.add("password", br#"{"auths": {"a.io": {"username": "u", "password": "p"}}}"#);
        keyring.add(".dockerconfigjson", br#"{"auths": {"a.io": {"auth": "!"}}}"#);
        assert!(users(&keyring, "a.io/x").is_empty());
        keyring.add(".dockercfg", br#"{"a.io": {"username": "old", "password": "p"}}"#);
        assert_eq!(users(&keyring, "a.io/x"), ["old"]);
    }

    #[test]
    fn of_very_many_logins_some_are_not_looked_at() {
        let all: serde_json::Map<String, Value> =
            (0..=MAX_LOGINS).map(|at| (format!("{at:05}.io"), json!({"username": "u"}))).collect();
        let mut keyring = DockerKeyring::default();
        keyring.add(".dockerconfigjson", json!({"auths": all}).to_string().as_bytes());
        assert_eq!(keyring.0.len(), MAX_LOGINS);
        assert!(users(&keyring, "00000.io/x") == ["u"] && users(&keyring, "01000.io/x").is_empty());
    }
}
