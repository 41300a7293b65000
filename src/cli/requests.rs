//! `kubarium requests`

use clap::Args;
use http::Method;
use serde_json::Value;

use super::asked::{WhichCluster, encoded};
use super::{Failure, say};

/// Show what users have asked the apiserver for, and what it answered.
#[derive(Args)]
pub struct RequestsCommand {
    #[command(flatten)]
    which: WhichCluster,
    /// Whose; else of all users but the cluster's own components.
    #[arg(long, default_value = "")]
    user: String,
    /// At most so many, the last ones.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Forget them: what comes is of what begins now.
    #[arg(long, conflicts_with_all = ["user", "limit", "output"])]
    forget: bool,
    /// How: a table, or JSON.
    #[arg(short, long, default_value = "table", value_parser = ["table", "json"])]
    output: String,
}

impl RequestsCommand {
    /// Asks for them.
    pub fn run(self) -> Result<(), Failure> {
        if self.forget {
            self.which.ask::<Value>(Method::DELETE, "/requests", &Value::Null)?;
            say("forgot all requests");
            return Ok(());
        }
        let path = format!("/requests?user={}&limit={}", encoded(&self.user), self.limit);
        let seen: Value = self.which.ask(Method::GET, &path, &Value::Null)?;
        if self.output == "json" {
            say(serde_json::to_string_pretty(&seen).unwrap_or_default());
            return Ok(());
        }
        say(format!("{:<16} {:<4} {:<16} {:<32} {}", "TIME", "CODE", "VERB", "RESOURCE", "OBJECT"));
        for request in seen["requests"].as_array().map(Vec::as_slice).unwrap_or_default() {
            say(line(request, self.user.is_empty()));
        }
        Ok(())
    }
}

/// One request; with its user where several are shown.
fn line(request: &Value, with_user: bool) -> String {
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let time = text("at").split('T').nth(1).unwrap_or_default().trim_end_matches('Z');
    let resource = if text("resource").is_empty() { text("path") } else { text("resource") };
    let object = match (text("namespace"), text("name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let mut line = format!("{time:<16} {:<4} {:<16} {resource:<32} {object}", request["code"], text("verb"));
    if with_user {
        line += &format!("  by {}", text("user"));
    }
    if let Some(fault) = request["fault"].as_str() {
        line += &format!("  fault {fault}");
    }
    line
}
