//! Names for addresses: functions, inlined ones too, files and lines, from what the files on this machine say.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object};

use super::model::{Line, Module, Place, Profile};

/// Gives names to all places that have none. Those of a file that is not there, is another one now or has no symbols stay
/// without.
pub fn resolve(profile: &mut Profile) {
    let symbolizer = Symbolizer::builder().enable_code_info(true).enable_inlined_fns(true).build();
    let mut of_module: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, place) in profile.places.iter().enumerate() {
        if let Some(module) = place.module.filter(|_| place.lines.is_empty()) {
            of_module.entry(module).or_default().push(at);
        }
    }
    for (module, places) in of_module {
        if is_the_same(&profile.modules[module]) {
            resolve_module(&symbolizer, &profile.modules[module].path, &mut profile.places, &places);
        }
    }
}

fn resolve_module(symbolizer: &Symbolizer, path: &str, places: &mut [Place], wanted: &[usize]) {
    let addresses: Vec<u64> = wanted.iter().map(|&place| places[place].address).collect();
    let Ok(found) = symbolizer.symbolize(&Source::Elf(Elf::new(path)), Input::VirtOffset(&addresses)) else { return };
    for (&place, found) in wanted.iter().zip(found) {
        if let Symbolized::Sym(symbol) = found {
            places[place].lines = lines_of(&symbol);
        }
    }
}

/// The innermost first.
fn lines_of(symbol: &Sym) -> Vec<Line> {
    let line = |function: &str, info: Option<&CodeInfo>| Line {
        function: function.to_string(),
        file: info.map_or(String::new(), |info| info.to_path().to_string_lossy().into_owned()),
        line: info.and_then(|info| info.line).map_or(0, i64::from),
    };
    let mut lines: Vec<Line> =
        symbol.inlined.iter().rev().map(|inlined| line(&inlined.name, inlined.code_info.as_ref())).collect();
    lines.push(line(&symbol.name, symbol.code_info.as_deref()));
    lines
}

/// The file's build id, in hexadecimal; empty: it has none, or is not there.
pub fn build_id(path: &Path) -> String {
    let Ok(bytes) = fs::read(path) else { return String::new() };
    let id = ElfFile::<FileHeader64<LittleEndian>>::parse(&*bytes)
        .ok()
        .and_then(|file| file.build_id().ok().flatten().map(<[u8]>::to_vec));
    id.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the file is still that of which the profile is.
fn is_the_same(module: &Module) -> bool {
    let path = Path::new(&module.path);
    path.is_file() && (module.build_id.is_empty() || build_id(path) == module.build_id)
}
