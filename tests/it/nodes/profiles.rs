//! A KubeSchedulerConfiguration in a cluster: profiles by name, and extenders over HTTP, one of which never answers.

use kubarium::apis::core::pod::PODS;
use kubarium::scheduler::config::KubeSchedulerConfiguration;
use kubarium::scheduler::options::SchedulerOptions;
use kubarium::{Cluster, Config};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// `node-2` will do for `filter`.
const ANSWER: (&str, &str) = ("200 OK", r#"{"NodeNames": ["node-2"]}"#);

/// Answers everybody alike.
async fn answer(mut stream: TcpStream, (status, body): (&str, &str)) -> std::io::Result<()> {
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
    // As kube-scheduler asks: with nothing behind the verb.
    if !["filter", "score"].iter().any(|verb| read.starts_with(format!("POST /{verb} HTTP").as_bytes())) {
        return Ok(());
    }
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close");
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await
}

/// Answers everybody who comes.
fn answer_all(listener: TcpListener, answered: (&'static str, &'static str)) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = answer(stream, answered).await;
        }
    })
}

fn options(config: &str) -> SchedulerOptions {
    let mut options = SchedulerOptions::default();
    options.scheduler_config = Some(KubeSchedulerConfiguration::parse(config).unwrap());
    options
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
    let answering = answer_all(good, ANSWER);
    let config = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: second}}]\nextenders:\n\
         - {{urlPrefix: 'http://{good_at}', filterVerb: filter, nodeCacheCapable: true}}\n\
         - {{urlPrefix: 'http://{silent_at}', filterVerb: filter, httpTimeout: 50ms, ignorable: true}}\n"
    );
    let options = options(&config);
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

/// What is said of a pod that is on no node.
async fn said_of(cluster: &Cluster, name: &str) -> (String, String) {
    let client = cluster.client();
    for _ in 0..2000 {
        let pod = client.get(&PODS, "default", name).await.unwrap().to_value();
        let condition = &pod["status"]["conditions"][0];
        if let (Some(reason), Some(message)) = (condition["reason"].as_str(), condition["message"].as_str()) {
            return (reason.to_owned(), message.to_owned());
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("nothing is said of {name}");
}

#[tokio::test]
async fn an_extender_that_fails_is_told_of_in_kube_schedulers_words() {
    for (answered, said) in [
        (
            ("500 Internal Server Error", "oops"),
            "failed filter with extender at URL http://{}/filter, code 500",
        ),
        (("200 OK", "nonsense"), "invalid character 'o' in literal null (expecting 'u')"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answering = answer_all(listener, answered);
        let config = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             extenders: [{{urlPrefix: 'http://{address}', filterVerb: filter}}]\n"
        );
        let options = options(&config);
        let cluster = Cluster::start(Config::new().nodes(1).scheduler(options)).await.unwrap();
        let pod = json!({"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
        cluster.client().create(&PODS, "default", pod).await.unwrap();
        let expected = ("SchedulerError".to_owned(), said.replace("{}", &address));
        assert_eq!(said_of(&cluster, "pod").await, expected);
        answering.abort();
        cluster.stop().await;
    }
}

#[tokio::test]
async fn what_an_extender_scores_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answering = answer_all(listener, ("200 OK", r#"[{"Host": "node-3", "Score": 10}]"#));
    let config = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         extenders: [{{urlPrefix: 'http://{address}', prioritizeVerb: score, weight: 100}}]\n"
    );
    let options = options(&config);
    let cluster = Cluster::start(Config::new().nodes(3).scheduler(options)).await.unwrap();
    for name in ["a", "b", "c", "d"] {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
        cluster.client().create(&PODS, "default", pod).await.unwrap();
        assert_eq!(node_of(&cluster, name).await, "node-3");
    }
    answering.abort();
    cluster.stop().await;
}
