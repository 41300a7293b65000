//! All authenticators in order (`request/union`, `token/union`), and anonymous behind them.

use std::sync::Arc;

use super::anonymous::Anonymous;
use super::metrics::{AuthenticationAttempt, AuthenticationMetrics};
use super::oidc::structured::Structured;
use super::outcome::{Authenticated, CredentialsRefused, INVALID, SILENT, Said, TokenOutcome};
use super::remarks::Remarks;
use super::request_header::remove_headers;
use super::token_cache::{self, TokenCache};
use super::{
    RequestAuthenticator, Response, TokenAuthenticator, bearer_token, options::RequestHeaderOptions,
};
use crate::metrics::Render;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiRequest;
use clock::Clock;

/// All authenticators of one apiserver.
pub struct Authenticators {
    pub(super) requests: Vec<Box<dyn RequestAuthenticator>>,
    pub(super) tokens: Vec<Box<dyn TokenAuthenticator>>,
    pub(super) cache: TokenCache,
    pub(super) anonymous: Anonymous,
    /// The file that may say something else of anonymous.
    pub(super) structured: Option<Arc<Structured>>,
    pub(super) request_header: Option<RequestHeaderOptions>,
    pub(super) asks_for_password: bool,
    metrics: AuthenticationMetrics,
    clock: Clock,
}

impl Authenticators {
    /// Nobody but the components of this process, and anonymous.
    pub fn in_process(clock: &Clock) -> Authenticators {
        Authenticators {
            // First, because components are most of the callers and cost nothing to know.
            requests: vec![Box::new(super::in_process::InProcess)],
            tokens: vec![],
            cache: TokenCache::new(clock),
            anonymous: Anonymous::everywhere(true),
            structured: None,
            request_header: None,
            asks_for_password: false,
            metrics: AuthenticationMetrics::default(),
            clock: clock.clone(),
        }
    }

    /// What came of all attempts.
    pub fn metrics(&self) -> &AuthenticationMetrics {
        &self.metrics
    }

    /// These authenticators with one sort of bearer tokens more.
    pub fn knowing(mut self, tokens: impl TokenAuthenticator + 'static) -> Authenticators {
        self.tokens.push(Box::new(tokens));
        self
    }

    /// Whether a 401 asks a browser for a password.
    pub fn asks_for_password(&self) -> bool {
        self.asks_for_password
    }

    /// Who sent the request. Not a future that holds the request: its body cannot be shared.
    pub fn authenticate(
        self: &Arc<Self>,
        request: &ApiRequest,
    ) -> impl Future<Output = Result<Authenticated, CredentialsRefused>> + Send + use<> {
        let start = self.clock.elapsed();
        let (known, said) = self.by_connection(request);
        let token = if known.is_none() { bearer_token::of(request.headers()) } else { None };
        let may_be_anonymous = known.is_none() && self.is_anonymous_allowed(request.uri().path());
        let all = self.clone();
        async move {
            let outcome = match known {
                Some((user, by)) => Ok(Authenticated { user, by, said, remarks: Arc::default() }),
                None => all.by_token(token, said, may_be_anonymous).await,
            };
            let duration = all.clock.elapsed().saturating_sub(start);
            match &outcome {
                Ok(known) => all.metrics.succeeded(&known.user.name, duration),
                Err(refused) if refused.is_wrong() => {
                    all.metrics.failed(AuthenticationAttempt::Error, duration)
                }
                Err(_) => all.metrics.failed(AuthenticationAttempt::Failure, duration),
            }
            outcome
        }
    }

    /// Takes what proves an identity out of a request whose user is known, so that nobody below can leak it
    /// or be fooled by it.
    pub fn remove_credentials(&self, request: &mut ApiRequest) {
        bearer_token::remove(request.headers_mut());
        remove_headers(request.headers_mut(), self.request_header.as_ref());
    }

    /// Whose a token is, for a request or a TokenReview.
    pub async fn authenticate_token(&self, token: &str, audiences: Option<&[String]>) -> TokenOutcome {
        let start = self.clock.elapsed();
        let key = token_cache::key(token, audiences);
        if let Some(outcome) = self.cache.get(&key) {
            self.metrics.looked_up(true, self.clock.elapsed().saturating_sub(start));
            return outcome;
        }
        let outcome = self.fetch(token, audiences).await;
        self.metrics.fetched(outcome.response.is_some());
        self.metrics.looked_up(false, self.clock.elapsed().saturating_sub(start));
        if outcome.response.is_some() {
            self.cache.put(key, outcome.clone());
        }
        outcome
    }

    /// What the authenticators say of a token, in order.
    async fn fetch(&self, token: &str, audiences: Option<&[String]>) -> TokenOutcome {
        let remarks = Remarks::default();
        let mut said = Vec::new();
        let outcome = |response, by, said, remarks: Remarks| {
            let remarks = remarks.into_vec().into();
            TokenOutcome { response, by, said, remarks }
        };
        for authenticator in &self.tokens {
            let by = authenticator.name();
            match authenticator.authenticate_token(token, audiences, &remarks).await {
                Ok(Some(response)) => return outcome(Some(response), by, said, remarks),
                Ok(None) => said.push((by, SILENT)),
                Err(error) => said.push((by, String::from(error).into())),
            }
        }
        outcome(None, "", said, remarks)
    }

    /// Whether a request without credentials is somebody wherever it goes.
    pub fn admits_anybody(&self) -> bool {
        self.is_anonymous_allowed("/apis")
    }

    fn is_anonymous_allowed(&self, path: &str) -> bool {
        match self.structured.as_ref().and_then(|structured| structured.anonymous()) {
            Some(anonymous) => anonymous.is_allowed(path),
            None => self.anonymous.is_allowed(path),
        }
    }

    fn by_connection(&self, request: &ApiRequest) -> (Option<(Arc<UserInfo>, &'static str)>, Vec<Said>) {
        let mut said = Vec::new();
        for authenticator in &self.requests {
            let by = authenticator.name();
            match authenticator.authenticate(request) {
                Ok(Some(user)) => return (Some((user, by)), said),
                Ok(None) if by == "InProcess" => {}
                Ok(None) => said.push((by, SILENT)),
                Err(error) => said.push((by, String::from(error).into())),
            }
        }
        (None, said)
    }

    /// With wrong credentials of one sort and right ones of another the right ones count; wrong ones alone
    /// are never anonymous.
    async fn by_token(
        &self,
        token: Option<String>,
        mut said: Vec<Said>,
        may_be_anonymous: bool,
    ) -> Result<Authenticated, CredentialsRefused> {
        let mut remarks = Arc::default();
        if let Some(token) = token {
            let TokenOutcome { response, by, said: of_tokens, remarks: of_token } =
                self.authenticate_token(&token, None).await;
            if response.is_none() {
                said.push(("BearerToken", INVALID.into()));
            }
            said.extend(of_tokens);
            remarks = of_token;
            if let Some(Response { user, .. }) = response {
                return Ok(Authenticated { user, by, said, remarks });
            }
        }
        let is_wrong = said.iter().any(|(_, words)| *words != SILENT);
        if is_wrong || !may_be_anonymous {
            return Err(CredentialsRefused { said: said.into(), remarks });
        }
        Ok(Authenticated { user: Arc::new(UserInfo::anonymous()), by: "Anonymous", said, remarks })
    }
}

impl Render for Authenticators {
    fn render(&self, out: &mut String) {
        self.metrics.render(out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::basic_auth::BasicAuth;
    use super::super::token_file::StaticTokens;
    use super::*;
    use apimachinery::wire::InProcessUser;

    fn user(name: &str) -> Arc<UserInfo> {
        Arc::new(UserInfo::authenticated(name, &[]))
    }

    fn authenticators() -> Arc<Authenticators> {
        let mut all = Authenticators::in_process(&Clock::real());
        all.requests.push(Box::new(BasicAuth::new([("word".to_owned(), user("jane"))])));
        all.tokens.push(Box::new(StaticTokens::new([("secret".to_owned(), user("admin"))], &["api".into()])));
        Arc::new(all)
    }

    async fn asked(header: Option<&str>) -> Result<String, String> {
        let mut request = ApiRequest::default();
        if let Some(value) = header {
            request.headers_mut().insert("authorization", value.parse().unwrap());
        }
        let outcome = authenticators().authenticate(&request).await;
        let shown = |known: Authenticated| format!("{} by {}", known.user.name, known.by);
        outcome.map(shown).map_err(|refused| refused.aggregate())
    }

    #[tokio::test]
    async fn credentials_decide_and_none_is_anonymous() {
        let password = "invalid username/password combination".to_owned();
        let cases = [
            (None, Ok("system:anonymous by Anonymous")),
            (Some("Bearer secret"), Ok("admin by TokenFile")),
            (Some("bearer  secret"), Ok("system:anonymous by Anonymous")),
            (Some("Bearer wrong"), Err("invalid bearer token")),
            (Some("Digest abc"), Ok("system:anonymous by Anonymous")),
            (Some("Basic amFuZTp3b3Jk"), Ok("jane by BasicAuth")),
            (Some("Basic amFuZTp3cm9uZw=="), Err(&*password)),
        ];
        for (header, expected) in cases {
            assert_eq!(asked(header).await, expected.map(str::to_owned).map_err(str::to_owned), "{header:?}");
        }
    }

    #[tokio::test]
    async fn what_each_said_is_kept() {
        let mut request = ApiRequest::default();
        request.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
        let known = authenticators().authenticate(&request).await.unwrap();
        assert_eq!(known.said, [("BasicAuth", SILENT)]);
        let mut request = ApiRequest::default();
        request.headers_mut().insert("authorization", "Bearer wrong".parse().unwrap());
        let refused = authenticators().authenticate(&request).await.unwrap_err();
        let expected: [Said; 3] =
            [("BasicAuth", SILENT), ("BearerToken", INVALID.into()), ("TokenFile", SILENT)];
        assert_eq!(*refused.said, expected);
    }

    #[tokio::test]
    async fn a_component_is_taken_at_its_word() {
        let mut request = ApiRequest::default();
        let user = user("system:kube-scheduler");
        request.extensions_mut().insert(InProcessUser(user.clone()));
        let known = authenticators().authenticate(&request).await.unwrap();
        assert!(Arc::ptr_eq(&known.user, &user));
        assert!(known.said.is_empty());
    }

    #[tokio::test]
    async fn a_token_for_others_is_not_ours() {
        let all = authenticators();
        let other = ["other".to_owned()];
        assert!(all.authenticate_token("secret", Some(&other)).await.response.is_none());
        let both = ["other".to_owned(), "api".to_owned()];
        let outcome = all.authenticate_token("secret", Some(&both)).await;
        assert_eq!(outcome.response.unwrap().audiences, ["api"]);
    }
}
