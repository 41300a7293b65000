//! `find`: files below folders, by name, kind and depth, and what is done with them.

use std::collections::BTreeMap;

use super::tools::RunProgram;
use crate::file_system::File;
use crate::interpreter::player::{AfterCommand, Player};

/// What a command line asks for.
#[derive(Default)]
struct FindCall<'w> {
    roots: Vec<&'w str>,
    /// What `-o` stands between; never none.
    branches: Vec<FindBranch<'w>>,
    min_depth: usize,
    max_depth: Option<usize>,
    does: FindAction<'w>,
}

/// Tests that a file has to pass all, each with whether it is negated.
#[derive(Default)]
struct FindBranch<'w> {
    tests: Vec<(bool, FindTest<'w>)>,
    /// Whether it says itself what is done with the file.
    is_acting: bool,
}

enum FindTest<'w> {
    Name(&'w str, bool),
    Path(&'w str),
    /// As `-type` names it.
    Kind(char),
    Empty,
    Nothing,
}

#[derive(Default, PartialEq)]
enum FindAction<'w> {
    #[default]
    Print,
    PrintZero,
    Delete,
    /// For each, or for all together.
    Run(Vec<&'w str>, bool),
}

/// What was found: its kind as `-type` names it, and how many bytes it has.
type FoundFiles = BTreeMap<String, (char, usize)>;

pub(super) fn run(player: &mut Player<'_>, words: &[&str], run_program: RunProgram) -> AfterCommand {
    let Some(call) = FindCall::read(words) else {
        player.fail("find: unrecognized expression\n");
        return AfterCommand::Go;
    };
    let mut hits = Vec::new();
    for root in &call.roots {
        let full = if root.ends_with('/') { player.real_path(root) } else { player.own_path(root) };
        let found = below(player, &full);
        if found.is_empty() {
            player.fail(&format!("find: {root}: No such file or directory\n"));
            continue;
        }
        for (path, (kind, bytes)) in &found {
            let rest = path[full.trim_end_matches('/').len()..].trim_start_matches('/');
            let depth = if rest.is_empty() { 0 } else { rest.split('/').count() };
            let shown = match rest {
                "" => (*root).to_owned(),
                rest => format!("{}/{rest}", root.trim_end_matches('/')),
            };
            let is_deep = (call.min_depth..=call.max_depth.unwrap_or(usize::MAX)).contains(&depth);
            if is_deep && call.fits(player, &shown, *kind, *bytes) {
                hits.push(shown);
            }
        }
    }
    call.act(player, hits, run_program)
}

fn kind_of(file: &File) -> char {
    match file {
        _ if file.is_folder => 'd',
        _ if file.is_pipe() => 'p',
        _ if file.is_block_device() => 'b',
        _ if file.is_link() => 'l',
        _ => 'f',
    }
}

/// A folder, and all that is below it.
fn below(player: &mut Player<'_>, root: &str) -> FoundFiles {
    let mut found = FoundFiles::new();
    let prefix = format!("{}/", root.trim_end_matches('/'));
    let is_there = player.is_folder(root) || root == "/";
    let files = player.files();
    if let Some(file) = files.get(root) {
        found.insert(root.to_owned(), (kind_of(file), file.size()));
    } else if is_there
        || files.range(prefix.clone()..).next().is_some_and(|(path, _)| path.starts_with(&prefix))
    {
        found.insert(root.to_owned(), ('d', 0));
    }
    for (path, file) in files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix)) {
        if !player.handle(path.len()) {
            break;
        }
        let above =
            path[prefix.len()..].match_indices('/').map(|(at, _)| path[..prefix.len() + at].to_owned());
        above.for_each(|folder| {
            found.entry(folder).or_insert(('d', 0));
        });
        found.insert(path.clone(), (kind_of(file), file.size()));
    }
    found
}

impl<'w> FindCall<'w> {
    fn read(words: &[&'w str]) -> Option<FindCall<'w>> {
        let mut call = FindCall::default();
        let mut words = words.iter().copied().peekable();
        while let Some(root) = words.next_if(|word| !word.starts_with('-') && !matches!(*word, "!" | "(")) {
            call.roots.push(root);
        }
        if call.roots.is_empty() {
            call.roots.push(".");
        }
        let mut is_negated = false;
        let mut branch = FindBranch::default();
        while let Some(word) = words.next() {
            let test = match word {
                "-o" | "-or" => {
                    call.branches.push(std::mem::take(&mut branch));
                    continue;
                }
                "!" | "-not" => {
                    is_negated = !is_negated;
                    continue;
                }
                "-name" => FindTest::Name(words.next()?, false),
                "-iname" => FindTest::Name(words.next()?, true),
                "-path" | "-wholename" => FindTest::Path(words.next()?),
                "-type" => match words.next()? {
                    kind @ ("f" | "d" | "l" | "p") => FindTest::Kind(kind.chars().next()?),
                    _ => FindTest::Nothing,
                },
                "-empty" => FindTest::Empty,
                "-maxdepth" => {
                    call.max_depth = Some(words.next()?.parse().ok()?);
                    continue;
                }
                "-mindepth" => {
                    call.min_depth = words.next()?.parse().ok()?;
                    continue;
                }
                "-a" | "-follow" | "-L" | "-H" | "-depth" | "-xdev" => continue,
                word => {
                    let does = FindAction::read(word, &mut words)?;
                    // Only one thing is done, by whichever branches.
                    let is_other = call.branches.iter().any(|branch| branch.is_acting) && does != call.does;
                    if is_other {
                        return None;
                    }
                    call.does = does;
                    branch.is_acting = true;
                    continue;
                }
            };
            branch.tests.push((std::mem::take(&mut is_negated), test));
        }
        call.branches.push(branch);
        Some(call)
    }

    /// Where one branch says what is done, nothing is done with a file that is another's.
    fn fits(&self, player: &mut Player<'_>, path: &str, kind: char, bytes: usize) -> bool {
        let is_said = self.branches.iter().any(|branch| branch.is_acting);
        let first = self.branches.iter().find(|branch| branch.fits(player, path, kind, bytes));
        first.is_some_and(|branch| branch.is_acting || !is_said)
    }

    fn act(&self, player: &mut Player<'_>, hits: Vec<String>, run_program: RunProgram) -> AfterCommand {
        match &self.does {
            FindAction::Print => player.say(&hits.iter().map(|hit| format!("{hit}\n")).collect::<String>()),
            FindAction::PrintZero => {
                player.say(&hits.iter().map(|hit| format!("{hit}\0")).collect::<String>())
            }
            FindAction::Delete => {
                // What is below comes first.
                for hit in hits.iter().rev() {
                    let full = player.own_path(hit);
                    match player.check_writable(&full) {
                        Ok(()) if player.own_file(&full).is_some() => player.put_file(full, None),
                        Ok(()) => {}
                        Err(why) => player.fail(&format!("find: {hit}: {why}\n")),
                    }
                }
            }
            FindAction::Run(command, together) => {
                let Some((program, rest)) = command.split_first() else { return AfterCommand::Go };
                let rounds: Vec<Vec<String>> =
                    if *together { vec![hits] } else { hits.into_iter().map(|hit| vec![hit]).collect() };
                for round in rounds.iter().filter(|round| !round.is_empty()) {
                    let arguments: Vec<String> = rest
                        .iter()
                        .flat_map(|word| match *word {
                            "{}" => round.clone(),
                            word => vec![word.replace("{}", &round[0])],
                        })
                        .collect();
                    if player.spend(1) != AfterCommand::Go {
                        return player.spend(0);
                    }
                    match run_program(player, program, &arguments) {
                        AfterCommand::Go => {}
                        flow => return flow,
                    }
                }
            }
        }
        AfterCommand::Go
    }
}

impl<'w> FindAction<'w> {
    /// What a word says that is to be done; nothing where it says none.
    fn read(word: &str, words: &mut impl Iterator<Item = &'w str>) -> Option<FindAction<'w>> {
        match word {
            "-print" => return Some(FindAction::Print),
            "-print0" => return Some(FindAction::PrintZero),
            "-delete" => return Some(FindAction::Delete),
            "-exec" => {}
            _ => return None,
        }
        let mut command: Vec<&str> = Vec::new();
        let mut together = false;
        for word in words {
            match word {
                ";" => break,
                "+" => {
                    together = true;
                    break;
                }
                word => command.push(word),
            }
        }
        Some(FindAction::Run(command, together))
    }
}

impl FindBranch<'_> {
    fn fits(&self, player: &mut Player<'_>, path: &str, kind: char, bytes: usize) -> bool {
        let name = super::names::base_name(path.trim_end_matches('/'));
        self.tests.iter().all(|(is_negated, test)| {
            let is_so = match test {
                FindTest::Name(pattern, false) => player.matches(pattern, name),
                FindTest::Name(pattern, true) => {
                    player.matches(&pattern.to_lowercase(), &name.to_lowercase())
                }
                FindTest::Path(pattern) => player.matches(pattern, path),
                FindTest::Kind(wanted) => *wanted == kind,
                FindTest::Empty => kind == 'f' && bytes == 0,
                FindTest::Nothing => false,
            };
            is_so != *is_negated
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    fn said(line: &str) -> String {
        let words = ["sh".to_owned(), "-c".to_owned(), line.to_owned()];
        let ran = exec(&words, &Surroundings::default(), vec![], None).expect("it is understood");
        ran.out + &ran.errors
    }

    #[test]
    fn one_of_several_is_enough() {
        let made = "mkdir -p /d/a_b; cd /d; touch a-b c e; ";
        for (line, wanted) in [
            ("find /d -name '*a_b*' -o -name '*a-b*'", "/d/a-b\n/d/a_b\n"),
            ("find . -type d -name 'a*' -o -type f ! -name 'a*'", "./a_b\n./c\n./e\n"),
            ("find . -name c -o -name e -print", "./e\n"),
            ("find . -name c -print -or -name e -print", "./c\n./e\n"),
            ("find . -name c -unknown", "find: unrecognized expression\n"),
        ] {
            assert_eq!(said(&format!("{made}{line}")), wanted, "{line}");
        }
    }
}
