//! What the numbers mean for who wants less memory: what is free and still occupies some, why it cannot go back, and what
//! would help.
//!
//! Each kind of free memory has its own reason, so each that weighs something has its own sentence. What a trim would give
//! back now is what it takes first, free pages; how much more would come with magazines and depots that are emptied nobody
//! knows beforehand, so nothing is promised of it.

use std::fmt::Write;

use indicatif::HumanBytes;

use super::{Heap, Slabs, Values};

/// What is less than this part of what is occupied, or than so many bytes, is not worth a sentence.
const PART: u64 = 20;
const LEAST: u64 = 256 << 10;

/// Percent of its quota: a heap that had as much may soon refuse something.
const QUOTA_NEAR: u64 = 90;

/// So many classes are named.
const NAMED: usize = 3;

impl Values {
    /// `process`: its number while it runs.
    pub fn explained(&self, process: Option<i32>) -> String {
        let mut text = String::new();
        let get = |name: &str| self.get(name).unwrap_or(0);
        // What is in use and was never touched occupies nothing.
        let occupied = self.get("resident_snug").unwrap_or_else(|| get("live"));
        // Of what is free some was never touched: no more than all that is resident can be occupied.
        let matters = |bytes: u64| bytes.min(occupied) >= LEAST && bytes >= occupied / PART;
        let mut sentences = Vec::new();
        if matters(get("free_slabs")) {
            sentences.push(of_slabs(get("free_slabs"), self.slabs().as_deref()));
        }
        if matters(get("free_cells")) {
            sentences.push(format!(
                "{} are free between medium blocks; they serve requests of up to 128 KiB.",
                HumanBytes(get("free_cells"))
            ));
        }
        let waiting = get("cached_small") + get("cached_cells") + get("depots");
        if matters(waiting) {
            let bytes = HumanBytes(waiting);
            sentences.push(format!(
                "{bytes} wait for threads, in magazines and depots: smaller SNUG_THREAD_CACHE and SNUG_DEPOT keep less."
            ));
        }
        if matters(get("purge_pending")) {
            sentences.push(of_pages(get("purge_pending"), process));
        }
        if matters(get("resident_excess")) {
            let bytes = HumanBytes(get("resident_excess"));
            sentences.push(format!("{bytes} are resident in free pages because of huge pages: SNUG_HUGE_PAGES=never."));
        }
        sentences.extend(self.heaps().iter().filter_map(of_quota));
        if sentences.is_empty() {
            sentences.push("Nearly all that snug occupies is in use.".to_string());
        }
        let _ = writeln!(text, "what is free, and why");
        for sentence in sentences {
            for line in crate::output::filled(&sentence, 76).lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

fn of_slabs(free: u64, slabs: Option<&[Slabs]>) -> String {
    let mut text = format!("{} are free in slabs; they serve requests of the same sizes.", HumanBytes(free));
    let Some(slabs) = slabs else { return text };
    let sum = |value: fn(&Slabs) -> u64| slabs.iter().map(value).sum::<u64>();
    let (all, sparse, bytes) = (sum(|slabs| slabs.all), sum(|slabs| slabs.sparse), sum(|slabs| slabs.sparse_free));
    if sparse == 0 {
        return text;
    }
    let mut most: Vec<&Slabs> = slabs.iter().filter(|slabs| slabs.sparse_free > 0).collect();
    most.sort_by_key(|slabs| std::cmp::Reverse(slabs.sparse_free));
    let name = |slabs: &&Slabs| {
        format!("{} B: {} in {} of {}", slabs.size, HumanBytes(slabs.sparse_free), slabs.sparse, slabs.all)
    };
    let named: Vec<String> = most.iter().take(NAMED).map(name).collect();
    let _ = write!(
        text,
        " {} of it are pinned by few objects: {sparse} of {all} slabs are at most a quarter in use ({}). No trim gives \
         that back while those objects live; a program that frees them together, or takes them from a heap of its own, \
         gives it back.",
        HumanBytes(bytes),
        named.join(", ")
    );
    text
}

/// A heap that was nearly full.
fn of_quota(heap: &Heap) -> Option<String> {
    let quota = heap.quota.filter(|quota| heap.peak >= quota / 100 * QUOTA_NEAR)?;
    let name = if heap.name.is_empty() { "without a name" } else { &heap.name };
    let which = if heap.heaps == 1 { "The heap" } else { "One of the heaps" };
    let bound = if heap.provider == "buffer" { "its buffer" } else { "its quota" };
    Some(format!(
        "{which} {name} had up to {} of the {} of {bound}; what does not fit is refused.",
        HumanBytes(heap.peak),
        HumanBytes(quota)
    ))
}

fn of_pages(bytes: u64, process: Option<i32>) -> String {
    let bytes = HumanBytes(bytes);
    match process {
        Some(process) => {
            format!("{bytes} are free pages that still occupy memory: snug trim {process} gives them back.")
        }
        None => format!(
            "{bytes} were free pages that still occupied memory: a smaller SNUG_DIRTY or SNUG_PURGE_DELAY keeps less."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_that_is_nearly_full_is_told() {
        let mut heap =
            Heap { name: "left".into(), provider: "system".into(), heaps: 1, peak: 60 << 20, quota: Some(64 << 20) };
        assert_eq!(
            of_quota(&heap).unwrap(),
            "The heap left had up to 60.00 MiB of the 64.00 MiB of its quota; what does not fit is refused."
        );
        heap.peak = 50 << 20;
        assert!(of_quota(&heap).is_none());
        heap.quota = None;
        assert!(of_quota(&heap).is_none());
    }

    #[test]
    fn pinned_memory_is_told_with_its_classes() {
        let slabs = [
            Slabs { size: 64, all: 10, sparse: 8, sparse_free: 4 << 20 },
            Slabs { size: 96, all: 5, sparse: 0, sparse_free: 0 },
        ];
        let text = of_slabs(5 << 20, Some(&slabs));
        for part in ["5.00 MiB are free", "4.00 MiB of it are pinned", "8 of 15 slabs", "(64 B: 4.00 MiB in 8 of 10)"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!of_slabs(1 << 20, Some(&slabs[1..])).contains("pinned"));
    }
}
