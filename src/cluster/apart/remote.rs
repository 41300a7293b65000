//! `RemoteApi`: an apiserver in another process, as the service that components ask (client-go's
//! `rest.Config`).
//!
//! Trees become JSON on the way, answers come back as bytes. Requests wait their turn (`--kube-api-qps`,
//! `--kube-api-burst`), each user's by themselves, and watches never, as in client-go. A server that is away
//! is an answer, too: 503 with Go's words for why; that it is away is said once, and that it is back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, StatusCode, Uri};
use serde_json::{Value, json};
use sync::Mutex;

use super::credentials::{self, AskedAs, ComponentCredentials, SpeaksAs};
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, DecodedBody, InProcessUser, status_response};
use apiserver::webhook::{ClientConfig, Lanes};
use client_go::lease_hold::LeaseHold;
use client_go::token_bucket::TokenBucket;
use clock::Clock;

/// Users whose requests wait by themselves; beyond it all of them begin anew.
const MAX_USERS: usize = 10_000;
/// A server that was away counts as back for so long, whatever single requests say.
const SETTLED: Duration = Duration::from_secs(2);
/// An answer of the server to us ourselves is no larger.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// How many requests of one user (client-go's `rest.Config.QPS` and `Burst`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestLimits {
    /// So many a second; below or at 0 there is no limit.
    pub(crate) qps: f64,
    /// So many at once.
    pub(crate) burst: u32,
}

/// An apiserver that is elsewhere. Cloning shares it.
#[derive(Clone)]
pub(crate) struct RemoteApi(Arc<RemoteInner>);

struct RemoteInner {
    /// As `https://127.0.0.1:6443`, with a path perhaps, and without a slash at the end.
    server: String,
    user_agent: HeaderValue,
    lanes: Lanes,
    /// Without the kubeconfig's certificate, which would count more than the token of an account.
    without_certificate: Lanes,
    credentials: ComponentCredentials,
    limits: RequestLimits,
    /// By user. Bound: [`MAX_USERS`].
    turns: Mutex<BTreeMap<String, TokenBucket>>,
    presence: Mutex<ServerPresence>,
    tell: Tell,
    clock: Clock,
}

/// Whether the server is there, as it was told last, and since when.
struct ServerPresence {
    is_away: bool,
    since: Duration,
}

/// Tells whoever has started the process.
pub(crate) type Tell = fn(&str);

impl RemoteApi {
    /// As a kubeconfig says; nothing is connected yet.
    pub(crate) fn new(
        config: ClientConfig,
        speaks_as: SpeaksAs,
        limits: RequestLimits,
        clock: &Clock,
        tell: Tell,
    ) -> RemoteApi {
        let server = config.target.url().trim_end_matches('/').to_owned();
        let credentials = ComponentCredentials::new(&config, speaks_as, clock);
        RemoteApi(Arc::new(RemoteInner {
            server,
            user_agent: HeaderValue::from_static(config.user_agent),
            without_certificate: Lanes::new(config.anonymous()),
            lanes: Lanes::new(config),
            credentials,
            limits,
            turns: Mutex::default(),
            presence: Mutex::new(ServerPresence { is_away: false, since: Duration::ZERO }),
            tell,
            clock: clock.clone(),
        }))
    }

    /// Where it is.
    pub(crate) fn server(&self) -> &str {
        &self.0.server
    }

    /// Tells whoever has started the process.
    pub(crate) fn tell(&self, line: &str) {
        (self.0.tell)(line);
    }

    /// What components ask.
    pub(crate) fn service(&self) -> ApiService {
        let inner = self.0.clone();
        ApiService::new(tower::service_fn(move |request| {
            let inner = inner.clone();
            async move { Ok(inner.answer(request).await) }
        }))
    }

    /// Who the kubeconfig's user is (`SelfSubjectReview`).
    ///
    /// # Errors
    /// The server's refusal, or that it is away.
    pub(crate) async fn who_am_i(&self) -> Result<String, Status> {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let answer = self.0.ask_itself(Method::POST, path, &body).await?;
        let name = answer["status"]["userInfo"]["username"].as_str().unwrap_or_default().to_owned();
        self.0.credentials.is_named(&name);
        Ok(name)
    }
}

impl RemoteInner {
    async fn answer(&self, request: ApiRequest) -> ApiResponse {
        let user = request.extensions().get::<InProcessUser>().map(|InProcessUser(user)| user.clone());
        if !request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            self.wait_turn(user.as_deref()).await;
        }
        let answered = self.ask(request, user.as_deref()).await;
        answered.unwrap_or_else(|status| status_response(status, true))
    }

    async fn wait_turn(&self, user: Option<&UserInfo>) {
        if self.limits.qps <= 0.0 {
            return;
        }
        let pause = self.turn_of(user.map_or("", |user| &user.name));
        if !pause.is_zero() {
            self.clock.sleep(pause).await;
        }
    }

    fn turn_of(&self, user: &str) -> Duration {
        let (now, RequestLimits { qps, burst }) = (self.clock.elapsed(), self.limits);
        let mut turns = self.turns.lock();
        if let Some(turn) = turns.get_mut(user) {
            return turn.reserve(now);
        }
        if turns.len() >= MAX_USERS {
            turns.clear();
        }
        turns.entry(user.to_owned()).or_insert_with(|| TokenBucket::new(qps, burst, now)).reserve(now)
    }

    /// In the name that is wanted. An account that the server does not know any more is asked for anew with
    /// the next request.
    async fn ask(&self, mut request: ApiRequest, user: Option<&UserInfo>) -> Result<ApiResponse, Status> {
        let wanted = self.credentials.wanted(user);
        let own = match wanted {
            AskedAs::Account(account) => {
                Some(self.credentials.of_account(account, || self.fetch_token(account)).await?)
            }
            _ => self.credentials.own(),
        };
        credentials::put_own(request.headers_mut(), own);
        if let AskedAs::Impersonated(user) = wanted {
            credentials::put_impersonated(request.headers_mut(), user);
        }
        let lanes = match wanted {
            AskedAs::Account(_) => &self.without_certificate,
            _ => &self.lanes,
        };
        let response = self.send(lanes, request).await?;
        if let (AskedAs::Account(account), StatusCode::UNAUTHORIZED) = (wanted, response.status()) {
            self.credentials.forget(account);
        }
        Ok(response)
    }

    async fn send(&self, lanes: &Lanes, request: ApiRequest) -> Result<ApiResponse, Status> {
        let (mut parts, mut body) = request.into_parts();
        // It has waited for its turn meanwhile.
        if let Some(hold) = parts.extensions.get::<LeaseHold>() {
            hold.check(&parts.method)?;
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = format!("{}{path}", self.server);
        if let Some(DecodedBody(tree)) = parts.extensions.remove() {
            body = Body::from(serde_json::to_vec(&*tree).map_err(Status::internal)?);
        }
        let mut outgoing = http::Request::new(body);
        *outgoing.uri_mut() =
            url.parse::<Uri>().map_err(|error| Status::bad_request(format!("{url}: {error}")))?;
        (*outgoing.method_mut(), *outgoing.headers_mut()) = (parts.method, parts.headers);
        outgoing.headers_mut().insert(USER_AGENT, self.user_agent.clone());
        match lanes.send(outgoing).await {
            Ok(response) => {
                self.is_back();
                Ok(response)
            }
            Err(why) => Err(self.is_away(&why.message)),
        }
    }

    fn is_back(&self) {
        let mut presence = self.presence.lock();
        if !presence.is_away {
            return;
        }
        *presence = ServerPresence { is_away: false, since: self.clock.elapsed() };
        drop(presence);
        (self.tell)(&format!("{} answers again.", self.server));
    }

    /// Requests that were under way when it came back may still say that it is away.
    fn is_away(&self, why: &str) -> Status {
        let now = self.clock.elapsed();
        let mut presence = self.presence.lock();
        let is_news = !presence.is_away && now >= presence.since + SETTLED;
        if is_news {
            *presence = ServerPresence { is_away: true, since: now };
        }
        drop(presence);
        if is_news {
            let text = format!("{} cannot be reached, and is asked until it answers: {why}", self.server);
            (self.tell)(&text);
        }
        Status::unreachable(why)
    }

    /// A token of an account, which is made if there is none (`SAControllerClientBuilder`).
    async fn fetch_token(&self, account: &str) -> Result<String, Status> {
        let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", credentials::NAMESPACE);
        let path = format!("{accounts}/{account}/token");
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": credentials::TOKEN_SECONDS}});
        let answer = match self.ask_itself(Method::POST, &path, &body).await {
            Err(status) if status.is_not_found() => {
                let made =
                    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
                match self.ask_itself(Method::POST, &accounts, &made).await {
                    Err(status) if !status.is_already_exists() => return Err(status),
                    _ => self.ask_itself(Method::POST, &path, &body).await?,
                }
            }
            answer => answer?,
        };
        credentials::token_in(&answer)
    }

    /// In the kubeconfig's own name.
    async fn ask_itself(&self, method: Method, path: &str, body: &Value) -> Result<Value, Status> {
        let mut request = http::Request::new(Body::from(body.to_string()));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(Status::internal)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        credentials::put_own(request.headers_mut(), self.credentials.own());
        let response = self.send(&self.lanes, request).await?;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), MAX_ANSWER_BYTES).await;
        let body = body.map_err(Status::internal)?;
        let refused = |_| Status::failure(status.as_u16(), "", String::from_utf8_lossy(&body));
        if status.is_success() {
            serde_json::from_slice(&body).map_err(Status::internal)
        } else {
            Err(serde_json::from_slice(&body).unwrap_or_else(refused))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Components, Config, Listen};
    use apimachinery::options::{DeleteOptions, ListOptions, PatchType};
    use apimachinery::watch::WatchEvent;
    use apis::core::config_map::CONFIG_MAPS;
    use apiserver::webhook::WebhookTarget;
    use client_go::client::Client;
    use flow::Flow;

    const NO_LIMITS: RequestLimits = RequestLimits { qps: 0.0, burst: 0 };

    fn config_of(cluster: &Cluster) -> ClientConfig {
        let access = cluster.access().unwrap();
        let mut config = ClientConfig::new(WebhookTarget::Url(access.server));
        config.ca_bundle = access.authority_pem.unwrap().into_bytes();
        let identity = access.identity.unwrap();
        config.identity = Some((identity.certificate_pem.into_bytes(), identity.key_pem.into_bytes()));
        config
    }

    fn client(api: &RemoteApi, user: UserInfo) -> Client {
        Client::new(api.service(), Arc::new(user), Clock::real(), Flow::off())
    }

    async fn cluster() -> Cluster {
        let config = Config::new().nodes(0).components(Components::NONE).listen(Listen::loopback());
        Cluster::start(config).await.unwrap()
    }

    #[tokio::test]
    async fn objects_lists_and_watches_come_over_the_wire() {
        let cluster = cluster().await;
        let api = RemoteApi::new(config_of(&cluster), SpeaksAs::Itself, NO_LIMITS, &Clock::real(), |_| ());
        assert_eq!(api.who_am_i().await.unwrap(), "kubernetes-admin");
        let client = client(&api, UserInfo::authenticated("anybody", &[]));
        let tree = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
        let made = client.create(&CONFIG_MAPS, "default", tree).await.unwrap();
        let options = ListOptions {
            resource_version: Some(made.metadata.resource_version.to_string()),
            ..ListOptions::default()
        };
        let mut events = client.watch(&CONFIG_MAPS, "default", &options).await.unwrap();
        let patch = json!({"data": {"k": "w"}});
        client.patch(&CONFIG_MAPS, "default", "a", PatchType::Merge, &patch).await.unwrap();
        let Some(WatchEvent::Modified(seen)) = events.recv().await else { panic!("it was changed") };
        assert_eq!(seen.to_value()["data"]["k"], "w");
        let list = client.list(&CONFIG_MAPS, "default", &ListOptions::default()).await.unwrap();
        assert!(list.items.iter().any(|item| item.key() == "default/a"));
        client.delete(&CONFIG_MAPS, "default", "a", &DeleteOptions::default()).await.unwrap();
        assert!(client.get(&CONFIG_MAPS, "default", "a").await.unwrap_err().is_not_found());
        assert!(matches!(events.recv().await, Some(WatchEvent::Deleted(_))));
        cluster.stop().await;
    }

    /// One connection of HTTP/2 takes a hundred.
    #[tokio::test]
    async fn more_watches_than_a_connection_takes_are_open_at_once() {
        let cluster = cluster().await;
        let api = RemoteApi::new(config_of(&cluster), SpeaksAs::Itself, NO_LIMITS, &Clock::real(), |_| ());
        let client = client(&api, UserInfo::authenticated("anybody", &[]));
        let mut watches = Vec::new();
        for _ in 0..120 {
            watches.push(client.watch(&CONFIG_MAPS, "default", &ListOptions::default()).await.unwrap());
        }
        client.create(&CONFIG_MAPS, "default", json!({"metadata": {"name": "a"}})).await.unwrap();
        for events in &mut watches {
            let of_it = |event: &WatchEvent| event.object().is_some_and(|object| object.key() == "default/a");
            while !events.recv().await.as_ref().is_some_and(of_it) {}
        }
        cluster.stop().await;
    }

    #[tokio::test]
    async fn controllers_and_kubelets_ask_in_their_own_names() {
        let cluster = cluster().await;
        let api = RemoteApi::new(config_of(&cluster), SpeaksAs::Accounts, NO_LIMITS, &Clock::real(), |_| ());
        let account = client(&api, UserInfo::service_account("kube-system", "job-controller"));
        let refused = account.list(&CONFIG_MAPS, "", &ListOptions::default()).await.unwrap_err();
        let who = "User \"system:serviceaccount:kube-system:job-controller\" cannot list";
        assert!(refused.code == 403 && refused.message.contains(who), "{refused:?}");
        let api = RemoteApi::new(config_of(&cluster), SpeaksAs::Others, NO_LIMITS, &Clock::real(), |_| ());
        let node = client(&api, UserInfo::authenticated("system:node:n", &["system:nodes"]));
        let refused = node.list(&CONFIG_MAPS, "", &ListOptions::default()).await.unwrap_err();
        assert!(refused.code == 403 && refused.message.contains("User \"system:node:n\""), "{refused:?}");
        cluster.stop().await;
    }

    #[tokio::test]
    async fn a_server_that_is_away_is_an_answer_in_gos_words() {
        let config = ClientConfig::new(WebhookTarget::Url("http://127.0.0.1:1".into()));
        let api = RemoteApi::new(config, SpeaksAs::Itself, NO_LIMITS, &Clock::real(), |_| ());
        let client = client(&api, UserInfo::authenticated("anybody", &[]));
        let why = client.get(&CONFIG_MAPS, "default", "a").await.unwrap_err();
        let wanted = "Get \"http://127.0.0.1:1/api/v1/namespaces/default/configmaps/a\": dial tcp 127.0.0.1:1: \
            connect: connection refused";
        assert!(why.is_unreachable() && why.message == wanted, "{why:?}");
    }

    #[test]
    fn that_a_server_is_away_is_said_once_and_that_it_is_back() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let config = ClientConfig::new(WebhookTarget::Url("http://127.0.0.1:1".into()));
        let api = RemoteApi::new(config, SpeaksAs::Itself, NO_LIMITS, &clock, |_| ());
        let is_away = || api.0.presence.lock().is_away;
        clock.advance(SETTLED);
        assert!(api.0.is_away("refused").is_unreachable() && is_away());
        api.0.is_back();
        api.0.is_away("a request that was under way");
        assert!(!is_away());
        clock.advance(SETTLED);
        api.0.is_away("refused");
        assert!(is_away());
    }

    #[tokio::test]
    async fn requests_wait_their_turn_each_users_by_themselves() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let config = ClientConfig::new(WebhookTarget::Url("http://127.0.0.1:1".into()));
        let limits = RequestLimits { qps: 2.0, burst: 2 };
        let api = RemoteApi::new(config, SpeaksAs::Itself, limits, &clock, |_| ());
        let pauses = [(); 4].map(|()| api.0.turn_of("a").as_millis());
        assert_eq!(pauses, [0, 0, 500, 1000]);
        assert!(api.0.turn_of("b").is_zero());
        for user in 0..MAX_USERS {
            api.0.turn_of(&user.to_string());
        }
        assert!(api.0.turns.lock().len() <= MAX_USERS);
    }
}
