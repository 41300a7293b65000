//! kwok's kinds (`kwok.x-k8s.io/v1alpha1`), which are served where somebody wants them: else discovery is
//! upstream's. Whoever applies kwok's own definitions has them, too.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use super::manifests::{self, Error, Manifest};
use super::stages;
use ::stages::{GROUP, VERSION};
use apimachinery::yaml;
use apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use apis::scheme::Scheme;
use client_go::client::Client;

/// A kind of kwok's, by its name there (`--enable-crds`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KwokKind {
    /// What becomes of objects of any kind, as data.
    Stage,
    /// What the containers of one pod use.
    ResourceUsage,
    /// What the containers of many pods use.
    ClusterResourceUsage,
    /// What kubelets answer below `/metrics`.
    Metric,
}

impl KwokKind {
    pub(super) const ALL: &[KwokKind] =
        &[KwokKind::Stage, KwokKind::ResourceUsage, KwokKind::ClusterResourceUsage, KwokKind::Metric];

    pub(super) fn plural(self) -> &'static str {
        match self {
            KwokKind::Stage => "stages",
            KwokKind::ResourceUsage => "resourceusages",
            KwokKind::ClusterResourceUsage => "clusterresourceusages",
            KwokKind::Metric => "metrics",
        }
    }

    /// As kwok writes it (`kustomize/crd`), without descriptions.
    fn definition(self) -> Value {
        let text = match self {
            KwokKind::Stage => include_str!("../../manifests/kwok/stages.yaml"),
            KwokKind::ResourceUsage => include_str!("../../manifests/kwok/resourceusages.yaml"),
            KwokKind::ClusterResourceUsage => include_str!("../../manifests/kwok/clusterresourceusages.yaml"),
            KwokKind::Metric => include_str!("../../manifests/kwok/metrics.yaml"),
        };
        yaml::from_str(text).expect("our own manifests are YAML")
    }
}

impl fmt::Display for KwokKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for KwokKind {
    type Err = String;

    fn from_str(text: &str) -> Result<KwokKind, String> {
        let found = KwokKind::ALL.iter().find(|kind| kind.to_string().eq_ignore_ascii_case(text));
        let names: Vec<String> = KwokKind::ALL.iter().map(ToString::to_string).collect();
        found.copied().ok_or_else(|| format!("must be one of {}", names.join(", ")))
    }
}

/// Has the kinds served that somebody wants, and a folder's objects of them there.
///
/// # Errors
/// A definition that is refused; what is wrong with an object of the folder.
pub(super) async fn bring(
    client: &Client,
    scheme: &Scheme,
    wanted: &[KwokKind],
    folder: Option<&Path>,
) -> Result<(), Error> {
    let objects = stages::of_kwok(folder)?;
    let mut kinds = wanted.to_vec();
    for (_, object) in &objects {
        let kind = object["kind"].as_str().unwrap_or_default().parse();
        kinds.extend(kind.ok().filter(|kind| !kinds.contains(kind)));
    }
    for kind in kinds {
        serve(client, scheme, kind).await?;
    }
    for (file, object) in objects {
        let manifest = Manifest::parse(&file, &yaml::to_string(&object))?;
        manifests::apply(client, scheme, &manifest, |_| {}).await?;
    }
    Ok(())
}

async fn serve(client: &Client, scheme: &Scheme, kind: KwokKind) -> Result<(), Error> {
    match client.create(&CUSTOM_RESOURCE_DEFINITIONS, "", kind.definition()).await {
        Err(refused) if !refused.is_already_exists() => {
            return Err(Error::new(Path::new("the kinds of kwok"), refused));
        }
        _ => {}
    }
    let mut served = scheme.changes();
    while scheme.resource(GROUP, VERSION, kind.plural()).is_none() && served.changed().await.is_ok() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_and_definitions() {
        for kind in KwokKind::ALL {
            let definition = kind.definition();
            assert_eq!(definition["spec"]["names"]["kind"], kind.to_string());
            assert_eq!(definition["spec"]["names"]["plural"], kind.plural());
            assert_eq!(kind.to_string().to_lowercase().parse(), Ok(*kind));
        }
        let refused = "Node".parse::<KwokKind>().unwrap_err();
        assert_eq!(refused, "must be one of Stage, ResourceUsage, ClusterResourceUsage, Metric");
    }
}
