//! What may not be read by others: keys in files, credentials in logs and in the story of a request.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::support::Up;
use crate::support::wire::Target;

const TOKEN: &str = "st4tic-t0ken-of-jane";
const PASSWORD: &str = "pa55w0rd-of-joe";
const WRONG: &str = "wr0ng-t0ken-of-nobody";
const IN_A_SECRET: &str = "c0ntent-of-a-s3cret";
const IN_A_QUERY: &str = "t0ken-in-a-qu3ry";

#[test]
fn no_credential_is_logged_or_told_and_keys_are_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tokens = file("tokens", &format!("{TOKEN},jane,u1\n"));
    let passwords = file("passwords", &format!("{PASSWORD},joe,u2\n"));
    let data = folder.path().join("data");
    let arguments = [
        "--nodes",
        "1",
        "--token-auth-file",
        &tokens,
        "--basic-auth-file",
        &passwords,
        "--data-dir",
        data.to_str().unwrap(),
    ];
    let up = Up::start_in(&arguments, &[("RUST_LOG", "trace")]);
    let kubeconfig = up.folder().join("kubeconfig");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut secrets, told) = runtime.block_on(use_credentials(&kubeconfig));
    secrets.extend(private_keys(&data));
    let config: serde_yaml::Value = serde_yaml::from_slice(&fs::read(&kubeconfig).unwrap()).unwrap();
    let key = config["users"][0]["user"]["client-key-data"].as_str().unwrap();
    secrets.push(key.to_owned());
    let log = up.log();
    assert!(log.contains("TRACE"), "the log is not a trace");
    for secret in &secrets {
        assert!(secret.len() > 12, "{secret} may stand anywhere");
        assert!(!log.contains(secret.as_str()), "the log tells {secret}");
        assert!(!told.contains(secret.as_str()), "the flow record tells {secret}");
    }
    for path in [&kubeconfig, &data.join("pki/ca.key"), &data.join("pki/sa.key")] {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    for_owner_alone(&data);
}

/// Nothing in the data dir is for others: Secrets stand in its files.
fn for_owner_alone(path: &Path) {
    let metadata = fs::metadata(path).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
    if metadata.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| for_owner_alone(&entry.unwrap().path()));
    }
}

/// Uses every sort of credential; returns their texts, and what the flow record tells.
async fn use_credentials(kubeconfig: &Path) -> (Vec<String>, String) {
    let target = Target::of_kubeconfig(kubeconfig);
    let mut admin = target.http2().await.unwrap();
    let account = json!({"metadata": {"name": "builder", "namespace": "default"}});
    admin.send(http::Method::POST, ACCOUNTS, &account).await.unwrap();
    let path = format!("{ACCOUNTS}/builder/token");
    let made = admin.send(http::Method::POST, &path, &json!({})).await.unwrap().json();
    let token = made["status"]["token"].as_str().unwrap().to_owned();
    let basic = encoded(&format!("joe:{PASSWORD}"));
    let headers = [
        format!("Bearer {TOKEN}"),
        format!("Bearer {WRONG}"),
        format!("Bearer {token}"),
        format!("Basic {basic}"),
    ];
    let config: serde_yaml::Value = serde_yaml::from_slice(&fs::read(kubeconfig).unwrap()).unwrap();
    let cluster = &config["clusters"][0]["cluster"];
    let authority = cluster["certificate-authority-data"].as_str().unwrap();
    let authority = STANDARD.decode(authority).unwrap();
    let stranger = Target::new(cluster["server"].as_str().unwrap(), &authority, None);
    let object = json!({"metadata": {"name": "x", "namespace": "default"}});
    for header in &headers {
        let headers = [("authorization", header.as_str())];
        let mut one = stranger.http1().await.unwrap();
        let mut two = stranger.http2().await.unwrap();
        for wire in [&mut one, &mut two] {
            let answer = wire.get_with("/api/v1/nodes", &headers).await.unwrap();
            assert_eq!(answer.code, if header.contains(WRONG) { 401 } else { 403 });
            let body = Some(("application/json", object.to_string().into()));
            let path = "/api/v1/namespaces/default/configmaps";
            wire.open_with(http::Method::POST, path, &headers, body).await.unwrap();
        }
    }
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"key": IN_A_SECRET}});
    let path = "/api/v1/namespaces/default/secrets";
    assert_eq!(admin.send(http::Method::POST, path, &secret).await.unwrap().code, 201);
    // Refused, the body is looked at for a name and nothing else.
    let headers = [("authorization", headers[0].as_str())];
    let body = Some(("application/json", secret.to_string().into()));
    let mut jane = stranger.http1().await.unwrap();
    assert_eq!(jane.open_with(http::Method::POST, path, &headers, body).await.unwrap().status(), 403);
    admin.get(&format!("{path}/s?token={IN_A_QUERY}")).await.unwrap();
    let review = json!({"spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    admin.send(http::Method::POST, reviews, &review).await.unwrap();
    let told = admin.get("/flowz?resource=configmaps&namespace=default&name=x").await.unwrap();
    let told = String::from_utf8_lossy(&told.body).into_owned();
    assert!(told.contains("NotAuthenticated") && told.contains("NotAuthorized"), "{told}");
    let told_of_secrets = admin.get("/flowz?resource=secrets&namespace=default&name=s").await.unwrap();
    let signature = token.rsplit('.').next().unwrap().to_owned();
    let in_a_secret = [IN_A_SECRET.to_owned(), STANDARD.encode(IN_A_SECRET), IN_A_QUERY.to_owned()];
    let told = told + &String::from_utf8_lossy(&told_of_secrets.body);
    let mut all = vec![TOKEN.into(), PASSWORD.into(), WRONG.into(), basic, token, signature];
    all.extend(in_a_secret);
    (all, told)
}

/// A line out of each private key, which stands in no certificate.
fn private_keys(data: &Path) -> Vec<String> {
    ["ca.key", "sa.key"]
        .map(|name| {
            let text = fs::read_to_string(data.join("pki").join(name)).unwrap();
            text.lines().nth(1).unwrap().to_owned()
        })
        .to_vec()
}
