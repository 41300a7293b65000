//! Where it listens, and for whom: an address that strangers reach needs credentials.

use kubarium::apiserver::authorization::config::{AuthorizationOptions, Mode};
use kubarium::cluster::{Components, Listen};
use kubarium::{Cluster, Config};

const EVERYBODY: &str = r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:unauthenticated", "namespace": "*", "resource": "*", "apiGroup": "*"}}"#;

struct Case {
    address: &'static str,
    tls: bool,
    anonymous: bool,
    modes: &'static [Mode],
    /// Part of the error; nothing where it starts.
    refused: &'static str,
}

#[tokio::test]
async fn strangers_are_let_in_nowhere_without_credentials() {
    const ANY: &str = "0.0.0.0:0";
    const LOOPBACK: &str = "127.0.0.1:0";
    const RBAC: &[Mode] = &[Mode::Node, Mode::Rbac];
    let open = "may do everything (ABAC); give --anonymous-auth=false";
    let insecure = "with --insecure-http lets everybody in as an administrator; leave out --insecure-http";
    let cases = [
        Case { address: ANY, tls: true, anonymous: true, modes: RBAC, refused: "" },
        Case { address: "[::]:0", tls: true, anonymous: true, modes: RBAC, refused: "" },
        Case { address: ANY, tls: false, anonymous: true, modes: RBAC, refused: insecure },
        Case { address: ANY, tls: false, anonymous: false, modes: RBAC, refused: insecure },
        Case { address: "[::]:0", tls: false, anonymous: false, modes: RBAC, refused: insecure },
        Case { address: LOOPBACK, tls: false, anonymous: true, modes: RBAC, refused: "" },
        // Nobody is anonymous beside AlwaysAllow, as upstream.
        Case { address: ANY, tls: true, anonymous: true, modes: &[Mode::AlwaysAllow], refused: "" },
        Case { address: ANY, tls: true, anonymous: true, modes: &[Mode::Abac], refused: open },
        Case { address: ANY, tls: true, anonymous: true, modes: &[Mode::Rbac, Mode::Abac], refused: open },
        Case { address: ANY, tls: true, anonymous: false, modes: &[Mode::Abac], refused: "" },
        Case { address: LOOPBACK, tls: true, anonymous: true, modes: &[Mode::Abac], refused: "" },
    ];
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy");
    std::fs::write(&policy, EVERYBODY).unwrap();
    for Case { address, tls, anonymous, modes, refused } in cases {
        let policy_file = modes.contains(&Mode::Abac).then(|| policy.clone());
        let address_and_port = address.parse().unwrap();
        let listen =
            if tls { Listen::tls(address_and_port) } else { Listen::insecure_http(address_and_port) };
        let mut config = Config::new().nodes(0).components(Components::NONE).listen(listen);
        let modes_given = Some(modes.to_vec());
        config.apiserver.authorization =
            AuthorizationOptions { modes: modes_given, policy_file, ..Default::default() };
        config.apiserver.authentication.anonymous = Some(anonymous);
        let case = format!("{address} tls={tls} anonymous={anonymous} {modes:?}");
        match Cluster::start(config).await {
            Ok(cluster) => {
                assert_eq!(refused, "", "{case}");
                cluster.stop().await;
            }
            // A machine may have no IPv6 at all.
            Err(error) if refused.is_empty() => {
                assert!(
                    address.starts_with('[') && error.to_string().contains("cannot listen"),
                    "{case}: {error}"
                );
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(refused) && text.contains(address), "{case}: {text}");
                assert!(text.ends_with("or use 127.0.0.1") && !text.contains('\n'), "{case}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_file_that_speaks_of_anonymous_leaves_nothing_to_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
    for (text, is_given, refused) in [
        ("anonymous: {enabled: false}\n", true, true),
        ("anonymous: {enabled: false}\n", false, false),
        ("jwt: []\n", true, false),
    ] {
        std::fs::write(&file, format!("{head}{text}")).unwrap();
        let mut config = Config::new().nodes(0).components(Components::NONE);
        config.apiserver.authentication.config_file = Some(file.clone());
        config.apiserver.authentication.anonymous = is_given.then_some(true);
        let outcome = Cluster::start(config).await.err().map(|error| error.to_string());
        let wanted = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in \
                      authentication configuration file";
        assert_eq!(outcome.as_deref(), refused.then_some(wanted), "{text} {is_given}");
    }
}
