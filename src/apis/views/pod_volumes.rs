//! The volumes and devices that a pod claims, as far as scheduling and binding look at them.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use apimachinery::object::nullable;

/// The volumes of a pod that scheduling looks at. It is read as the list of its claims.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimedVolumes {
    claims: Vec<PodClaim>,
    /// Disks that a pod names itself and that not everybody can use at once, as they stand.
    pub disks: Vec<Value>,
}

impl std::ops::Deref for ClaimedVolumes {
    type Target = [PodClaim];

    fn deref(&self) -> &[PodClaim] {
        &self.claims
    }
}

/// A volume that is claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct PodClaim {
    /// Of the PersistentVolumeClaim; of an ephemeral volume its own.
    pub name: String,
    /// The claim is made for the pod, and named after it, too.
    pub is_ephemeral: bool,
}

impl PodClaim {
    /// The claim of a pod of this name: that of an ephemeral volume is named after both
    /// (`ephemeral.VolumeClaimName`).
    pub fn claim_name(&self, pod: &str) -> String {
        if self.is_ephemeral { format!("{pod}-{}", self.name) } else { self.name.clone() }
    }
}

impl ClaimedVolumes {
    /// The names of all claims that a pod of this name uses.
    pub fn claim_names<'a>(&'a self, pod: &'a str) -> impl Iterator<Item = String> + 'a {
        self.claims.iter().map(move |claim| claim.claim_name(pod))
    }

    /// Whether a pod of this name uses a claim.
    pub fn has(&self, pod: &str, claim: &str) -> bool {
        self.claim_names(pod).any(|name| name == claim)
    }
}

/// `v1.PodResourceClaim`: one of the two names is there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodResourceClaim {
    /// What containers call it.
    pub name: String,
    /// A claim that is there already.
    pub resource_claim_name: Option<String>,
    /// What a claim is made from for the pod alone.
    pub resource_claim_template_name: Option<String>,
}

impl PodResourceClaim {
    /// The claim that the pod names, or that was made for it (`resourceclaim.Name`): none before it is made,
    /// an empty name where none was needed. `made` is what the pod's status says.
    pub fn claim_name(&self, made: &[PodResourceClaimStatus]) -> Option<String> {
        let made = || made.iter().find(|made| made.name == self.name);
        let name_made = || made().map(|made| made.resource_claim_name.clone().unwrap_or_default());
        self.resource_claim_name.clone().or_else(name_made)
    }
}

/// `v1.PodResourceClaimStatus`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodResourceClaimStatus {
    /// As in the spec.
    pub name: String,
    /// The claim that was made; without a name none was needed.
    pub resource_claim_name: Option<String>,
}

pub(super) fn claims_among_volumes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ClaimedVolumes, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Volume {
        name: String,
        persistent_volume_claim: Option<Source>,
        ephemeral: Option<IgnoredAny>,
        gce_persistent_disk: Option<Value>,
        aws_elastic_block_store: Option<Value>,
        rbd: Option<Value>,
        iscsi: Option<Value>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Source {
        claim_name: String,
    }
    let mut found = ClaimedVolumes::default();
    let volumes: Vec<Volume> = nullable(deserializer)?;
    for volume in volumes {
        let disks = [
            ("gcePersistentDisk", volume.gce_persistent_disk),
            ("awsElasticBlockStore", volume.aws_elastic_block_store),
            ("rbd", volume.rbd),
            ("iscsi", volume.iscsi),
        ];
        let disks = disks.into_iter().filter_map(|(kind, disk)| Some(json!({ kind: disk? })));
        found.disks.extend(disks);
        found.claims.extend(match volume.persistent_volume_claim {
            Some(source) => Some(PodClaim { name: source.claim_name, is_ephemeral: false }),
            None => volume.ephemeral.map(|_| PodClaim { name: volume.name, is_ephemeral: true }),
        });
    }
    // Without the room that the volumes took.
    found.claims.shrink_to_fit();
    found.disks.shrink_to_fit();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::pod::Pod;

    #[test]
    fn volumes_are_read_as_claims() {
        let volumes = json!([{"name": "a", "emptyDir": {}}, {"name": "b", "ephemeral": {"x": 1}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "d", "rbd": {"image": "a"}}]);
        let pod: Pod = serde_json::from_value(json!({"spec": {"volumes": volumes}})).unwrap();
        let claim = |name: &str, is_ephemeral| PodClaim { name: name.into(), is_ephemeral };
        assert_eq!(*pod.spec.claims, [claim("b", true), claim("data", false)]);
        assert_eq!(pod.spec.claims.disks, [json!({"rbd": {"image": "a"}})]);
    }

    #[test]
    fn claims_have_the_names_that_are_made_for_the_pod() {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {
                "volumes": [{"name": "b", "ephemeral": {}},
                    {"name": "c", "persistentVolumeClaim": {"claimName": "data"}}],
                "resourceClaims": [{"name": "named", "resourceClaimName": "there"},
                    {"name": "made", "resourceClaimTemplateName": "t"},
                    {"name": "needless", "resourceClaimTemplateName": "t"},
                    {"name": "late", "resourceClaimTemplateName": "t"}],
            },
            "status": {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "made-1"},
                {"name": "needless"}]},
        }))
        .unwrap();
        assert_eq!(pod.spec.claims.claim_names("web").collect::<Vec<_>>(), ["web-b", "data"]);
        let of_devices = pod
            .spec
            .resource_claims
            .iter()
            .map(|claim| claim.claim_name(&pod.status.resource_claim_statuses));
        let expected = [Some("there"), Some("made-1"), Some(""), None];
        assert!(of_devices.eq(expected.map(|name| name.map(str::to_owned))));
    }
}
