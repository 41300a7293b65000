//! Field management of one request (`RequestScope.FieldManager`): who writes, in which version, and what the
//! path cannot write.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use http::header::USER_AGENT;
use serde_json::{Map, Value};

use super::form::BodyKind;
use super::request_scope::Scope;
use crate::endpoints::EndpointContext;
use apimachinery::gvk::GroupVersion;
use apimachinery::managed_fields::{ApplyError, Converter, FieldManager, SchemaType, Updater, apply};
use apimachinery::schema::{Schema, Schemas, zero_object};
use apimachinery::time::rfc3339;
use apimachinery::user::UserInfo;
use apis::apiextensions::custom_resource::CustomResource;
use apis::kind::{Kind, Subresource};

/// Upstream's `FieldManagerMaxLength`.
const MAX_MANAGER_BYTES: usize = 128;

/// Keeps the owners of fields for the writes of one request.
pub(crate) struct FieldManagement<'s> {
    scope: &'s Scope,
    form: &'s BodyKind,
}

impl<'s> FieldManagement<'s> {
    pub(crate) fn new(scope: &'s Scope, form: &'s BodyKind) -> Self {
        Self { scope, form }
    }

    /// Sets the owners in `new`, which is to replace `live`.
    pub(crate) fn update(&self, live: Option<&Value>, new: &mut Value) {
        self.with_manager(|manager, empty| manager.update(live, empty, new));
    }

    /// Lays a configuration over `live`.
    ///
    /// # Errors
    /// 409 for conflicts, 400 and 500 for what cannot be applied.
    pub(super) fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        force: bool,
    ) -> Result<Value, ApplyError> {
        self.with_manager(|manager, empty| apply(manager, live, empty, config, force))
    }

    fn with_manager<T>(&self, run: impl FnOnce(&FieldManager, &dyn Fn() -> Value) -> T) -> T {
        let scope = self.scope;
        let form = self.form;
        let is_custom = scope.kind.is_custom && scope.subresource != Some(Subresource::Scale);
        let schema = match CustomResource::of(&scope.kind) {
            Some(custom) if is_custom => custom.typed(),
            _ => form.schema(),
        };
        let kind = if is_custom { SchemaType::Custom(&schema) } else { SchemaType::Known(&schema) };
        let reset = scope.kind.reset_fields(scope.subresource);
        let converter = ManagedVersions { server: &scope.server, kind: &scope.kind, custom: OnceLock::new() };
        let (api_version, gvk) = form.names();
        let name = manager_name(&scope.ctx.field_manager, &scope.headers, &scope.ctx.user);
        let manager = FieldManager {
            updater: Updater { kind, api_version: &api_version, reset: &reset, converter: &converter },
            gvk: &gvk,
            subresource: scope.subresource.map_or("", Subresource::name),
            manager: &name,
            now: &rfc3339(scope.server.clock.now()),
        };
        run(&manager, &|| if is_custom { Value::Object(Map::new()) } else { zero_object(&schema) })
    }
}

/// The other versions of a kind that are served.
struct ManagedVersions<'s> {
    server: &'s EndpointContext,
    kind: &'s Kind,
    /// The schemas of a custom kind, by version; read when an owner of another version is met.
    custom: OnceLock<Vec<(String, Arc<Schema>)>>,
}

impl ManagedVersions<'_> {
    fn other(&self, api_version: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let other = self.server.scheme.kind(&GroupVersion::new(group, version), &self.kind.kind)?;
        (other.storage_prefix() == self.kind.storage_prefix()).then_some(other)
    }

    fn custom(&self, api_version: &str) -> Option<&Schema> {
        let all = self.custom.get_or_init(|| {
            let all = self.server.scheme.all();
            let own = all.iter().filter(|kind| kind.storage_prefix() == self.kind.storage_prefix());
            own.filter_map(|kind| Some((kind.api_version().to_string(), CustomResource::of(kind)?.typed())))
                .collect()
        });
        all.iter().find(|(version, _)| version == api_version).map(|(_, schema)| &**schema)
    }
}

impl Converter for ManagedVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        Some(converted(self.kind, &*self.other(api_version)?, object))
    }

    fn convert_back(&self, object: &Value, api_version: &str) -> Option<Value> {
        Some(converted(&*self.other(api_version)?, self.kind, object))
    }

    fn schema(&self, api_version: &str) -> Option<SchemaType<'_>> {
        let other = self.other(api_version)?;
        if other.is_custom {
            return Some(SchemaType::Custom(self.custom(api_version)?));
        }
        Schemas::lookup(&other.definition).map(SchemaType::Known)
    }
}

/// Through the stored form.
fn converted(from: &Kind, to: &Kind, object: &Value) -> Value {
    let stored = match &from.stored {
        Some(stored) => (stored.encode)(object.clone()),
        None => object.clone(),
    };
    match &to.stored {
        Some(other) => (other.decode)(stored),
        None => stored,
    }
}

/// Who writes (`managerOrUserAgent`): as it says, or the name of its program. Components in this process have
/// no user agent; theirs is their program's name upstream.
fn manager_name(given: &str, headers: &HeaderMap, user: &UserInfo) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    match headers.get(USER_AGENT).and_then(|value| value.to_str().ok()) {
        Some(agent) => name_of_agent(agent),
        None => name_of_component(&user.name).to_owned(),
    }
}

/// What stands before the first slash, as far as it can be printed and there is room.
fn name_of_agent(agent: &str) -> String {
    let mut name = String::new();
    for c in agent.split('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()) {
        if name.len() + c.len_utf8() > MAX_MANAGER_BYTES {
            break;
        }
        name.push(c);
    }
    name
}

fn name_of_component(user: &str) -> &str {
    match user {
        "system:kube-scheduler" => "kube-scheduler",
        "system:apiserver" => "kube-apiserver",
        "system:kube-controller-manager" => "kube-controller-manager",
        user if user.starts_with("system:node:") => "kubelet",
        user if user.starts_with("system:serviceaccount:kube-system:") => "kube-controller-manager",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_named_by_itself_by_its_program_or_by_its_place() {
        let cases = [
            ("mine", "kubectl/v1.33.0 (linux/amd64)", "a", "mine"),
            ("", "kubectl/v1.33.0 (linux/amd64)", "a", "kubectl"),
            ("", "Mozilla", "a", "Mozilla"),
            ("", "", "system:node:n1", ""),
        ];
        for (given, agent, user, expected) in cases {
            let headers = HeaderMap::from_iter([(USER_AGENT, agent.parse().unwrap())]);
            let user = UserInfo { name: user.into(), ..UserInfo::default() };
            assert_eq!(manager_name(given, &headers, &user), expected);
        }
        let component = |name: &str| {
            let user = UserInfo { name: name.into(), ..UserInfo::default() };
            manager_name("", &HeaderMap::new(), &user)
        };
        assert_eq!(component("system:node:node-1"), "kubelet");
        assert_eq!(
            component("system:serviceaccount:kube-system:deployment-controller"),
            "kube-controller-manager"
        );
        assert_eq!(name_of_agent(&"x".repeat(200)).len(), MAX_MANAGER_BYTES);
    }
}
