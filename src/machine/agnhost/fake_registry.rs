//! agnhost's `fake-registry-server`: a registry that has one image, for whoever has its password.
//!
//! What is in the layers of that image nobody knows here: its only layer is empty.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::requests::{WebAnswer, WebRequest};

const IMAGE: &str = "pause";
const TAG: &str = "testing";
const USER: &str = "user:password";
const INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const ARCHITECTURES: [&str; 5] = ["amd64", "arm", "arm64", "ppc64le", "s390x"];

/// What it keeps, by digest.
struct KeptContent {
    digest: String,
    text: String,
    media_type: &'static str,
    is_blob: bool,
}

/// The list of manifests comes first.
static KEPT: LazyLock<Vec<KeptContent>> = LazyLock::new(kept);

/// What is answered at each path.
pub(super) fn answer(asked: &WebRequest<'_>, is_private: bool) -> WebAnswer {
    let path = asked.target.split('?').next().unwrap_or_default();
    if path == "/v2" {
        return moved("/v2/".to_owned(), true);
    }
    let Some(rest) = path.strip_prefix("/v2/") else { return WebAnswer::not_found() };
    if is_private && !is_known(asked) {
        let mut answer = WebAnswer::text(401, "Unauthorized\n");
        answer.headers.push(("www-authenticate", "Basic realm=\"Restricted\"".to_owned()));
        return answer;
    }
    let parts: Vec<&str> = rest.split('/').collect();
    let mut answer = match parts.as_slice() {
        [""] => WebAnswer { code: 200, ..WebAnswer::default() },
        [image, "manifests", TAG, ..] if *image == IMAGE => {
            moved(path.replacen(TAG, &KEPT[0].digest, 1), false)
        }
        [image, kind @ ("manifests" | "blobs"), digest, ..] if *image == IMAGE => {
            let found = KEPT.iter().find(|kept| kept.is_blob == (*kind == "blobs") && kept.digest == *digest);
            let shown = |kept: &KeptContent| WebAnswer::typed(200, kept.media_type, kept.text.clone());
            found.map_or_else(WebAnswer::not_found, shown)
        }
        _ => WebAnswer::not_found(),
    };
    answer.headers.push(("docker-distribution-api-version", "registry/2.0".to_owned()));
    answer
}

fn is_known(asked: &WebRequest<'_>) -> bool {
    let said = asked.header("authorization").and_then(|header| header.strip_prefix("Basic "));
    said.and_then(|said| STANDARD.decode(said).ok()).is_some_and(|said| said == USER.as_bytes())
}

fn moved(location: String, has_page: bool) -> WebAnswer {
    let page = format!("<a href=\"{location}\">Temporary Redirect</a>.\n\n");
    let mut answer = WebAnswer { code: 307, ..WebAnswer::default() };
    if has_page {
        answer = WebAnswer::typed(307, "text/html; charset=utf-8", page);
    }
    answer.headers.push(("location", location));
    answer
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

fn kept() -> Vec<KeptContent> {
    // An archive without files.
    let layer = "\0".repeat(1024);
    let layer_digest = digest(layer.as_bytes());
    let mut all = vec![];
    let mut listed = vec![];
    for architecture in ARCHITECTURES {
        let config = json!({"architecture": architecture, "os": "linux",
            "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]}});
        let config = blob("application/octet-stream", config.to_string());
        let of = |kind: &str, digest: &str, size: usize| json!({"mediaType": format!("application/vnd.docker.{kind}"), "size": size, "digest": digest});
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST,
            "config": of("container.image.v1+json", &config.digest, config.text.len()),
            "layers": [of("image.rootfs.diff.tar", &layer_digest, layer.len())]});
        let manifest = manifest_of(MANIFEST, &manifest);
        listed.push(json!({"mediaType": MANIFEST, "size": manifest.text.len(), "digest": manifest.digest,
            "platform": {"architecture": architecture, "os": "linux"}}));
        all.extend([config, manifest]);
    }
    all.push(blob("application/octet-stream", layer));
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed});
    all.insert(0, manifest_of(INDEX, &index));
    all
}

fn blob(media_type: &'static str, text: String) -> KeptContent {
    KeptContent { digest: digest(text.as_bytes()), text, media_type, is_blob: true }
}

fn manifest_of(media_type: &'static str, value: &Value) -> KeptContent {
    KeptContent { is_blob: false, ..blob(media_type, value.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str, user: Option<&str>, is_private: bool) -> WebAnswer {
        let said = user.map(|user| format!("Basic {}", STANDARD.encode(user)));
        let headers = said.iter().map(|said| ("authorization", said.as_str())).collect();
        answer(&WebRequest { method: "GET", target, headers, ..WebRequest::default() }, is_private)
    }

    #[test]
    fn the_image_is_there_for_who_has_the_password() {
        let refused = get("/v2/", None, true);
        assert_eq!((refused.code, &*refused.body), (401, "Unauthorized\n"));
        assert_eq!(refused.headers[1].1, "Basic realm=\"Restricted\"");
        assert_eq!(get("/v2/", Some("user:other"), true).code, 401);
        assert_eq!((get("/v2/", None, false).code, get("/v2/", Some(USER), true).code), (200, 200));
        assert_eq!((get("/v2", None, true).code, get("/x", None, true).code), (307, 404));
        let tag = get("/v2/pause/manifests/testing", Some(USER), true);
        assert_eq!(tag.code, 307);
        let index = get(&tag.headers[0].1, Some(USER), true);
        assert_eq!((index.code, &*index.headers[0].1), (200, INDEX));
        let parsed: Value = serde_json::from_str(&index.body).unwrap();
        let manifest = parsed["manifests"][0]["digest"].as_str().unwrap();
        let manifest = get(&format!("/v2/pause/manifests/{manifest}"), Some(USER), true);
        let parsed: Value = serde_json::from_str(&manifest.body).unwrap();
        for one in [&parsed["config"], &parsed["layers"][0]] {
            let name = one["digest"].as_str().unwrap();
            let found = get(&format!("/v2/pause/blobs/{name}"), Some(USER), true);
            assert_eq!((found.code, digest(found.body.as_bytes())), (200, name.to_owned()));
            assert_eq!(one["size"], found.body.len());
        }
        assert_eq!(get("/v2/pause/manifests/1.0", Some(USER), true).code, 404);
        assert_eq!(get("/v2/other/manifests/testing", Some(USER), true).code, 404);
    }
}
