//! `kubarium why KIND/NAME`

use clap::Args;
use http::Method;
use serde_json::Value;
use witness::why::Explanation;

use super::asked::{WhichCluster, encoded};
use super::traced::Traced;
use super::{Failure, say, terminal};

/// Say why an object is as it is, or why it is not there: pending, not ready, deleted, restarted, refused.
#[derive(Args)]
pub struct Why {
    /// Which object: KIND/NAME or KIND NAME, as pod/web-1 or deploy web.
    #[arg(required = true, num_args = 1.., value_name = "OBJECT")]
    object: Vec<String>,
    /// Its namespace; else that of kubectl's context.
    #[arg(short, long, env = "KUBARIUM_NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    which: WhichCluster,
    /// How: lines for people, or JSON.
    #[arg(short, long, default_value = "lines", value_parser = ["lines", "json"])]
    output: String,
}

impl Why {
    /// Asks for it.
    pub fn run(self) -> Result<(), Failure> {
        let Traced { kind, name } = Traced::parse(&self.object)?;
        if name.is_empty() {
            return Err(Failure(format!("say which one of {kind}; try: kubarium why {kind}/web")));
        }
        let namespace = self.which.namespace(self.namespace.as_deref())?;
        let query = [("resource", &kind), ("namespace", &namespace), ("name", &name)];
        let query = query.map(|(parameter, value)| format!("{parameter}={}", encoded(value))).join("&");
        let told: Explanation = self.which.ask(Method::GET, &format!("/why?{query}"), &Value::Null)?;
        if self.output == "json" {
            say(serde_json::to_string_pretty(&told).unwrap_or_default());
        } else {
            say(told.render_within(terminal::columns()).trim_end());
        }
        Ok(())
    }
}
