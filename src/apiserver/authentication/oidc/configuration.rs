//! `apiserver.config.k8s.io` AuthenticationConfiguration, as `--authentication-config` gives it.

use std::collections::BTreeMap;

use super::authenticator::{ClaimMapping, ClaimRule, JwtAuthenticator};
use super::expression::ClaimExpression;
use super::types::{
    AuthenticationConfigurationFile, ClaimMappings, ClaimValidationRule, ExtraMapping, Issuer, Jwt,
    PrefixedClaimOrExpression, UserValidationRule,
};
use super::validation::validate;
use crate::authentication::anonymous::Anonymous;
use apimachinery::yaml;

golang::text_error! {
    /// All that is wrong with an AuthenticationConfiguration; in upstream's words.
    pub struct BadAuthenticationConfig;
}

const API_VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

/// One issuer: where its keys are, and what is made of its tokens.
pub struct Provider {
    /// Where its discovery document is, if not where the issuer says.
    pub discovery_url: Option<String>,
    /// Who signs its certificate, PEM; empty: those of the system.
    pub certificate_authority: String,
    /// The rest.
    pub settings: JwtAuthenticator,
}

/// What the file says.
pub struct Configuration {
    /// The issuers.
    pub providers: Vec<Provider>,
    /// Instead of `--anonymous-auth`.
    pub anonymous: Option<Anonymous>,
}

impl Configuration {
    /// Reads the file's text. No issuer may be one of `disallowed`: those are the server's own.
    ///
    /// # Errors
    /// All that is wrong with it, in upstream's words.
    pub fn parse(text: &str, disallowed: &[String]) -> Result<Configuration, BadAuthenticationConfig> {
        let file: AuthenticationConfigurationFile =
            yaml::from_str(text).map_err(|error| error.to_string())?;
        if file.kind != "AuthenticationConfiguration" || !API_VERSIONS.contains(&&*file.api_version) {
            let kind = file.kind;
            let version = file.api_version;
            return Err(format!("no kind {kind:?} is registered for version {version:?}").into());
        }
        let errors = validate(&file, disallowed);
        if !errors.is_empty() {
            return Err(errors.to_string().into());
        }
        let anonymous = file.anonymous.map(|anonymous| Anonymous {
            enabled: anonymous.enabled,
            paths: anonymous.conditions.into_iter().map(|condition| condition.path).collect(),
        });
        let providers = file.jwt.into_iter().map(Jwt::provider).collect::<Result<_, _>>()?;
        Ok(Configuration { providers, anonymous })
    }
}

impl Jwt {
    fn provider(self) -> Result<Provider, String> {
        let Issuer { url, discovery_url, certificate_authority, audiences, .. } = self.issuer;
        let ClaimMappings { username, groups, uid, extra } = self.claim_mappings;
        let (by_expression, by_claim): (Vec<_>, Vec<_>) =
            self.claim_validation_rules.into_iter().partition(|rule| !rule.expression.is_empty());
        let claim_rule = |rule: ClaimValidationRule| {
            let expression = ClaimExpression::claims_condition(&rule.expression)?;
            Ok::<_, String>(ClaimRule { expression, message: rule.message })
        };
        let user_rule = |rule: UserValidationRule| {
            let expression = ClaimExpression::user_condition(&rule.expression)?;
            Ok::<_, String>(ClaimRule { expression, message: rule.message })
        };
        let extra_value = |mapping: ExtraMapping| {
            Ok::<_, String>((mapping.key, ClaimExpression::of_claims(&mapping.value_expression)?))
        };
        let uid = PrefixedClaimOrExpression { claim: uid.claim, prefix: None, expression: uid.expression };
        let required: BTreeMap<String, String> =
            by_claim.into_iter().map(|rule| (rule.claim, rule.required_value)).collect();
        let settings = JwtAuthenticator {
            issuer: url,
            audiences,
            username: username.mapping()?.ok_or("username is missing")?,
            groups: groups.mapping()?,
            uid: uid.mapping()?,
            extra: extra.into_iter().map(extra_value).collect::<Result<_, _>>()?,
            required_claims: required,
            claim_rules: by_expression.into_iter().map(claim_rule).collect::<Result<_, _>>()?,
            user_rules: self.user_validation_rules.into_iter().map(user_rule).collect::<Result<_, _>>()?,
        };
        let discovery_url = (!discovery_url.is_empty()).then_some(discovery_url);
        Ok(Provider { discovery_url, certificate_authority, settings })
    }
}

impl PrefixedClaimOrExpression {
    fn mapping(self) -> Result<Option<ClaimMapping>, String> {
        if !self.expression.is_empty() {
            return Ok(Some(ClaimMapping::Expression(ClaimExpression::of_claims(&self.expression)?)));
        }
        let prefix = self.prefix.unwrap_or_default();
        Ok((!self.claim.is_empty()).then_some(ClaimMapping::Claim { claim: self.claim, prefix }))
    }
}
