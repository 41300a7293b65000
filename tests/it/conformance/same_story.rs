//! Determinism is a promise: the same seed and the same story give the same answers, the same objects and the
//! same causal record, byte for byte, on one thread and a stepped clock.
//!
//! Whatever decides an order or a value inside must be the cluster's own clock and entropy: no order of a
//! `HashMap`, no address, no wall time. What TLS draws (certificates and signatures) is the one exception.

use std::path::PathBuf;
use std::thread;

use kubarium::{Clock, Cluster, Config, Entropy, ListOptions};
use regex::Regex;

use super::{Area, Story, story_files};
use crate::support::script::{self, Runner};

/// What is drawn by TLS and not by the cluster: certificates, also in base64, and tokens.
const DRAWN_BY_TLS: &str = r"-----BEGIN [A-Z ]+-----[A-Za-z0-9+/=\\n\s]+-----END [A-Z ]+-----|LS0tLS1CRUdJTi[A-Za-z0-9+/=]*|eyJ[\w-]+\.[\w-]+\.[\w-]+";

/// Of each area so many stories are told in `make test`; all of them by `make sim`.
const OF_EACH_AREA: usize = 10;

/// A hundred stories at least, each told twice.
#[test]
fn the_same_seed_tells_a_hundred_stories_alike() {
    let mut count = 0;
    for path in story_files() {
        let [first, second] = [path.clone(), path.clone()].map(|path| thread::spawn(move || tell(path, 7)));
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        count += first.stories;
        assert_alike(&path.display().to_string(), &first.lines, &second.lines);
    }
    assert!(count >= 100, "{count} stories");
}

#[test]
fn another_seed_tells_another_story() {
    let path = story_files().into_iter().find(|path| path.ends_with("auth.yaml")).unwrap();
    assert_ne!(tell(path.clone(), 7).lines, tell(path, 8).lines);
}

struct ToldTwice {
    stories: usize,
    lines: Vec<String>,
}

/// Tells the first thing that differs, where it does.
fn assert_alike(what: &str, first: &[String], second: &[String]) {
    let differs = first.iter().zip(second).position(|(first, second)| first != second);
    if let Some(at) = differs {
        let before = first[at.saturating_sub(5)..at].join("\n");
        let (first, second) = (&first[at], &second[at]);
        let same = first.bytes().zip(second.bytes()).take_while(|(first, second)| first == second).count();
        let shown = |line: &str| {
            let begin = same.saturating_sub(300);
            String::from_utf8_lossy(&line.as_bytes()[begin..line.len().min(same + 300)]).into_owned()
        };
        panic!(
            "{what}, line {at}, behind\n{before}\n--- the first time ---\n{}\n--- and the second time ---\n{}",
            shown(first),
            shown(second)
        );
    }
    assert_eq!(first.len(), second.len(), "{what}");
}

/// All stories of an area, one after the other, and what there is afterwards.
fn tell(path: PathBuf, seed: u64) -> ToldTwice {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut area: Area = script::read(&path).unwrap();
    if std::env::var_os("KUBARIUM_SEEDS").is_none() {
        area.stories.truncate(OF_EACH_AREA);
    }
    let mut told = ToldTwice { stories: area.stories.len(), lines: vec![] };
    runtime.block_on(async {
        let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
        let config = Config::new().nodes(area.nodes).clock(clock).entropy(Entropy::seeded(seed));
        let cluster = Cluster::start(config).await.unwrap();
        for (number, story) in area.stories.iter().enumerate() {
            told.lines.extend(cluster.while_time_passes(one(&cluster, story, number)).await);
        }
        told.lines.extend(objects(&cluster).await);
        // First what happened: where it begins to differ, there is the reason.
        let record = cluster.flow().all();
        told.lines.splice(..0, record.lines().map(String::from));
        cluster.stop().await;
    });
    let drawn = Regex::new(DRAWN_BY_TLS).unwrap();
    for line in &mut told.lines {
        *line = drawn.replace_all(line, "drawn").into_owned();
    }
    told
}

/// What was answered, whether it was what the story wants or not: some wait for time that really passes.
async fn one(cluster: &Cluster, story: &Story, number: usize) -> Vec<String> {
    let namespace = format!("story-{number}");
    let mut runner = Runner::new(cluster.service(), &[("ns", &namespace)]).telling(cluster.clock());
    let outcome = story.play(&mut runner).await;
    let mut told = runner.transcript();
    told.push(format!("{}: {outcome:?}", story.row));
    told
}

async fn objects(cluster: &Cluster) -> Vec<String> {
    let mut texts = vec![];
    for kind in kubarium::apis::all() {
        let Ok(list) = cluster.client().list(kind, "", &ListOptions::default()).await else { continue };
        texts.extend(list.items.iter().map(|object| object.to_value().to_string()));
    }
    texts
}
