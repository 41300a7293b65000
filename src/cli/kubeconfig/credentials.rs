//! Who a user of a kubeconfig is, as client-go reads it: a certificate, a token, a password, and in whose
//! name requests are made.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pki::Identity;
use serde_yaml::Value;

use crate::cli::Failure;

/// What a user shows the server.
#[derive(Default)]
pub(crate) struct Credentials {
    /// For the connection.
    pub identity: Option<Identity>,
    /// For each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Credentials {
    /// Of what a kubeconfig says of a user; paths in it begin at its folder.
    pub(super) fn of(user: &Value, folder: &Path) -> Result<Credentials, Failure> {
        for helper in ["exec", "auth-provider"] {
            if !user[helper].is_null() {
                return Err(Failure(format!(
                    "it logs in by {helper}, which kubarium does not run; choose a context whose user has a \
                     certificate or a token"
                )));
            }
        }
        let pem = |field| pem(user, field, folder);
        let identity = pem("client-certificate")?.zip(pem("client-key")?);
        let identity = identity.map(|(certificate_pem, key_pem)| Identity { certificate_pem, key_pem });
        let mut headers = vec![];
        if let Some(authorization) = authorization(user, folder)? {
            headers.push((AUTHORIZATION, value(&authorization)?));
        }
        headers.extend(impersonation(user)?);
        Ok(Credentials { identity, headers })
    }
}

/// A token goes before a password.
fn authorization(user: &Value, folder: &Path) -> Result<Option<String>, Failure> {
    let from_file = text(user, "tokenFile").map(|path| read(folder, path)).transpose()?;
    if let Some(token) = from_file.as_deref().map(str::trim).or(text(user, "token")) {
        return Ok(Some(format!("Bearer {token}")));
    }
    let Some(name) = text(user, "username") else { return Ok(None) };
    let password = text(user, "password").unwrap_or_default();
    Ok(Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))))
}

/// In whose name everything is asked, as `kubectl --as` does it.
fn impersonation(user: &Value) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let mut headers = vec![];
    let named = [("impersonate-user", text(user, "as")), ("impersonate-uid", text(user, "as-uid"))];
    for (name, said) in named.into_iter().filter_map(|(name, said)| Some((name, said?))) {
        headers.push((HeaderName::from_static(name), value(said)?));
    }
    for group in texts(&user["as-groups"]) {
        headers.push((HeaderName::from_static("impersonate-group"), value(group)?));
    }
    for (key, values) in user["as-user-extra"].as_mapping().into_iter().flatten() {
        let key = utf8_percent_encode(key.as_str().unwrap_or_default(), NON_ALPHANUMERIC);
        let name = HeaderName::try_from(format!("impersonate-extra-{key}"))
            .map_err(|error| Failure::new("as-user-extra", error))?;
        for said in texts(values) {
            headers.push((name.clone(), value(said)?));
        }
    }
    Ok(headers)
}

/// What is in the file itself goes before what is in another.
fn pem(user: &Value, field: &str, folder: &Path) -> Result<Option<String>, Failure> {
    let data = format!("{field}-data");
    if let Some(encoded) = text(user, &data) {
        let bytes = STANDARD.decode(encoded).map_err(|error| Failure::new(&data, error))?;
        return String::from_utf8(bytes).map(Some).map_err(|error| Failure::new(&data, error));
    }
    text(user, field).map(|path| read(folder, path)).transpose()
}

fn read(folder: &Path, path: &str) -> Result<String, Failure> {
    let path = folder.join(path);
    fs::read_to_string(&path).map_err(|error| Failure::new(format!("cannot read {}", path.display()), error))
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::try_from(text).map_err(|error| Failure::new("what it shows fits into no header", error))
}

/// An empty text is none.
fn text<'a>(user: &'a Value, field: &str) -> Option<&'a str> {
    user[field].as_str().filter(|text| !text.is_empty())
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_sequence().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(user: &str) -> Vec<String> {
        let user = serde_yaml::from_str(user).unwrap();
        let Credentials { headers, .. } = Credentials::of(&user, Path::new("/nowhere")).ok().unwrap();
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn a_user_is_who_client_go_says() {
        assert_eq!(headers("{token: abc, username: joe, password: x}"), ["authorization: Bearer abc"]);
        assert_eq!(headers("{username: joe, password: x}"), ["authorization: Basic am9lOng="]);
        assert!(headers("{}").is_empty());
        let other = "{as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {a/b: [c]}}";
        let names = [
            "impersonate-user: jane",
            "impersonate-uid: 7",
            "impersonate-group: a",
            "impersonate-group: b",
            "impersonate-extra-a%2fb: c",
        ];
        assert_eq!(headers(other), names);
    }

    #[test]
    fn files_begin_at_the_folder_of_the_kubeconfig() {
        let dir = tempfile::tempdir().unwrap();
        let of = |user: &str| Credentials::of(&serde_yaml::from_str(user).unwrap(), dir.path());
        fs::write(dir.path().join("token"), "abc\n").unwrap();
        fs::write(dir.path().join("pem"), "PEM").unwrap();
        let user = of("{tokenFile: token, client-certificate: pem, client-key-data: S0VZ}").ok().unwrap();
        assert_eq!(user.headers[0].1, "Bearer abc");
        assert_eq!(
            user.identity.map(|pair| (pair.certificate_pem, pair.key_pem)),
            Some(("PEM".into(), "KEY".into()))
        );
        let Failure(why) = of("{tokenFile: none}").err().unwrap();
        assert!(why.contains("cannot read") && why.contains("none"), "{why}");
        let Failure(why) = of("{exec: {command: aws}}").err().unwrap();
        assert!(why.contains("it logs in by exec"), "{why}");
    }
}
