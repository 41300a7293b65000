//! A trace in the forms of other tools: JSON and YAML with its stages, a diagram, spans.

mod mermaid;
pub(crate) mod otlp;
mod perfetto;

use std::collections::HashSet;

use serde::Serialize;

use super::recorded::StepId;
use super::story::{StoryStage, TraceStory, Unit, units};
use super::trace::Trace;
use super::wanted::WantedSteps;

/// Why a trace cannot be written down.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum TraceExportError {
    /// As YAML.
    Yaml(#[from] serde_yaml::Error),
    /// As JSON.
    Json(#[from] serde_json::Error),
}

/// A trace with its stages.
#[derive(Serialize)]
struct ExportedTrace<'a> {
    #[serde(flatten)]
    trace: &'a Trace,
    stages: Vec<StoryStage>,
    standing: Vec<String>,
}

impl<'a> ExportedTrace<'a> {
    fn of(trace: &'a Trace, story: TraceStory) -> ExportedTrace<'a> {
        ExportedTrace { trace, stages: story.stages, standing: story.standing }
    }
}

impl Trace {
    /// As `json`, `yaml`, `mermaid`, `otlp` or `perfetto`, of those parts that are wanted.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn export(&self, form: &str, wanted: &WantedSteps) -> Result<String, TraceExportError> {
        let mut story = self.story();
        story.keep(|stage| wanted.tells(stage));
        let mut trace = self.clone();
        let components = self.components();
        let mut shown = self.steps.iter().zip(&components).map(|(step, of)| wanted.shows(&step.step, of));
        trace.steps.retain(|_| shown.next().unwrap_or_default());
        match form {
            "mermaid" => Ok(mermaid::diagram(&story)),
            "otlp" => Ok(otlp::request(&self.units_of(wanted)).to_string()),
            "perfetto" => Ok(perfetto::events(&self.units_of(wanted)).to_string()),
            "yaml" => Ok(serde_yaml::to_string(&ExportedTrace::of(&trace, story))?),
            _ => Ok(serde_json::to_string(&ExportedTrace::of(&trace, story))?),
        }
    }

    /// With those spans alone that are wanted: by where they happen, and by what they store or refuse.
    fn units_of(&self, wanted: &WantedSteps) -> Trace {
        let units = units(&self.steps);
        let is_wanted = |unit: &&Unit<'_>| {
            let component = otlp::component(unit);
            unit.steps.iter().any(|step| wanted.shows(&step.step, &component))
        };
        let kept: HashSet<StepId> =
            units.iter().filter(is_wanted).flat_map(|unit| unit.steps.iter().map(|step| step.id)).collect();
        let mut trace = self.clone();
        trace.steps.retain(|step| kept.contains(&step.id));
        trace
    }
}

#[cfg(test)]
mod tests;
