//! `Rules`: a strategy as data. Most kinds differ from each other in a name rule, a flag and a few functions.

use serde_json::Value;

use super::strategy::{GarbageCollectionPolicy, Strategy};
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::user::UserInfo;

/// What a kind does that others do not; take what is ordinary from [`RULES`].
#[derive(Clone, Copy)]
pub struct Rules {
    /// [`Strategy::claim`]
    pub claim: fn(&mut Value, &UserInfo),
    /// [`Strategy::prepare_for_create`]
    pub prepare_for_create: fn(&mut Value),
    /// [`Strategy::prepare_for_update`]
    pub prepare_for_update: fn(&mut Value, &Value),
    /// [`Strategy::prepare_for_status_update`]
    pub prepare_for_status_update: fn(&mut Value, &Value),
    /// What is wrong with an object, new or changed.
    pub validate: fn(&Value, &mut FieldErrors),
    /// What else is wrong with a new object.
    pub validate_create: fn(&Value, &mut FieldErrors),
    /// What else is wrong with a change: the new object, the old one.
    pub validate_update: fn(&Value, &Value, &mut FieldErrors),
    /// What is wrong with a change of status: the new object, the old one.
    pub validate_status_update: fn(&Value, &Value, &mut FieldErrors),
    /// [`Strategy::validate_part_update`]
    pub validate_part_update: fn(&str, &Value, &Value, &mut FieldErrors),
    /// [`Strategy::warnings`]
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// [`Strategy::validate_name`]
    pub validate_name: fn(&str) -> Vec<String>,
    /// [`Strategy::allow_create_on_update`]
    pub allow_create_on_update: bool,
    /// [`Strategy::allow_unconditional_update`]
    pub allow_unconditional_update: bool,
    /// [`Strategy::keeps_status_on_create`]
    pub keeps_status_on_create: bool,
    /// [`Strategy::grace_period_seconds`]
    pub grace_period_seconds: fn(&Value, Option<i64>) -> Option<i64>,
    /// [`Strategy::default_garbage_collection`]
    pub default_garbage_collection: GarbageCollectionPolicy,
}

/// Nothing special.
pub const RULES: Rules = Rules {
    claim: |_, _| (),
    prepare_for_create: |_| (),
    prepare_for_update: |_, _| (),
    prepare_for_status_update: |_, _| (),
    validate: |_, _| (),
    validate_create: |_, _| (),
    validate_update: |_, _, _| (),
    validate_status_update: |_, _, _| (),
    validate_part_update: |_, _, _, _| (),
    warnings: |_, _| vec![],
    validate_name: names::dns1123_subdomain,
    allow_create_on_update: false,
    allow_unconditional_update: true,
    keeps_status_on_create: false,
    grace_period_seconds: |_, _| None,
    default_garbage_collection: GarbageCollectionPolicy::Background,
};

impl Strategy for Rules {
    fn claim(&self, new: &mut Value, user: &UserInfo) {
        (self.claim)(new, user);
    }

    fn prepare_for_create(&self, new: &mut Value) {
        (self.prepare_for_create)(new);
    }

    fn prepare_for_update(&self, new: &mut Value, old: &Value) {
        (self.prepare_for_update)(new, old);
    }

    fn prepare_for_status_update(&self, new: &mut Value, old: &Value) {
        (self.prepare_for_status_update)(new, old);
    }

    fn validate(&self, new: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        (self.validate)(new, &mut errors);
        (self.validate_create)(new, &mut errors);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        (self.validate)(new, &mut errors);
        (self.validate_update)(new, old, &mut errors);
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        (self.validate_status_update)(new, old, &mut errors);
        errors
    }

    fn validate_part_update(&self, part: &str, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        (self.validate_part_update)(part, new, old, &mut errors);
        errors
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        (self.warnings)(new, old)
    }

    fn validate_name(&self, name: &str) -> Vec<String> {
        (self.validate_name)(name)
    }

    fn allow_create_on_update(&self) -> bool {
        self.allow_create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.allow_unconditional_update
    }

    fn keeps_status_on_create(&self) -> bool {
        self.keeps_status_on_create
    }

    fn grace_period_seconds(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        (self.grace_period_seconds)(object, requested)
    }

    fn default_garbage_collection(&self) -> GarbageCollectionPolicy {
        self.default_garbage_collection
    }
}
