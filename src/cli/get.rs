//! `kubarium get clusters`, `kubarium get kubeconfig`

use clap::{Subcommand, ValueEnum};

use super::state::Record;
use super::{Failure, choice, say, state};
use apimachinery::time::Time;
use apis::table::since;
use clock::Clock;

/// Show clusters or a kubeconfig.
#[derive(Subcommand)]
pub enum Get {
    /// The clusters that run on this machine.
    #[command(alias = "cluster")]
    Clusters {
        /// How: wide shows more columns, json all that is known.
        #[arg(short, long, value_name = "FORMAT")]
        output: Option<ListFormat>,
    },
    /// A cluster's kubeconfig, on standard output.
    Kubeconfig {
        /// The cluster's name; else the only one that runs, or that of kubectl's current context.
        #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
        name: Option<String>,
    },
}

/// How clusters are listed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// More columns.
    Wide,
    /// An array of all that is known.
    Json,
}

impl Get {
    /// Prints it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Get::Clusters { output } => clusters(output),
            Get::Kubeconfig { name } => kubeconfig(name.as_deref()),
        }
    }
}

fn clusters(output: Option<ListFormat>) -> Result<(), Failure> {
    let state::Clusters { running, killed } = state::clusters()?;
    if output == Some(ListFormat::Json) {
        let text = serde_json::to_string_pretty(&running)
            .map_err(|error| Failure::new("cannot show the clusters", error))?;
        say(text);
        return Ok(());
    }
    if running.is_empty() {
        say("No cluster is running; start one with: kubarium up");
    } else {
        say(table(&running, output == Some(ListFormat::Wide), Clock::real().now()));
    }
    for Record { name, .. } in killed {
        say(format!("Cluster {name:?} was killed; clean up after it with: kubarium down {name}"));
    }
    Ok(())
}

const COLUMNS: [&str; 6] = ["NAME", "STATUS", "SERVER", "NODES", "PID", "AGE"];
const WIDE_COLUMNS: [&str; 4] = ["VERSION", "DATA-DIR", "KUBECONFIG", "LOG"];

/// As kubectl sets tables: as wide as the widest cell, and three blanks.
fn table(records: &[Record], is_wide: bool, now: Time) -> String {
    let count = if is_wide { COLUMNS.len() + WIDE_COLUMNS.len() } else { COLUMNS.len() };
    let head = COLUMNS.iter().chain(&WIDE_COLUMNS).map(|column| (*column).to_owned()).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(head).chain(records.iter().map(|record| cells(record, now))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}   "));
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cells(record: &Record, now: Time) -> Vec<String> {
    let path = |path: &Option<std::path::PathBuf>| {
        path.as_ref().map_or_else(|| "<none>".into(), |path| path.display().to_string())
    };
    vec![
        record.name.clone(),
        if record.ready { "Ready" } else { "Applying" }.into(),
        record.server.clone(),
        record.nodes.to_string(),
        record.pid.to_string(),
        since(record.started, now),
        record.version.clone(),
        path(&record.data_dir),
        record.kubeconfig.display().to_string(),
        path(&record.log),
    ]
}

fn kubeconfig(name: Option<&str>) -> Result<(), Failure> {
    let (record, context) = choice::administered(name)?;
    say(super::kubeconfig::document(&record.name, &context.access).trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn clusters_are_listed_as_kubectl_lists() {
        let text = r#"{"name": "a", "pid": 7, "server": "https://127.0.0.1:1", "nodes": 3, "kubeconfig": "/k",
            "ready": true, "version": "0.1.0", "started": "2026-01-01T00:00:00Z", "dataDir": "/data"}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        let now = record.started.unwrap() + Duration::from_secs(90);
        let expected = "\
NAME   STATUS   SERVER                NODES   PID   AGE
a      Ready    https://127.0.0.1:1   3       7     90s";
        assert_eq!(table(std::slice::from_ref(&record), false, now), expected);
        let wide = table(&[record], true, now);
        assert!(wide.contains("VERSION   DATA-DIR   KUBECONFIG   LOG\n"), "{wide}");
        assert!(wide.ends_with("90s   0.1.0     /data      /k           <none>"), "{wide}");
    }
}
