//! The carried library becomes a file: once, whole, changed by nobody, and never another one than the one carried.

use std::fs;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::common::{assert_clean, assert_refused, is_full, stderr, stdout, text, without_surroundings, Place};

/// Shows which library is preloaded.
const SHOW: [&str; 4] = ["run", "sh", "-c", "echo $LD_PRELOAD"];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn all_may_read_it_and_it_is_written_once() {
    let place = Place::new();
    assert_clean(&place.output(&["run", "true"]));
    let [library] = &place.cached()[..] else { panic!("{:?}", place.cached()) };
    assert_eq!((mode(&place.cache().join("snug")), mode(library)), (0o755, 0o555));
    let first = fs::metadata(library).unwrap();
    assert_eq!(stdout(&place.output(&SHOW)).trim(), text(library));
    let second = fs::metadata(library).unwrap();
    assert_eq!((first.ino(), first.mtime_nsec()), (second.ino(), second.mtime_nsec()));
}

#[test]
fn many_may_start_at_once() {
    for _ in 0..if is_full() { 40 } else { 10 } {
        let place = Place::new();
        let start =
            || place.snug(&["run", "cat", "/proc/self/maps"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let children: Vec<_> = (0..8).map(|_| start().unwrap()).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert_clean(&output);
            assert!(stdout(&output).contains("/libsnug-"));
        }
        assert_eq!(place.cached().len(), 1, "{:?}", place.cached());
    }
}

#[test]
fn what_was_tampered_with_is_repaired() {
    let place = Place::new();
    assert_clean(&place.output(&["run", "true"]));
    let library = place.cached().remove(0);
    let right = fs::read(&library).unwrap();
    let mut wrong = right.clone();
    *wrong.last_mut().unwrap() ^= 1;

    type Damage<'a> = &'a dyn Fn();
    let replace = |bytes: &[u8]| {
        fs::remove_file(&library).unwrap();
        fs::write(&library, bytes).unwrap();
        fs::set_permissions(&library, fs::Permissions::from_mode(0o555)).unwrap();
    };
    let lead_elsewhere = || {
        let elsewhere = place.write("elsewhere", &right, 0o555);
        fs::remove_file(&library).unwrap();
        symlink(elsewhere, &library).unwrap();
    };
    let damages: [(&str, Damage); 5] = [
        ("one bit", &|| replace(&wrong)),
        ("cut", &|| replace(&right[..right.len() / 2])),
        ("empty", &|| replace(b"")),
        ("open to others", &|| fs::set_permissions(&library, fs::Permissions::from_mode(0o777)).unwrap()),
        ("a link", &lead_elsewhere),
    ];
    for (name, damage) in damages {
        damage();
        assert_clean(&place.output(&["run", "true"]));
        assert!(fs::read(&library).unwrap() == right, "{name}");
        assert!(fs::symlink_metadata(&library).unwrap().is_file() && mode(&library) == 0o555, "{name}");
        assert_eq!(place.cached().len(), 1, "{name}");
    }
}

#[test]
fn an_open_folder_is_closed() {
    let place = Place::new();
    let folder = place.cache().join("snug");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert_clean(&place.output(&["run", "true"]));
    assert_eq!(mode(&folder), 0o755);
}

/// With an XDG_CACHE_HOME that will not do, the library is put under HOME.
#[track_caller]
fn assert_passed_over(place: &Place, cache: &Path) {
    let output = place.snug(&SHOW).env("XDG_CACHE_HOME", cache).env("HOME", place.path("home")).output().unwrap();
    assert_clean(&output);
    let home = place.path("home/.cache/snug/libsnug-");
    assert!(stdout(&output).starts_with(text(&home)), "{}", stdout(&output));
}

#[test]
fn folders_that_will_not_do_are_passed_over() {
    let place = Place::new();
    fs::create_dir(place.path("home")).unwrap();
    place.write("file", "", 0o644);
    fs::create_dir_all(place.path("open/to/all")).unwrap();
    fs::set_permissions(place.path("open/to/all"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::create_dir_all(place.path("far/below")).unwrap();
    fs::set_permissions(place.path("far"), fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["with space", "with:colon", "with$dollar", "file", "open/to/all", "far/below"] {
        assert_passed_over(&place, &place.path(name));
        assert!(!place.path(name).join("snug").exists(), "{name}");
    }
    for path in ["relative", "", "/proc/no/such", "/dev/null/x"] {
        assert_passed_over(&place, Path::new(path));
    }
}

#[test]
fn a_folder_that_is_a_link_is_passed_over() {
    let place = Place::new();
    fs::create_dir(place.path("home")).unwrap();
    fs::create_dir(place.cache()).unwrap();
    fs::create_dir(place.path("target")).unwrap();
    symlink(place.path("target"), place.cache().join("snug")).unwrap();
    assert_passed_over(&place, &place.cache());
    assert_eq!(fs::read_dir(place.path("target")).unwrap().count(), 0);
}

fn user() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

#[test]
fn the_last_resort_is_in_tmp() {
    let place = Place::new();
    let nowhere = "/dev/null/x";
    let output = place.snug(&SHOW).env("XDG_CACHE_HOME", nowhere).env("HOME", nowhere).output().unwrap();
    assert_clean(&output);
    let folder = if user() == 0 { "/var/cache/snug".to_string() } else { format!("/tmp/snug-{}", user()) };
    assert!(stdout(&output).starts_with(&format!("{folder}/libsnug-")), "{}", stdout(&output));
}

#[test]
fn copies_of_other_versions_go() {
    let place = Place::new();
    assert_clean(&place.output(&["run", "true"]));
    let library = place.cached().remove(0);
    let folder = place.cache().join("snug");
    let left = |name: &str, days: u64| {
        let path = folder.join(name);
        fs::copy(&library, &path).unwrap();
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 3600 + 60);
        fs::File::open(&path).unwrap().set_modified(then).unwrap();
        path
    };
    let old = [left("libsnug-0123456789abcdef.so", 1), left(".libsnugrecord-Xyz123", 1), left("snugreplay-01", 3)];
    let kept = [left("libsnug-1123456789abcdef.so", 0), left("notes.txt", 9)];
    let used = left("libsnug-2123456789abcdef.so", 9);
    let mut command = std::process::Command::new("cat");
    let mut user = without_surroundings(&mut command).env("LD_PRELOAD", &used);
    user = user.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut user = user.spawn().unwrap();
    let is_mapped = |pid: u32| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().contains(text(&used));
    while !is_mapped(user.id()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_clean(&place.output(&["run", "true"]));
    assert!(old.iter().all(|path| !path.exists()), "{:?}", place.cached());
    assert!(kept.iter().chain([&used, &library]).all(|path| path.exists()), "{:?}", place.cached());
    drop(user.stdin.take());
    user.wait().unwrap();
    assert_clean(&place.output(&["run", "true"]));
    assert!(!used.exists());
    // What is used is never old.
    left(library.file_name().unwrap().to_str().unwrap(), 9);
    assert_clean(&place.output(&["run", "true"]));
    assert!(fs::metadata(&library).unwrap().modified().unwrap().elapsed().unwrap() < Duration::from_secs(600));
}

#[test]
fn a_library_that_cannot_be_replaced_is_not_used() {
    let place = Place::new();
    assert_clean(&place.output(&["run", "true"]));
    let library = place.cached().remove(0);
    fs::remove_file(&library).unwrap();
    fs::create_dir(&library).unwrap(); // a rename cannot replace it
    let output = place.snug(&SHOW).env("HOME", place.dir.path()).output().unwrap();
    assert_clean(&output);
    assert!(stdout(&output).starts_with(text(&place.path(".cache/snug/libsnug-"))), "{}", stdout(&output));
}

#[test]
fn mistakes_come_before_unpacking() {
    let place = Place::new();
    assert_refused(&place.output(&["run", "no-such-program"]), 127, &["not found"]);
    assert!(!place.cache().exists(), "{}", stderr(&place.output(&["--version"])));
}
