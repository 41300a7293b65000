//! Who may act as whom, in each way.

use super::modes::{AUTHENTICATION, Acted};
use super::*;
use crate::authorizer::{Authorizer, Decision};
use crate::authorizer::{AuthorizerReply, UserRules};
use crate::metrics::Render;
use crate::request::RequestInfo;
use clock::Clock;
use sync::Mutex;

/// Allows what is listed, as `verb resource name`, and notes what it was asked.
#[derive(Default)]
struct List {
    allowed: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Authorizer for List {
    fn authorize<'a>(&'a self, _user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        let RequestInfo { verb, resource, subresource, name, .. } = info;
        let slash = if subresource.is_empty() { "" } else { "/" };
        let asked = format!("{verb} {resource}{slash}{subresource} {name}");
        let is_allowed = self.allowed.contains(&&*asked);
        self.asked.lock().push(asked);
        AuthorizerReply::Now(if is_allowed { Decision::allowed_by("List") } else { Decision::SILENT })
    }

    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> UserRules {
        UserRules::default()
    }
}

fn user(name: &str, groups: &[&str], extra: &[(&str, &str)]) -> UserInfo {
    let extra = extra.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]));
    let groups = groups.iter().copied().map(Arc::from).collect();
    UserInfo { name: name.into(), groups, extra: extra.collect(), ..UserInfo::default() }
}

async fn find(allowed: &[&'static str], from: &UserInfo, wanted: &UserInfo) -> Result<Acted, String> {
    let list = Arc::new(List { allowed: allowed.to_vec(), ..List::default() });
    let impersonation = Impersonation::new(list, &Clock::real(), true);
    let info = RequestInfo::new(&http::Method::GET, "/api/v1/namespaces/d/pods", "").unwrap();
    impersonation.find(wanted, from, &info).await.map_err(|status| status.message)
}

#[tokio::test]
async fn each_sort_of_user_has_its_way() {
    let jane = user("jane", &[], &[]);
    let on_node = [("authentication.kubernetes.io/node-name", "n1")];
    let agent = user("system:serviceaccount:d:agent", &[], &on_node);
    let groups = ["system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated"];
    let on = |mode: &str| format!("impersonate-on:{mode}:list pods ").leak() as &'static str;
    type Case<'c> = (&'c [&'static str], &'c UserInfo, UserInfo, &'c [&'c str], Option<&'c str>);
    let cases: [Case; 6] = [
        (&["impersonate users joe"], &jane, user("joe", &[], &[]), &["system:authenticated"], None),
        (
            &[on("user-info"), "impersonate:user-info users joe", "impersonate:user-info groups ops"],
            &jane,
            user("joe", &["ops"], &[]),
            &["ops", "system:authenticated"],
            Some("impersonate:user-info"),
        ),
        (
            &[on("serviceaccount"), "impersonate:serviceaccount serviceaccounts b"],
            &jane,
            user("system:serviceaccount:d:b", &[], &[]),
            &groups,
            Some("impersonate:serviceaccount"),
        ),
        (
            &[on("arbitrary-node"), "impersonate:arbitrary-node nodes n1"],
            &jane,
            user("system:node:n1", &[], &[]),
            &["system:nodes", "system:authenticated"],
            Some("impersonate:arbitrary-node"),
        ),
        (
            &[on("associated-node"), "impersonate:associated-node nodes *"],
            &agent,
            user("system:node:n1", &[], &[]),
            &["system:nodes", "system:authenticated"],
            Some("impersonate:associated-node"),
        ),
        (
            &["impersonate users system:anonymous"],
            &jane,
            user("system:anonymous", &[], &[]),
            &["system:unauthenticated"],
            None,
        ),
    ];
    for (allowed, from, wanted, groups, constraint) in cases {
        let acted = find(allowed, from, &wanted).await.unwrap();
        let found: Vec<&str> = acted.user.groups.iter().map(|group| &**group).collect();
        assert_eq!((&found[..], acted.constraint), (groups, constraint), "{allowed:?}");
    }
}

#[tokio::test]
async fn constraints_hold() {
    let jane = user("jane", &[], &[]);
    let on = "impersonate-on:user-info:list pods ";
    let cannot = |what: &str, resource: &str, group: &str, scope: &str| {
        format!("User \"jane\" cannot {what} resource {resource:?} in API group {group:?} {scope}")
    };
    let cluster = "at the cluster scope";
    let of_users =
        |why: &str| format!("{}{why}", cannot("impersonate:user-info", "groups", AUTHENTICATION, cluster));
    let cases: [(&[&'static str], UserInfo, String); 5] = [
        (
            &[],
            user("joe", &[], &[]),
            format!(
                "pods is forbidden: {}",
                cannot("impersonate-on:user-info:list", "pods", "", "in the namespace \"d\"")
            ),
        ),
        (
            &[on],
            user("joe", &[], &[]),
            format!(
                "users.authentication.k8s.io \"joe\" is forbidden: {}",
                cannot("impersonate:user-info", "users", AUTHENTICATION, cluster)
            ),
        ),
        (
            &[on, "impersonate:user-info users joe", "impersonate:user-info groups system:masters"],
            user("joe", &["system:masters"], &[]),
            format!(
                "groups.authentication.k8s.io \"system:masters\" is forbidden: {}",
                of_users(": impersonating the system:masters group is not allowed")
            ),
        ),
        (
            &[on, "impersonate:user-info users joe"],
            user("joe", &[], &[("scopes", "a")]),
            format!(
                "userextras.authentication.k8s.io is forbidden: {}: impersonating an invalid key in extra is not \
                 allowed: extra.key: Invalid value: \"scopes\": must be a domain-prefixed path (such as \
                 \"acme.io/foo\")",
                cannot("impersonate:user-info", "userextras", AUTHENTICATION, cluster)
            ),
        ),
        (
            &["impersonate:arbitrary-node nodes n1"],
            user("system:node:n1", &[], &[]),
            format!(
                "pods is forbidden: {}",
                cannot("impersonate-on:arbitrary-node:list", "pods", "", "in the namespace \"d\"")
            ),
        ),
    ];
    for (allowed, wanted, message) in cases {
        assert_eq!(find(allowed, &jane, &wanted).await.unwrap_err(), message);
    }
}

#[tokio::test]
async fn the_way_that_led_somewhere_is_tried_first() {
    let list = Arc::new(List { allowed: vec!["impersonate users joe"], ..List::default() });
    let impersonation = Impersonation::new(list.clone(), &Clock::real(), true);
    let info = RequestInfo::new(&http::Method::GET, "/api/v1/pods", "").unwrap();
    let (jane, joe) = (user("jane", &[], &[]), user("joe", &[], &[]));
    for asked in [2, 1] {
        impersonation.find(&joe, &jane, &info).await.unwrap();
        assert_eq!(std::mem::take(&mut *list.asked.lock()).len(), asked);
    }
    let refused = impersonation.find(&user("admin", &[], &[]), &jane, &info).await.unwrap_err();
    assert!(refused.message.contains("cannot impersonate resource \"users\""), "{}", refused.message);
    let mut out = String::new();
    impersonation.render(&mut out);
    let line = "apiserver_impersonation_attempts_total{decision=\"allowed\",mode=\"legacy\"} 2\n";
    assert!(out.contains(line), "{out}");
}
