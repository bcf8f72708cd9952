//! The processes as a tree: one line each, with name, peak, time and end.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::iter::successors;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use indicatif::HumanBytes;

use super::Process;

/// More lines than this are no overview: they are for who asks for all. Those with the highest peaks stay, and who
/// started them.
const OVERVIEW: usize = 24;

/// The width of a name with what stands before it; longer ones push the rest to the right.
const NAME: usize = 38;

/// A line for each process under a heading; of very many only the largest, unless `all` are wanted. `marked` are the
/// processes whose details follow.
pub fn lines(processes: &[Process], marked: &[i32], all: bool) -> String {
    let tree = Tree::of(processes);
    let shown = tree.shown(if all { usize::MAX } else { OVERVIEW });
    let mut text = format!("  {:NAME$} {:>10} {:>9}  {}\n", "process", "peak", "time", "ended by");
    for &root in &tree.roots {
        tree.add(&mut text, root, &shown, marked);
    }
    let hidden: Vec<&Process> =
        processes.iter().enumerate().filter(|(place, _)| !shown.contains(place)).map(|(_, process)| process).collect();
    if let Some(most) = hidden.iter().map(|process| process.peak).max() {
        let (count, most) = (hidden.len(), HumanBytes(most));
        let _ = writeln!(text, "  and {count} more, none of them above {most}; --children=all has a line for each");
    }
    text
}

/// Which belongs to which, by places in the list.
struct Tree<'a> {
    processes: &'a [Process],
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// A process whose parent was not seen stands at the edge.
    roots: Vec<usize>,
}

impl Tree<'_> {
    /// Numbers of processes are used again: the parent is the last one of its number that began before.
    fn of(processes: &[Process]) -> Tree<'_> {
        let mut latest: HashMap<i32, usize> = HashMap::new();
        let mut tree = Tree {
            processes,
            parents: Vec::with_capacity(processes.len()),
            children: vec![Vec::new(); processes.len()],
            roots: Vec::new(),
        };
        for (place, process) in processes.iter().enumerate() {
            let parent = latest.get(&process.parent).copied();
            match parent {
                Some(parent) => tree.children[parent].push(place),
                None => tree.roots.push(place),
            }
            tree.parents.push(parent);
            latest.insert(process.pid, place);
        }
        tree
    }

    fn shown(&self, most: usize) -> HashSet<usize> {
        let mut places: Vec<usize> = (0..self.processes.len()).collect();
        places.sort_by_key(|&place| std::cmp::Reverse(self.processes[place].peak));
        let mut shown = HashSet::new();
        for place in places {
            // Who started one that is shown is shown as well.
            let parent_of = |place: &usize| self.parents[*place];
            let line = || successors(Some(place), parent_of).take_while(|place| !shown.contains(place));
            let room = most - shown.len();
            if line().nth(room).is_none() {
                let line: Vec<usize> = line().collect();
                shown.extend(line);
            }
        }
        shown
    }

    /// A process, and below it those that it started.
    fn add(&self, text: &mut String, root: usize, shown: &HashSet<usize>, marked: &[i32]) {
        let mut left = vec![(root, String::new(), String::new())];
        while let Some((place, before, below)) = left.pop() {
            self.add_line(text, place, &before, marked);
            let children: Vec<usize> =
                self.children[place].iter().copied().filter(|child| shown.contains(child)).collect();
            for (number, &child) in children.iter().enumerate().rev() {
                let (branch, line) =
                    if number + 1 < children.len() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
                left.push((child, format!("{below}{branch}"), format!("{below}{line}")));
            }
        }
    }

    fn add_line(&self, text: &mut String, place: usize, before: &str, marked: &[i32]) {
        let process = &self.processes[place];
        let mark = if marked.contains(&process.pid) { "*" } else { " " };
        let name = format!("{before}{} ({})", process.name, process.pid);
        let time = process.ended.map(|ended| (ended - process.began).as_secs_f64());
        let time = time.map_or("-".to_string(), |seconds| format!("{seconds:.2} s"));
        let peak = HumanBytes(process.peak).to_string();
        let end = process.status.map_or("(still runs)".to_string(), end_of);
        let _ = writeln!(text, "{mark} {name:NAME$} {peak:>10} {time:>9}  {end}");
    }
}

/// `exit 3`, `SIGKILL`.
pub fn end_of(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => {
            signal_hook::low_level::signal_name(signal).map_or(format!("signal {signal}"), Into::into)
        }
        _ => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn process(pid: i32, parent: i32, name: &str, mebibytes: u64) -> Process {
        let mut process = Process::new(pid, parent, Duration::ZERO);
        process.name = name.to_string();
        process.peak = mebibytes << 20;
        process.ended = Some(Duration::from_millis(1500));
        process.status = Some(ExitStatus::from_raw(0));
        process
    }

    #[test]
    fn children_stand_under_their_parents() {
        let mut all =
            vec![process(1, 0, "g++", 4), process(2, 1, "cc1plus", 265), process(3, 1, "as", 9), process(4, 2, "x", 1)];
        all[3].status = Some(ExitStatus::from_raw(libc::SIGKILL));
        let text = lines(&all, &[2], false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("  g++ (1) ") && lines[2].starts_with("* ├─ cc1plus (2)"), "{text}");
        assert!(lines[3].starts_with("  │  └─ x (4)") && lines[3].ends_with("1.50 s  SIGKILL"), "{text}");
        assert!(lines[4].starts_with("  └─ as (3)") && lines[2].contains("265.00 MiB    1.50 s  exit 0"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn of_many_the_largest_are_shown() {
        let many: Vec<Process> = (1..100).map(|pid| process(pid, i32::from(pid > 1), "p", pid as u64)).collect();
        let text = lines(&many, &[], false);
        assert!(text.contains("p (99)") && text.contains("p (1)") && !text.contains("p (76)"), "{text}");
        let hidden = "  and 75 more, none of them above 76.00 MiB; --children=all has a line for each\n";
        assert!(text.ends_with(hidden) && hidden.len() <= 81, "{text}");
        let text = lines(&many, &[], true);
        assert!(text.lines().count() == 100 && text.contains("─ p (2) ") && text.contains("─ p (99) "), "{text}");
    }

    #[test]
    fn a_number_that_is_used_again() {
        let all = [process(1, 0, "a", 1), process(2, 1, "b", 1), process(2, 1, "c", 1), process(3, 2, "d", 1)];
        assert_eq!(Tree::of(&all).parents, [None, Some(0), Some(0), Some(2)]);
    }

    #[test]
    fn very_many_take_no_time() {
        let many: Vec<Process> = (1..20_000).map(|pid| process(pid, i32::from(pid > 1), "p", 1)).collect();
        let begun = Instant::now();
        assert!(lines(&many, &[], true).lines().count() == 20_000 && lines(&many, &[], false).lines().count() == 26);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        // a fraction of a second
    }
}
