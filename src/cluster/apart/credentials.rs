//! In whose name a component in a process of its own asks: its kubeconfig's user, accounts that it gets
//! tokens of (`--use-service-account-credentials`), or whomever it may impersonate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apiserver::webhook::ClientConfig;
use clock::Clock;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use sync::Mutex;
use tokio::sync::Mutex as Turn;

/// A file with a token is read again after so long (client-go's `cachingTokenSource`).
const FILE_PERIOD: Duration = Duration::from_secs(60);
/// How long the tokens of accounts are asked for; others are asked for when a fifth of that is left.
pub(super) const TOKEN_SECONDS: u64 = 3600;
const RENEW_AFTER: Duration = Duration::from_secs(TOKEN_SECONDS * 4 / 5);
/// Where the accounts of controllers are.
pub(super) const NAMESPACE: &str = "kube-system";
const ACCOUNT: &str = "system:serviceaccount:kube-system:";
/// What everybody is a member of who is somebody: nobody has to be made one.
const AUTHENTICATED: &str = "system:authenticated";

/// In whose name it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpeaksAs {
    /// As the kubeconfig's user, whoever in the process asks.
    Itself,
    /// Each controller as its account in `kube-system`.
    Accounts,
    /// Each kubelet as its node: the kubeconfig's user impersonates it, unless it is it.
    Others,
}

/// Everything that says who we are.
pub(super) struct ComponentCredentials {
    speaks_as: SpeaksAs,
    authorization: Option<String>,
    token_file: Option<std::path::PathBuf>,
    /// What stood in that file, and when.
    read: Mutex<Option<(Duration, String)>>,
    /// By account. Bound: the accounts of controllers, which are known.
    tokens: Mutex<BTreeMap<String, Arc<Turn<Option<AccountToken>>>>>,
    clock: Clock,
    /// Who the kubeconfig's user is, once the server has said it.
    own_name: Mutex<Option<String>>,
}

/// A token, and since when it is ours.
#[derive(Clone)]
struct AccountToken {
    header: String,
    since: Duration,
}

/// What a request is to say of who asks.
#[derive(Debug, PartialEq)]
pub(super) enum AskedAs<'a> {
    Own,
    Account(&'a str),
    Impersonated(&'a UserInfo),
}

impl ComponentCredentials {
    pub(super) fn new(config: &ClientConfig, speaks_as: SpeaksAs, clock: &Clock) -> ComponentCredentials {
        ComponentCredentials {
            speaks_as,
            authorization: config.authorization.clone(),
            token_file: config.token_file.clone(),
            read: Mutex::default(),
            tokens: Mutex::default(),
            clock: clock.clone(),
            own_name: Mutex::default(),
        }
    }

    /// The server has said who the kubeconfig's user is.
    pub(super) fn is_named(&self, name: &str) {
        *self.own_name.lock() = Some(name.to_owned());
    }

    /// What a request of `user` is to say.
    pub(super) fn wanted<'a>(&self, user: Option<&'a UserInfo>) -> AskedAs<'a> {
        let Some(user) = user else { return AskedAs::Own };
        match (self.speaks_as, user.name.strip_prefix(ACCOUNT)) {
            (SpeaksAs::Accounts, Some(account)) => AskedAs::Account(account),
            (SpeaksAs::Others, _) if self.own_name.lock().as_deref() != Some(&*user.name) => {
                AskedAs::Impersonated(user)
            }
            _ => AskedAs::Own,
        }
    }

    /// Of the kubeconfig's user; a certificate says it without a header.
    pub(super) fn own(&self) -> Option<HeaderValue> {
        let said = self.token_of_file().or_else(|| self.authorization.clone())?;
        HeaderValue::from_str(&said).ok()
    }

    /// A file that cannot be read just now says what it said before.
    fn token_of_file(&self) -> Option<String> {
        let path = self.token_file.as_ref()?;
        let now = self.clock.elapsed();
        let mut read = self.read.lock();
        if let Some((_, token)) = read.as_ref().filter(|(since, _)| now < *since + FILE_PERIOD) {
            return Some(token.clone());
        }
        match std::fs::read_to_string(path) {
            Ok(text) => *read = Some((now, format!("Bearer {}", text.trim()))),
            Err(error) => tracing::warn!("the token in {}: {error}", path.display()),
        }
        read.as_ref().map(|(_, token)| token.clone())
    }

    /// Of an account, whose token `fetch` gets when there is none that is fresh; one asks at a time.
    pub(super) async fn of_account<Fetched>(
        &self,
        account: &str,
        fetch: impl FnOnce() -> Fetched,
    ) -> Result<HeaderValue, Status>
    where
        Fetched: Future<Output = Result<String, Status>>,
    {
        let place = self.tokens.lock().entry(account.to_owned()).or_default().clone();
        let mut token = place.lock().await;
        let now = self.clock.elapsed();
        if token.as_ref().is_none_or(|token| now >= token.since + RENEW_AFTER) {
            let header = format!("Bearer {}", fetch().await?);
            *token = Some(AccountToken { header, since: now });
        }
        let header = token.as_ref().map(|token| token.header.as_str()).unwrap_or_default();
        HeaderValue::from_str(header).map_err(Status::internal)
    }

    /// The server does not know it: the next request asks for another.
    pub(super) fn forget(&self, account: &str) {
        self.tokens.lock().remove(account);
    }
}

/// `transport.ImpersonationConfig`
pub(super) fn put_impersonated(headers: &mut HeaderMap, user: &UserInfo) {
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.append(HeaderName::from_static(name), value);
        }
    };
    put("impersonate-user", &user.name);
    let groups = user.groups.iter().filter(|group| ***group != *AUTHENTICATED);
    groups.for_each(|group| put("impersonate-group", group));
}

/// In place of what the request said before.
pub(super) fn put_own(headers: &mut HeaderMap, own: Option<HeaderValue>) {
    headers.remove(AUTHORIZATION);
    if let Some(own) = own {
        headers.insert(AUTHORIZATION, own);
    }
}

/// The token in the answer to a `TokenRequest`.
pub(super) fn token_in(answer: &Value) -> Result<String, Status> {
    let token = answer["status"]["token"].as_str();
    token.map(str::to_owned).ok_or_else(|| Status::internal("the answer to a TokenRequest has no token"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apiserver::webhook::WebhookTarget;

    fn credentials(speaks_as: SpeaksAs, clock: &Clock) -> ComponentCredentials {
        let config = ClientConfig::new(WebhookTarget::Url("https://127.0.0.1:1".into()));
        ComponentCredentials::new(&config, speaks_as, clock)
    }

    fn stepped() -> Clock {
        Clock::stepped(chrono::DateTime::UNIX_EPOCH)
    }

    #[test]
    fn each_asks_in_the_name_that_is_wanted() {
        let account = UserInfo::service_account("kube-system", "job-controller");
        let node = UserInfo::authenticated("system:node:n", &["system:nodes"]);
        let own = UserInfo::authenticated("system:kube-controller-manager", &[]);
        let controllers = credentials(SpeaksAs::Accounts, &stepped());
        assert_eq!(controllers.wanted(Some(&account)), AskedAs::Account("job-controller"));
        assert_eq!(controllers.wanted(Some(&own)), AskedAs::Own);
        assert_eq!(credentials(SpeaksAs::Itself, &stepped()).wanted(Some(&account)), AskedAs::Own);
        let kubelets = credentials(SpeaksAs::Others, &stepped());
        assert_eq!(kubelets.wanted(Some(&node)), AskedAs::Impersonated(&node));
        kubelets.is_named("system:node:n");
        assert_eq!(kubelets.wanted(Some(&node)), AskedAs::Own);
        let mut headers = HeaderMap::new();
        put_impersonated(&mut headers, &node);
        assert_eq!(headers["impersonate-user"], "system:node:n");
        assert_eq!(headers.get_all("impersonate-group").iter().collect::<Vec<_>>(), ["system:nodes"]);
    }

    #[tokio::test]
    async fn a_token_is_asked_for_once_and_again_before_it_ends() {
        let clock = stepped();
        let credentials = credentials(SpeaksAs::Accounts, &clock);
        let get = async |text: &str| {
            let fetched = Ok(text.to_owned());
            let header = credentials.of_account("a", || std::future::ready(fetched)).await.unwrap();
            header.to_str().unwrap().to_owned()
        };
        assert_eq!(get("first").await, "Bearer first");
        assert_eq!(get("second").await, "Bearer first");
        clock.advance(RENEW_AFTER);
        assert_eq!(get("third").await, "Bearer third");
        credentials.forget("a");
        assert_eq!(get("fourth").await, "Bearer fourth");
        let refused = credentials.of_account("b", || std::future::ready(Err(Status::unauthorized()))).await;
        assert_eq!(refused.unwrap_err().code, 401);
    }

    #[test]
    fn a_token_that_changes_in_its_file_is_read_again() {
        let clock = stepped();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "one\n").unwrap();
        let mut config = ClientConfig::new(WebhookTarget::Url("https://127.0.0.1:1".into()));
        config.token_file = Some(path.clone());
        let credentials = ComponentCredentials::new(&config, SpeaksAs::Itself, &clock);
        assert_eq!(credentials.own().unwrap(), "Bearer one");
        std::fs::write(&path, "two").unwrap();
        assert_eq!(credentials.own().unwrap(), "Bearer one");
        clock.advance(FILE_PERIOD);
        assert_eq!(credentials.own().unwrap(), "Bearer two");
        std::fs::remove_file(&path).unwrap();
        clock.advance(FILE_PERIOD);
        assert_eq!(credentials.own().unwrap(), "Bearer two");
    }
}
