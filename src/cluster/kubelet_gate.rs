//! Who may ask a kubelet at its port, and what he is answered (`pkg/kubelet/server`): who asks is known by
//! his certificate or token, what he may the apiserver says, as fine as `KubeletFineGrainedAuthz` has it.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::apart::delegated::{Delegated, PresentedProof};
use super::kubelet_lookup::Kubelets;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, ApiResponse, text_response};
use apiserver::endpoints::routes::debug::Debugging;
use apiserver::kubelet_client::KubeletLookup;
use apiserver::request::is_below;
use clock::Clock;

/// Stands before kubelets that ask about others in one name.
#[derive(Clone)]
pub(super) struct KubeletGate {
    pub(super) kubelets: Arc<Kubelets>,
    pub(super) delegated: Arc<Delegated>,
    pub(super) clock: Clock,
    pub(super) debugging: Debugging,
}

/// What stands between somebody and an answer; its text is all that he is told.
#[derive(Debug, PartialEq)]
struct TurnedAway {
    code: StatusCode,
    why: String,
}

/// What a request to a kubelet is, as permissions name it.
struct AskedOfNode<'a> {
    node: &'a str,
    verb: &'static str,
    /// One of them is enough.
    subresources: Vec<&'static str>,
}

impl KubeletGate {
    /// What the kubelet of a node answers, or why it does not.
    pub(super) async fn answer(&self, request: ApiRequest, node: &str) -> ApiResponse {
        let asked = AskedOfNode {
            node,
            verb: verb(request.method()),
            subresources: subresources(request.uri().path()),
        };
        let presented = self.delegated.presented(&request);
        match self.check(presented, &asked).await {
            Ok(()) => {
                let kubelets: Arc<dyn KubeletLookup> = self.kubelets.clone();
                apiserver::serve_kubelet(request, node, &kubelets, &self.clock, &self.debugging).await
            }
            Err(TurnedAway { code, why }) => text_response(code, why),
        }
    }

    /// `InstallAuthFilter`
    async fn check(&self, presented: PresentedProof, asked: &AskedOfNode<'_>) -> Result<(), TurnedAway> {
        // Who cannot be asked about is not let in, and not told why.
        let unknown = |_| TurnedAway { code: StatusCode::UNAUTHORIZED, why: "Unauthorized".to_owned() };
        let user = self.delegated.authenticate(presented).await.map_err(unknown)?;
        for subresource in &asked.subresources {
            let allowed = self.delegated.allows(&user, &asked.attributes(subresource)).await;
            if allowed.map_err(|_| asked.unanswered(&user, subresource))? {
                return Ok(());
            }
        }
        Err(asked.forbidden(&user))
    }
}

impl AskedOfNode<'_> {
    fn attributes(&self, subresource: &str) -> Value {
        json!({"resourceAttributes": {"verb": self.verb, "group": "", "version": "v1", "resource": "nodes",
            "subresource": subresource, "name": self.node}})
    }

    fn forbidden(&self, user: &UserInfo) -> TurnedAway {
        let (verb, wanted) = (self.verb, self.subresources.join(" "));
        let why =
            format!("Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{wanted}])", user.name);
        TurnedAway { code: StatusCode::FORBIDDEN, why }
    }

    fn unanswered(&self, user: &UserInfo, subresource: &str) -> TurnedAway {
        let why = format!(
            "Authorization error (user={}, verb={}, resource=nodes, subresource={subresource})",
            user.name, self.verb
        );
        TurnedAway { code: StatusCode::INTERNAL_SERVER_ERROR, why }
    }
}

/// What permissions call a method: HEAD and all others have no name, which only `*` allows.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// Which subresources of a node allow a path: one of them is enough (`nodeAuthorizerAttributesGetter`).
fn subresources(path: &str) -> Vec<&'static str> {
    let only = [
        ("/stats", "stats"),
        ("/metrics", "metrics"),
        ("/logs", "log"),
        ("/checkpoint", "checkpoint"),
        ("/statusz", "statusz"),
        ("/flagz", "configz"),
    ];
    if let Some((_, subresource)) = only.iter().find(|(root, _)| is_below(path, root)) {
        return vec![subresource];
    }
    let fine =
        [("/healthz", "healthz"), ("/configz", "configz"), ("/pods", "pods"), ("/runningpods", "pods")];
    let fine = fine.iter().find(|(root, _)| is_below(path, root)).map(|(_, subresource)| *subresource);
    fine.into_iter().chain(["proxy"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_need_the_right_that_is_as_narrow_as_they_are() {
        for (path, wanted) in [
            ("/exec/ns/p/c", &["proxy"][..]),
            ("/containerLogs/ns/p/c", &["proxy"]),
            ("/stats/summary", &["stats"]),
            ("/metrics/cadvisor", &["metrics"]),
            ("/metricsx", &["proxy"]),
            ("/logs/", &["log"]),
            ("/statusz", &["statusz"]),
            ("/flagz", &["configz"]),
            ("/healthz", &["healthz", "proxy"]),
            ("/pods", &["pods", "proxy"]),
            ("/configz", &["configz", "proxy"]),
        ] {
            assert_eq!(subresources(path), wanted, "{path}");
        }
        assert_eq!([verb(&Method::GET), verb(&Method::POST), verb(&Method::HEAD)], ["get", "create", ""]);
    }

    #[test]
    fn who_is_turned_away_is_told_so_in_upstreams_words() {
        let user = UserInfo::authenticated("a", &[]);
        let asked = AskedOfNode { node: "n", verb: "get", subresources: subresources("/pods") };
        let TurnedAway { code, why } = asked.forbidden(&user);
        assert_eq!(code, 403);
        assert_eq!(why, "Forbidden (user=a, verb=get, resource=nodes, subresource(s)=[pods proxy])");
        let TurnedAway { code, why } = asked.unanswered(&user, "pods");
        assert_eq!(code, 500);
        assert_eq!(why, "Authorization error (user=a, verb=get, resource=nodes, subresource=pods)");
    }
}
