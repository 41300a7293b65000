//! What a kubelet answers over HTTP (`pkg/kubelet/server/server.go`): its pods, its health, its metrics.
//!
//! Comes in: a method and a path. Goes out: a status and a body. Nobody opens a socket here: the apiserver
//! asks through `nodes/proxy`, and who stands at the kubelet's port for who may. Streams into containers and
//! logs are not among it: they are asked for by name.

mod cadvisor;
mod configz;
mod declared_metrics;
mod metrics;
mod pods;
mod pressure;
mod summary;
mod usage;
mod volume_counts;
mod volume_stats;
mod working_pods;

pub(crate) use usage::MeasuredPod;
pub use usage::{PodUsage, UsageTotal};

use bytes::Bytes;
use component_base::build_info;
use component_base::metrics::Render;
use component_base::zpages;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};

use self::metrics::ProbedHere;
use super::kubelet::Kubelet;
use apimachinery::time::Time;

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// Of Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
/// Where else to look, as `/statusz` lists it.
const PATHS: &[&str] = &[
    "/checkpoint/",
    "/configz",
    "/containerLogs/",
    "/exec/",
    "/flagz",
    "/healthz",
    "/logs/",
    "/metrics",
    "/metrics/cadvisor",
    "/metrics/probes",
    "/metrics/resource",
    "/metrics/slis",
    "/pods",
    "/portForward/",
    "/run/",
    "/runningpods/",
    "/stats/",
];
/// What Go's file server shows of `/var/log`.
const LOGS: &str = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n\
    <a href=\"containers/\">containers/</a>\n<a href=\"pods/\">pods/</a>\n</pre>\n";

impl Kubelet {
    /// Answers a request of somebody who may ask.
    pub async fn answer_http(&self, method: &Method, path: &str) -> Response<Bytes> {
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        if path.starts_with("/checkpoint/") {
            return answer(500, PLAIN, NO_CHECKPOINT.into());
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return answer(405, PLAIN, "405: Method Not Allowed".into());
        }
        let now = self.shared.context.clock.now();
        // What users say of a path goes before what is there.
        if let Some(text) = self.declared_metrics(path, now).await {
            return answer(200, METRICS, text);
        }
        match path {
            "/healthz" => {
                self.check_health();
                answer(200, PLAIN, "ok".into())
            }
            "/metrics/slis" => {
                if self.shared.slis.is_empty() {
                    self.check_health();
                }
                let mut text = String::new();
                self.shared.slis.render(&mut text);
                answer(200, METRICS, text)
            }
            "/healthz/ping" | "/healthz/log" | "/healthz/syncloop" => answer(200, PLAIN, "ok".into()),
            "/pods" => answer(200, JSON, pods::list(&self.pods_here().await)),
            "/runningpods" => answer(200, JSON, pods::running(&self.pods_here().await)),
            "/metrics" => answer(200, METRICS, self.own_metrics(now).await),
            "/metrics/resource" => {
                let up = self.shared.context.clock.elapsed();
                answer(200, METRICS, metrics::resource(&self.measured_pods(now).await, (up, now)))
            }
            "/metrics/cadvisor" => {
                let pods = self.measured_pods(now).await;
                let runtime = &*self.shared.node.runtime;
                let throttling: Vec<_> = pods.iter().map(|pod| pod.throttling(runtime, now)).collect();
                answer(200, METRICS, cadvisor::cadvisor(&self.shared.config, &pods, &throttling))
            }
            "/metrics/probes" => {
                let probed = self.look_at_each(|worker| ProbedHere::of(worker, now)).await;
                answer(200, METRICS, metrics::probes(&probed.into_iter().flatten().collect::<Vec<_>>()))
            }
            "/stats/summary" => {
                let begun = now - self.shared.context.clock.elapsed();
                let pods = self.measured_pods(now).await;
                let volumes = self.volumes_of_claims(now).await;
                let config = &self.shared.config;
                let summary = summary::summary(self.node_name(), (&pods, &volumes), config, (begun, now));
                answer(200, JSON, summary)
            }
            "/configz" => answer(200, JSON, configz::configuration(&self.shared.config)),
            "/statusz" => {
                let up = self.shared.context.clock.elapsed();
                let started = (now - up).format(zpages::UNIX_DATE).to_string();
                let version = &self.shared.config.info.kubelet_version;
                answer(200, PLAIN, zpages::statusz("kubelet", &started, up, version, PATHS))
            }
            "/flagz" => answer(200, PLAIN, zpages::flagz("kubelet", &zpages::flags_of(self.options()))),
            "/logs" => answer(200, "text/html; charset=utf-8", LOGS.into()),
            "/logs/containers" | "/logs/pods" => {
                answer(200, "text/html; charset=utf-8", "<!doctype html>\n<pre>\n</pre>\n".into())
            }
            _ => answer(404, PLAIN, "404 page not found\n".into()),
        }
    }
}

impl Kubelet {
    /// It is well as long as it can say so.
    fn check_health(&self) {
        for check in ["ping", "log", "syncloop"] {
            self.shared.slis.observe(check, "healthz", true);
        }
    }

    /// What it counts of itself.
    async fn own_metrics(&self, now: Time) -> String {
        let pods = self.pods_here().await;
        let mut text = metrics::own(self.node_name(), &pods);
        text.push_str(&self.working_pods());
        text.push_str(&volume_stats::metrics(&self.volumes_of_claims(now).await));
        text.push_str(&self.volume_counts(&pods).await);
        self.shared.counted.render(&mut text);
        self.shared.counted.looks.render(&mut text, now);
        self.shared.context.metrics.render(&mut text);
        build_info::render(&mut text);
        text
    }
}

const NO_CHECKPOINT: &str = "checkpointing failed (rpc error: code = Unimplemented desc = method CheckpointContainer not implemented)";

fn answer(code: u16, content_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests;
