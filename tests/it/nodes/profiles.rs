//! A KubeSchedulerConfiguration in a cluster: profiles by name, and extenders over HTTP, one of which never answers.

use kubarium::apis::core::pod::PODS;
use kubarium::scheduler::config::KubeSchedulerConfiguration;
use kubarium::scheduler::options::SchedulerOptions;
use kubarium::{Cluster, Config};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &str = r#"{"NodeNames": ["node-2"]}"#;

/// Answers everybody alike: `node-2` will do.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        let length = text
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if length.zip(body).is_some_and(|(length, body): (usize, usize)| body >= length) {
            break;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{ANSWER}", ANSWER.len());
    stream.write_all(answer.as_bytes()).await
}

async fn node_of(cluster: &Cluster, name: &str) -> String {
    let client = cluster.client();
    for _ in 0..2000 {
        let pod = client.get(&PODS, "default", name).await.unwrap().to_value();
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            return node.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{name} is on no node");
}

#[tokio::test]
async fn profiles_have_their_pods_and_extenders_their_say() {
    let good = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let [good_at, silent_at] = [&good, &silent].map(|it| it.local_addr().unwrap());
    let answering = tokio::spawn(async move {
        while let Ok((stream, _)) = good.accept().await {
            let _ = answer(stream).await;
        }
    });
    let config = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: second}}]\nextenders:\n\
         - {{urlPrefix: 'http://{good_at}', filterVerb: filter, nodeCacheCapable: true}}\n\
         - {{urlPrefix: 'http://{silent_at}', filterVerb: filter, httpTimeout: 50ms, ignorable: true}}\n"
    );
    let mut options = SchedulerOptions::default();
    options.scheduler_config = Some(KubeSchedulerConfiguration::parse(&config).unwrap());
    let cluster = Cluster::start(Config::new().nodes(3).scheduler(options)).await.unwrap();
    for name in ["default-scheduler", "second", "nobody"] {
        let spec = json!({"schedulerName": name, "containers": [{"name": "a", "image": "a"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        cluster.client().create(&PODS, "default", pod).await.unwrap();
    }
    assert_eq!(node_of(&cluster, "default-scheduler").await, "node-2", "although one extender never answers");
    assert_eq!(node_of(&cluster, "second").await, "node-2");
    let left = cluster.client().get(&PODS, "default", "nobody").await.unwrap().to_value();
    assert!(left["spec"]["nodeName"].is_null(), "pods of other schedulers are left alone");
    answering.abort();
    cluster.stop().await;
    drop(silent);
}
