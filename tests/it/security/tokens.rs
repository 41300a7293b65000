//! Bearer tokens and passwords: those that count, and those that do not.

use std::fs;
use std::time::Duration;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use kubarium::apiserver::authentication::oidc::OidcOptions;

use super::*;

const BUILDER: &str = "system:serviceaccount:default:builder";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_service_account_is_known_by_its_token_and_forgeries_are_not() {
    let guarded = Guarded::start(|_, _| ()).await;
    let good = guarded.token(json!({})).await;
    assert_eq!(guarded.whose(&good).await, BUILDER);
    let said = claims(&good);
    let forge = |change: fn(&mut Value), key: &str| {
        let mut claims = said.clone();
        change(&mut claims);
        let header =
            Header { kid: jsonwebtoken::decode_header(&good).unwrap().kid, ..Header::new(Algorithm::ES256) };
        let key = kubarium_key(key);
        jsonwebtoken::encode(&header, &claims, &key).unwrap()
    };
    let own = &guarded.signing_key;
    let other = kubarium::pki::generate_signing_key().unwrap();
    let cases = [
        ("signed by another key", forge(|_| (), &other), "401"),
        ("of another issuer", forge(|claims| claims["iss"] = "https://evil".into(), own), "401"),
        ("for another audience", forge(|claims| claims["aud"] = json!(["vault"]), own), "401"),
        (
            "not valid yet",
            forge(|claims| claims["nbf"] = json!(claims["nbf"].as_i64().unwrap() + 3600), own),
            "401",
        ),
        ("expired", forge(|claims| claims["exp"] = json!(claims["iat"].as_i64().unwrap() - 61), own), "401"),
        (
            "of an account that is not there",
            forge(|claims| claims["kubernetes.io"]["serviceaccount"]["name"] = "x".into(), own),
            "401",
        ),
        (
            "of an account of before",
            forge(|claims| claims["kubernetes.io"]["serviceaccount"]["uid"] = "x".into(), own),
            "401",
        ),
        (
            "of a pod that is not there",
            forge(|claims| claims["kubernetes.io"]["pod"] = json!({"name": "p", "uid": "u"}), own),
            "401",
        ),
        (
            "of a node that is not there",
            forge(|claims| claims["kubernetes.io"]["node"] = json!({"name": "n", "uid": "u"}), own),
            "401",
        ),
        ("as it was made", forge(|_| (), own), BUILDER),
        ("with another payload", with_payload(&good, |claims| claims["sub"] = "system:admin".into()), "401"),
        ("without a signature", good.rsplit_once('.').unwrap().0.to_owned() + ".", "401"),
        ("cut off", good[..good.len() - 5].to_owned(), "401"),
        ("of algorithm none", unsigned(&good, "none"), "401"),
        ("of algorithm None", unsigned(&good, "None"), "401"),
        ("of no algorithm", unsigned(&good, ""), "401"),
        ("HS256 with the public key in PEM", with_public_key(&good, own, Confusion::Pem), "401"),
        ("HS256 with the public key in DER", with_public_key(&good, own, Confusion::Der), "401"),
        ("HS256 with nothing", with_public_key(&good, own, Confusion::Nothing), "401"),
        ("not a JWT", "a.b.c".into(), "401"),
        ("very long", "x".repeat(20_000), "401"),
    ];
    for (what, token, expected) in cases {
        assert_eq!(guarded.whose(&token).await, expected, "a token {what}");
    }
    let both = [("authorization", &*format!("Bearer {good}")), ("x-remote-user", "admin")];
    assert_eq!(guarded.who(&both).await, BUILDER);
    guarded.clock.advance(Duration::from_secs(3600 + 61));
    assert_eq!(guarded.whose(&good).await, "401", "an hour later");
}

#[tokio::test]
async fn a_bound_token_ends_with_what_it_is_bound_to() {
    let guarded = Guarded::start(|_, _| ()).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "builder",
        "containers": [{"name": "c", "image": "i"}]}});
    let secret = json!({"metadata": {"name": "s"}});
    for (kind, path, name, object) in [("Pod", PODS, "p", pod), ("Secret", SECRETS, "s", secret)] {
        let uid = guarded.create(path, object).await["metadata"]["uid"].clone();
        let reference = json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid});
        let token = guarded.token(json!({"boundObjectRef": reference})).await;
        assert_eq!(guarded.whose(&token).await, BUILDER);
        let part = kind.to_lowercase();
        assert_eq!(claims(&token)["kubernetes.io"][part.as_str()], json!({"name": name, "uid": uid}));
        let now = json!({"gracePeriodSeconds": 0});
        assert_eq!(guarded.admin(&format!("DELETE {path}/{name}"), &now).await.code, 200);
        assert_eq!(guarded.whose(&token).await, BUILDER, "it is remembered for a moment");
        guarded.forget_tokens();
        assert_eq!(guarded.whose(&token).await, "401", "its {kind} is gone");
    }
    let token = guarded.token(json!({})).await;
    assert_eq!(guarded.admin(&format!("DELETE {ACCOUNTS}/builder"), &Value::Null).await.code, 200);
    assert_eq!(guarded.whose(&token).await, "401", "its account is gone");
    guarded.create(ACCOUNTS, json!({"metadata": {"name": "builder"}})).await;
    assert_eq!(guarded.whose(&token).await, "401", "the new account of the same name is another");
}

#[tokio::test]
async fn a_token_request_is_checked_as_upstream_checks_it() {
    let guarded = Guarded::start(|_, flags| {
        flags.service_accounts.max_token_expiration = Some(Duration::from_secs(7200));
    })
    .await;
    let path = format!("POST {ACCOUNTS}/builder/token");
    let asked = guarded.admin(&path, &json!({"spec": {"expirationSeconds": 900}})).await.json();
    let owner = &asked["metadata"]["managedFields"][0];
    assert_eq!(owner["subresource"], "token", "{asked}");
    assert_eq!(owner["fieldsV1"], json!({"f:spec": {"f:expirationSeconds": {}}}));
    let kind = "TokenRequest.authentication.k8s.io";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "other",
        "containers": [{"name": "c", "image": "i"}]}});
    guarded.create(ACCOUNTS, json!({"metadata": {"name": "other"}})).await;
    guarded.create(PODS, pod).await;
    let reference = |kind: &str, name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}}});
    guarded.create(SECRETS, json!({"metadata": {"name": "s"}})).await;
    let cases = [
        (
            json!({"spec": {"expirationSeconds": 599}}),
            422,
            format!("{kind} \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"),
        ),
        (
            json!({"spec": {"expirationSeconds": 4_294_967_297_i64}}),
            422,
            format!("{kind} \"\" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"),
        ),
        (
            json!({"metadata": {"name": "x"}}),
            422,
            format!("{kind} \"builder\" is invalid: metadata.name: Invalid value: \"x\": must match the service account name if specified"),
        ),
        (
            reference("Pod", "p", ""),
            400,
            "cannot bind token for serviceaccount \"builder\" to pod running with different serviceaccount name.".into(),
        ),
        (reference("Pod", "q", ""), 404, "pods \"q\" not found".into()),
        (reference("ConfigMap", "q", ""), 400, "cannot bind token to object of type /v1, Kind=ConfigMap".into()),
        (
            reference("Secret", "s", "u"),
            409,
            "Operation cannot be fulfilled on Secret \"s\": the UID in the bound object reference (u) does not match the UID in record. The object might have been deleted and then recreated".into(),
        ),
    ];
    for (body, code, message) in cases {
        let answer = guarded.admin(&path, &body).await;
        assert_eq!((answer.code, answer.status().2), (code, message), "{body}");
    }
    let answer =
        guarded.admin(&path, &json!({"spec": {"audiences": ["vault"], "expirationSeconds": 8000}})).await;
    let text = "299 - \"requested expiration of 8000 seconds shortened to 7200 seconds\"";
    assert_eq!((answer.code, answer.warnings()), (201, vec![text.to_owned()]), "{}", answer.text);
    let made = answer.json();
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("TokenRequest"), &json!("authentication.k8s.io/v1"))
    );
    let said = claims(made["status"]["token"].as_str().unwrap());
    assert_eq!(
        (&said["aud"], &said["iss"]),
        (&json!(["vault"]), &json!("https://kubernetes.default.svc.cluster.local"))
    );
    assert_eq!(said["exp"].as_i64().unwrap() - said["iat"].as_i64().unwrap(), 7200);
    assert_eq!(said["sub"], BUILDER);
    assert_eq!(said["kubernetes.io"]["serviceaccount"]["name"], "builder");
    let refused = guarded.ask(&path, &[], &json!({})).await;
    assert_eq!(refused.code, 403, "nobody makes tokens for others: {}", refused.text);
    let missing = guarded.admin(&format!("POST {ACCOUNTS}/nobody/token"), &json!({})).await;
    assert_eq!(missing.status().2, "serviceaccounts \"nobody\" not found");
}

#[tokio::test]
async fn keys_are_told_to_those_who_check_tokens_themselves() {
    let guarded = Guarded::start(|_, _| ()).await;
    let token = guarded.token(json!({})).await;
    let configuration = guarded.admin("GET /.well-known/openid-configuration", &Value::Null).await.json();
    assert_eq!(configuration["issuer"], claims(&token)["iss"]);
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let keys = guarded.admin("GET /openid/v1/jwks", &Value::Null).await;
    assert_eq!(keys.headers["content-type"], "application/jwk-set+json");
    let set: jsonwebtoken::jwk::JwkSet = serde_json::from_str(&keys.text).unwrap();
    let id = jsonwebtoken::decode_header(&token).unwrap().kid.unwrap();
    let key = jsonwebtoken::DecodingKey::from_jwk(set.find(&id).unwrap()).unwrap();
    let mut validation = jsonwebtoken::Validation::new(Algorithm::ES256);
    (validation.validate_exp, validation.validate_aud) = (false, false);
    assert!(jsonwebtoken::decode::<Value>(&token, &key, &validation).is_ok());
    assert_eq!(guarded.ask("GET /openid/v1/jwks", &[], &Value::Null).await.code, 403);
}

#[tokio::test]
async fn files_and_secrets_say_who_has_which_token_and_password() {
    let guarded = Guarded::start(|folder, flags| {
        let (tokens, passwords) = (folder.join("tokens"), folder.join("passwords"));
        fs::write(&tokens, "t0ken,jane,u1,\"dev,ops\"\n").unwrap();
        fs::write(&passwords, "pa55,joe,u2,dev\n").unwrap();
        (flags.token_auth_file, flags.basic_auth_file) = (Some(tokens), Some(passwords));
        flags.anonymous = Some(false);
    })
    .await;
    let bootstrap = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
        "data": {"token-id": encoded("abcdef"), "token-secret": encoded("0123456789abcdef"),
            "usage-bootstrap-authentication": encoded("true"), "expiration": encoded("2026-05-29T00:00:00Z")}});
    guarded.create("/api/v1/namespaces/kube-system/secrets", bootstrap).await;
    let basic = |text: &str| format!("Basic {}", encoded(text));
    let cases = [
        ("Bearer t0ken".to_owned(), "jane"),
        ("Bearer t0keN".into(), "401"),
        (basic("joe:pa55"), "joe"),
        (basic("joe:pa5"), "401"),
        (basic("jane:pa55"), "401"),
        ("Bearer abcdef.0123456789abcdef".into(), "system:bootstrap:abcdef"),
        ("Bearer abcdef.0123456789abcdee".into(), "401"),
        ("Bearer fedcba.0123456789abcdef".into(), "401"),
        (String::new(), "401"),
    ];
    for (header, user) in cases {
        assert_eq!(guarded.who(&[("authorization", &header)]).await, user, "{header}");
    }
    let refused = guarded.ask(WHO, &[], &Value::Null).await;
    assert_eq!(refused.headers["www-authenticate"], "Basic realm=\"kubernetes-master\"");
    assert_eq!(refused.status(), (401, "Unauthorized".into(), "Unauthorized".into()));
    guarded.clock.advance(Duration::from_secs(3 * 86_400));
    assert_eq!(guarded.whose("abcdef.0123456789abcdef").await, "401", "it has expired");
}

#[tokio::test]
async fn a_provider_of_openid_connect_is_believed_by_its_keys() {
    let key = kubarium::pki::generate_signing_key().unwrap();
    let jwks = {
        let guarded = Guarded::start(|folder, flags| {
            let path = folder.join("key");
            fs::write(&path, &key).unwrap();
            flags.service_accounts.signing_key_file = Some(path);
        })
        .await;
        guarded.admin("GET /openid/v1/jwks", &Value::Null).await.text
    };
    let issuer = "https://login.example";
    let guarded = Guarded::start(|folder, flags| {
        let path = folder.join("jwks");
        fs::write(&path, jwks).unwrap();
        flags.oidc = OidcOptions {
            issuer_url: Some(issuer.into()),
            client_id: "kube".into(),
            username_claim: "email".into(),
            groups_claim: "groups".into(),
            groups_prefix: "oidc:".into(),
            required_claims: vec![("hd".to_owned(), "example".to_owned())],
            signing_algorithms: vec!["ES256".into()],
            jwks_file: Some(path),
            ..OidcOptions::default()
        };
    })
    .await;
    let end = guarded.clock.now().timestamp() + 600;
    let base = json!({"iss": issuer, "aud": "kube", "exp": end, "email": "jane@example", "hd": "example",
        "groups": ["dev"], "email_verified": true});
    let changes: [(&str, Value, &str); 8] = [
        ("email", json!("jane@example"), "jane@example"),
        ("aud", json!(["x", "kube"]), "jane@example"),
        ("aud", json!("other"), "401"),
        ("exp", json!(end - 601), "401"),
        ("email_verified", json!(false), "401"),
        ("hd", json!("evil"), "401"),
        ("email", Value::Null, "401"),
        ("groups", json!(7), "401"),
    ];
    for (claim, value, user) in changes {
        let mut said = base.clone();
        said[claim] = value.clone();
        let token = jsonwebtoken::encode(&Header::new(Algorithm::ES256), &said, &kubarium_key(&key)).unwrap();
        assert_eq!(guarded.whose(&token).await, user, "{claim} {value}");
    }
}

#[tokio::test]
async fn a_secret_can_hold_a_token_and_takes_it_away() {
    let guarded = Guarded::start(|_, _| ()).await;
    let account = guarded.admin(&format!("GET {ACCOUNTS}/builder"), &Value::Null).await.json();
    let said = json!({"iss": "kubernetes/serviceaccount", "sub": BUILDER,
        "kubernetes.io/serviceaccount/namespace": "default", "kubernetes.io/serviceaccount/secret.name": "s",
        "kubernetes.io/serviceaccount/service-account.name": "builder",
        "kubernetes.io/serviceaccount/service-account.uid": account["metadata"]["uid"]});
    let key = kubarium_key(&guarded.signing_key);
    let token = jsonwebtoken::encode(&Header::new(Algorithm::ES256), &said, &key).unwrap();
    assert_eq!(guarded.whose(&token).await, "401", "no Secret has it");
    let secret = json!({"metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "builder"}},
        "type": "kubernetes.io/service-account-token", "data": {"token": encoded(&token)}});
    guarded.create(SECRETS, secret).await;
    assert_eq!(guarded.whose(&token).await, BUILDER);
    let known = json!({"legacy-token": BUILDER, "legacy-token-manual-secret": "s"});
    assert_eq!(guarded.remarked(), known);
    assert_eq!(guarded.whose(&token).await, BUILDER);
    assert_eq!(guarded.remarked(), known, "also of one that is remembered");
    let labels = || async {
        let secret = guarded.admin(&format!("GET {SECRETS}/s"), &Value::Null).await.json();
        secret["metadata"]["labels"].clone()
    };
    let day = guarded.clock.now().date_naive().to_string();
    assert_eq!(labels().await, json!({"kubernetes.io/legacy-token-last-used": day}), "its use is noted");
    let invalid = json!([{"op": "add", "path": "/metadata/labels/kubernetes.io~1legacy-token-invalid-since",
        "value": "2026-01-01"}]);
    let patch = guarded.patch(&format!("{SECRETS}/s"), &invalid).await;
    assert_eq!(patch.code, 200, "{}", patch.text);
    guarded.clock.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(guarded.whose(&token).await, "401", "it was declared invalid");
    assert_eq!(guarded.remarked(), json!({"legacy-token": BUILDER, "legacy-token-invalidated": "s/default"}));
    let day = guarded.clock.now().date_naive().to_string();
    assert_eq!(
        labels().await["kubernetes.io/legacy-token-last-used"],
        json!(day),
        "that somebody tried is noted"
    );
    let valid =
        json!([{"op": "remove", "path": "/metadata/labels/kubernetes.io~1legacy-token-invalid-since"}]);
    guarded.patch(&format!("{SECRETS}/s"), &valid).await;
    let own = json!([{"op": "add", "path": "/secrets", "value": [{"name": "s"}]}]);
    assert_eq!(guarded.patch(&format!("{ACCOUNTS}/builder"), &own).await.code, 200);
    let header = format!("Bearer {token}");
    for _ in 0..2 {
        let answer = guarded.ask(WHO, &[("authorization", &header)], &Value::Null).await;
        assert_eq!(who(&answer), BUILDER);
        assert_eq!(
            answer.headers["warning"],
            "299 - \"Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
             auto-generated secret-based tokens.\""
        );
        assert_eq!(
            guarded.remarked(),
            json!({"legacy-token": BUILDER, "legacy-token-autogenerated-secret": "s"})
        );
    }
    assert_eq!(guarded.admin(&format!("DELETE {SECRETS}/s"), &Value::Null).await.code, 200);
    guarded.forget_tokens();
    assert_eq!(guarded.whose(&token).await, "401");
    assert_eq!(guarded.uses_of_tokens().await, [0, 0, 5, 1, 1, 1]);
}

#[tokio::test]
async fn how_tokens_are_used_is_counted() {
    let guarded = Guarded::start(|_, _| ()).await;
    // As the kubelet asks for it: good for longer than it says.
    let pod = json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "builder",
        "containers": [{"name": "c", "image": "i"}]}});
    let uid = guarded.create(PODS, pod).await["metadata"]["uid"].clone();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid});
    let token = guarded.token(json!({"expirationSeconds": 3607, "boundObjectRef": pod})).await;
    assert_eq!(guarded.whose(&token).await, BUILDER);
    assert_eq!(guarded.whose(&token).await, BUILDER);
    assert_eq!(guarded.uses_of_tokens().await, [1, 0, 0, 0, 0, 0], "the second was remembered");
    assert_eq!(guarded.remarked(), json!({}));
    guarded.clock.advance(Duration::from_secs(3700));
    assert_eq!(guarded.whose(&token).await, BUILDER);
    assert_eq!(guarded.uses_of_tokens().await, [1, 1, 0, 0, 0, 0]);
    let told = format!("subject: {BUILDER}, seconds after warning threshold: 93");
    assert_eq!(guarded.remarked(), json!({"stale-token": told}));
    // One that nobody made longer cannot become stale.
    let token = guarded.token(json!({"expirationSeconds": 600})).await;
    assert_eq!(guarded.whose(&token).await, BUILDER);
    assert_eq!(guarded.uses_of_tokens().await, [1, 1, 0, 0, 0, 0]);
}

impl Guarded {
    /// Valid ones, stale ones, and those of Secrets: all, automatic, manual and invalid ones.
    async fn uses_of_tokens(&self) -> [u64; 6] {
        let text = self.admin("GET /metrics", &Value::Null).await.text;
        let names = ["valid", "stale", "legacy", "legacy_auto", "legacy_manual", "invalid_legacy_auto"];
        names.map(|name| {
            let end =
                if name.ends_with("auto") || name.ends_with("manual") { "token_uses" } else { "tokens" };
            let name = format!("serviceaccount_{name}_{end}_total ");
            let value = text.lines().find_map(|line| line.strip_prefix(&name));
            value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
        })
    }
}

fn kubarium_key(pem: &str) -> EncodingKey {
    EncodingKey::from_ec_pem(pem.as_bytes()).unwrap()
}

fn with_payload(token: &str, change: fn(&mut Value)) -> String {
    let mut claims = claims(token);
    change(&mut claims);
    let parts: Vec<&str> = token.split('.').collect();
    format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(claims.to_string()), parts[2])
}

fn unsigned(token: &str, algorithm: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({"alg": algorithm, "typ": "JWT"}).to_string());
    let payload = token.split('.').nth(1).unwrap();
    format!("{header}.{payload}.")
}

enum Confusion {
    Pem,
    Der,
    Nothing,
}

/// The public key taken for a secret that both sides know.
fn with_public_key(token: &str, pem: &str, confusion: Confusion) -> String {
    let key = rcgen::KeyPair::from_pem(pem).unwrap();
    let secret = match confusion {
        Confusion::Pem => key.public_key_pem().into_bytes(),
        Confusion::Der => key.public_key_raw().to_vec(),
        Confusion::Nothing => vec![],
    };
    let header =
        Header { kid: jsonwebtoken::decode_header(token).unwrap().kid, ..Header::new(Algorithm::HS256) };
    jsonwebtoken::encode(&header, &claims(token), &EncodingKey::from_secret(&secret)).unwrap()
}
