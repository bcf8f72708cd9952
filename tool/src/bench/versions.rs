//! The versions of what is measured, as far as a machine can tell.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The ending of a file beside a library that says which version it is; `./dev bench --install-peers` writes it.
pub const NOTE: &str = "version";

/// By the note beside it, else by the Debian package that it comes from, else by its file name.
pub fn of_library(library: &Path) -> String {
    let mut note = library.as_os_str().to_os_string();
    note.push(".");
    note.push(NOTE);
    if let Ok(text) = fs::read_to_string(note) {
        return text.trim().to_string();
    }
    let real = fs::canonicalize(library).unwrap_or_else(|_| library.to_path_buf());
    of_package(&real).unwrap_or_else(|| of_name(&real))
}

fn of_package(file: &Path) -> Option<String> {
    // Where /lib is a link to /usr/lib, a package may know the file by either name.
    let without_usr = Path::new("/").join(file.strip_prefix("/usr").unwrap_or(file));
    let owner = [file, &without_usr].into_iter().find_map(|name| said("dpkg-query", &["-S", name.to_str()?]))?;
    let package = owner.rsplit_once(": ")?.0.to_string();
    said("dpkg-query", &["-W", "-f", "${Version}", &package])
}

/// What a command prints, if it ends well.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// What follows `.so.`, or nothing.
fn of_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split_once(".so.").map(|(_, version)| version.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_note_or_name() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libx.so.2.5");
        fs::write(&library, "").unwrap();
        assert_eq!(of_library(&library), "2.5");
        fs::write(folder.path().join("libx.so.2.5.version"), "2.5.1\n").unwrap();
        assert_eq!(of_library(&library), "2.5.1");
        assert_eq!(of_name(Path::new("/l/libx.so")), "");
    }
}
