//! `Authorization: Basic` against a file of passwords (`--basic-auth-file`): what Kubernetes had until 1.18,
//! and the teaching texts walk through.
//!
//! Only a socket with TLS comes this way: whoever reaches a socket without is an administrator already.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

use super::RequestAuthenticator;
use super::csv_file::Row;
use super::errors::BadCredential;
use super::secrets::Digested;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiRequest;

/// Passwords by user.
pub struct BasicAuth(Vec<(Digested, Arc<UserInfo>)>);

impl BasicAuth {
    /// From pairs of password and user.
    pub fn new(passwords: impl IntoIterator<Item = Row>) -> BasicAuth {
        let digested = passwords.into_iter().map(|(password, user)| (Digested::of(&password), user));
        BasicAuth(digested.collect())
    }

    fn find(&self, name: &str, password: &str) -> Option<Arc<UserInfo>> {
        let password = Digested::of(password);
        let mut found = None;
        for (known, user) in &self.0 {
            if known.is(&password) && *user.name == *name {
                found = Some(user.clone());
            }
        }
        found
    }
}

impl RequestAuthenticator for BasicAuth {
    fn name(&self) -> &'static str {
        "BasicAuth"
    }

    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, BadCredential> {
        let Some((name, password)) = credentials(request) else { return Ok(None) };
        match self.find(&name, &password) {
            Some(user) => Ok(Some(user)),
            None => Err("invalid username/password combination".into()),
        }
    }
}

/// Go's `Request.BasicAuth`.
fn credentials(request: &ApiRequest) -> Option<(String, String)> {
    let header = request.headers().get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = header.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case("Basic ") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_password_are_known() {
        let jane = Arc::new(UserInfo::authenticated("jane", &["dev"]));
        let authenticator = BasicAuth::new([("pass:word".to_owned(), jane.clone())]);
        let cases = [
            ("jane:pass:word", Some(Ok(Some(jane)))),
            ("jane:wrong", None),
            ("joe:pass:word", None),
            ("no colon", Some(Ok(None))),
        ];
        for (credentials, expected) in cases {
            let mut request = ApiRequest::default();
            let header = format!("basic {}", STANDARD.encode(credentials)).parse().unwrap();
            request.headers_mut().insert("authorization", header);
            let wrong = Err("invalid username/password combination".into());
            assert_eq!(authenticator.authenticate(&request), expected.unwrap_or(wrong), "{credentials}");
        }
        assert_eq!(authenticator.authenticate(&ApiRequest::default()), Ok(None));
    }
}
