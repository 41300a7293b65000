//! How a webhook is reached, as it may be said (`k8s.io/apiserver/pkg/util/webhook`'s validation).

use crate::validation::texts::port_number;
use crate::validation::{Field, push};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::dns1123_subdomain;

/// One of `url` and `service`, each in its form.
pub(super) fn validate(config: &Field, errors: &mut FieldErrors) {
    let (url, service) = (config.child("url"), config.child("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => validate_url(&url, errors),
        (false, true) => validate_service(&service, errors),
        _ => config.required("exactly one of url or service is required", errors),
    }
}

fn validate_url(url: &Field, errors: &mut FieldErrors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (rest, fragment) = url.text().split_once('#').unwrap_or((url.text(), ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    if scheme.contains('/') || url.text().contains(|c: char| c.is_control()) {
        return url.required(&format!("url must be a valid URL: parse {:?}{FORM}", url.text()), errors);
    }
    let authority = rest.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or_default());
    let (user, host) =
        authority.unwrap_or_default().rsplit_once('@').unwrap_or(("", authority.unwrap_or("")));
    let mut wrong = |is_wrong: bool, shown: &str, detail: String| {
        if is_wrong {
            push(errors, &url.path, ErrorType::Invalid, shown, &detail);
        }
    };
    wrong(scheme != "https", scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    wrong(host.is_empty(), host, format!("host must be provided{FORM}"));
    wrong(!user.is_empty(), user, "user information is not permitted in the URL".into());
    wrong(!fragment.is_empty(), fragment, "fragments are not permitted in the URL".into());
    wrong(!query.is_empty(), query, "query parameters are not permitted in the URL".into());
}

fn validate_service(service: &Field, errors: &mut FieldErrors) {
    // Upstream hands over name and namespace the wrong way round, so each is missed in the other's place.
    if service.child("namespace").is_zero() {
        service.child("name").required("service name is required", errors);
    }
    if service.child("name").is_zero() {
        service.child("namespace").required("service namespace is required", errors);
    }
    let port = service.child("port");
    let wrong = port_number(port.number());
    if port.is_set() && !wrong.is_empty() {
        port.invalid(format!("port is not valid: {}", wrong.join(", ")), errors);
    }
    validate_path(&service.child("path"), errors);
}

fn validate_path(path: &Field, errors: &mut FieldErrors) {
    match path.text() {
        "" | "/" => return,
        "//" => return path.invalid("segment[0] may not be empty", errors),
        _ => {}
    }
    if !path.text().starts_with('/') {
        path.invalid("must start with a '/'", errors);
    }
    let mut rest = path.text().chars();
    rest.next();
    let rest = rest.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (at, segment) in rest.split('/').enumerate() {
        match segment {
            "" => path.invalid(format!("segment[{at}] may not be empty"), errors),
            segment => {
                let wrong = dns1123_subdomain(segment).into_iter();
                path.invalid_each(wrong.map(|why| format!("segment[{at}]: {why}")).collect(), errors);
            }
        }
    }
}
