//! Files that snug writes: what was there stays as it is until all of what replaces it is written.
//!
//! A file is replaced by one that was made beside it, under its name. Where that would be another file than the one that
//! was meant, as for a pipe, a device, or a file that has other names or another owner that cannot be kept, what is there
//! is written over.

use std::ffi::CString;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{fchown, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use tempfile::NamedTempFile;

use crate::output::{cannot_write, is_standard};
use crate::refusal::Refusal;
use crate::scratch;

/// As many links as the kernel follows.
const LINKS_MOST: u32 = 40;
/// What a new file may be, before the mask; and one that gets the mode of another when it is whole.
const MODE_OF_NEW: u32 = 0o666;
const MODE_UNTIL_WHOLE: u32 = 0o600;

/// That a file can be written is known before the work that fills it. Nothing is made or opened for that.
pub fn ensure_writable(path: &Path) -> Result<()> {
    Whole::new(path).map(drop)
}

/// Where the standard output can be had by `-`, that is seen before; here it would make a file of that name.
pub fn ensure_is_a_name(path: &Path) -> Result<()> {
    let message = "this cannot go to the standard output, which - stands for; a file of that name is ./-";
    ensure!(!is_standard(path), Refusal::misuse(message.to_string()));
    Ok(())
}

/// A file that will be written later.
#[derive(Debug)]
pub struct Whole {
    /// As it was given.
    path: PathBuf,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// Another file takes the place of this one, which is no link.
    Replaced(PathBuf),
    /// As it is: a pipe, a device, or a link to what is not there yet.
    InPlace,
    /// A descriptor of this process, which a name in /proc stands for: to open that anew would begin at the start.
    Open(File),
}

impl Whole {
    pub fn new(path: &Path) -> Result<Whole> {
        ensure_is_a_name(path)?;
        let way = way_to(path).with_context(|| cannot_write(path))?;
        Ok(Whole { path: path.to_path_buf(), way })
    }

    pub fn write(self, bytes: &[u8]) -> Result<()> {
        let path = self.path.clone();
        self.write_with(|file| file.write_all(bytes).with_context(|| cannot_write(&path)))
    }

    /// `fill` writes all of it. Its errors are its own, and leave what was there.
    pub fn write_with<T>(self, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        let Whole { path, way } = self;
        let failed = || cannot_write(&path);
        if let Way::Replaced(target) = &way {
            if let Some(mut beside) = beside(target).with_context(failed)? {
                let filled = fill(beside.as_file_mut())?;
                if let Some(mut left) = take_place(beside, target).with_context(failed)? {
                    copy(left.as_file_mut(), over(target)).with_context(failed)?;
                }
                return Ok(filled);
            }
        }
        let mut scratch = scratch::large()?;
        let filled = fill(&mut scratch)?;
        let to = match way {
            Way::Open(file) => Ok(file),
            Way::Replaced(_) | Way::InPlace => over(&path),
        };
        copy(&mut scratch, to).with_context(failed)?;
        Ok(filled)
    }
}

/// How a file is written; an error says why it cannot be.
fn way_to(path: &Path) -> io::Result<Way> {
    let end = end_of_links(path)?;
    if is_link(&end) {
        return own_descriptor(&end).map(|open| open.map_or(Way::InPlace, Way::Open));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(found) if found.file_type().is_socket() => Err(io::Error::from_raw_os_error(libc::ENXIO)),
        Ok(found) => {
            ensure_access(path, libc::W_OK)?;
            let target = if is_link(path) { real_path(path, &found) } else { Some(end) };
            Ok(target.filter(|_| found.is_file()).map_or(Way::InPlace, Way::Replaced))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_name(&end) => {
            let folder = folder_of(&end);
            ensure_access(folder, libc::W_OK | libc::X_OK)?;
            if is_in_proc(folder)? {
                return Err(error);
            }
            // What a link leads to is made by the kernel, which knows whom links in /tmp are not followed for.
            Ok(if is_link(path) { Way::InPlace } else { Way::Replaced(end) })
        }
        Err(error) => Err(error),
    }
}

/// A file that can be made, not a folder, nor nothing.
fn is_name(path: &Path) -> bool {
    path.file_name().is_some() && !path.as_os_str().as_bytes().ends_with(b"/")
}

fn is_link(path: &Path) -> bool {
    path.is_symlink()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the links of a name lead to, whether it is there or not; one of /proc that stands for something open, as
/// /dev/stdout does, is where it ends.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MOST {
        if !is_link(&path) || is_in_proc(folder_of(&path))? {
            return Ok(path);
        }
        let target = fs::read_link(&path)?;
        path = folder_of(&path).join(target);
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

fn is_in_proc(folder: &Path) -> io::Result<bool> {
    let name = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: statfs reads a string that ends in 0 and writes to a structure that is all numbers.
    let (failed, found) = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::statfs(name.as_ptr(), &mut found) != 0, found)
    };
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(found.f_type == libc::PROC_SUPER_MAGIC),
    }
}

/// A copy of the descriptor of this process that a link in /proc stands for, if it does; it must be one for writing.
fn own_descriptor(link: &Path) -> io::Result<Option<File>> {
    let folder = fs::canonicalize(folder_of(link))?;
    let is_own = folder.starts_with(fs::canonicalize("/proc/self")?) && folder.ends_with("fd");
    let number = link.file_name().and_then(|name| name.to_str()?.parse::<i32>().ok());
    let Some(number) = number.filter(|_| is_own) else { return Ok(None) };
    // SAFETY: both calls take numbers; the copy is owned from here on.
    let (mode, copy) = unsafe { (libc::fcntl(number, libc::F_GETFL), libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3)) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made just now, and nobody else knows it.
    let file = unsafe { File::from_raw_fd(copy) };
    match mode & libc::O_ACCMODE == libc::O_RDONLY {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(Some(file)),
    }
}

/// As the effective user.
fn ensure_access(path: &Path, mode: i32) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: faccessat reads a string that ends in 0.
    match unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), mode, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The name of an existing file without links. The kernel follows them, so that one that it must not follow, of another
/// user in /tmp, is not followed here either.
fn real_path(path: &Path, known: &Metadata) -> Option<PathBuf> {
    let found = File::options().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    let real = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()?;
    let is_it = fs::symlink_metadata(&real).is_ok_and(|it| (it.dev(), it.ino()) == (known.dev(), known.ino()));
    is_it.then_some(real)
}

/// A new file in the folder of `target`. None: none can be made there, and `target` is one that can be written over.
fn beside(target: &Path) -> io::Result<Option<NamedTempFile>> {
    let mode = if target.exists() { MODE_UNTIL_WHOLE } else { MODE_OF_NEW };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".snug-").permissions(Permissions::from_mode(mode));
    match builder.tempfile_in(folder_of(target)) {
        Ok(file) => Ok(Some(file)),
        Err(error) => {
            let is_barred = matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
            if is_barred && target.exists() {
                Ok(None)
            } else {
                Err(error)
            }
        }
    }
}

/// Gives a file the name of another, with that one's owner and mode. It comes back if the other one has to stay.
fn take_place(beside: NamedTempFile, target: &Path) -> io::Result<Option<NamedTempFile>> {
    let Ok(known) = fs::metadata(target) else {
        return beside.persist(target).map(|_| None).map_err(|failed| failed.error);
    };
    if known.nlink() > 1 || !known.is_file() || take_over(beside.as_file(), &known).is_err() {
        return Ok(Some(beside));
    }
    // A name in a folder of others, or that something is mounted on, cannot be given to another file.
    Ok(beside.persist(target).err().map(|failed| failed.file))
}

/// The owner, the group and what they may do.
fn take_over(file: &File, known: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (known.uid(), known.gid()) {
        fchown(file, Some(known.uid()), Some(known.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(known.mode() & 0o777))
}

/// What is there is emptied for what comes; without the word to make a file, which the kernel refuses for those of others
/// in /tmp.
fn over(path: &Path) -> io::Result<File> {
    match File::options().write(true).truncate(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => File::create(path),
        opened => opened,
    }
}

fn copy(from: &mut File, to: io::Result<File>) -> io::Result<()> {
    let mut to = to?;
    from.rewind()?;
    io::copy(from, &mut to)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn written(path: &Path, text: &str) -> Result<()> {
        Whole::new(path)?.write(text.as_bytes())
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn links_stay_and_what_they_lead_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("d")).unwrap();
        fs::write(at("real"), "old").unwrap();
        let before = File::open(at("real")).unwrap();
        symlink("../real", at("d/link")).unwrap();
        written(&at("d/link"), "new").unwrap();
        assert!(is_link(&at("d/link")));
        assert_eq!((read(&at("real")), io::read_to_string(before).unwrap()), ("new".into(), "old".into()));
        assert_eq!(fs::read_dir(at("d")).unwrap().count(), 1, "it was made beside the file, and nothing is left");
        // One that leads to nothing yet: looking leaves it so.
        symlink("../not-yet", at("d/early")).unwrap();
        ensure_writable(&at("d/early")).unwrap();
        assert!(is_link(&at("d/early")) && !at("not-yet").exists());
        written(&at("d/early"), "there").unwrap();
        assert_eq!((is_link(&at("d/early")), read(&at("not-yet"))), (true, "there".into()));
        symlink("round", at("round")).unwrap();
        assert!(written(&at("round"), "x").is_err());
    }

    #[test]
    fn descriptors_are_written_to_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let mut open = File::create(&path).unwrap();
        open.write_all(b"said; ").unwrap();
        let link = folder.path().join("out");
        symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &link).unwrap();
        written(&link, "told").unwrap();
        assert_eq!((read(&path), is_link(&link)), ("said; told".into(), true));
        let closed = File::open(&path).unwrap();
        assert!(ensure_writable(Path::new(&format!("/dev/fd/{}", closed.as_raw_fd()))).is_err(), "only for reading");
        assert!(ensure_writable(Path::new("/dev/fd/1234")).is_err());
    }

    #[test]
    fn names_owners_and_modes_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("one"), "old").unwrap();
        fs::hard_link(at("one"), at("two")).unwrap();
        written(&at("one"), "new").unwrap();
        assert_eq!(read(&at("two")), "new");
        fs::write(at("mine"), "old").unwrap();
        fs::set_permissions(at("mine"), Permissions::from_mode(0o640)).unwrap();
        // Only root can make it somebody else's.
        let owner = std::os::unix::fs::chown(at("mine"), Some(1234), Some(1235)).map_or(None, |()| Some((1234, 1235)));
        written(&at("mine"), "new").unwrap();
        let found = fs::metadata(at("mine")).unwrap();
        assert_eq!(found.mode() & 0o777, 0o640);
        assert_eq!(owner.unwrap_or((found.uid(), found.gid())), (found.uid(), found.gid()));
    }

    #[test]
    fn a_pipe_is_not_opened_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: mkfifo reads a string that ends in 0.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let whole = Whole::new(&path).unwrap(); // to open it would wait for a reader
        let reader = std::thread::spawn(move || read(&path));
        whole.write(b"told").unwrap();
        assert_eq!(reader.join().unwrap(), "told");
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for wrong in [at("no/f"), at("new/"), folder.path().to_path_buf(), PathBuf::new(), at(".."), "-".into()] {
            assert!(ensure_writable(&wrong).is_err(), "{}", wrong.display());
        }
        fs::write(at("f"), "old").unwrap();
        assert!(ensure_writable(&at("f/x")).is_err());
        let failed: Result<()> = Whole::new(&at("f")).unwrap().write_with(|file| {
            file.write_all(b"part")?;
            anyhow::bail!("no more")
        });
        assert!(failed.is_err());
        assert_eq!((read(&at("f")), fs::read_dir(folder.path()).unwrap().count()), ("old".into(), 1));
    }
}
