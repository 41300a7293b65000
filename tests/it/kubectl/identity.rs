//! `kubectl create token`, `auth whoami`, `certificate approve` and `deny`, `--as`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::support::{Kubectl, Up, kubectls, with_each_kubectl};

/// A kubeconfig of the same cluster for another user, as an argument.
fn config_for(up: &Up, kubectl: &Kubectl, user: Value) -> String {
    let mut config: Value = serde_json::from_str(&kubectl.ok("config view --raw -o json")).unwrap();
    config["users"][0]["user"] = user;
    format!("--kubeconfig={}", up.file("other-kubeconfig", &config.to_string()))
}

#[test]
fn an_account_gets_a_token_and_is_known_by_it() {
    let up = Up::start();
    let kubectl = Kubectl::new(&kubectls().pop().unwrap(), &up);
    let me = kubectl.ok("auth whoami");
    assert!(me.contains("kubernetes-admin") && me.contains("system:masters"), "{me}");
    let trust = kubectl.ok("get configmap extension-apiserver-authentication -n kube-system -o yaml");
    assert!(trust.contains("client-ca-file: |\n    -----BEGIN CERTIFICATE-----"), "{trust}");
    kubectl.until("get serviceaccounts -n kube-system -o name", |names| {
        names.contains("serviceaccount/replicaset-controller\n")
    });
    kubectl.ok("create serviceaccount builder");
    let token = kubectl.ok("create token builder --duration=1h");
    let config = config_for(&up, &kubectl, json!({"token": token.trim()}));
    let me = kubectl.ok(&format!("{config} auth whoami"));
    assert!(me.contains("system:serviceaccount:default:builder"), "{me}");
    assert!(me.contains("authentication.kubernetes.io/credential-id"), "{me}");
    let refused = kubectl.fails(&format!("{config} get secrets"));
    assert!(refused.contains("User \"system:serviceaccount:default:builder\" cannot list"), "{refused}");
    kubectl.ok("create rolebinding view --clusterrole=view --serviceaccount=default:builder");
    kubectl.until(&format!("{config} get pods -o name"), |_| true);
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: kept\n  annotations:\n    \
        kubernetes.io/service-account.name: builder\ntype: kubernetes.io/service-account-token\n";
    let file = up.file("secret.yaml", secret);
    kubectl.ok(&format!("create -f {file}"));
    let kept = kubectl.until("get secret kept -o jsonpath={.data.token}", |text| !text.is_empty());
    let kept = String::from_utf8(STANDARD.decode(kept).unwrap()).unwrap();
    let config = config_for(&up, &kubectl, json!({"token": kept}));
    assert!(kubectl.ok(&format!("{config} auth whoami")).contains("system:serviceaccount:default:builder"));
    kubectl.ok("delete serviceaccount builder");
    kubectl.until("get secrets -o name", |names| !names.contains("kept"));
    let wrong = config_for(&up, &kubectl, json!({"token": "wrong"}));
    let refused = kubectl.fails(&format!("{wrong} get pods"));
    assert!(refused.contains("You must be logged in to the server (Unauthorized)"), "{refused}");
}

#[test]
fn a_certificate_is_asked_for_approved_and_used() {
    with_each_kubectl(|up, kubectl| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "dev");
        let request = STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap());
        let object = |name: &str, signer: &str| {
            json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
                "metadata": {"name": name},
                "spec": {"request": request, "signerName": format!("kubernetes.io/{signer}"),
                    "usages": ["client auth"], "expirationSeconds": 86400}})
        };
        for (name, signer) in
            [("jane", "kube-apiserver-client"), ("no", "kube-apiserver-client"), ("bad", "kubelet-serving")]
        {
            kubectl.ok(&format!("create -f {}", up.file("request.json", &object(name, signer).to_string())));
        }
        assert!(kubectl.ok("get csr jane --no-headers").contains("Pending"));
        kubectl.ok("certificate approve jane bad");
        kubectl.ok("certificate deny no");
        let certificate = "get csr jane -o jsonpath={.status.certificate}";
        let certificate = kubectl.until(certificate, |text| !text.is_empty());
        kubectl.until("get csr jane --no-headers", |line| line.contains("Approved,Issued"));
        kubectl.until("get csr bad --no-headers", |line| line.contains("Approved,Failed"));
        let failed =
            kubectl.ok("get csr bad -o jsonpath={.status.conditions[?(@.type==\"Failed\")].message}");
        assert_eq!(failed, "subject organization is not system:nodes");
        assert!(kubectl.ok("get csr no --no-headers").contains("Denied"));
        let user = json!({"client-certificate-data": certificate,
            "client-key-data": STANDARD.encode(key.serialize_pem())});
        let config = config_for(up, kubectl, user);
        let refused = kubectl.fails(&format!("{config} get pods"));
        assert!(refused.contains("User \"jane\" cannot list resource \"pods\""), "{refused}");
        kubectl.ok("create clusterrolebinding dev --clusterrole=view --group=dev");
        kubectl.until(&format!("{config} get pods -o name"), |_| true);
        let refused = kubectl.fails(&format!("{config} get pods --as=admin"));
        assert!(
            refused.contains("pods is forbidden: User \"jane\" cannot impersonate-on:user-info:list"),
            "{refused}"
        );
        let masters = {
            params.distinguished_name.push(DnType::OrganizationName, "system:masters");
            let mut object = object("root", "kube-apiserver-client");
            let request = params.serialize_request(&key).unwrap().pem().unwrap();
            object["spec"]["request"] = STANDARD.encode(request).into();
            up.file("root.json", &object.to_string())
        };
        let refused = kubectl.fails(&format!("create -f {masters}"));
        let words =
            "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
        assert!(refused.contains(words), "{refused}");
    });
}

/// As `openssl x509 -req` makes it, and as Go's server takes it.
#[test]
fn a_client_certificate_of_the_first_version_of_x509_is_known() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/apiserver/authentication/testdata/version_1");
    let up = Up::start_with(&["--client-ca-file", &format!("{folder}/ca.crt")]);
    let kubectl = Kubectl::new(kubectls().first().unwrap(), &up);
    let identity = format!("--client-certificate={folder}/jane.crt --client-key={folder}/jane.key");
    kubectl.ok(&format!("config set-credentials jane {identity}"));
    let refused = kubectl.fails("get pods --user=jane");
    assert!(refused.contains("pods is forbidden: User \"jane\" cannot list resource \"pods\""), "{refused}");
    kubectl.ok("create clusterrolebinding developers --clusterrole=view --group=developers");
    kubectl.until("get pods --user=jane -o name", |_| true);
}
