//! `kubarium trace KIND/NAME`: the story of an object, from the request that made it to the kubelet.

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::connection::Context;
use super::{Failure, say, state};
use crate::flow::Trace as Story;

/// Tell the story of an object: every step from the request that made it to the running container.
#[derive(Args)]
pub struct Trace {
    /// Which object: KIND/NAME, as deployment/web, deploy/web or deployments.apps/web.
    pub object: String,
    /// Its namespace.
    #[arg(short, long, default_value = "default", env = "KUBARIUM_NAMESPACE")]
    pub namespace: String,
    /// The cluster's name.
    #[arg(long, default_value = "kubarium", env = "KUBARIUM_NAME")]
    pub name: String,
    /// How: lanes for people, or the steps as JSON.
    #[arg(short, long, default_value = "lanes", value_parser = ["lanes", "json"])]
    pub output: String,
}

impl Trace {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let usage =
            || Failure(format!("{:?} is not KIND/NAME; try: kubarium trace deployment/web", self.object));
        let (kind, name) = self.object.split_once('/').ok_or_else(usage)?;
        let record = state::find(&self.name)?;
        let context = Context::load(&record.kubeconfig, &record.name)?;
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (kind, name, namespace) = (encode(kind), encode(name), encode(&self.namespace));
        let path = format!("/flowz?resource={kind}&namespace={namespace}&name={name}");
        let answer = super::block_on(context.get(&path))?;
        let story: Story = serde_json::from_slice(&answer)
            .map_err(|error| Failure::new("the cluster's answer is not understood", error))?;
        if story.steps.is_empty() {
            return Err(Failure(format!(
                "nothing is recorded of {}; was it made since the start?",
                self.object
            )));
        }
        if self.output == "json" {
            say(String::from_utf8_lossy(&answer));
        } else {
            say(story.render().trim_end());
        }
        Ok(())
    }
}
