//! CertificateSigningRequests: who may ask for what, and who may decide.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::smuggling::{JANE, with_jane};
use super::*;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn request_of(name: &str, organization: &str) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

fn object(name: &str, request: &str, signer: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"request": encoded(request), "username": "admin",
        "groups": ["system:masters"], "signerName": signer, "usages": ["client auth"]}})
}

#[tokio::test]
async fn who_may_write_a_request_may_not_decide_it() {
    let guarded = with_jane(json!([{"verbs": ["create", "get", "update"], "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"]}]))
    .await;
    let client = "kubernetes.io/kube-apiserver-client";
    let of = |name: &str, organization: &str| object("x", &request_of(name, organization), client);
    let group = "certificatesigningrequests.certificates.k8s.io";
    let kind = "CertificateSigningRequest.certificates.k8s.io";
    let mut forged = request_of("jane", "dev");
    let at = forged.len() / 2;
    forged.replace_range(at..=at, if &forged[at..=at] == "A" { "B" } else { "A" });
    let mut short = of("jane", "dev");
    short["spec"]["expirationSeconds"] = 599.into();
    let cases = [
        (
            of("root", "system:masters"),
            403,
            format!(
                "{group} \"x\" is forbidden: use of {client} signer with system:masters group is not allowed"
            ),
        ),
        (
            object("x", &forged, "example.com/a"),
            422,
            format!("{kind} \"x\" is invalid: spec.request: Invalid value: "),
        ),
        (
            object("x", &request_of("a", "b"), "kubernetes.io/legacy-unknown"),
            422,
            format!(
                "{kind} \"x\" is invalid: spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via this API version"
            ),
        ),
        (
            short,
            422,
            format!(
                "{kind} \"x\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"
            ),
        ),
    ];
    for (body, code, message) in cases {
        let answer = guarded.ask(&format!("POST {REQUESTS}"), JANE, &body).await;
        assert_eq!(answer.code, code, "{}", answer.text);
        assert!(answer.status().2.starts_with(&message), "{}", answer.text);
    }
    let made = guarded.ask(&format!("POST {REQUESTS}"), JANE, &of("jane", "dev")).await.json();
    assert_eq!(
        (&made["spec"]["username"], &made["spec"]["groups"]),
        (&json!("jane"), &json!(["dev", "system:authenticated"]))
    );
    let mut approved = made.clone();
    approved["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "mine"}]);
    let mut decided = approved.clone();
    decided["metadata"]["labels"] = json!({"seen": "yes"});
    decided["metadata"]["annotations"] = json!({"example.com/why": "known"});
    decided["spec"]["username"] = "somebody".into();
    decided["status"]["certificate"] = encoded("x").into();
    let mut signed = made.clone();
    let certificate = rcgen::generate_simple_self_signed(["jane".to_owned()]).unwrap().cert.pem();
    signed["status"]["certificate"] = encoded(&certificate).into();
    let mut scribbled = made.clone();
    scribbled["status"]["certificate"] = encoded("x").into();
    let cases = [
        (
            "approval",
            &approved,
            JANE,
            403,
            format!(
                "{group} \"x\" is forbidden: user not permitted to approve requests with signerName {client:?}"
            ),
        ),
        (
            "status",
            &signed,
            JANE,
            403,
            format!(
                "{group} \"x\" is forbidden: user not permitted to sign requests with signerName {client:?}"
            ),
        ),
        (
            "status",
            &scribbled,
            &[],
            422,
            format!(
                "{kind} \"x\" is invalid: status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block"
            ),
        ),
        (
            "status",
            &approved,
            &[],
            422,
            format!(
                "{kind} \"x\" is invalid: status.conditions: Forbidden: updates may not add a condition of type \"Approved\""
            ),
        ),
        ("approval", &decided, &[], 200, String::new()),
        ("approval", &made, &[], 409, String::new()),
    ];
    for (part, body, headers, code, message) in cases {
        let line = format!("PUT {REQUESTS}/x/{part}");
        let answer = match headers {
            [] => guarded.admin(&line, body).await,
            headers => guarded.ask(&line, headers, body).await,
        };
        assert_eq!(answer.code, code, "{line}: {}", answer.text);
        assert!(answer.status().2.starts_with(&message), "{}", answer.text);
    }
    let mut denied = guarded.admin(&format!("GET {REQUESTS}/x"), &Value::Null).await.json();
    assert!(denied["status"]["conditions"][0]["lastTransitionTime"].is_string(), "{denied}");
    assert_eq!(denied["metadata"]["labels"], json!({"seen": "yes"}));
    assert_eq!(denied["metadata"]["annotations"], json!({"example.com/why": "known"}));
    assert_eq!(denied["spec"], made["spec"]);
    assert!(denied["status"]["certificate"].is_null(), "{denied}");
    denied["status"]["conditions"] = json!([]);
    let answer = guarded.admin(&format!("PUT {REQUESTS}/x/approval"), &denied).await;
    let words = "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"";
    assert!(answer.status().2.contains(words), "{}", answer.text);
}
