//! Authentication: who is asking (`k8s.io/apiserver/pkg/authentication`).
//!
//! In comes a request, out goes a [`UserInfo`]: from the first authenticator that knows the credentials.
//! Credentials that an authenticator knows to be wrong are an error and a 401; a request without any is
//! anonymous. One file per authenticator. What a user may do is none of its business.

pub mod in_process;
pub mod token_file;
pub mod x509;

use std::sync::Arc;

use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::ApiRequest;

/// One way of proving who one is (`authenticator.Request`).
pub trait Authenticator: Send + Sync {
    /// The user; nothing when the request has no credentials of this sort.
    ///
    /// # Errors
    /// Credentials of this sort that are wrong; the text is for the log.
    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, String>;
}

/// All authenticators, in order (upstream's union), and anonymous behind them.
pub struct Authenticators(Vec<Box<dyn Authenticator>>);

impl Authenticators {
    /// The list; its order is the order in which they are asked.
    pub fn new(static_tokens: token_file::StaticTokens) -> Authenticators {
        Authenticators(vec![
            // First, because components are most of the callers and cost nothing to know.
            Box::new(in_process::InProcess),
            Box::new(x509::ClientCertificate::default()),
            Box::new(static_tokens),
        ])
    }

    /// Who asks. With wrong credentials of one sort and right ones of another the right ones count.
    pub fn authenticate(&self, request: &ApiRequest) -> Result<Arc<UserInfo>, String> {
        let mut errors = Vec::new();
        for authenticator in &self.0 {
            match authenticator.authenticate(request) {
                Ok(Some(user)) => return Ok(user),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Arc::new(UserInfo::anonymous())) } else { Err(errors.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::token_file::StaticTokens;
    use super::*;
    use crate::apimachinery::wire::InProcessUser;

    fn asked(header: Option<&str>) -> Result<Arc<UserInfo>, String> {
        let admin = Arc::new(UserInfo::authenticated("admin", &["system:masters"]));
        let authenticators = Authenticators::new(StaticTokens::new([("secret".to_owned(), admin)]));
        let mut request = ApiRequest::default();
        if let Some(value) = header {
            request.headers_mut().insert("authorization", value.parse().unwrap());
        }
        authenticators.authenticate(&request)
    }

    #[test]
    fn credentials_decide_and_none_is_anonymous() {
        assert_eq!(&*asked(None).unwrap().name, "system:anonymous");
        assert_eq!(&*asked(Some("Bearer secret")).unwrap().name, "admin");
        assert_eq!(&*asked(Some("bearer  secret")).unwrap().name, "system:anonymous");
        assert!(asked(Some("Bearer wrong")).is_err());
        assert_eq!(&*asked(Some("Basic abc")).unwrap().name, "system:anonymous");
    }

    #[test]
    fn a_component_is_taken_at_its_word() {
        let authenticators = Authenticators::new(StaticTokens::new([]));
        let mut request = ApiRequest::default();
        let user = Arc::new(UserInfo::authenticated("system:kube-scheduler", &[]));
        request.extensions_mut().insert(InProcessUser(user.clone()));
        assert!(Arc::ptr_eq(&authenticators.authenticate(&request).unwrap(), &user));
    }
}
