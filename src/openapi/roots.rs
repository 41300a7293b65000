//! Paths beside those of resources: what versions and groups there are, which release it is, who issues
//! tokens.

use std::collections::BTreeSet;

use super::ServedResource;
use super::names::{camel, group_path, trimmed};
use super::operation::{PathItem, PathOperation};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// One such path and its document in the v3 index.
pub(super) struct Root {
    /// As `apis/apps`.
    pub(super) document: String,
    pub(super) item: PathItem,
}

/// All of them, for what is served.
pub(super) fn roots(served: &[ServedResource]) -> Vec<Root> {
    // Custom groups publish nothing but their versions.
    let own = served.iter().filter(|resource| resource.schema.is_none());
    let groups: BTreeSet<&str> = own.map(|resource| resource.group.as_str()).collect();
    let named = groups.into_iter().filter(|group| !group.is_empty());
    let fixed = [
        root("api", "CoreAPIVersions", "core", "get available API versions", format!("{META}.APIVersions")),
        root("apis", "APIVersions", "apis", "get available API versions", format!("{META}.APIGroupList")),
        form(
            "application/json",
            root("version", "CodeVersion", "version", RELEASE, "io.k8s.apimachinery.pkg.version.Info".into()),
        ),
        plain(
            ".well-known/openid-configuration",
            "ServiceAccountIssuerOpenIDConfiguration",
            "WellKnown",
            ISSUER,
            "application/json",
        ),
        plain(
            "openid/v1/jwks",
            "ServiceAccountIssuerOpenIDKeyset",
            "openid",
            KEYS,
            "application/jwk-set+json",
        ),
    ];
    fixed.into_iter().chain(named.map(group)).collect()
}

const RELEASE: &str = "get the version information for this server";
const ISSUER: &str =
    "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'";
const KEYS: &str =
    "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)";

fn group(name: &str) -> Root {
    let path = group_path(name, "");
    let (id, tag) = (camel(trimmed(name), true) + "APIGroup", camel(trimmed(name), false));
    root(path.trim_matches('/'), &id, &tag, "get information of a group", format!("{META}.APIGroup"))
}

fn root(path: &str, id: &str, tag: &str, description: &str, answer: String) -> Root {
    let operation = PathOperation {
        method: "get",
        id: format!("get{id}"),
        tag: tag.into(),
        description: description.into(),
        answer,
        codes: &["200"],
        ..PathOperation::default()
    };
    let item = PathItem { path: format!("/{path}/"), placeholders: vec![], operations: vec![operation] };
    Root { document: path.into(), item }
}

/// Its answer is a text of its own.
fn plain(path: &str, id: &str, tag: &str, description: &str, media_type: &'static str) -> Root {
    form(media_type, root(path, id, tag, description, String::new()))
}

/// One that answers in one form only.
fn form(media_type: &'static str, mut root: Root) -> Root {
    root.item.operations.iter_mut().for_each(|operation| operation.media_type = media_type);
    root
}
