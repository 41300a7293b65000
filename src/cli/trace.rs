//! `kubarium trace KIND/NAME`: the story of an object, from the request that made it to the kubelet.

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::connection::Context;
use super::traced::{self, Traced};
use super::{Failure, choice, say, terminal};
use flow::Trace as Story;

/// Tell the story of an object: every step from the request that made it to the running container.
#[derive(Args)]
pub struct Trace {
    /// Which object: KIND/NAME or KIND NAME, as deployment/web, deploy web or deployments.apps/web. KIND
    /// alone tells of refused requests that name no object: lists, watches, creates that could not be read.
    #[arg(required = true, num_args = 1.., value_name = "OBJECT")]
    pub object: Vec<String>,
    /// Of several objects that had this name one after the other: the beginning of the uid of one.
    #[arg(long, default_value = "")]
    pub uid: String,
    /// Its namespace; else that of kubectl's context.
    #[arg(short, long, env = "KUBARIUM_NAMESPACE")]
    pub namespace: Option<String>,
    /// The cluster's name; else the only one that runs, or that of kubectl's current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// How: lanes for people, or the steps as JSON.
    #[arg(short, long, default_value = "lanes", value_parser = ["lanes", "json"])]
    pub output: String,
}

impl Trace {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let traced = Traced::parse(&self.object)?;
        let record = choice::running(self.name.as_deref())?;
        let namespace = self.namespace.clone().unwrap_or_else(|| traced::namespace(&record));
        let context = Context::load(&record.kubeconfig, &record.name)?;
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let Traced { kind, name } = &traced;
        let query = [("resource", kind), ("namespace", &namespace), ("name", name), ("uid", &self.uid)];
        let query = query.map(|(parameter, value)| format!("{parameter}={}", encode(value))).join("&");
        let path = format!("/flowz?{query}");
        let answer = super::block_on(context.get(&path))?;
        let story: Story = serde_json::from_slice(&answer)
            .map_err(|error| Failure::new("the cluster's answer is not understood", error))?;
        if story.steps.is_empty() && story.traffic.is_empty() {
            return Err(traced.not_recorded(&story, &namespace, &record.name));
        }
        if self.output == "json" {
            say(String::from_utf8_lossy(&answer));
        } else {
            say(story.render_within(terminal::columns()).trim_end());
        }
        Ok(())
    }
}
