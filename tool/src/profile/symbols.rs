//! Names for addresses: functions, inlined ones too, files and lines, from what files on this machine say.
//!
//! A module's names come from the first of these that has them: a file of its build id in a folder that was given; its
//! split debug information by build id; the file itself, if it is still that of which the profile is, with what its
//! .gnu_debuglink leads to; a file of its build id that a process had mapped under a name that leads elsewhere.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use super::model::{Line, Module, Place, Profile};
use crate::live::objects::{build_id_of, kept};

/// Where distributions put split debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// Folders below one that was given are looked into to this depth, which no tree of builds has; a loop of links ends there.
const DEPTH_MOST: usize = 16;

/// Gives names, and keeps what it read of files.
pub struct Symbols {
    symbolizer: Symbolizer,
    /// Files in folders that were given, by build id; without one, by name.
    given: HashMap<String, PathBuf>,
    ids: HashMap<PathBuf, String>,
    /// What was found before, also that there is no name: of a module, by address.
    known: HashMap<Module, HashMap<u64, Vec<Line>>>,
}

impl Symbols {
    pub fn new() -> Symbols {
        Symbols::with(&[])
    }

    /// With folders in which files of other machines are.
    pub fn with(folders: &[PathBuf]) -> Symbols {
        let mut symbols = Symbols {
            symbolizer: Symbolizer::builder().enable_code_info(true).enable_inlined_fns(true).build(),
            given: HashMap::new(),
            ids: HashMap::new(),
            known: HashMap::new(),
        };
        folders.iter().for_each(|folder| symbols.collect(folder, DEPTH_MOST));
        symbols
    }

    fn collect(&mut self, folder: &Path, depth: usize) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && depth > 0 {
                self.collect(&path, depth - 1);
            } else if path.is_file() {
                self.collect_file(path);
            }
        }
    }

    /// Of two files of one build id the one with debug information counts: it is larger.
    fn collect_file(&mut self, path: PathBuf) {
        let Some(id) = build_id_of(&path) else { return };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        let known = self.given.entry(if id.is_empty() { name } else { id }).or_insert_with(|| path.clone());
        if bytes(&path) > bytes(known) {
            *known = path;
        }
    }

    /// The file's build id, in hexadecimal; empty: it has none, or is not there.
    fn build_id(&mut self, path: &Path) -> String {
        if let Some(id) = self.ids.get(path) {
            return id.clone();
        }
        let id = build_id_of(path).unwrap_or_default();
        self.ids.insert(path.to_path_buf(), id.clone());
        id
    }

    /// Gives names to all places that have none. Those of which no file knows stay without. How many places got one.
    pub fn resolve(&mut self, profile: &mut Profile) -> usize {
        let mut of_module: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, place) in profile.places.iter().enumerate() {
            if let Some(module) = place.module.filter(|_| place.lines.is_empty()) {
                of_module.entry(module).or_default().push(at);
            }
        }
        let mut named = 0;
        for (module, places) in of_module {
            self.resolve_module(&profile.modules[module], &mut profile.places, &places);
            named += places.iter().filter(|&&place| !profile.places[place].lines.is_empty()).count();
        }
        named
    }

    fn resolve_module(&mut self, module: &Module, places: &mut [Place], wanted: &[usize]) {
        let mut known = self.known.remove(module).unwrap_or_default();
        let is_new = |place: &&usize| !known.contains_key(&places[**place].address);
        let mut left: Vec<u64> = wanted.iter().filter(is_new).map(|&place| places[place].address).collect();
        if !left.is_empty() {
            for file in self.files_of(module) {
                look_up(&self.symbolizer, &file, &left, &mut known);
                left.retain(|address| !known.contains_key(address));
            }
        }
        known.extend(left.into_iter().map(|address| (address, Vec::new())));
        for &place in wanted {
            places[place].lines = known[&places[place].address].clone();
        }
        self.known.insert(module.clone(), known);
    }

    fn files_of(&mut self, module: &Module) -> Vec<PathBuf> {
        let path = Path::new(&module.path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let id = &module.build_id;
        let given = self.given.get(if id.is_empty() { &name } else { id }).cloned();
        let split = id.split_at_checked(2).map(|(first, rest)| {
            let folder = Path::new(DEBUG_FOLDER).join(".build-id").join(first);
            folder.join(format!("{rest}.debug"))
        });
        let is_the_same = path.is_file() && (id.is_empty() || self.build_id(path) == *id);
        let itself = is_the_same.then(|| path.to_path_buf());
        let kept = Some(kept(id)).filter(|_| itself.is_none()).flatten();
        given.into_iter().chain(split.filter(|path| path.is_file())).chain(itself).chain(kept).collect()
    }
}

fn look_up(symbolizer: &Symbolizer, file: &Path, addresses: &[u64], known: &mut HashMap<u64, Vec<Line>>) {
    let Ok(found) = symbolizer.symbolize(&Source::Elf(Elf::new(file)), Input::VirtOffset(addresses)) else { return };
    for (&address, found) in addresses.iter().zip(found) {
        if let Symbolized::Sym(symbol) = found {
            known.insert(address, lines_of(&symbol));
        }
    }
}

/// A name as its source has it. Names that are mangled say so by how they begin; others are C's, and `f` or `Ss`, which
/// stand for types within mangled names, are functions there.
fn demangled(name: &str) -> String {
    let rust = rustc_demangle::try_demangle(name).ok().map(|found| format!("{found:#}"));
    let is_cpp = name.trim_start_matches('_').starts_with('Z') && name.starts_with('_');
    let cpp = || cpp_demangle::Symbol::new(name).ok().filter(|_| is_cpp).and_then(|found| found.demangle().ok());
    rust.or_else(cpp).unwrap_or_else(|| name.to_string())
}

/// The innermost first.
fn lines_of(symbol: &Sym) -> Vec<Line> {
    let line = |function: &str, info: Option<&CodeInfo>| Line {
        function: demangled(function),
        file: info.map_or(String::new(), |info| info.to_path().to_string_lossy().into_owned()),
        line: info.and_then(|info| info.line).map_or(0, i64::from),
    };
    let mut lines: Vec<Line> =
        symbol.inlined.iter().rev().map(|inlined| line(&inlined.name, inlined.code_info.as_ref())).collect();
    lines.push(line(&symbol.name, symbol.code_info.as_deref()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mangled_names_are_demangled() {
        for (name, wanted) in [
            ("_ZN4List4pushEi", "List::push(int)"),
            ("_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "core::fmt::Write::write_str"),
            ("_RNvC5alloc4grow", "alloc::grow"),
            ("_start", "_start"),
            ("f", "f"),
            ("i", "i"),
            ("Ss", "Ss"),
            ("pl", "pl"),
            ("Zoo", "Zoo"),
        ] {
            assert_eq!(demangled(name), wanted);
        }
    }
}
