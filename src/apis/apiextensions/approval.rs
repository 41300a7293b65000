//! Kubernetes' own groups (`*.k8s.io`) need a word that they may be used (`helpers.GetAPIApprovalState`).

const MISSING_APPROVAL: &str = "protected groups must have approval annotation \"api-approved.kubernetes.io\", \
                                see https://github.com/kubernetes/enhancements/pull/1111";

/// Whether a group is Kubernetes' own.
pub fn is_protected(group: &str) -> bool {
    let below = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    below("k8s.io") || below("kubernetes.io")
}

/// What the approval annotation says.
#[derive(Clone, Debug, PartialEq)]
pub enum Approval {
    /// No annotation says it.
    Missing,
    /// Where it was approved.
    Approved(String),
    /// It is not, and says so.
    Unapproved(String),
    /// Something else.
    Invalid(String),
}

impl Approval {
    /// What a definition without a word is told.
    pub fn missing_text() -> &'static str {
        MISSING_APPROVAL
    }
}

/// Reads the annotation.
pub fn approval_of(annotation: Option<&str>) -> Approval {
    match annotation {
        None => Approval::Missing,
        Some(text) if text.starts_with("unapproved") => Approval::Unapproved(text.into()),
        Some(text) => match text.split_once("://") {
            Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/') => {
                Approval::Approved(text.into())
            }
            _ => Approval::Invalid(MISSING_APPROVAL.into()),
        },
    }
}
