//! Answers that break off, as a client on a socket meets them.

use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::support::Up;
use crate::support::wire::{Target, Wire};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const FAULTS: &str = "/kubarium/v1/faults";

/// How many bytes came, and whether that was their end.
async fn read(mut body: Incoming) -> (usize, bool) {
    let mut came = 0;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => came += frame.data_ref().map_or(0, |data| data.len()),
            Err(_) => return (came, false),
        }
    }
    (came, true)
}

async fn cut_after(kit: &mut Wire, bytes: usize) {
    let fault = json!({"name": "cut", "resources": ["configmaps"], "cut": {"afterBytes": bytes}});
    assert_eq!(kit.send(Method::POST, FAULTS, &fault).await.unwrap().code, 200);
}

#[tokio::test]
async fn head_and_so_many_bytes_arrive_before_the_connection_ends() {
    let up = Up::start_with(&["--apiserver-only"]);
    let target = Target::of_kubeconfig(&up.folder().join("kubeconfig"));
    let mut kit = target.http1().await.unwrap();
    let map = json!({"metadata": {"name": "long"}, "data": {"text": "x".repeat(150_000)}});
    assert_eq!(kit.send(Method::POST, MAPS, &map).await.unwrap().code, 201);
    let paths = [MAPS.to_owned(), format!("{MAPS}/long"), format!("{MAPS}?watch=1")];
    for (path, bytes) in paths.iter().flat_map(|path| [0, 5, 300, 100_000].map(|bytes| (path, bytes))) {
        cut_after(&mut kit, bytes).await;
        for mut wire in [target.http1().await.unwrap(), target.http2().await.unwrap()] {
            let answer = wire.open(Method::GET, path, None).await.unwrap();
            assert_eq!(answer.status(), 200, "{path} {bytes}");
            assert_eq!(read(answer.into_body()).await, (bytes, false), "{path} {bytes}");
        }
        let removed = kit.send(Method::DELETE, &format!("{FAULTS}/cut"), &Value::Null).await.unwrap();
        assert_eq!(removed.json()["hits"], 2);
    }
}
