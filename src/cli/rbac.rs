//! `kubarium rbac infer`, `kubarium rbac unused`

use clap::Subcommand;
use http::Method;
use serde_json::Value;

use super::asked::{WhichCluster, encoded};
use super::{Failure, say};
use apimachinery::yaml;

/// Find the roles that users need, and what roles allow for nothing.
#[derive(Subcommand)]
pub enum RbacCommand {
    /// Print the least roles that would have been enough for what a user has asked for, with their bindings.
    Infer {
        #[command(flatten)]
        which: WhichCluster,
        /// Whose: system:serviceaccount:default:operator.
        #[arg(long)]
        user: String,
        /// Only for the objects that were asked for.
        #[arg(long)]
        resource_names: bool,
        /// How: YAML for kubectl apply, or JSON.
        #[arg(short, long, default_value = "yaml", value_parser = ["yaml", "json"])]
        output: String,
    },
    /// List what roles allow and nobody who is bound to them has used.
    Unused {
        #[command(flatten)]
        which: WhichCluster,
        /// Of the roles that every cluster has, too.
        #[arg(long)]
        bootstrap: bool,
        /// How: a table, or JSON.
        #[arg(short, long, default_value = "table", value_parser = ["table", "json"])]
        output: String,
    },
}

impl RbacCommand {
    /// Asks for it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            RbacCommand::Infer { which, user, resource_names, output } => {
                let path = format!("/rbac/infer?user={}&resourceNames={resource_names}", encoded(&user));
                show_roles(&which.ask(Method::GET, &path, &Value::Null)?, &user, &output)
            }
            RbacCommand::Unused { which, bootstrap, output } => {
                let path = format!("/rbac/unused?bootstrap={bootstrap}");
                show_unused(&which.ask(Method::GET, &path, &Value::Null)?, &output);
                Ok(())
            }
        }
    }
}

fn show_roles(list: &Value, user: &str, output: &str) -> Result<(), Failure> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return Err(Failure(format!(
            "{user} has asked for nothing that needs a role; see who has asked with: kubarium requests"
        )));
    }
    if output == "json" {
        say(serde_json::to_string_pretty(list).unwrap_or_default());
        return Ok(());
    }
    let documents: Vec<String> = items.iter().map(yaml::to_string).collect();
    say(documents.join("---\n").trim_end());
    Ok(())
}

fn show_unused(found: &Value, output: &str) {
    if output == "json" {
        return say(serde_json::to_string_pretty(found).unwrap_or_default());
    }
    let grants = found["unused"].as_array().map(Vec::as_slice).unwrap_or_default();
    if grants.is_empty() {
        return say("Everything that roles allow has been used.");
    }
    say(format!("{:<40} {:<40} {}", "ROLE", "RESOURCE", "UNUSED VERBS"));
    for grant in grants {
        let text = |field: &str| grant[field].as_str().unwrap_or_default();
        let words = |field: &str| {
            let words = grant[field].as_array().map(Vec::as_slice).unwrap_or_default();
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        };
        let instead = match words("instead") {
            used if used.is_empty() => used,
            used => format!("; used: {used}"),
        };
        say(format!("{:<40} {:<40} {}{instead}", text("role"), text("resource"), words("verbs")));
    }
}
