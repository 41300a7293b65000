//! What browsers are told with every answer.

use super::*;
use kubarium::apiserver::filters::browsers::BrowserConfig;

#[tokio::test]
async fn pages_of_allowed_origins_may_ask_and_only_over_tls() {
    let (origins, directives) = ([r"//example\.com(:|$)".to_owned()], ["max-age=9", "preload"]);
    let browsers = BrowserConfig::new(&origins, &directives.map(str::to_owned)).unwrap();
    let server = Server::start_with(|config| config.browsers = browsers).await;
    let said = |answer: &Answer, name: &str| {
        answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let credentials = "access-control-allow-credentials";
    for (line, origin, code, allowed) in [
        ("GET /api/v1/nodes", "https://example.com", 200, "https://example.com"),
        ("GET /api/v1/nodes/none", "https://example.com:8443", 404, "https://example.com:8443"),
        ("OPTIONS /api/v1/nodes", "http://example.com", 204, "http://example.com"),
        ("OPTIONS /api/v1/nodes", "https://example.org", 405, ""),
        ("GET /api/v1/nodes", "https://example.community", 200, ""),
    ] {
        let answer = server.call_with(line, &[("origin", origin)], "").await;
        assert_eq!(
            (answer.code, said(&answer, "access-control-allow-origin").as_str()),
            (code, allowed),
            "{line}"
        );
        assert_eq!(said(&answer, credentials), if allowed.is_empty() { "" } else { "true" });
        assert_eq!(said(&answer, "strict-transport-security"), "max-age=9; preload");
    }
    let answer = server.call_with("OPTIONS /api", &[("origin", "http://example.com")], "").await;
    assert_eq!(said(&answer, "access-control-allow-methods"), "POST, GET, OPTIONS, PUT, DELETE, PATCH");
    assert_eq!(said(&answer, "access-control-expose-headers"), "Date");
    let plain = Server::start().await.call_with("GET /api", &[("origin", "http://example.com")], "").await;
    let headers = ["access-control-allow-origin", "strict-transport-security"];
    assert_eq!(headers.map(|name| said(&plain, name)), ["", ""]);
}
