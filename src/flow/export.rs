//! A trace in the forms of other tools: JSON and YAML with its stages, a diagram, spans.

mod mermaid;
mod otlp;
mod perfetto;

use serde::Serialize;

use super::story::{StoryStage, TraceStory};
use super::trace::Trace;
use super::wanted::WantedSteps;

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
    pub fn export(&self, form: &str, wanted: &WantedSteps) -> Result<String, String> {
        let mut story = self.story();
        story.keep(|stage| wanted.tells(stage));
        let mut trace = self.clone();
        let components = self.components();
        let mut shown = self.steps.iter().zip(&components).map(|(step, of)| wanted.shows(&step.step, of));
        trace.steps.retain(|_| shown.next().unwrap_or_default());
        match form {
            "mermaid" => Ok(mermaid::diagram(&story)),
            "otlp" => Ok(otlp::request(self).to_string()),
            "perfetto" => Ok(perfetto::events(self).to_string()),
            "yaml" => serde_yaml::to_string(&ExportedTrace::of(&trace, story)).map_err(|why| why.to_string()),
            _ => serde_json::to_string(&ExportedTrace::of(&trace, story)).map_err(|why| why.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
