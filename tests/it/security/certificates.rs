//! Client certificates, front proxies and the headers that only they may send.

use std::fs;

use kubarium::apiserver::authentication::options::RequestHeaderOptions;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use super::*;

/// An authority of somebody else's.
struct Other {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Other {
    fn new() -> Other {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Other { pem, issuer: Issuer::new(params, key) }
    }

    fn client(&self, name: &str, years: std::ops::Range<i32>) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.issuer).unwrap().pem()
    }
}

#[tokio::test]
async fn a_certificate_counts_while_it_is_valid_and_when_somebody_known_signed_it() {
    let (ours, theirs) = (Other::new(), Other::new());
    let guarded = Guarded::start(|folder, flags| {
        let path = folder.join("ca.crt");
        fs::write(&path, &ours.pem).unwrap();
        flags.client_ca_file = Some(path);
    })
    .await;
    let own = guarded.authority.client("jane", "dev", guarded.clock.now()).unwrap().certificate_pem;
    let server = guarded.authority.server(&["jane"], &[], guarded.clock.now()).unwrap().certificate_pem;
    let cases = [
        ("of the cluster's authority", own.clone(), "jane"),
        ("of --client-ca-file", ours.client("joe", 2026..2027), "joe"),
        ("of a stranger", theirs.client("joe", 2026..2027), "401"),
        ("that has expired", ours.client("joe", 2025..2026), "401"),
        ("that is not valid yet", ours.client("joe", 2027..2028), "401"),
        ("of a server", server, "401"),
        ("of the authority itself, as Go's verifier takes it", ours.pem.clone(), "rcgen self signed cert"),
        ("that names nobody", ours.client("", 2026..2027), "system:anonymous"),
    ];
    for (what, pem, user) in cases {
        assert_eq!(who(&guarded.ask_with_certificate(&pem, &[]).await), user, "a certificate {what}");
    }
    let wrong = [("authorization", "Bearer wrong")];
    assert_eq!(
        who(&guarded.ask_with_certificate(&own, &wrong).await),
        "jane",
        "one right credential is enough"
    );
}

#[tokio::test]
async fn only_a_front_proxy_says_who_somebody_is() {
    let (proxies, clients) = (Other::new(), Other::new());
    let guarded = Guarded::start(|folder, flags| {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        flags.client_ca_file = Some(write("clients", &clients.pem));
        flags.request_header = RequestHeaderOptions {
            client_ca_file: Some(write("proxies", &proxies.pem)),
            allowed_names: vec!["front".into()],
            username_headers: vec!["X-Remote-User".into()],
            group_headers: vec!["X-Remote-Group".into()],
            extra_header_prefixes: vec!["X-Remote-Extra-".into()],
            ..RequestHeaderOptions::default()
        };
    })
    .await;
    let headers = [("x-remote-user", "jane"), ("x-remote-group", "dev")];
    let masters = [("x-remote-user", "jane"), ("x-remote-group", "system:masters")];
    let years = 2026..2027;
    let cases = [
        ("a proxy", proxies.client("front", years.clone()), &headers[..], "jane"),
        (
            "a proxy that speaks for an administrator",
            proxies.client("front", years.clone()),
            &masters[..],
            "*",
        ),
        ("a proxy that says nothing", proxies.client("front", years.clone()), &[], "401"),
        ("a proxy of another name", proxies.client("back", years.clone()), &headers, "401"),
        ("an ordinary client", clients.client("joe", years), &masters, "joe"),
    ];
    for (what, pem, headers, user) in cases {
        assert_eq!(who(&guarded.ask_with_certificate(&pem, headers).await), user, "{what}");
    }
    assert_eq!(guarded.who(&masters).await, "system:anonymous", "headers alone prove nothing");
}
