//! Those outside who know tokens: an OpenID Connect provider, and a webhook.

use std::fs;
use std::sync::Mutex;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use kubarium::apimachinery::wire::{ApiRequest, ApiResponse};
use kubarium::apiserver::authentication::oidc::OidcOptions;
use kubarium::apiserver::authentication::webhook::TokenWebhookOptions;
use kubarium::apiserver::server::{Server, Tls, bind};

use super::*;
use http_body_util::BodyExt;

/// What stands in front of the place that an answer sends its reader to.
const MOVED: &str = "moved to ";

/// A server of somebody else's, over TLS.
pub(crate) struct Outside {
    server: Server,
    /// Who signed its certificate.
    pub authority: Authority,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Outside {
    /// Answers with what `answer` makes of the server's own URL, the path and the body.
    pub(crate) async fn start(answer: fn(&str, &str, &Value) -> Value) -> Outside {
        let now = Clock::real().now();
        let authority = Authority::generate(now).unwrap();
        let identity = authority.server(&["localhost"], &["127.0.0.1".parse().unwrap()], now).unwrap();
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let log = asked.clone();
        let service = ApiService::new(tower::service_fn(move |request: ApiRequest| {
            let (url, log) = (url.clone(), log.clone());
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                log.lock().unwrap().push((path.clone(), body.clone()));
                let text = match answer(&url, &path, &body) {
                    Value::String(text) => text,
                    tree => tree.to_string(),
                };
                let mut response = ApiResponse::default();
                match text.strip_prefix(MOVED) {
                    Some(place) => {
                        *response.status_mut() = http::StatusCode::TEMPORARY_REDIRECT;
                        response.headers_mut().insert("location", place.parse().unwrap());
                    }
                    None => *response.body_mut() = Body::from(text),
                }
                Ok(response)
            }
        }));
        let tls = Tls { identity, client_authorities: vec![], demands_client_certificates: false };
        Outside { server: Server::start(listener, Some(&tls), service).unwrap(), authority, asked }
    }

    /// As `https://127.0.0.1:1234`.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.server.address())
    }

    fn times_asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// The provider's key; the same in every run.
pub(crate) const KEY: &str =
    include_str!("../../../src/apiserver/authentication/service_account/testdata/rsa-private.pem");

/// An OpenID Connect provider.
pub(crate) fn provider(url: &str, path: &str, _body: &Value) -> Value {
    match path {
        "/.well-known/openid-configuration" => json!({"issuer": url, "jwks_uri": format!("{url}/keys")}),
        "/keys" => {
            let keys = kubarium::apiserver::authentication::service_account::keys::public_keys(KEY).unwrap();
            let mut key = keys[0].jwk.clone();
            key["kid"] = "one".into();
            json!({"keys": [key]})
        }
        _ => Value::Null,
    }
}

/// With the provider outside as the issuer.
fn oidc(outside: &Outside, folder: &Path) -> OidcOptions {
    let path = folder.join("ca.crt");
    fs::write(&path, outside.authority.certificate_pem()).unwrap();
    OidcOptions {
        issuer_url: Some(outside.url()),
        client_id: "kube".into(),
        username_claim: "sub".into(),
        signing_algorithms: vec!["RS256".into()],
        ca_file: Some(path),
        ..OidcOptions::default()
    }
}

#[tokio::test]
async fn a_provider_is_asked_for_its_keys_when_the_first_token_comes() {
    let outside = Outside::start(provider).await;
    let guarded = Guarded::start(|folder, flags| flags.oidc = oidc(&outside, folder)).await;
    let end = guarded.clock.now().timestamp() + 600;
    let token = |id: &str, algorithm: Algorithm| {
        let header = Header { kid: Some(id.into()), ..Header::new(algorithm) };
        let key = EncodingKey::from_rsa_pem(KEY.as_bytes()).unwrap();
        let said = json!({"iss": outside.url(), "aud": "kube", "exp": end, "sub": "jane"});
        jsonwebtoken::encode(&header, &said, &key).unwrap()
    };
    assert_eq!(outside.times_asked(), 0);
    let jane = format!("{}#jane", outside.url());
    assert_eq!(guarded.whose(&token("one", Algorithm::RS256)).await, jane);
    assert_eq!(guarded.whose(&token("one", Algorithm::RS512)).await, "401", "not an algorithm of the flags");
    assert_eq!(outside.times_asked(), 2, "the document and the keys");
    assert_eq!(guarded.whose(&token("two", Algorithm::RS256)).await, "401");
    assert_eq!(outside.times_asked(), 2, "it is not asked again at once");
    guarded.clock.advance(Duration::from_secs(2));
    assert_eq!(guarded.whose(&token("two", Algorithm::RS256)).await, "401");
    assert_eq!(outside.times_asked(), 4, "it may have a new key");
    assert_eq!(guarded.whose(&guarded.token(json!({})).await).await, "system:serviceaccount:default:builder");
}

/// The same provider, which keeps the groups of its users elsewhere.
fn provider_of_groups(url: &str, path: &str, body: &Value) -> Value {
    let signed = |claims: Value| {
        let header = Header { kid: Some("one".into()), ..Header::new(Algorithm::RS256) };
        let key = EncodingKey::from_rsa_pem(KEY.as_bytes()).unwrap();
        Value::String(jsonwebtoken::encode(&header, &claims, &key).unwrap())
    };
    let end = 4_000_000_000_u64;
    match path {
        "/groups" => signed(json!({"iss": url, "aud": "kube", "exp": end, "groups": ["dev", "ops"]})),
        "/none" => signed(json!({"iss": url, "aud": "kube", "exp": end})),
        "/others" => signed(json!({"iss": url, "aud": "other", "exp": end, "groups": ["system:masters"]})),
        "/old" => signed(json!({"iss": url, "aud": "kube", "exp": 1, "groups": ["system:masters"]})),
        "/moved" => format!("{MOVED}/groups").into(),
        "/unsigned" => json!("eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0."),
        _ => provider(url, path, body),
    }
}

#[tokio::test]
async fn groups_may_be_told_by_somebody_else() {
    let outside = Outside::start(provider_of_groups).await;
    let guarded = Guarded::start(|folder, flags| {
        let (username_prefix, groups_claim) = ("-".into(), "groups".into());
        flags.oidc = OidcOptions { username_prefix, groups_claim, ..oidc(&outside, folder) };
    })
    .await;
    let url = outside.url();
    let end = guarded.clock.now().timestamp() + 600;
    let at = |path: &str| {
        json!({"_claim_names": {"groups": "src"},
        "_claim_sources": {"src": {"endpoint": format!("{url}{path}"), "access_token": "t"}}})
    };
    let both = json!({"groups": ["own"], "_claim_names": {"groups": "src"}});
    for (more, groups) in [
        (at("/groups"), Some("dev,ops")),
        (at("/moved"), Some("dev,ops")),
        (both, Some("own")),
        (json!({"_claim_names": {"other": "src"}, "_claim_sources": {}}), Some("")),
        (json!({"_claim_names": {"groups": "src"}, "_claim_sources": {"src": {"JWT": "x"}}}), Some("")),
        (at("/none"), None),
        (at("/others"), None),
        (at("/old"), None),
        (at("/unsigned"), None),
        (json!({"_claim_names": {"groups": "src"}}), None),
        (json!({"_claim_names": {"groups": "src"}, "_claim_sources": {}}), None),
        (json!({"_claim_names": ["groups"], "_claim_sources": {}}), None),
    ] {
        let mut said = json!({"iss": url, "aud": "kube", "exp": end, "sub": "jane"});
        said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let header = Header { kid: Some("one".into()), ..Header::new(Algorithm::RS256) };
        let key = EncodingKey::from_rsa_pem(KEY.as_bytes()).unwrap();
        let token = jsonwebtoken::encode(&header, &said, &key).unwrap();
        let bearer = format!("Bearer {token}");
        let review = json!({"metadata": {}});
        let path = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
        let answer = guarded.ask(path, &[("authorization", &bearer)], &review).await;
        let found: Option<Vec<String>> =
            answer.json()["status"]["userInfo"]["groups"].as_array().map(|groups| {
                let groups = groups.iter().filter_map(Value::as_str);
                groups.filter(|group| *group != "system:authenticated").map(str::to_owned).collect()
            });
        assert_eq!(found.map(|groups| groups.join(",")), groups.map(str::to_owned), "{more} {}", answer.text);
    }
}

fn webhook(_url: &str, path: &str, review: &Value) -> Value {
    if path == "/old" {
        return format!("{MOVED}review").into();
    }
    let status = match review["spec"]["token"].as_str().unwrap_or_default() {
        "good" => json!({"authenticated": true,
            "user": {"username": "jane", "uid": "u1", "groups": ["dev"], "extra": {"a": ["b"]}}}),
        "masters" => {
            json!({"authenticated": true, "user": {"username": "root", "groups": ["system:masters"]}})
        }
        "bad" => json!({"authenticated": false, "error": "it was stolen"}),
        _ => json!({"authenticated": false}),
    };
    json!({"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": status})
}

#[tokio::test]
async fn a_webhook_is_asked_and_its_answer_remembered() {
    let outside = Outside::start(webhook).await;
    let guarded = Guarded::start(|folder, flags| {
        fs::write(folder.join("ca.crt"), outside.authority.certificate_pem()).unwrap();
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("{}//old/", outside.url()),
                "certificate-authority": "ca.crt"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}]});
        let path = folder.join("webhook");
        fs::write(&path, config.to_string()).unwrap();
        let cache_time_to_live = Duration::from_secs(120);
        flags.webhook =
            TokenWebhookOptions { config_file: Some(path), version: "v1".into(), cache_time_to_live };
    })
    .await;
    let cases = [
        ("good", "jane"),
        ("good", "jane"),
        ("masters", "*"),
        ("bad", "401"),
        ("other", "401"),
        ("bad", "401"),
    ];
    for (token, user) in cases {
        assert_eq!(guarded.whose(token).await, user, "{token}");
    }
    assert_eq!(outside.times_asked(), 8, "each token once, and where that sends it");
    let [(first, _), (path, review)] = outside.asked.lock().unwrap()[..2].to_vec().try_into().unwrap();
    assert_eq!((&*first, &*path), ("/old", "/review"));
    assert_eq!(review["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(review["spec"], json!({"token": "good"}));
    guarded.clock.advance(Duration::from_secs(121));
    assert_eq!(guarded.whose("good").await, "jane");
    assert_eq!(outside.times_asked(), 10);
}
