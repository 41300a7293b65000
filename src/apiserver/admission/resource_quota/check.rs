//! Whether a request fits into the quotas of its namespace, and what each is charged (`CheckRequest`).

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use apimachinery::time::Time;
use apis::quota::{Evaluator, QuotaScope, increase, mask, scopes_of};
use apis::resources::{Amounts, add, amounts};
use apis::tree::text;

golang::text_error! {
    /// Why a quota refuses a request; in upstream's words.
    pub(super) struct QuotaRefusal;
}

/// What may not be used at all without a quota that limits it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LimitedResource {
    /// Its group.
    pub(super) api_group: String,
    /// Its plural.
    pub(super) resource: String,
    /// Parts of names of what is used.
    pub(super) match_contains: Vec<String>,
    /// Scopes that need a quota of their own.
    pub(super) match_scopes: Vec<Value>,
}

/// One create or update.
pub(super) struct QuotaRequest<'a> {
    /// Measures its object.
    pub evaluator: &'a Evaluator,
    /// The object as it will be.
    pub new: &'a Value,
    /// As it was, on an update.
    pub old: Option<&'a Value>,
    /// When the request is looked at.
    pub now: Time,
    /// What of its resource needs a quota.
    pub limited: &'a [&'a LimitedResource],
}

/// What is to be added to what a quota says is used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Charge {
    /// The quota's name.
    pub quota: String,
    usage: Amounts,
}

impl QuotaRequest<'_> {
    /// Looks at all quotas of the namespace, in order.
    ///
    /// # Errors
    /// Why it is refused, in upstream's words.
    pub(super) fn check(&self, quotas: &[Value]) -> Result<Vec<Charge>, QuotaRefusal> {
        let usage = self.evaluator.usage(self.new, self.now);
        let mut covered = BTreeSet::new();
        let mut covered_scopes = Vec::new();
        let mut charges = Vec::new();
        for quota in quotas {
            let (hard, scopes) = (amounts(quota, "status.hard"), scopes_of(quota));
            covered_scopes
                .extend(scopes.iter().filter(|scope| self.evaluator.is_in(scope, self.new)).cloned());
            if !self.evaluator.matches(&hard, &scopes, self.new) {
                continue;
            }
            let restricted: Vec<&str> =
                hard.keys().map(String::as_str).filter(|name| self.evaluator.measures(name)).collect();
            self.check_object(quota, &restricted)?;
            covered.extend(restricted.into_iter().map(String::from));
            let delta = without_zeros(self.delta(&usage, &hard, &scopes));
            if !delta.is_empty() {
                charges.push(Charge { quota: text(quota, "metadata.name").into(), usage: delta });
            }
        }
        let negative: Vec<&str> =
            usage.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")).into());
        }
        let is_charged = !charges.is_empty() || covered.is_empty() && self.uses_more(&usage);
        if !is_charged {
            return Ok(vec![]);
        }
        self.check_coverage(&usage, &covered, &covered_scopes)?;
        for charge in &charges {
            let quota = quotas.iter().find(|quota| text(quota, "metadata.name") == charge.quota);
            charge.apply(quota.unwrap_or(&Value::Null))?;
        }
        Ok(charges)
    }

    /// What a quota demands of the object itself, and of its own status.
    fn check_object(&self, quota: &Value, restricted: &[&str]) -> Result<(), String> {
        let name = text(quota, "metadata.name");
        self.evaluator
            .constraints(restricted, self.new)
            .map_err(|why| format!("failed quota: {name}: {why}"))?;
        let used = amounts(quota, "status.used");
        if restricted.iter().all(|name| used.contains_key(*name)) {
            return Ok(());
        }
        Err(format!("status unknown for quota: {name}, resources: {}", restricted.join(",")))
    }

    /// What a quota has to give: on an update only what is more, if the object was in it before.
    fn delta(&self, usage: &Amounts, hard: &Amounts, scopes: &[QuotaScope]) -> Amounts {
        let delta = match self.old {
            Some(old) if self.evaluator.matches(hard, scopes, old) => {
                increase(usage, &self.evaluator.usage(old, self.now))
            }
            _ => usage.clone(),
        };
        mask(&delta, hard.keys())
    }

    fn uses_more(&self, usage: &Amounts) -> bool {
        let before = self.old.map(|old| self.evaluator.usage(old, self.now)).unwrap_or_default();
        !without_zeros(increase(usage, &before)).is_empty()
    }

    /// What is limited by the configuration needs a quota that covers it.
    fn check_coverage(
        &self,
        usage: &Amounts,
        covered: &BTreeSet<String>,
        covered_scopes: &[QuotaScope],
    ) -> Result<(), String> {
        let is_limited = |name: &str| {
            let parts = self.limited.iter().flat_map(|limited| &limited.match_contains);
            parts.into_iter().any(|part| name.contains(part.as_str()))
        };
        let used = usage.iter().filter(|(_, amount)| amount.sign() > 0).map(|(name, _)| name);
        let uncovered: Vec<&str> =
            used.filter(|name| is_limited(name) && !covered.contains(*name)).map(String::as_str).collect();
        if !uncovered.is_empty() {
            return Err(format!("insufficient quota to consume: {}", uncovered.join(",")));
        }
        let scopes = self.limited.iter().flat_map(|limited| &limited.match_scopes).map(QuotaScope::of);
        let missing: Vec<String> = scopes
            .filter(|scope| self.evaluator.is_in(scope, self.new))
            .filter(|scope| !covered_scopes.iter().any(|covered| covered.name == scope.name))
            .map(|scope| scope.shown())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!("insufficient quota to match these scopes: [{}]", missing.join(" ")))
    }
}

impl Charge {
    /// What is used then, by a quota as it stands now.
    ///
    /// # Errors
    /// `exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2`
    pub(super) fn apply(&self, quota: &Value) -> Result<Amounts, QuotaRefusal> {
        let (mut used, hard) = (amounts(quota, "status.used"), amounts(quota, "status.hard"));
        let before = used.clone();
        add(&mut used, &self.usage);
        let exceeded: Vec<&String> = self
            .usage
            .keys()
            .filter(|name| hard.get(*name).is_some_and(|limit| used[*name] > *limit))
            .collect();
        if exceeded.is_empty() {
            return Ok(used);
        }
        let shown = |list: &Amounts| {
            let pairs = exceeded.iter().filter_map(|name| Some(format!("{name}={}", list.get(*name)?)));
            pairs.collect::<Vec<_>>().join(",")
        };
        let (requested, used, limited) = (shown(&self.usage), shown(&before), shown(&hard));
        Err(format!(
            "exceeded quota: {}, requested: {requested}, used: {used}, limited: {limited}",
            self.quota
        )
        .into())
    }
}

fn without_zeros(mut list: Amounts) -> Amounts {
    list.retain(|_, amount| !amount.is_zero());
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use apis::scheme::Scheme;
    use serde_json::json;

    /// `resource`, `quotas`, `new`, `old`, `limited`, and then the charges or the refusal.
    #[test]
    fn requests_are_charged_or_refused() {
        let cases: Vec<Value> = serde_yaml::from_str(include_str!("../testdata/quota.yaml")).unwrap();
        for case in cases {
            let evaluator =
                Evaluator::of(&Scheme::builtin().resource("", "v1", text(&case, "resource")).unwrap());
            let limited: Vec<LimitedResource> =
                serde_json::from_value(case["limited"].clone()).unwrap_or_default();
            let request = QuotaRequest {
                evaluator: &evaluator,
                new: &case["new"],
                old: Some(&case["old"]).filter(|old| !old.is_null()),
                now: "2026-01-01T00:00:00Z".parse().unwrap(),
                limited: &limited.iter().collect::<Vec<_>>(),
            };
            let quotas = case["quotas"].as_array().cloned().unwrap_or_default();
            let answer = match request.check(&quotas) {
                Ok(charges) => charges
                    .iter()
                    .map(|charge| (charge.quota.clone(), apis::quota::to_value(&charge.usage)))
                    .collect(),
                Err(why) => json!(why.to_string()),
            };
            let expected = if case["expected"].is_null() { json!({}) } else { case["expected"].clone() };
            assert_eq!(answer, expected, "{case}");
        }
    }
}
