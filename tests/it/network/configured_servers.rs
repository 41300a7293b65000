//! Apache and Caddy, as files of a ConfigMap configure them.

use std::net::SocketAddr;

use futures::FutureExt;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use serde_json::{Value, json};

use super::Net;

impl Net {
    /// A pod of an image with a ConfigMap's file at a folder.
    async fn configured(&self, name: &str, image: &str, (folder, file, text): (&str, &str, &str)) {
        self.create(&CONFIG_MAPS, json!({"metadata": {"name": name}, "data": {file: text}})).await;
        let mounts = json!([{"name": "conf", "mountPath": format!("{folder}/{file}"), "subPath": file}]);
        let container = json!({"name": "main", "image": image, "volumeMounts": mounts});
        let spec =
            json!({"containers": [container], "volumes": [{"name": "conf", "configMap": {"name": name}}]});
        self.create(&PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    async fn state(&self, pod: &str) -> Value {
        let pod = self.client.get(&PODS, "default", pod).await.unwrap().to_value();
        pod["status"]["containerStatuses"][0].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apache_and_caddy_serve_what_their_files_say() {
    let net = Net::start().await;
    let app = net
        .pod(
            "app-0",
            json!({"image": "hashicorp/http-echo", "args": ["-text", "behind", "-listen", ":8080"]}),
        )
        .await;
    let from = app;
    let caddy = format!(
        ":8000 {{\n  respond /hi \"hello\"\n  handle_path /api/* {{\n    reverse_proxy {app}:8080\n  }}\n}}\n"
    );
    net.configured("caddy", "caddy:2", ("/etc/caddy", "Caddyfile", &caddy)).await;
    let caddy = net.address("caddy").await;
    let get = async |ip, port, path: &str| net.get(from, SocketAddr::new(ip, port), path).await;
    assert_eq!(get(caddy, 8000, "/hi").await.as_deref(), Some("hello"));
    assert_eq!(get(caddy, 8000, "/api/x").await.as_deref(), Some("behind\n"));
    assert_eq!(get(caddy, 80, "/hi").await, None);
    let log = net.log("caddy").await;
    assert!(log.contains("\"msg\":\"serving initial configuration\""), "{log}");
    let apache = format!(
        "ServerName web\nListen 8001\nLoadModule proxy_module modules/mod_proxy.so\n\
         LoadModule proxy_http_module modules/mod_proxy_http.so\nDocumentRoot /usr/local/apache2/htdocs\n\
         ProxyPass /api http://{app}:8080/\nRedirect /old /new\n"
    );
    net.configured("httpd", "httpd:2.4", ("/usr/local/apache2/conf", "httpd.conf", &apache)).await;
    let httpd = net.address("httpd").await;
    assert_eq!(
        get(httpd, 8001, "/").await.as_deref(),
        Some("<html><body><h1>It works!</h1></body></html>\n")
    );
    assert_eq!(get(httpd, 8001, "/api/").await.as_deref(), Some("behind\n"));
    assert_eq!(get(httpd, 80, "/").await, None);
    let log = net.log("httpd").await;
    assert!(log.contains("resuming normal operations") && log.contains("\"GET / HTTP/1.1\" 200 45"), "{log}");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_read_keep_servers_from_starting() {
    let net = Net::start().await;
    net.configured("caddy", "caddy:2", ("/etc/caddy", "Caddyfile", ":80 {\n  respnd hi\n}\n")).await;
    let apache = ("/usr/local/apache2/conf", "httpd.conf", "Listen 80\nListn 81\n");
    net.configured("httpd", "httpd:2.4", apache).await;
    for (pod, why) in [
        ("caddy", "/etc/caddy/Caddyfile:2: unrecognized directive: respnd"),
        ("httpd", "Invalid command 'Listn', perhaps misspelled"),
    ] {
        net.until(|| {
            async {
                let state = net.state(pod).await;
                let ended = [&state["state"]["terminated"], &state["lastState"]["terminated"]];
                ended.iter().any(|ended| ended["exitCode"] == 1).then_some(())
            }
            .boxed()
        })
        .await;
        let log = net.log(pod).await;
        assert!(log.contains(why), "{pod}: {log}");
    }
    net.cluster.stop().await;
}
