//! What the controller of ResourceClaims counts (`pkg/controller/resourceclaim/metrics`).

use serde_json::Value;

use super::volume_counts::LabelledCounts;
use apis::tree::{annotation, flag, is_set, items};
use client_go::lister::Lister;
use component_base::metrics::{Family, Render, gauge};

/// Says of which of a pod's claims a claim is (`podResourceClaimAnnotation`).
pub(crate) const POD_CLAIM: &str = "resource.kubernetes.io/pod-claim-name";
/// On a claim that the scheduler has made for extended resources.
const OF_EXTENDED_RESOURCE: &str = "resource.kubernetes.io/extended-resource-claim";

/// The claims that were made, and those that there are.
pub(crate) struct ClaimCounts {
    made: Family<2>,
    claims: Lister,
}

impl ClaimCounts {
    /// Of the claims that this lister knows.
    pub(crate) fn new(claims: Lister) -> ClaimCounts {
        let made = Family::counter(
            "resourceclaim_controller_creates_total",
            "[ALPHA] Number of ResourceClaims creation requests, categorized by creation status and admin access",
            ["status", "admin_access"],
        );
        ClaimCounts { made, claims }
    }

    /// A claim was to be made.
    pub(crate) fn made(&self, is_made: bool, claim: &Value) {
        self.made.count([if is_made { "success" } else { "failure" }, truth(has_admin_access(claim))]);
    }
}

impl Render for ClaimCounts {
    fn render(&self, out: &mut String) {
        self.made.render(out);
        let mut counts = LabelledCounts::new();
        for claim in self.claims.all() {
            let claim = claim.to_value();
            let labels =
                [truth(has_admin_access(&claim)), truth(is_set(&claim, "status.allocation")), source(&claim)];
            *counts.entry(labels.map(str::to_owned)).or_default() += 1;
        }
        let help = "[ALPHA] Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can \
            be 'resource_claim_template' (created from a template), 'extended_resource' (extended resources), or \
            empty (manually created by a user).";
        let labels = ["admin_access", "allocated", "source"];
        gauge(out, ("resourceclaim_controller_resource_claims", help), labels, counts);
    }
}

fn truth(it: bool) -> &'static str {
    if it { "true" } else { "false" }
}

fn has_admin_access(claim: &Value) -> bool {
    items(claim, "spec.devices.requests").iter().any(|request| flag(request, "exactly.adminAccess"))
}

/// Who made it.
fn source(claim: &Value) -> &'static str {
    if annotation(claim, OF_EXTENDED_RESOURCE) == "true" {
        "extended_resource"
    } else if annotation(claim, POD_CLAIM).is_empty() {
        ""
    } else {
        "resource_claim_template"
    }
}
