//! Programs that gain privileges when they start: snug must know beforehand when the loader will ignore LD_PRELOAD.
//! And programs that give them up: they still run on snug.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{assert_clean, assert_refused, stderr, stdout, text, without_surroundings, Place, Tests, SNUG};
use libtest_mimic::{Completion, Failed};

/// Prints whether the kernel started it as secure: whether the loader ignores LD_PRELOAD.
const SECURE: &str = r#"
#include <stdio.h>
#include <sys/auxv.h>
int main(void) { printf("%lu\n", getauxval(AT_SECURE)); return 0; }
"#;

const NOBODY: u32 = 65534;

pub fn tests() -> Tests {
    vec![
        ("programs_that_gain_privileges", programs_that_gain_privileges),
        ("a_program_that_gives_up_root_runs_on_snug", a_program_that_gives_up_root_runs_on_snug),
        ("rights_that_watching_takes_away_are_said", rights_that_watching_takes_away_are_said),
        ("pids_of_another_namespace", pids_of_another_namespace),
    ]
}

/// Snug must foretell what the kernel does with set-user-ID, set-group-ID and file capabilities, for root and others.
fn programs_that_gain_privileges(place: &Place) -> Result<Completion, Failed> {
    // SAFETY: cannot fail.
    if unsafe { libc::getuid() } != 0 {
        return without_being_root(place);
    }
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place.copy(SNUG, "snug");
    let plain = place.compile("plain", SECURE, &[]);
    let copy = |name: &str, owner: u32, mode: u32| -> PathBuf {
        let path = place.copy(&plain, name);
        chown(&path, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let programs = [
        copy("nothing", 0, 0o755),
        copy("user-root", 0, 0o4755),
        copy("user-nobody", NOBODY, 0o4755),
        copy("group-root", 0, 0o2755),
        copy("group-nobody", NOBODY, 0o2755),
        copy("group-not-executable", NOBODY, 0o2705),
        with_capabilities(copy("capabilities", 0, 0o755)),
    ];
    let mut refused = Vec::new();
    for user in [0, NOBODY] {
        for program in &programs {
            let name = program.file_name().unwrap().to_str().unwrap();
            let secure = stdout(&Command::new(program).uid(user).gid(user).output().unwrap());
            let output = run_as(place, user, program);
            if secure == "0\n" {
                assert_eq!(stdout(&output), "0\n", "{name} for {user}: {}", stderr(&output));
            } else {
                assert_refused(&output, 126, &[name, "the system lets nothing be preloaded"]);
                refused.push((user, name));
            }
        }
    }
    let expected = [
        (0, "user-nobody"),
        (0, "group-nobody"),
        (NOBODY, "user-root"),
        (NOBODY, "group-root"),
        (NOBODY, "capabilities"),
    ];
    if refused.len() < expected.len() {
        return Ok(Completion::ignored_with(
            "this system ignores such marks (nosuid or no_new_privs), and snug knew it",
        ));
    }
    assert_eq!(refused, expected);
    Ok(Completion::Completed)
}

fn run_as(place: &Place, user: u32, program: &Path) -> std::process::Output {
    let home = place.path(&format!("home-{user}"));
    fs::create_dir_all(&home).unwrap();
    chown(&home, Some(user), Some(user)).unwrap();
    let mut command = Command::new(place.path("snug"));
    command.arg("run").arg(program).env("XDG_CACHE_HOME", home);
    without_surroundings(&mut command);
    command.uid(user).gid(user).output().unwrap()
}

/// Gives a program CAP_NET_RAW, in the form in which the kernel stores it (linux/capability.h, revision 2).
fn with_capabilities(program: PathBuf) -> PathBuf {
    let words: [u32; 5] = [0x0200_0001, 1 << 13, 0, 0, 0];
    let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let path = CString::new(program.as_os_str().as_bytes()).unwrap();
    // SAFETY: the strings end in NUL and `value` has the length given.
    let done = unsafe {
        let name = c"security.capability".as_ptr();
        libc::setxattr(path.as_ptr(), name, value.as_ptr().cast(), value.len(), 0)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    program
}

fn without_being_root(place: &Place) -> Result<Completion, Failed> {
    let has_mark = |path: &&&str| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o4000 != 0);
    let Some(program) = ["/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount"].iter().find(has_mark) else {
        return Ok(Completion::ignored_with("not root, and no set-user-ID program is here"));
    };
    assert_refused(&place.output(&["run", program, "--help"]), 126, &["is set-user-ID"]);
    Ok(Completion::Completed)
}

/// root starts a program that goes on as another user, from a home that is closed to others.
fn a_program_that_gives_up_root_runs_on_snug(place: &Place) -> Result<Completion, Failed> {
    // SAFETY: cannot fail.
    if unsafe { libc::getuid() } != 0 {
        return Ok(Completion::ignored_with("only root has it to give up"));
    }
    let home = place.path("home");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let show = ["run", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--", "cat"];
    let arguments = [&show[..], &["/proc/self/maps"]].concat();
    let output = place.snug(&arguments).env("XDG_CACHE_HOME", &home).env("HOME", &home).output().unwrap();
    assert_clean(&output);
    assert!(stdout(&output).contains("/libsnug-"), "{}", stdout(&output));
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    // Where all may go, it is where it always was.
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    let output = place.snug(&arguments).env("XDG_CACHE_HOME", &home).env("HOME", &home).output().unwrap();
    assert!(stdout(&output).contains(&format!("{}/snug/libsnug-", text(&home))), "{}", stdout(&output));
    Ok(Completion::Completed)
}

/// A user's program that is watched starts a set-user-ID one: the kernel gives it no rights then, and snug says so.
fn rights_that_watching_takes_away_are_said(place: &Place) -> Result<Completion, Failed> {
    // SAFETY: cannot fail.
    if unsafe { libc::getuid() } != 0 {
        return Ok(Completion::ignored_with("only root can make a program set-user-ID root"));
    }
    place.copy(SNUG, "snug");
    let gains = place.compile("gains", "#include <unistd.h>\nint main(void) { return geteuid() == 0 ? 8 : 9; }", &[]);
    fs::set_permissions(&gains, fs::Permissions::from_mode(0o4755)).unwrap();
    let run = |flag: &str| {
        let mut command = Command::new(place.path("snug"));
        let script = format!("{}; exit $?", text(&gains));
        command.args(["run", "--stats", flag, "sh", "-c", &script]).env("XDG_CACHE_HOME", "/nonexistent");
        without_surroundings(&mut command).env_remove("HOME");
        command.uid(NOBODY).gid(NOBODY).output().unwrap()
    };
    let free = run("--children=none");
    if free.status.code() != Some(8) {
        return Ok(Completion::ignored_with("this system ignores such marks (nosuid or no_new_privs)"));
    }
    assert!(!stderr(&free).contains("set-user-ID"), "{}", stderr(&free));
    let watched = run("--children=all");
    assert_eq!(watched.status.code(), Some(9));
    assert!(stderr(&watched).contains("gains is set-user-ID and ran without its rights"), "{}", stderr(&watched));
    Ok(Completion::Completed)
}

/// The tool knows them by other numbers: a process that goes on must not be taken for one that has gone.
fn pids_of_another_namespace(place: &Place) -> Result<Completion, Failed> {
    if !Command::new("unshare").args(["-pf", "true"]).output().is_ok_and(|output| output.status.success()) {
        return Ok(Completion::ignored_with("no namespace can be made here"));
    }
    let source = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { static void *volatile p[256];\n\
        for (int r = 0; r < 150; r++) { for (int i = 0; i < 256; i++) { free(p[i]); p[i] = malloc(100 + i); } usleep(9000); } }\n";
    place.compile("works", source, &["-O1", "-w", "-fno-builtin"]);
    // Its number there is one that nobody has here.
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let script = format!("echo {} >/proc/sys/kernel/ns_last_pid; ./works; :", ended.id() - 1);
    let output = place.output(&["record", "--children", "-o", "ns.trace", "unshare", "-pf", "sh", "-c", &script]);
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("of events") && !said.contains("damaged"), "{said}");
    let info = stdout(&place.output(&["replay", "--info", "ns.trace"]));
    assert!(info.contains("works"), "{info}");
    Ok(Completion::Completed)
}
