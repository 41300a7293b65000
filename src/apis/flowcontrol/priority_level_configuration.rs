//! PriorityLevelConfiguration: how much of the server a class of requests may have.

use std::sync::LazyLock;

use super::common;
use crate::kind::{Builtin, Kind, StartingObjects, Subresource};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `prioritylevelconfigurations`
pub static PRIORITY_LEVEL_CONFIGURATIONS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        "io.k8s.api.flowcontrol.v1",
    )
    .cluster_scoped()
    .with(&[Subresource::Status])
    .status_resets(&["metadata", "spec"])
    .status_leaves_metadata()
    .with_generation()
    .printed(columns(), cells)
    .defaulted(defaults)
    .governed_by(Rules {
        validate,
        validate_status_update: |new, _, errors| common::conditions(new, errors),
        ..RULES
    })
    .starting_with(&STARTING)
    .into()
});

static STARTING: StartingObjects = StartingObjects {
    name: "prioritylevelconfigurations",
    manager: common::PRODUCER,
    objects: || StartingObjects::read(&PRIORITY_LEVEL_CONFIGURATIONS, TEXT),
};
const TEXT: &str = include_str!("../../../manifests/bootstrap/priority-levels.yaml");

const SPEC: &str = "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec";
const LIMITED: &str = "io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration";
const QUEUING: &str = "io.k8s.api.flowcontrol.v1.QueuingConfiguration";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Type", "string", SPEC, "type"),
        Column::of("NominalConcurrencyShares", "string", LIMITED, "nominalConcurrencyShares"),
        Column::of("Queues", "string", QUEUING, "queues"),
        Column::of("HandSize", "string", QUEUING, "handSize"),
        Column::of("QueueLengthLimit", "string", QUEUING, "queueLengthLimit"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let limited = at(&tree, "spec.limited");
    let cell = |path: &str| match at(limited, path) {
        Value::Null => json!("<none>"),
        number => number.clone(),
    };
    vec![
        name(object),
        json!(text(&tree, "spec.type")),
        cell("nominalConcurrencyShares"),
        cell("limitResponse.queuing.queues"),
        cell("limitResponse.queuing.handSize"),
        cell("limitResponse.queuing.queueLengthLimit"),
        age(object, now),
    ]
}

fn defaults(level: &mut Value) {
    if let Some(exempt) = get_mut(level, "spec.exempt") {
        set_if_unset(exempt, "nominalConcurrencyShares", 0);
        set_if_unset(exempt, "lendablePercent", 0);
    }
    if let Some(limited) = get_mut(level, "spec.limited") {
        set_if_unset(limited, "nominalConcurrencyShares", 30);
        set_if_unset(limited, "lendablePercent", 0);
    }
    if let Some(queuing) = get_mut(level, "spec.limited.limitResponse.queuing") {
        for (field, default) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
            set_if_zero(queuing, field, default);
        }
    }
}

fn validate(level: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(level, "spec");
    let (kind, exempt, limited) = (spec.child("type"), spec.child("exempt"), spec.child("limited"));
    let is_exempt = text(level, "metadata.name") == "exempt";
    if is_exempt != (kind.text() == "Exempt") {
        kind.invalid("type must be 'Exempt' if and only if `name` is 'exempt'", errors);
    }
    match kind.text() {
        "Exempt" if limited.is_set() => {
            limited.forbidden("must be nil if the type is Exempt", errors);
        }
        "Exempt" => shares(&exempt, errors),
        "Limited" if exempt.is_set() => exempt.forbidden("must be nil if the type is Limited", errors),
        "Limited" if !limited.is_set() => limited.required("must not be empty when type is Limited", errors),
        "Limited" => validate_limited(&limited, errors),
        _ => kind.not_supported(&["Exempt", "Limited"], errors),
    }
    if common::is_mandatory(level) {
        mandatory(level, errors);
    }
    common::conditions(level, errors);
}

fn shares(part: &Field, errors: &mut FieldErrors) {
    let (shares, lendable) = (part.child("nominalConcurrencyShares"), part.child("lendablePercent"));
    if shares.number() < 0 {
        shares.invalid("must be a non-negative integer", errors);
    }
    if !(0..=100).contains(&lendable.number()) {
        lendable.invalid("must be between 0 and 100, inclusive", errors);
    }
}

fn validate_limited(limited: &Field, errors: &mut FieldErrors) {
    shares(limited, errors);
    let borrowing = limited.child("borrowingLimitPercent");
    if borrowing.is_set() && borrowing.number() < 0 {
        borrowing.invalid("if specified, must be a non-negative integer", errors);
    }
    let response = limited.child("limitResponse");
    let queuing = response.child("queuing");
    match response.child("type").text() {
        "Reject" if queuing.is_set() => {
            queuing.forbidden("must be nil if limited.limitResponse.type is not Limited", errors);
        }
        "Reject" => {}
        "Queue" if !queuing.is_set() => {
            queuing.required("must not be empty if limited.limitResponse.type is Limited", errors);
        }
        "Queue" => validate_queuing(&queuing, errors),
        _ => response.child("type").not_supported(&["Queue", "Reject"], errors),
    }
}

fn validate_queuing(queuing: &Field, errors: &mut FieldErrors) {
    const MOST_QUEUES: i64 = 10_000_000;
    const MOST_BITS: i64 = 60;
    let [queues, hand, length] = ["queues", "handSize", "queueLengthLimit"].map(|name| queuing.child(name));
    for field in [&length, &queues, &hand] {
        if field.number() <= 0 {
            field.invalid("must be positive", errors);
        }
    }
    if queues.number() > MOST_QUEUES {
        queues.invalid(format!("must not be greater than {MOST_QUEUES}"), errors);
    }
    let (deck, cards) = (queues.number(), hand.number());
    if cards > deck && cards > 0 {
        hand.invalid(format!("should not be greater than queues ({deck})"), errors);
    } else if cards > 0 && entropy_bits(deck, cards) > MOST_BITS {
        let words = format!(
            "required entropy bits of deckSize {deck} and handSize {cards} should not be greater than {MOST_BITS}"
        );
        hand.invalid(words, errors);
    }
}

/// `shufflesharding.RequiredEntropyBits`
fn entropy_bits(deck: i64, cards: i64) -> i64 {
    ((deck as f64).log2() * cards as f64).ceil() as i64
}

/// Of the mandatory level, only its shares may be chosen.
fn mandatory(level: &Value, errors: &mut FieldErrors) {
    let fixed = common::fixed(&STARTING, level).map(|mut fixed| {
        defaults(&mut fixed);
        fixed
    });
    let name = text(level, "metadata.name");
    let mut spec = level["spec"].clone();
    let words = match name {
        "exempt" => format!("spec of '{name}' except the 'spec.exempt' field must equal the fixed value"),
        _ => format!("spec of '{name}' must equal the fixed value"),
    };
    let mut wanted = fixed.map_or(Value::Null, |fixed| fixed["spec"].clone());
    if name == "exempt" {
        remove(&mut spec, "exempt");
        remove(&mut wanted, "exempt");
    }
    if !equal(&spec, &wanted) {
        Field::of(level, "spec").invalid(words, errors);
    }
}
