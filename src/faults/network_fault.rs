//! `NetworkFault`: what is wrong between pods, and between which.

use network::address_range::AddressRange;
use serde::{Deserialize, Serialize};

use super::contradiction::Contradiction;
use super::span::Span;
use apimachinery::labels::Selector;
use apimachinery::names::dns1123_label;

/// What goes wrong between two sides of the cluster's network, in both directions, for connections that
/// begin from then on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NetworkFault {
    /// One side: `app=web` are the pods with these labels, `default/app=web` those of a namespace, `default/`
    /// all of it, `10.244.1.0/24` addresses; empty is everybody.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub between: String,
    /// The other side, likewise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub and: String,
    /// What is sent is on its way for so much longer, in each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// What part of it is lost, above 0 and at most 1, and sent again later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Connections are refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refuse: bool,
    /// Nothing arrives.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partition: bool,
}

/// Who is on a side.
#[derive(Clone, Debug)]
pub enum NetworkSide {
    /// Whoever it is.
    Everybody,
    /// Whoever has such an address.
    Addresses(AddressRange),
    /// Pods with these labels; of one namespace, where it is named.
    Pods(Option<String>, Selector),
}

impl NetworkSide {
    /// Of its text: `NAMESPACE/SELECTOR`, `SELECTOR`, an address or a range of them.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<NetworkSide, Contradiction> {
        if matches!(text, "" | "*") {
            return Ok(NetworkSide::Everybody);
        }
        if let Some(range) = AddressRange::parse(text) {
            return Ok(NetworkSide::Addresses(range));
        }
        if is_like_an_address(text) {
            return Err(Contradiction(format!(
                "network: {text:?} is no address and no range of them: 10.244.1.7, 10.244.1.0/24 and fd00::/64 are"
            )));
        }
        let named =
            text.split_once('/').filter(|(space, _)| *space == "*" || dns1123_label(space).is_empty());
        let (namespace, labels) = named.map_or((None, text), |(space, labels)| (Some(space), labels));
        let namespace = namespace.filter(|space| *space != "*").map(str::to_owned);
        let selector = Selector::parse(labels).map_err(|why| {
            Contradiction(format!(
                "network: {text:?} is no side: it may be SELECTOR, NAMESPACE/SELECTOR or an address range: {why}"
            ))
        })?;
        Ok(NetworkSide::Pods(namespace, selector))
    }
}

/// Whether somebody means an address: as a selector it would say that a label of that name is there.
fn is_like_an_address(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_hexdigit() || matches!(letter, '.' | ':' | '/');
    let is_v4 = text.starts_with(|letter: char| letter.is_ascii_digit()) && text.matches('.').count() >= 2;
    text.chars().all(is_part) && (is_v4 || text.contains(':'))
}

impl NetworkFault {
    /// Refuses what cannot be meant.
    pub(super) fn check(&self) -> Result<(), Contradiction> {
        NetworkSide::parse(&self.between)?;
        NetworkSide::parse(&self.and)?;
        if let Some(loss) = self.loss.filter(|loss| !(*loss > 0.0 && *loss <= 1.0)) {
            return Err(Contradiction(format!("network.loss is {loss}: it is above 0 and at most 1")));
        }
        if self.latency.is_some_and(|latency| latency.0.is_zero()) {
            return Err(Contradiction("network.latency is 0s: nothing would be late".into()));
        }
        let is_nothing = self.latency.is_none() && self.loss.is_none() && !self.refuse && !self.partition;
        if is_nothing {
            return Err(Contradiction(
                "network says nothing: give it latency, loss, refuse or partition".into(),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn sides_are_read() {
        for (text, wanted) in [
            ("", "everybody"),
            ("*", "everybody"),
            ("10.0.0.0/8", "range"),
            ("fd00::1", "range"),
            ("app=web", "None app=web"),
            ("default/app=web", "Some(\"default\") app=web"),
            ("default/", "Some(\"default\") "),
            ("*/team/app=x", "None team/app=x"),
            ("app.kubernetes.io/name=web", "None app.kubernetes.io/name=web"),
            ("a/b", "Some(\"a\") b"),
        ] {
            let shown = match NetworkSide::parse(text).unwrap() {
                NetworkSide::Everybody => "everybody".to_owned(),
                NetworkSide::Addresses(_) => "range".to_owned(),
                NetworkSide::Pods(namespace, selector) => format!("{namespace:?} {selector}"),
            };
            assert_eq!(shown, wanted, "{text}");
        }
        for text in ["10.244.1.0/33", "10.244.1.300", "10.244.1", "fd00::/129", "fd00:::1"] {
            let refused = NetworkSide::parse(text).err().unwrap().0;
            assert!(refused.contains("is no address"), "{text}: {refused}");
        }
        assert!(NetworkSide::parse("app in").unwrap_err().0.contains("is no side"));
        assert!(NetworkFault::default().check().unwrap_err().0.contains("says nothing"));
        let lost = NetworkFault { loss: Some(2.0), ..NetworkFault::default() };
        assert!(lost.check().unwrap_err().0.contains("at most 1"));
        let late = NetworkFault { latency: Some(Duration::ZERO.into()), ..NetworkFault::default() };
        assert!(late.check().unwrap_err().0.contains("network.latency is 0s"));
    }
}
