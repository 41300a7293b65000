//! Names of signers: `example.com/signer-name` (`ValidateSignerName`).

use crate::validation::{Field, push};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{dns1123_label, dns1123_subdomain};

const MOST_BYTES: usize = 571;
const MOST_DOMAIN_BYTES: usize = 253;

/// What is wrong with the name of a signer; it must be there.
pub fn signer_name(signer: &Field, errors: &mut FieldErrors) {
    if !signer.require(errors) {
        return;
    }
    let text = signer.text();
    let Some((domain, path)) = text.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let words = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return signer.invalid(words, errors);
    };
    if domain.len() > MOST_DOMAIN_BYTES {
        errors.too_long(signer.path.as_str(), MOST_DOMAIN_BYTES);
    }
    labels(signer, domain, dns1123_label, errors);
    if !domain.contains('.') {
        let words = "should be a domain with at least two segments separated by dots";
        push(errors, &signer.path, ErrorType::Invalid, domain, words);
    }
    labels(signer, path, dns1123_subdomain, errors);
    if text.len() > MOST_BYTES {
        errors.too_long(signer.path.as_str(), MOST_BYTES);
    }
}

/// The first part between dots that is wrong says enough.
fn labels(signer: &Field, segment: &str, rule: fn(&str) -> Vec<String>, errors: &mut FieldErrors) {
    let wrong = |label: &&str| !rule(label).is_empty();
    if let Some(label) = segment.split('.').find(wrong) {
        for detail in rule(label) {
            let words = format!("validating label {label:?}: {detail}");
            push(errors, &signer.path, ErrorType::Invalid, segment, &words);
        }
    }
}
