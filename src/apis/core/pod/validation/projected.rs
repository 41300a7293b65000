//! Projected volumes: what of Secrets, ConfigMaps, the pod, tokens and certificates they show
//! (`validateProjectionSources`).

use std::collections::BTreeSet;

use serde_json::json;

use super::items::{downward_api_file, key_to_path};
use crate::certificates::signer_name;
use crate::validation::Field;
use crate::validation::labels::label_selector;
use crate::validation::texts::{file_mode, file_path, token_seconds};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1123_subdomain;

const KEY_TYPES: &[&str] = &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

/// What is wrong with a projected volume.
pub(super) fn projected(source: &Field, errors: &mut FieldErrors) {
    file_mode(&source.child("defaultMode"), errors);
    let mut files = ProjectedFiles { volume: source, seen: BTreeSet::new() };
    for projection in source.each("sources") {
        files.projection(&projection, errors);
        let given = projection.value.as_object().into_iter().flat_map(|kinds| kinds.values());
        if given.filter(|kind| !kind.is_null()).count() > 1 {
            projection.forbidden("may not specify more than 1 volume type per source", errors);
        }
    }
}

/// The files that the sources make so far.
struct ProjectedFiles<'a, 'b> {
    volume: &'b Field<'a>,
    seen: BTreeSet<&'a str>,
}

impl<'a> ProjectedFiles<'a, '_> {
    fn projection(&mut self, projection: &Field<'a>, errors: &mut FieldErrors) {
        for kind in ["secret", "configMap"].map(|kind| projection.child(kind)) {
            if kind.is_set() {
                self.keys(&kind, errors);
            }
        }
        let downward = projection.child("downwardAPI");
        for item in downward.each("items") {
            // Upstream names the list's owner and not the item.
            downward_api_file(&item.shown_as(downward.path.as_str()), errors);
            self.file(&item.child("path"), item.child("path").text(), errors);
        }
        let token = projection.child("serviceAccountToken");
        if token.is_set() {
            token_seconds(&token.child("expirationSeconds"), errors);
            let path = token.child("path").shown_as(format!("{}.path", self.volume.path));
            if path.require(errors) {
                file_path(&path, errors);
            }
        }
        let bundle = projection.child("clusterTrustBundle");
        if bundle.is_set() {
            trust_bundle(&bundle, errors);
            self.file(&bundle.child("path"), bundle.child("path").text(), errors);
        }
        let certificate = projection.child("podCertificate");
        if certificate.is_set() {
            self.certificate(&certificate, errors);
        }
    }

    fn keys(&mut self, kind: &Field<'a>, errors: &mut FieldErrors) {
        let name = kind.child("name");
        name.require(errors);
        for item in kind.each("items") {
            key_to_path(&item, errors);
            self.file(&item.child("path"), name.text(), errors);
        }
    }

    /// A path may be given once; `shown` is what upstream shows of the second.
    fn file(&mut self, path: &Field<'a>, shown: &str, errors: &mut FieldErrors) {
        if !path.is_zero() && !self.seen.insert(path.text()) {
            errors.invalid(self.volume.path.as_str(), &json!(shown), "conflicting duplicate paths");
        }
    }

    fn certificate(&mut self, certificate: &Field<'a>, errors: &mut FieldErrors) {
        const LEAST_SECONDS: i64 = 3600;
        const MOST_SECONDS: i64 = 91 * 86_400;
        signer_name(&certificate.child("signerName"), errors);
        let (key, seconds) = (certificate.child("keyType"), certificate.child("maxExpirationSeconds"));
        if !KEY_TYPES.contains(&key.text()) {
            errors.not_supported(key.path.as_str(), &json!(key.text()), KEY_TYPES);
        }
        if seconds.is_set() && seconds.number() < LEAST_SECONDS {
            seconds.invalid(format!("if provided, maxExpirationSeconds must be >= {LEAST_SECONDS}"), errors);
        }
        if seconds.number() > MOST_SECONDS {
            seconds.invalid(format!("if provided, maxExpirationSeconds must be <= {MOST_SECONDS}"), errors);
        }
        let paths = ["credentialBundlePath", "keyPath", "certificateChainPath"];
        let paths = paths.map(|name| certificate.child(name));
        if paths.iter().all(Field::is_zero) {
            let words = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
            certificate.required(words, errors);
        }
        for path in paths.iter().filter(|path| !path.is_zero()) {
            file_path(path, errors);
            self.file(path, path.text(), errors);
        }
    }
}

fn trust_bundle(bundle: &Field, errors: &mut FieldErrors) {
    let [name, signer, selector, path] =
        ["name", "signerName", "labelSelector", "path"].map(|field| bundle.child(field));
    match (name.is_set(), signer.is_set()) {
        (true, true) => bundle.invalid("only one of name and signerName may be used", errors),
        (true, false) => {
            if name.is_zero() {
                name.required("must be a valid object name", errors);
            }
            for wrong in trust_bundle_name(name.text()) {
                name.invalid(format!("not a valid clustertrustbundlename: {wrong}"), errors);
            }
            if selector.is_set() {
                selector.invalid("labelSelector must be unset if name is specified", errors);
            }
        }
        (false, true) => {
            if signer.is_zero() {
                signer.required("must be a valid signer name", errors);
            }
            signer_name(&signer, errors);
            label_selector(&selector, errors);
        }
        (false, false) => bundle.required("either name or signerName must be specified", errors),
    }
    path.require(errors);
    file_path(&path, errors);
}

/// `signer.example.com:path:name`, or a name alone.
fn trust_bundle_name(name: &str) -> Vec<String> {
    dns1123_subdomain(name.rsplit_once(':').map_or(name, |(_, own)| own))
}
