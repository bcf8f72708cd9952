//! What is said in words: where, when and with what the figures were made.

use crate::bench::results::Lab;

/// The lines at the head of a report that is kept.
pub fn circumstances(lab: &Lab) -> Vec<String> {
    let machine = &lab.machine;
    let sizes = if lab.settings.quick { "quick sizes" } else { "full sizes" };
    let mut lines = vec![
        format!("{}, snug {}. Made by {}, {sizes}.", lab.date, lab.version, lab.title),
        format!(
            "{}, {} processors, {:.0} GiB; {}, Linux {}, {}; pages of {} bytes, transparent huge pages: {}.",
            machine.processor,
            machine.processors,
            machine.memory_bytes as f64 / f64::from(1 << 30),
            machine.distribution,
            machine.kernel,
            machine.libc,
            machine.page_bytes,
            machine.huge_pages
        ),
    ];
    lines.push(super::terminal::summary(lab));
    lines
}

/// Each allocator with its version.
pub fn allocators(lab: &Lab) -> String {
    let one = |allocator: &crate::bench::allocators::Allocator| match allocator.version.as_str() {
        "" => allocator.name.clone(),
        version => format!("{} {version}", allocator.name),
    };
    lab.allocators.iter().map(one).collect::<Vec<_>>().join(", ")
}
