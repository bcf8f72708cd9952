//! Who may look at a program, and what becomes of a look when the program forks, runs another one, or ends.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::running::{holder, json_of, no_terminals, Running, Terminal, HOLDER};
use crate::common::{assert_clean, assert_refused, stderr, stdout, text, without_surroundings, Place, Tests, SNUG};
use libtest_mimic::{Completion, Failed};
use serde_json::Value;

const NOBODY: u32 = 65534;
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

pub fn tests() -> Tests {
    vec![
        ("another_user_may_not_look", another_user_may_not_look),
        ("root_may_look_at_anybody", root_may_look_at_anybody),
        ("the_same_user_may_look", the_same_user_may_look),
        ("a_protected_process_is_roots", a_protected_process_is_roots),
        ("yama_is_respected", yama_is_respected),
        ("into_a_container_from_outside_and_inside", into_a_container_from_outside_and_inside),
        ("a_forked_child_is_a_program_of_its_own", a_forked_child_is_a_program_of_its_own),
        ("after_exec_it_is_another_program", after_exec_it_is_another_program),
        ("a_process_that_has_ended", a_process_that_has_ended),
    ]
}

fn is_root() -> bool {
    // SAFETY: it only asks.
    unsafe { libc::geteuid() == 0 }
}

fn needs_root() -> Result<Completion, Failed> {
    Ok(Completion::ignored_with("only root may become another user"))
}

fn ptrace_scope() -> u32 {
    fs::read_to_string(YAMA).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// A copy of the tool, and a holder, where any user may run them.
fn copies(place: &Place) -> (PathBuf, PathBuf) {
    let (tool, program) = (place.path("snug"), place.path("holder"));
    if !tool.exists() {
        place.copy(SNUG, "snug");
        place.compile("holder", HOLDER, &["-O1", "-w", "-fno-builtin"]);
        fs::set_permissions(place.dir.path(), Permissions::from_mode(0o777)).unwrap();
    }
    (tool, program)
}

/// `snug` as another user, with a cache of its own.
fn snug_as(place: &Place, user: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new(copies(place).0);
    without_surroundings(command.args(arguments)).env("XDG_CACHE_HOME", place.path(&format!("cache-{user}")));
    command.current_dir("/").stdin(Stdio::null()).uid(user).gid(user);
    command
}

fn holder_as(place: &Place, user: u32) -> Running {
    let program = copies(place).1;
    Running::start(snug_as(place, user, &["run", text(&program)]))
}

fn look_as(place: &Place, user: u32, pid: &str) -> Output {
    snug_as(place, user, &["stats", pid, "--format", "json"]).output().unwrap()
}

#[track_caller]
fn assert_seen(output: &Output) -> Value {
    assert_clean(output);
    let found: Value = serde_json::from_str(&stdout(output)).unwrap();
    assert_eq!(found["requested"]["requested_large"], 5000000);
    found
}

fn another_user_may_not_look(place: &Place) -> Result<Completion, Failed> {
    if !is_root() {
        return needs_root();
    }
    let program = holder(place);
    for arguments in [&["stats"][..], &["trim"], &["top"]] {
        let output = snug_as(place, NOBODY, &[arguments, &[&program.pid()]].concat()).output().unwrap();
        let advice = format!("sudo snug {} {}", arguments[0], program.pid());
        let why = ["must not be looked into", "belongs to the user root", "the same user or root", &advice];
        assert_refused(&output, 1, &why);
    }
    let program = holder_as(place, NOBODY);
    assert_refused(&look_as(place, NOBODY - 1, &program.pid()), 1, &["belongs to the user nobody"]);
    Ok(Completion::Completed)
}

fn root_may_look_at_anybody(place: &Place) -> Result<Completion, Failed> {
    if !is_root() || ptrace_scope() > 2 {
        return needs_root();
    }
    let program = holder_as(place, NOBODY);
    assert_seen(&look_as(place, 0, &program.pid()));
    Ok(Completion::Completed)
}

fn the_same_user_may_look(place: &Place) -> Result<Completion, Failed> {
    if !is_root() {
        return needs_root();
    }
    if ptrace_scope() > 0 {
        return Ok(Completion::ignored_with("kernel.yama.ptrace_scope is not 0"));
    }
    let program = holder_as(place, NOBODY);
    let found = assert_seen(&look_as(place, NOBODY, &program.pid()));
    assert!(found["process"]["resident_snug"].as_u64().unwrap() > 5_000_000, "{found}");
    Ok(Completion::Completed)
}

/// A program that has said that nobody may look into it (PR_SET_DUMPABLE), as ssh-agent does.
fn a_protected_process_is_roots(place: &Place) -> Result<Completion, Failed> {
    if !is_root() {
        return needs_root();
    }
    copies(place);
    let source =
        HOLDER.replace("int main(void)\n{", "#include <sys/prctl.h>\nint main(void)\n{ prctl(PR_SET_DUMPABLE, 0);");
    let program = place.compile("protected", &source, &["-O1", "-w", "-fno-builtin"]);
    let program = Running::start(snug_as(place, NOBODY, &["run", text(&program)]));
    assert_refused(&look_as(place, NOBODY, &program.pid()), 1, &["must not be looked into", "protected (not dumpable"]);
    assert_seen(&look_as(place, 0, &program.pid()));
    Ok(Completion::Completed)
}

fn yama_is_respected(place: &Place) -> Result<Completion, Failed> {
    if !Path::new(YAMA).exists() {
        return Ok(Completion::ignored_with("this kernel has no Yama"));
    }
    if !is_root() {
        return needs_root();
    }
    if ptrace_scope() == 0 {
        return Ok(Completion::ignored_with("kernel.yama.ptrace_scope is 0"));
    }
    let program = holder_as(place, NOBODY);
    assert_refused(&look_as(place, NOBODY, &program.pid()), 1, &["kernel.yama.ptrace_scope"]);
    Ok(Completion::Completed)
}

/// The process id that `unshare` has forked its command as, in this namespace.
fn child_of(process: u32) -> Option<String> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_ascii_whitespace().next().map(str::to_string)
}

/// Another PID and mount namespace, with the library and the program in files that only it can see.
fn into_a_container_from_outside_and_inside(place: &Place) -> Result<Completion, Failed> {
    let inside = place.path("inside");
    fs::create_dir(&inside).unwrap();
    let program = place.compile("holder", HOLDER, &["-O1", "-w", "-fno-builtin"]);
    assert_clean(&place.output(&["run", "true"]));
    let library = place.cached().pop().unwrap();
    let user: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
    let script = format!(
        "mount -t tmpfs none {0} && cp {1} {0}/libsnug.so && cp {2} {3} {0} && LD_PRELOAD={0}/libsnug.so exec {0}/holder",
        text(&inside),
        text(&library),
        text(&program),
        SNUG
    );
    let mut command = Command::new("unshare");
    command.args(user).args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script]);
    without_surroundings(&mut command);
    let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        return Ok(Completion::ignored_with("no unshare"));
    };
    let input = child.stdin.take();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    if output.read_line(&mut line).unwrap() == 0 {
        child.wait().unwrap();
        return Ok(Completion::ignored_with("namespaces cannot be made here"));
    }
    let program = Running { child, input, output };
    assert!(fs::read_dir(&inside).unwrap().next().is_none(), "its files can be seen from here");
    let pid = child_of(program.child.id()).unwrap();
    assert_eq!(json_of(place, &pid)["requested"]["requested_large"], 5000000);

    // From inside it is process 1, and nobody from outside can be seen.
    let enter = |process: &str| {
        let user: &[&str] = if is_root() { &[] } else { &["--user", "--preserve-credentials"] };
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid, "--mount", "--pid"]).args(user);
        command.args([&format!("{}/snug", text(&inside)), "stats", process, "--format", "json"]);
        without_surroundings(&mut command).output().unwrap()
    };
    assert_eq!(assert_seen(&enter("1"))["pid"], 1);
    assert_refused(&enter(&std::process::id().to_string()), 1, &["no process"]);
    Ok(Completion::Completed)
}

fn a_forked_child_is_a_program_of_its_own(place: &Place) -> Result<Completion, Failed> {
    let forks = "int child = fork(); if (child == 0) { free(large); kept[0] = malloc(7000000); }\n    do {";
    let source = HOLDER.replace("    do {", forks).replace("return large[0] - 1;", "return 0;");
    let source = source.replace("puts(\"ready\");", "printf(\"%d\\n\", getpid());");
    let program = place.compile("forks", &source, &["-O1", "-w", "-fno-builtin"]);
    let mut child = place.snug(&["run", text(&program)]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (input, mut output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line.trim().to_string()
    };
    let (first, second) = (line(), line());
    let (parent, forked) = if first == child.id().to_string() { (first, second) } else { (second, first) };
    let of_parent = json_of(place, &parent);
    let of_child = json_of(place, &forked);
    let program = Running { child, input, output };
    assert_eq!(of_parent["requested"]["requested_large"], 5000000);
    assert_eq!(of_child["requested"]["requested_large"], 7000000);
    assert_eq!(of_child["pid"].to_string(), forked);
    drop(program); // the end of the parent's input is the child's, too
    Ok(Completion::Completed)
}

fn after_exec_it_is_another_program(place: &Place) -> Result<Completion, Failed> {
    if let Some(reason) = no_terminals() {
        return Ok(Completion::ignored_with(reason));
    }
    let second = place.compile("second", &HOLDER.replace("5000000", "6000000"), &["-O1", "-w", "-fno-builtin"]);
    let source = HOLDER
        .replace("return large[0] - 1;", "")
        .replace("} while (read(0, line, sizeof(line)) > 0);", "} while (read(0, line, 3) < 0);");
    let exec = format!("    execl(\"{0}\", \"{0}\", (char *)NULL);\n}}", text(&second));
    let source = format!("{}{exec}", source.trim_end().trim_end_matches('}'));
    let first = place.compile("first", &source, &["-O1", "-w", "-fno-builtin"]);
    let mut program = Running::start(place.snug(&["run", text(&first)]));
    assert_eq!(json_of(place, &program.pid())["requested"]["requested_large"], 5000000);
    let terminal = Terminal(place);
    let command = format!("{SNUG} top {} --every 0.1; echo ended $?; sleep 60", program.pid());
    terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "90", "-y", "24", &command]);
    terminal.screen_with("q quit");
    program.work(); // and then it runs the other one
    program.wait_until_ready();
    let screen = terminal.screen_with("ended 1");
    assert!(screen.contains("runs another program now"), "{screen}");
    assert_eq!(json_of(place, &program.pid())["requested"]["requested_large"], 6000000);
    Ok(Completion::Completed)
}

fn a_process_that_has_ended(place: &Place) -> Result<Completion, Failed> {
    // Nobody has waited for it yet: it has a number, but no memory.
    let mut ended = place.snug(&["run", "true"]).spawn().unwrap();
    let pid = ended.id().to_string();
    let stat = format!("/proc/{pid}/stat");
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        sleep(Duration::from_millis(10));
    }
    let output = place.output(&["stats", &pid]);
    ended.wait().unwrap();
    assert_refused(&output, 1, &["has no memory"]);
    assert_refused(&place.output(&["stats", &pid]), 1, &["no process"]);
    // While somebody waits for it to trim: stopped, it cannot do it.
    let program = holder(place);
    assert!(Command::new("kill").args(["-STOP", &program.pid()]).status().unwrap().success());
    let mut trim = place.snug(&["trim", &program.pid(), "--wait", "30"]);
    let trim = trim.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(300));
    drop(program);
    let output = trim.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("has ended"), "{}", stderr(&output));
    Ok(Completion::Completed)
}
