//! `/healthz`, `/livez`, `/readyz` (`k8s.io/apiserver/pkg/server/healthz`).

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::StatusCode;

use crate::endpoints::query::Query;
use apimachinery::wire::{ApiResponse, text_response};
use component_base::health::{HEALTH_PATHS, check_line, told};
use component_base::slis::HealthSlis;
use golang::go_text::quote;

/// What came of a check; the text is for the log, clients only hear that it failed.
pub type Checked = Result<(), String>;

/// What a check asks.
pub type HealthCheck = Arc<dyn Fn() -> BoxFuture<'static, Checked> + Send + Sync>;

/// A check that waits for nobody.
pub fn at_once(check: impl Fn() -> Checked + Send + Sync + 'static) -> HealthCheck {
    Arc::new(move || Box::pin(ready(check())))
}

/// The checks in the order in which they are listed.
#[derive(Clone)]
pub struct HealthChecks {
    checks: Vec<(String, HealthCheck, HealthScope)>,
    /// What came of them (`/metrics/slis`).
    pub(crate) slis: Arc<HealthSlis>,
}

/// Where a check is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HealthScope {
    Everywhere,
    /// At `/livez` alone.
    OfLiveness,
    /// Not at `/livez`: a server that fails it is not better when it is started anew.
    OfHealthAndReadiness,
    /// At `/readyz` alone.
    OfReadiness,
}

impl Default for HealthChecks {
    fn default() -> HealthChecks {
        let none = HealthChecks { checks: vec![], slis: Arc::default() };
        // Nothing buffers what is logged: who cannot write it answers nothing either.
        none.with("ping", at_once(|| Ok(())), true).with("log", at_once(|| Ok(())), true)
    }
}

impl HealthChecks {
    /// With one more; `is_live` when a server that fails it should be started anew, and is not merely not
    /// ready.
    pub fn with(mut self, name: &str, check: HealthCheck, is_live: bool) -> HealthChecks {
        let asked = if is_live { HealthScope::Everywhere } else { HealthScope::OfHealthAndReadiness };
        self.checks.push((name.into(), check, asked));
        self
    }

    /// With one more that is asked at `/livez` alone: another of that name says more at the other paths.
    pub fn with_liveness(mut self, name: &str, check: HealthCheck) -> HealthChecks {
        self.checks.push((name.into(), check, HealthScope::OfLiveness));
        self
    }

    /// With one more that says whether the server takes requests, and nothing of how it is.
    pub fn with_readiness(mut self, name: &str, check: HealthCheck) -> HealthChecks {
        self.checks.push((name.into(), check, HealthScope::OfReadiness));
        self
    }

    /// The paths of all checks.
    pub(crate) fn paths(&self) -> Vec<String> {
        let of = |root: &str| {
            let root = root.to_owned();
            let names =
                self.of(&root).into_iter().map(|(name, ..)| format!("/{root}/{name}")).collect::<Vec<_>>();
            std::iter::once(format!("/{root}")).chain(names)
        };
        HEALTH_PATHS.into_iter().flat_map(of).collect()
    }

    /// The answer at `/ROOT` or `/ROOT/CHECK`; nothing when there is no such check.
    pub(crate) async fn respond(
        &self,
        root: &str,
        check: Option<&str>,
        query: &Query,
    ) -> Option<ApiResponse> {
        let checks = self.of(root);
        if let Some(wanted) = check {
            let (_, check, _) = checks.into_iter().find(|(name, ..)| name == wanted)?;
            return Some(match check().await {
                Ok(()) => text_response(StatusCode::OK, "ok"),
                Err(error) => {
                    let text = format!("internal server error: {error}\n");
                    text_response(StatusCode::INTERNAL_SERVER_ERROR, text)
                }
            });
        }
        let excluded = query.all("exclude");
        let mut unknown: Vec<&str> = excluded.clone();
        unknown.retain(|name| !checks.iter().any(|(known, ..)| known == name));
        unknown.sort_unstable();
        unknown.dedup();
        let mut lines = String::new();
        let mut failed = false;
        for (name, check, _) in checks {
            if excluded.contains(&name.as_str()) {
                lines += &format!("[+]{name} excluded: ok\n");
                continue;
            }
            let found = check().await;
            self.slis.observe(name, root, found.is_ok());
            lines += &check_line(name, found.is_ok());
            if let Err(error) = found {
                tracing::warn!(check = name, error, "health check failed");
                failed = true;
            }
        }
        if !unknown.is_empty() {
            let quoted: Vec<String> = unknown.into_iter().map(quote).collect();
            let names = quoted.join(",");
            lines += &format!("warn: some health checks cannot be excluded: no matches for {names}\n");
        }
        Some(match (failed, query.get("verbose").is_some()) {
            (true, _) => text_response(StatusCode::INTERNAL_SERVER_ERROR, told(&lines, root, false)),
            (false, true) => text_response(StatusCode::OK, told(&lines, root, true)),
            (false, false) => text_response(StatusCode::OK, "ok"),
        })
    }

    /// Asks all of them, at each of the three paths.
    pub(crate) async fn ask_everything(&self) {
        for root in HEALTH_PATHS {
            self.respond(root, None, &Query::default()).await;
        }
    }

    fn of(&self, root: &str) -> Vec<&(String, HealthCheck, HealthScope)> {
        let is_asked = |asked: HealthScope| match asked {
            HealthScope::Everywhere => true,
            HealthScope::OfLiveness => root == "livez",
            HealthScope::OfHealthAndReadiness => root != "livez",
            HealthScope::OfReadiness => root == "readyz",
        };
        self.checks.iter().filter(|(_, _, asked)| is_asked(*asked)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn checks_decide() {
        let checks = HealthChecks::default().with("etcd", at_once(|| Err("down".into())), false);
        let text = async |root: &str, check: Option<&str>, query: &str| {
            let response = checks.respond(root, check, &Query::parse(query)).await.unwrap();
            let code = response.status().as_u16();
            let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (code, String::from_utf8(bytes.to_vec()).unwrap())
        };
        let failed = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nreadyz check failed\n";
        assert_eq!(text("readyz", None, "").await, (500, failed.into()));
        assert_eq!(text("readyz", None, "exclude=etcd").await, (200, "ok".into()));
        let warned = "[+]ping ok\n[+]log ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n";
        assert_eq!(text("livez", None, "verbose&exclude=b&exclude=a").await, (200, warned.into()));
        assert_eq!(
            text("livez", None, "verbose").await,
            (200, "[+]ping ok\n[+]log ok\nlivez check passed\n".into())
        );
        assert_eq!(text("readyz", Some("ping"), "").await, (200, "ok".into()));
        assert!(checks.respond("readyz", Some("nothing"), &Query::default()).await.is_none());
    }
}
