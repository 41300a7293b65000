//! A front proxy that has authenticated the user itself and says in headers who it is
//! (`request/headerrequest`, `--requestheader-*`).
//!
//! Its own certificate must lead to an authority of its own: anybody else could write such headers too.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::RequestAuthenticator;
use super::errors::BadCredential;
use super::options::RequestHeaderOptions;
use super::x509::{ClientAuthorities, common_name};
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, PeerCertificates};

/// The headers that proxies use by custom. They are taken off every request, whoever sent them.
const CUSTOMARY: [&str; 3] = ["x-remote-user", "x-remote-group", "x-remote-uid"];
const CUSTOMARY_EXTRA: &str = "x-remote-extra-";

/// Believes what trusted proxies say.
pub struct RequestHeader {
    authorities: ClientAuthorities,
    config: RequestHeaderOptions,
}

impl RequestHeader {
    /// Believes proxies whose certificate one of the authorities signed.
    pub fn new(authorities: ClientAuthorities, config: RequestHeaderOptions) -> RequestHeader {
        RequestHeader { authorities, config }
    }

    fn is_allowed(&self, leaf: &[u8]) -> Result<(), BadCredential> {
        if self.config.allowed_names.is_empty() {
            return Ok(());
        }
        let (_, certificate) = X509Certificate::from_der(leaf).map_err(|error| error.to_string())?;
        let name = common_name(&certificate).unwrap_or_default();
        if self.config.allowed_names.iter().any(|allowed| allowed == name) {
            Ok(())
        } else {
            Err(format!("x509: subject with cn={name} is not in the allowed list").into())
        }
    }

    fn user(&self, headers: &HeaderMap) -> Option<UserInfo> {
        let RequestHeaderOptions { username_headers, uid_headers, group_headers, .. } = &self.config;
        let name = first(headers, username_headers)?;
        let groups: Vec<&str> = group_headers.iter().flat_map(|name| values(headers, name)).collect();
        let user = UserInfo::authenticated(name, &groups);
        let uid = first(headers, uid_headers).unwrap_or_default().to_owned();
        Some(UserInfo { uid, extra: self.extra(headers), ..user })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in headers.keys().map(http::HeaderName::as_str) {
            let prefixes = self.config.extra_header_prefixes.iter();
            for prefix in prefixes.map(|prefix| prefix.to_ascii_lowercase()) {
                if let Some(key) = name.strip_prefix(prefix.as_str()) {
                    let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
                    let own = values(headers, name).map(str::to_owned);
                    extra.entry(key).or_default().extend(own);
                }
            }
        }
        extra
    }
}

impl RequestAuthenticator for RequestHeader {
    fn name(&self) -> &'static str {
        "RequestHeader"
    }

    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, BadCredential> {
        let Some(PeerCertificates(chain)) = request.extensions().get::<PeerCertificates>() else {
            return Ok(None);
        };
        let Some(leaf) = chain.first() else { return Ok(None) };
        self.authorities.verify(chain)?;
        self.is_allowed(leaf)?;
        Ok(self.user(request.headers()).map(Arc::new))
    }
}

/// Takes off what only a front proxy may say (`ClearAuthenticationHeaders`), so that nobody below believes
/// it.
pub fn remove_headers(headers: &mut HeaderMap, config: Option<&RequestHeaderOptions>) {
    let is_proxys = |name: &str| {
        let configured = config.is_some_and(|config| config.names(name));
        configured || CUSTOMARY.contains(&name) || name.starts_with(CUSTOMARY_EXTRA)
    };
    // Nearly always there is none.
    while let Some(name) = headers.keys().find(|name| is_proxys(name.as_str())).cloned() {
        headers.remove(name);
    }
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

fn first<'a>(headers: &'a HeaderMap, names: &[String]) -> Option<&'a str> {
    let mut found = names.iter().filter_map(|name| values(headers, name).next());
    found.find(|value| !value.is_empty())
}
