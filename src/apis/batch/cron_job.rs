//! CronJob: Jobs by the clock.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::{Time, parse};
use crate::apis::batch::job;
use crate::apis::core::pod::strategy::template_warnings;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::{boolean, container_cells, container_columns, label_selector, name};
use crate::apis::rules::{RULES, Rules};
use crate::apis::table::{Column, age, since};
use crate::apis::tree::*;
use serde_json::{Value, json};

/// `cronjobs`
pub static CRON_JOBS: Builtin = LazyLock::new(|| {
    Kind::builtin("batch", "v1", "CronJob", "cronjobs", "io.k8s.api.batch.v1")
        .short(&["cj"])
        .in_categories(&["all"])
        .with(&[Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.jobTemplate.spec.template"),
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
