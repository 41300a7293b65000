//! CronJob: Jobs by the clock.

use std::sync::LazyLock;

use super::{job_validation, schedule};
use crate::batch::job;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{boolean, container_cells, container_columns, label_selector, name};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age, since};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::{Time, parse};
use apimachinery::time_zone::TimeZone;
use serde_json::{Value, json};

/// `cronjobs`
pub static CRON_JOBS: Builtin = LazyLock::new(|| {
    Kind::builtin("batch", "v1", "CronJob", "cronjobs", "io.k8s.api.batch.v1")
        .short(&["cj"])
        .in_categories(&["all"])
        .with(&[Subresource::Status])
        .with_generation()
        .gated("/spec/jobTemplate/spec/template/spec", POD_GATES)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.jobTemplate.spec.template"),
            validate,
            validate_create,
            validate_update,
            ..RULES
        })
        .into()
});

const SPEC: &str = "io.k8s.api.batch.v1.CronJobSpec";
const STATUS: &str = "io.k8s.api.batch.v1.CronJobStatus";

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::of("Schedule", "string", SPEC, "schedule"),
        Column::of("Timezone", "string", SPEC, "timeZone"),
        Column::of("Suspend", "boolean", SPEC, "suspend"),
        Column::of("Active", "integer", STATUS, "active"),
        Column::of("Last Schedule", "string", STATUS, "lastScheduleTime"),
        Column::age(),
        containers,
        images,
        Column::of("Selector", "string", "io.k8s.api.batch.v1.JobSpec", "selector").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.jobTemplate.spec.template.spec");
    let last = parse(text(&tree, "status.lastScheduleTime"));
    vec![
        name(object),
        json!(text(&tree, "spec.schedule")),
        json!(at(&tree, "spec.timeZone").as_str().unwrap_or("<none>")),
        json!(boolean(at(&tree, "spec.suspend"))),
        count(&tree, "status.active").into(),
        last.map_or("<none>".into(), |last| since(Some(last), now)).into(),
        age(object, now),
        names,
        images,
        json!(label_selector(&tree, "spec.jobTemplate.spec.selector")),
    ]
}

fn defaults(cron_job: &mut Value) {
    set_if_zero(cron_job, "spec.concurrencyPolicy", "Allow");
    set_if_unset(cron_job, "spec.suspend", false);
    set_if_unset(cron_job, "spec.successfulJobsHistoryLimit", 3);
    set_if_unset(cron_job, "spec.failedJobsHistoryLimit", 1);
    job::default_spec(cron_job, "spec.jobTemplate.spec");
}

fn validate(cron_job: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(cron_job, "spec");
    let schedule = spec.child("schedule");
    if schedule.require(errors)
        && let Err(words) = schedule::parse(schedule.text())
    {
        schedule.invalid(words, errors);
    }
    spec.child("startingDeadlineSeconds").nonnegative(errors);
    time_zone(&spec.child("timeZone"), errors);
    spec.child("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], errors);
    let template = spec.child("jobTemplate.spec");
    job_validation::validate_spec(&template, errors);
    if template.child("selector").is_set() {
        template.child("selector").invalid("`selector` will be auto-generated", errors);
    }
    if template.child("manualSelector").flag() {
        template.child("manualSelector").not_supported(&["nil", "false"], errors);
    }
    spec.all_nonnegative(&["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
}

/// The Jobs' names end in a time, and must still be names.
fn validate_create(cron_job: &Value, errors: &mut FieldErrors) {
    no_time_zone_in_schedule(cron_job, errors);
    let name = Field::of(cron_job, "metadata.name");
    if name.text().len() > 52 {
        name.invalid("must be no more than 52 characters", errors);
    }
}

fn no_time_zone_in_schedule(cron_job: &Value, errors: &mut FieldErrors) {
    let schedule = Field::of(cron_job, "spec.schedule");
    if schedule.text().contains("TZ") {
        schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead", errors);
    }
}

/// What had a time zone in its schedule may keep it.
fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let schedule = Field::of(new, "spec.schedule");
    if !text(old, "spec.schedule").contains("TZ") {
        no_time_zone_in_schedule(new, errors);
    } else if schedule.text().contains("TZ") && is_set(new, "spec.timeZone") {
        schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule", errors);
    }
}

fn time_zone(zone: &Field, errors: &mut FieldErrors) {
    if !zone.is_set() {
        return;
    }
    match zone.text() {
        "" => zone.invalid("timeZone must be nil or non-empty string", errors),
        text if text.eq_ignore_ascii_case("local") => {
            let words =
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
            zone.invalid(words, errors);
        }
        text if TimeZone::load(text).is_none() => zone.invalid(format!("unknown time zone {text}"), errors),
        _ => {}
    }
}
