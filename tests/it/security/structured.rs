//! `--authentication-config`: issuers of tokens and who is anonymous, as a file that may change.

use std::fs;
use std::path::PathBuf;

use jsonwebtoken::{Algorithm, EncodingKey, Header};

use super::remote::{KEY, Outside, provider};
use super::*;

/// A file that believes the provider, with changes in its only issuer.
fn file(outside: &Outside, change: impl FnOnce(&mut Value)) -> String {
    let mut issuer = json!({
        "issuer": {"url": outside.url(), "audiences": ["kube", "other"], "audienceMatchPolicy": "MatchAny",
            "certificateAuthority": outside.authority.certificate_pem()},
        "claimValidationRules": [
            {"claim": "hd", "requiredValue": "example"},
            {"expression": "claims.exp - claims.iat <= 86400", "message": "it lives for too long"}],
        "claimMappings": {
            "username": {"expression": "claims.username + ':external-user'"},
            "groups": {"expression": "claims.roles.split(',')"},
            "uid": {"claim": "sub"},
            "extra": [{"key": "example.com/tenant", "valueExpression": "claims.?tenant.orValue('')"}]},
        "userValidationRules": [
            {"expression": "!user.username.startsWith('system:')", "message": "that name is taken"},
            {"expression": "user.groups.all(group, !group.startsWith('system:'))"}]});
    change(&mut issuer);
    let anonymous = json!({"enabled": true, "conditions": [{"path": "/livez"}]});
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "anonymous": anonymous, "jwt": [issuer]})
    .to_string()
}

async fn with(outside: &Outside) -> (Guarded, PathBuf) {
    let mut path = PathBuf::new();
    let guarded = Guarded::start(|folder, flags| {
        path = folder.join("authentication");
        fs::write(&path, file(outside, |_| ())).unwrap();
        flags.config_file = Some(path.clone());
    })
    .await;
    (guarded, path)
}

fn token(said: &Value) -> String {
    let header = Header { kid: Some("one".into()), ..Header::new(Algorithm::RS256) };
    jsonwebtoken::encode(&header, said, &EncodingKey::from_rsa_pem(KEY.as_bytes()).unwrap()).unwrap()
}

fn claims_of(guarded: &Guarded, outside: &Outside) -> Value {
    let now = guarded.clock.now().timestamp();
    json!({"iss": outside.url(), "aud": ["kube"], "exp": now + 600, "iat": now, "sub": "u1", "hd": "example",
        "username": "jane", "roles": "dev,ops", "tenant": "blue", "jti": "j1"})
}

/// What a TokenReview says of a token.
async fn review(guarded: &Guarded, token: &str) -> Value {
    let review = json!({"spec": {"token": token}});
    let answer = guarded.admin("POST /apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    answer.json()["status"].clone()
}

#[tokio::test]
async fn users_are_made_of_claims_by_expressions() {
    let outside = Outside::start(provider).await;
    let (guarded, _) = with(&outside).await;
    let base = claims_of(&guarded, &outside);
    let status = review(&guarded, &token(&base)).await;
    let user = json!({"username": "jane:external-user", "uid": "u1",
        "groups": ["dev", "ops", "system:authenticated"],
        "extra": {"example.com/tenant": ["blue"], "authentication.kubernetes.io/credential-id": ["JTI=j1"]}});
    assert_eq!(status["user"], user, "{status}");
    let end = base["exp"].as_i64().unwrap();
    for (claim, value, words) in [
        ("aud", json!("nobody"), "oidc: expected audience in [\"kube\" \"other\"] got [\"nobody\"]"),
        ("hd", json!("evil"), "required claim hd value does not match. Got = evil, want = example"),
        (
            "iat",
            json!(end - 86_401),
            "oidc: error evaluating claim validation expression: validation expression 'claims.exp - \
             claims.iat <= 86400' failed: it lives for too long",
        ),
        (
            "username",
            json!("system:admin"),
            "oidc: error evaluating user info validation rule: validation expression \
             '!user.username.startsWith('system:')' failed: that name is taken",
        ),
        ("username", json!(7), "oidc: error evaluating username claim expression: "),
        ("roles", json!("system:masters"), "'user.groups.all(group, !group.startsWith('system:'))' failed"),
        ("exp", json!(1), "oidc: token is expired"),
        ("sub", Value::Null, "oidc: parse uid claim \"sub\": "),
    ] {
        let mut said = base.clone();
        said[claim] = value.clone();
        let status = review(&guarded, &token(&said)).await;
        let error = status["error"].as_str().unwrap_or_default();
        assert!(error.contains(words), "{claim} {value}: {status}");
        assert_eq!(guarded.whose(&token(&said)).await, "401", "{claim} {value}");
    }
    let mut without = base.clone();
    without.as_object_mut().unwrap().remove("tenant");
    let status = review(&guarded, &token(&without)).await;
    assert_eq!(status["user"]["extra"]["example.com/tenant"], Value::Null, "what is empty is not there");
}

#[tokio::test]
async fn anybody_is_let_in_where_the_file_says() {
    let outside = Outside::start(provider).await;
    let (guarded, _) = with(&outside).await;
    for (path, code) in [("/livez", 200), ("/livez/", 401), ("/readyz", 401), ("/api/v1/nodes", 401)] {
        let answer = guarded.ask(&format!("GET {path}"), &[], &Value::Null).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_file_that_changes_is_followed_and_a_wrong_one_is_not() {
    let outside = Outside::start(provider).await;
    let (guarded, path) = with(&outside).await;
    let said = claims_of(&guarded, &outside);
    assert_eq!(guarded.whose(&token(&said)).await, "jane:external-user");
    let by_claim = json!({"username": {"claim": "username", "prefix": "oidc:"}});
    fs::write(&path, file(&outside, |issuer| issuer["claimMappings"] = by_claim)).unwrap();
    guarded.forget_tokens();
    assert_eq!(guarded.whose(&token(&said)).await, "oidc:jane");
    fs::write(&path, "nonsense: true").unwrap();
    guarded.forget_tokens();
    assert_eq!(guarded.whose(&token(&said)).await, "oidc:jane");
    fs::write(&path, file(&outside, |issuer| issuer["issuer"]["audiences"] = json!(["x", "y"]))).unwrap();
    guarded.forget_tokens();
    assert_eq!(guarded.whose(&token(&said)).await, "401");
}
