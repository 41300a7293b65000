//! Circles of files that import each other: by room, they may only become fewer.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::room_of;
use super::modules::Modules;
use super::source::Source;
use super::tables::CIRCLES;

#[test]
fn circles_only_become_fewer() {
    let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let circles = circles();
    for circle in &circles {
        let rooms: BTreeSet<String> = circle.iter().map(|file| room_of(&Source::all()[*file])).collect();
        let room = rooms.into_iter().collect::<Vec<_>>().join(" + ");
        let entry = found.entry(room).or_default();
        entry.0 += 1;
        entry.1 += circle.len();
    }
    let listed: BTreeMap<String, (usize, usize)> =
        CIRCLES.iter().map(|(room, circles, files)| ((*room).to_owned(), (*circles, *files))).collect();
    let mut wrong = Vec::new();
    for room in found.keys().chain(listed.keys()).collect::<BTreeSet<_>>() {
        let is = found.get(room).copied().unwrap_or_default();
        let may = listed.get(room).copied().unwrap_or_default();
        if is != may {
            let members =
                circles.iter().filter(|circle| is > may && room_of(&Source::all()[circle[0]]) == *room);
            let members: Vec<String> = members.map(|circle| names(circle)).collect();
            wrong.push(format!("(\"{room}\", {}, {}), listed {may:?} {}", is.0, is.1, members.join("\n")));
        }
    }
    assert!(
        wrong.is_empty(),
        "(room, circles, files); untie what grew, and tighten what shrank, in CIRCLES of tests/it/tidy/tables.rs:\n{}",
        wrong.join("\n")
    );
}

/// Each file of a circle with those of the circle that it imports, and where.
fn names(circle: &[usize]) -> String {
    let arrows = |file: &usize| {
        let imports = Modules::all().imports(*file).into_iter();
        let mut within: BTreeMap<&str, usize> = BTreeMap::new();
        for import in imports.filter(|import| circle.contains(&import.from)) {
            within.entry(Source::all()[import.from].path.as_str()).or_insert(import.line);
        }
        let within: Vec<String> = within.iter().map(|(path, line)| format!("{path} (line {line})")).collect();
        format!("\n  {} -> {}", Source::all()[*file].path, within.join(", "))
    };
    circle.iter().map(arrows).collect()
}

/// The strongly connected parts of the graph of files that have more than one.
fn circles() -> Vec<Vec<usize>> {
    let sources = Source::all();
    let modules = Modules::all();
    let edges = |index: usize| -> Vec<usize> {
        if sources[index].is_test() {
            return vec![];
        }
        modules.imports(index).into_iter().map(|import| import.from).collect()
    };
    strongly_connected(&(0..sources.len()).map(edges).collect::<Vec<_>>())
}

/// Kosaraju: by the order in which walks end, then backwards.
fn strongly_connected(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut order = Vec::new();
    let mut seen = vec![false; edges.len()];
    (0..edges.len()).for_each(|start| walk(start, edges, &mut seen, &mut order));
    let mut back = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        targets.iter().for_each(|target| back[*target].push(from));
    }
    let mut seen = vec![false; edges.len()];
    let mut parts = Vec::new();
    for start in order.into_iter().rev() {
        let mut part = Vec::new();
        walk(start, &back, &mut seen, &mut part);
        if part.len() > 1 {
            part.sort_unstable();
            parts.push(part);
        }
    }
    parts.sort();
    parts
}

/// Depth first; what is left behind is pushed.
fn walk(start: usize, edges: &[Vec<usize>], seen: &mut [bool], ended: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    edges[start].iter().for_each(|next| walk(*next, edges, seen, ended));
    ended.push(start);
}

#[test]
fn circles_are_found() {
    let edges = [vec![1], vec![2], vec![0, 3], vec![4], vec![], vec![6], vec![5]];
    assert_eq!(strongly_connected(&edges), [vec![0, 1, 2], vec![5, 6]]);
}
