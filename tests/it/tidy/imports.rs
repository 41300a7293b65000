//! Who may import whom: the table holds, and nothing in it is idle.

use std::collections::BTreeSet;

use super::modules::{Modules, crate_of};
use super::source::Source;
use super::tables::{FLOW_USERS, IMPORTS};

#[test]
fn nothing_imports_what_it_may_not() {
    let mut wrong = Vec::new();
    for_each_import(|source, line, room, target| {
        let may_record = is_flow(target) && may_record_flow(source);
        if is_listed(room) && !may_record && permission(room, target).is_none() {
            wrong.push(format!("{}:{line}: {room} imports {target}", source.path));
        }
    });
    assert!(wrong.is_empty(), "see IMPORTS in tests/it/tidy/tables.rs:\n{}", wrong.join("\n"));
}

#[test]
fn every_permission_is_used() {
    let mut used = BTreeSet::new();
    for_each_import(|_, _, room, target| {
        if let Some(Some(name)) = permission(room, target) {
            used.insert((room.to_owned(), name));
        }
    });
    let is_idle = |room: &str, name: &str| name != "*" && !used.contains(&(room.to_owned(), name));
    let idle: Vec<String> = IMPORTS
        .iter()
        .flat_map(|(room, allowed)| allowed.iter().map(move |name| (*room, *name)))
        .filter(|(room, name)| is_idle(room, name))
        .map(|(room, name)| format!("{room} may import {name} and does not"))
        .collect();
    assert!(idle.is_empty(), "take these off IMPORTS in tests/it/tidy/tables.rs:\n{}", idle.join("\n"));
}

#[test]
fn every_room_of_the_table_is_there() {
    let rooms: BTreeSet<String> = Source::all().iter().map(room_of).collect();
    for (room, _) in IMPORTS {
        assert!(rooms.contains(*room), "{room} is gone: take it off IMPORTS in tests/it/tidy/tables.rs");
    }
}

#[test]
fn only_machinery_mentions_the_flow_record() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for_each_import(|source, line, _, target| {
        if !is_flow(target) || source.path.starts_with("src/flow/") {
            return;
        }
        match FLOW_USERS.iter().find(|user| source.path.starts_with(**user)) {
            Some(user) => drop(used.insert(*user)),
            None => wrong.push(format!("{}:{line}", source.path)),
        }
    });
    assert!(wrong.is_empty(), "these files must not know the flow record:\n{}", wrong.join("\n"));
    let idle: Vec<_> = FLOW_USERS.iter().filter(|user| !used.contains(**user)).collect();
    assert!(idle.is_empty(), "take these off FLOW_USERS in tests/it/tidy/tables.rs: {idle:?}");
}

/// Each import of production code: the file, the line, the file's room and the module that it names.
fn for_each_import(mut look: impl FnMut(&'static Source, usize, &str, &str)) {
    let modules = Modules::all();
    for (index, source) in Source::all().iter().enumerate().filter(|(_, source)| !source.is_test()) {
        let room = room_of(source);
        for import in modules.imports(index) {
            look(source, import.line, &room, &import.module);
        }
    }
}

/// The name on the list that allows it; None inside where the room itself does, or where every
/// room may (how Go writes values is known to all, and the locks); None where nothing does.
fn permission(room: &str, target: &str) -> Option<Option<&'static str>> {
    let below = |outer: &str| target == outer || target.starts_with(&format!("{outer}::"));
    if below(room) || below("golang") || below("sync") {
        return Some(None);
    }
    let (_, allowed) = IMPORTS.iter().find(|(name, _)| *name == room)?;
    // The longest name decides, so that a narrow permission counts as used before a wide one.
    let names = allowed.iter().copied().filter(|name| *name == "*" || below(name));
    names.max_by_key(|name| name.len()).map(Some)
}

fn is_flow(target: &str) -> bool {
    target == "flow" || target.starts_with("flow::")
}

fn may_record_flow(source: &Source) -> bool {
    FLOW_USERS.iter().any(|user| source.path.starts_with(user))
}

fn is_listed(room: &str) -> bool {
    IMPORTS.iter().any(|(listed, _)| *listed == room)
}

/// The longest room in the table that the file lies in, else its crate, or its folder in the crate on top.
pub(crate) fn room_of(source: &Source) -> String {
    let inside = source.path.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "::");
    let lies_in = |room: &&str| inside == **room || inside.starts_with(&format!("{room}::"));
    let rooms = IMPORTS.iter().map(|(room, _)| *room).filter(lies_in);
    let listed = rooms.max_by_key(|room| room.len());
    let outermost = || crate_of(&source.path).or(inside.split("::").next());
    listed.or_else(outermost).unwrap_or_default().to_owned()
}
