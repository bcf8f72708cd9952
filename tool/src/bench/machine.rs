//! The machine that figures come from.

use std::fs;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub processors: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    pub libc: String,
    pub distribution: String,
    pub page_bytes: u64,
    /// The kernel's transparent huge pages: always, madvise or never.
    pub huge_pages: String,
}

impl Machine {
    pub fn describe_this() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let kib = field(&read("/proc/meminfo"), "MemTotal:").trim_end_matches("kB").trim().parse().unwrap_or(0u64);
        Machine {
            processor: field(&cpu, "model name").trim_start_matches([':', ' ', '\t']).to_string(),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get()),
            memory_bytes: kib * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_string(),
            libc: libc_version(),
            distribution: field(&read("/etc/os-release"), "PRETTY_NAME=").trim_matches('"').to_string(),
            page_bytes: page_bytes(),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        }
    }
}

/// What stands after `name` on the first line that begins with it.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: &str) -> String {
    let word = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    word.unwrap_or("unknown").to_string()
}

pub fn page_bytes() -> u64 {
    // SAFETY: sysconf only reads a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

#[cfg(target_env = "gnu")]
fn libc_version() -> String {
    // SAFETY: the function returns a constant text.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> String {
    "unknown".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_choices() {
        assert_eq!(field("a: 1\nMemTotal:  5 kB\n", "MemTotal:"), "5 kB");
        assert_eq!(field("a: 1\n", "b"), "");
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen(""), "unknown");
    }

    #[test]
    fn this_machine_has_something_to_say() {
        let machine = Machine::describe_this();
        assert!(machine.processors > 0 && machine.memory_bytes > 0 && !machine.kernel.is_empty(), "{machine:?}");
        assert!(machine.page_bytes >= 4096);
    }
}
