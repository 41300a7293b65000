//! What is wrong with a fault, before it is taken.

use super::contradiction::Contradiction;
use super::fault::Fault;
use super::network_fault::NetworkFault;
use super::pattern::{Pattern, VerbPattern, all_verbs, any};
use super::span::Span;

/// The longest name, that of an object.
const MAX_NAME_BYTES: usize = 63;
/// How many patterns a list has; with more the fault is refused.
const MAX_PATTERNS: usize = 64;
/// The longest pattern; a fault with a longer one is refused.
const MAX_PATTERN_BYTES: usize = 512;

impl Fault {
    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), Contradiction> {
        self.check_name()?;
        self.check_patterns()?;
        self.check_effect()?;
        self.check_sizes()?;
        self.check_chance()?;
        self.check_known_verbs()?;
        self.check_verbs()?;
        self.network.as_ref().map_or(Ok(()), NetworkFault::check)?;
        match &self.answer {
            Some(answer) if !(400..600).contains(&answer.code) => {
                no(format!("answer.code is {}: it may be 400 to 599", answer.code))
            }
            _ => Ok(()),
        }
    }

    /// The patterns of `silent_webhooks` that none of these names is like.
    pub fn webhooks_beyond(&self, names: &[String]) -> Vec<&str> {
        let is_beyond = |text: &&str| {
            let pattern = Pattern::new(text);
            !names.iter().any(|name| pattern.matches(name))
        };
        self.silent_webhooks.iter().map(String::as_str).filter(is_beyond).collect()
    }

    fn check_name(&self) -> Result<(), Contradiction> {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
        if self.name.len() > MAX_NAME_BYTES || !self.name.bytes().all(is_part) {
            return no(format!(
                "name {:?}: it may have lower-case letters, digits, '-' and '.', at most {MAX_NAME_BYTES}",
                self.name
            ));
        }
        Ok(())
    }

    fn check_patterns(&self) -> Result<(), Contradiction> {
        let lists = [
            ("users", &self.users),
            ("userAgents", &self.user_agents),
            ("verbs", &self.verbs),
            ("resources", &self.resources),
            ("namespaces", &self.namespaces),
            ("names", &self.names),
            ("silentWebhooks", &self.silent_webhooks),
        ];
        for (field, list) in lists {
            if list.len() > MAX_PATTERNS {
                return no(format!("{field} has {} patterns: it may have {MAX_PATTERNS}", list.len()));
            }
            if list.iter().any(|pattern| pattern.len() > MAX_PATTERN_BYTES || pattern.is_empty()) {
                return no(format!("a pattern of {field} is empty or longer than {MAX_PATTERN_BYTES} bytes"));
            }
        }
        Ok(())
    }

    /// The names of what it does to requests; latency goes with each.
    fn effects(&self) -> Vec<&'static str> {
        let effects = [
            (self.answer.is_some(), "answer"),
            (self.cut.is_some(), "cut"),
            (self.watch.is_some(), "watch"),
            (self.stale.is_some(), "stale"),
            (!self.silent_webhooks.is_empty(), "silentWebhooks"),
            (self.partition, "partition"),
            (self.stop.is_some(), "stop"),
            (self.network.is_some(), "network"),
        ];
        effects.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
    }

    fn check_effect(&self) -> Result<(), Contradiction> {
        match (self.effects().as_slice(), self.latency) {
            ([], None) => {
                no("nothing would happen: say one of answer, latency, cut, watch, stale, silentWebhooks, \
                              partition, stop, network")
            }
            ([one, other, ..], _) => no(format!(
                "{one} and {other} contradict each other: make two faults; the first that hits decides"
            )),
            (["stop"], _) if self.is_about_requests() => {
                no("stop is about a component: it goes with name, after and for alone")
            }
            (["network"], _) if self.is_about_requests() => {
                no("network is about pods: it goes with name, after and for alone; how late what is sent \
                    arrives is network.latency")
            }
            (["watch"], _) if self.watch.as_ref().is_some_and(|watch| *watch == Default::default()) => {
                no("watch says nothing: give it end, duplicate or delay")
            }
            (["watch"], _)
                if self.watch.as_ref().is_some_and(|it| it.after_events > 0 && it.end.is_none()) =>
            {
                no("watch.afterEvents says when a watch ends: give watch.end, too, close or expire")
            }
            _ => Ok(()),
        }
    }

    /// What would be no effect at all.
    fn check_sizes(&self) -> Result<(), Contradiction> {
        let is_nothing = |span: Option<Span>| span.is_some_and(|span| span.0.is_zero());
        if is_nothing(self.latency) {
            return no("latency is 0s: nothing would be late");
        }
        if is_nothing(self.watch.as_ref().and_then(|watch| watch.delay)) {
            return no("watch.delay is 0s: nothing would be late");
        }
        if self.stale.as_ref().is_some_and(|stale| stale.revisions == Some(0)) {
            return no("stale.revisions is 0: what is read would be the newest");
        }
        Ok(())
    }

    fn is_about_requests(&self) -> bool {
        let lists =
            [&self.users, &self.user_agents, &self.verbs, &self.resources, &self.namespaces, &self.names];
        lists.iter().any(|list| !list.is_empty())
            || self.probability.is_some()
            || self.nth.is_some()
            || self.count.is_some()
            || self.latency.is_some()
    }

    fn check_chance(&self) -> Result<(), Contradiction> {
        if let Some(probability) = self.probability.filter(|given| !(*given > 0.0 && *given <= 1.0)) {
            return no(format!("probability is {probability}: it is above 0 and at most 1"));
        }
        if self.nth == Some(0) || self.count == Some(0) {
            return no("nth and count begin with 1");
        }
        if self.nth.is_some() && (self.count.is_some() || self.probability.is_some()) {
            return no("nth is one request: it goes with neither count nor probability");
        }
        if self.lasting.is_some_and(|lasting| lasting.0.is_zero()) {
            return no("for is 0s: the fault would never be there");
        }
        Ok(())
    }

    /// What would hit nothing, by a slip of the hand.
    fn check_known_verbs(&self) -> Result<(), Contradiction> {
        let Some(unknown) = self.verbs.iter().find(|text| !VerbPattern::new(text).is_any()) else {
            return Ok(());
        };
        let known: Vec<&str> = all_verbs().collect();
        no(format!("no request has the verb {unknown:?}: there are read, write, {}", known.join(", ")))
    }

    /// What only some verbs know, with none of them.
    fn check_verbs(&self) -> Result<(), Contradiction> {
        let only: &[&str] = match self.effects().as_slice() {
            ["watch"] => &["watch"],
            ["stale"] => &["get", "list"],
            ["silentWebhooks"] => &["create", "update", "patch", "delete"],
            _ => return Ok(()),
        };
        let verbs: Vec<VerbPattern> = self.verbs.iter().map(|text| VerbPattern::new(text)).collect();
        if only.iter().any(|verb| any(&verbs, |pattern| pattern.matches(verb))) {
            return Ok(());
        }
        no(format!(
            "{} is about {}, and verbs are {}",
            self.effects()[0],
            only.join(", "),
            self.verbs.join(", ")
        ))
    }
}

fn no<T>(text: impl Into<String>) -> Result<T, Contradiction> {
    Err(Contradiction(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{FaultCut, StaleReads, WatchFault};
    use std::time::Duration;

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_to_do() {
        let watch = |watch| Fault { watch: Some(watch), ..Fault::default() };
        let both = Fault { cut: Some(FaultCut::default()), ..Fault::answer(500) };
        let cases = [
            (Fault::default(), "nothing would happen"),
            (both, "answer and cut contradict each other"),
            (Fault::answer(200), "400 to 599"),
            (Fault::answer(500).probability(1.5), "probability is 1.5"),
            (Fault::answer(500).probability(f64::NAN), "probability is NaN"),
            (Fault::answer(500).nth(0), "begin with 1"),
            (Fault::answer(500).nth(2).count(1), "nth is one request"),
            (Fault::answer(500).named("A b"), "name \"A b\""),
            (Fault::answer(500).user(""), "users is empty"),
            (Fault::answer(500).user(&"x".repeat(513)), "longer than 512 bytes"),
            ((0..65).fold(Fault::answer(500), |fault, _| fault.verb("get")), "65 patterns: it may have 64"),
            (Fault::stop("kube-scheduler").user("x"), "stop is about a component"),
            (Fault::answer(500).verb("frob"), "the verb \"frob\": there are read, write, get, list, watch"),
            (Fault::answer(500).verb("x*"), "no request has the verb \"x*\""),
            (Fault::close_watch(0).verb("create"), "watch is about watch, and verbs are create"),
            (Fault::stale_reads().verb("write"), "stale is about get, list"),
            (watch(WatchFault::default()), "watch says nothing"),
            (watch(WatchFault { after_events: 1, ..WatchFault::default() }), "give watch.end"),
            (Fault::answer(500).lasting(Duration::ZERO), "never be there"),
            (Fault::latency(Duration::ZERO), "latency is 0s"),
            (Fault::delay_events(Duration::ZERO), "watch.delay is 0s"),
            (Fault { stale: Some(StaleReads { revisions: Some(0) }), ..Fault::default() }, "revisions is 0"),
        ];
        for (fault, words) in cases {
            let why = fault.check().unwrap_err().to_string();
            assert!(why.contains(words), "{why}: {words}");
        }
        for fault in [Fault::lost_leases("system:kube-scheduler"), Fault::partition("x"), Fault::cut_after(7)]
        {
            assert_eq!(fault.check(), Ok(()));
        }
        for verb in ["*", "read", "write", "delete*", "deletecollection", "post"] {
            assert_eq!(Fault::answer(500).verb(verb).check(), Ok(()), "{verb}");
        }
    }

    #[test]
    fn webhooks_that_are_not_there_are_known_by_their_pattern() {
        let fault = Fault::silent_webhook("*.example.com");
        assert_eq!(fault.webhooks_beyond(&["a.example.org".into()]), ["*.example.com"]);
        assert!(fault.webhooks_beyond(&["a.example.org".into(), "a.example.com".into()]).is_empty());
    }

    #[test]
    fn a_fault_is_the_same_in_text() {
        let text =
            r#"{"verbs":["write"],"probability":0.5,"for":"1m0s","answer":{"code":429,"retryAfter":2}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        let lasting = Duration::from_secs(60);
        let expected = Fault::too_many_requests(2).verb("write").probability(0.5).lasting(lasting);
        assert_eq!(fault, expected);
        assert_eq!(serde_json::to_string(&fault).unwrap(), text);
        for (text, words) in [(r#"{"answr":{}}"#, "answr"), (r#"{"for":"soon"}"#, "is no duration")] {
            let why = serde_json::from_str::<Fault>(text).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        }
    }
}
