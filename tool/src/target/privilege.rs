//! Whether starting a program changes user, group or capabilities. The kernel then marks it as secure, and the loader
//! ignores preloaded libraries that are not installed system-wide.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const ROOT: u32 = 0;

/// Who this process is.
struct Ids {
    user: u32,
    effective_user: u32,
    group: u32,
    effective_group: u32,
}

/// What stands on the program's file.
struct Marks {
    mode: u32,
    owner: u32,
    group: u32,
    has_capabilities: bool,
}

/// What the program gains when it starts, in words that follow its name; None if it stays as it is.
pub fn gained_by(program: &Path) -> Option<&'static str> {
    let found = fs::metadata(program).ok()?;
    let on_plain_mount = !is_mounted_nosuid(program);
    let marks = Marks {
        mode: if on_plain_mount && !is_barred_from_gaining() { found.mode() } else { 0 },
        owner: found.uid(),
        group: found.gid(),
        has_capabilities: on_plain_mount && has_capabilities(program),
    };
    // SAFETY: these cannot fail and touch nothing.
    let ids = unsafe {
        Ids {
            user: libc::getuid(),
            effective_user: libc::geteuid(),
            group: libc::getgid(),
            effective_group: libc::getegid(),
        }
    };
    gain(&ids, &marks)
}

/// The kernel's rule: a real user or group that differs from the effective one, or capabilities from the file for a
/// user who is not root. So set-user-ID root changes nothing for root.
fn gain(ids: &Ids, marks: &Marks) -> Option<&'static str> {
    // Without the group's execute bit, set-group-ID means mandatory locking.
    let group_bits = libc::S_ISGID | libc::S_IXGRP;
    let sets_user = marks.mode & libc::S_ISUID != 0;
    let sets_group = marks.mode & group_bits == group_bits;
    let user = if sets_user { marks.owner } else { ids.effective_user };
    let group = if sets_group { marks.group } else { ids.effective_group };
    if user != ids.user {
        return Some(if sets_user {
            "is set-user-ID"
        } else {
            "would start with an effective user that is not its real one"
        });
    }
    if group != ids.group {
        return Some(if sets_group {
            "is set-group-ID"
        } else {
            "would start with an effective group that is not its real one"
        });
    }
    (marks.has_capabilities && ids.user != ROOT).then_some("gets capabilities from its file")
}

/// On such a mount no mark on a file counts.
fn is_mounted_nosuid(program: &Path) -> bool {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return false };
    // SAFETY: `path` is a valid C string; statvfs writes only to `found`, which is large enough.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &mut found) == 0 && found.f_flag & libc::ST_NOSUID != 0
    }
}

/// Under no_new_privs user and group stay. Capabilities are then not granted either, yet the kernel still marks the
/// program as secure.
fn is_barred_from_gaining() -> bool {
    // SAFETY: this only asks.
    unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 }
}

fn has_capabilities(program: &Path) -> bool {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return false };
    // SAFETY: both are valid C strings; with a size of 0 only the attribute's length is asked for.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Ids = Ids { user: 1000, effective_user: 1000, group: 1000, effective_group: 1000 };
    const SUPER: Ids = Ids { user: 0, effective_user: 0, group: 0, effective_group: 0 };

    fn marks(mode: u32, has_capabilities: bool) -> Marks {
        Marks { mode, owner: 0, group: 0, has_capabilities }
    }

    #[test]
    fn plain_programs_gain_nothing() {
        assert_eq!(gain(&USER, &marks(0o755, false)), None);
        assert_eq!(gain(&SUPER, &marks(0o755, false)), None);
        assert_eq!(gain(&USER, &marks(0o2745, false)), None);
    }

    #[test]
    fn marks_count_for_those_they_change() {
        assert_eq!(gain(&USER, &marks(0o4755, false)), Some("is set-user-ID"));
        assert_eq!(gain(&USER, &marks(0o2755, false)), Some("is set-group-ID"));
        assert_eq!(gain(&USER, &marks(0o755, true)), Some("gets capabilities from its file"));
        for (mode, capabilities) in [(0o4755, false), (0o2755, false), (0o755, true)] {
            assert_eq!(gain(&SUPER, &marks(mode, capabilities)), None);
        }
    }

    #[test]
    fn a_process_that_is_already_between_two_users() {
        let between = Ids { effective_user: 0, ..USER };
        assert!(gain(&between, &marks(0o755, false)).is_some());
    }
}
