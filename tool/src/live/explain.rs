//! What the numbers mean for who wants less memory: one verdict, and then what is free and still occupies some, why it
//! cannot go back, and what would help.
//!
//! Each kind of free memory has its own reason, so each that weighs something has its own sentence. What a trim would give
//! back is known: free pages, and the whole pages inside of free medium blocks, as the page map shows them. How much more
//! would come with magazines and depots that are emptied nobody knows beforehand, so their bytes are said as the bound.

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
/// Of what would help, so much is told first.
const TOLD: usize = 2;
/// And so many have a row.
const ROWS: usize = 8;

/// Slabs of a class of which less than this percentage is in use are shown as such.
const HALF_EMPTY: u64 = 50;

/// What beside blocks in use can occupy memory, in malloc's heap.
const BESIDE: [&str; 13] = [
    "waste",
    "cached_small",
    "cached_cells",
    "depots",
    "hardened_waiting",
    "hardened_cached",
    "hardened_free",
    "free_slabs",
    "free_cells",
    "purge_pending",
    "metadata_used",
    "guarded_mapped",
    "resident_excess",
];

/// Blocks of hardened heaps.
const HARDENED: [&str; 4] = ["live_hardened", "hardened_waiting", "hardened_cached", "hardened_free"];

/// A process with so many bytes of which snug never had more than this part does not have its memory from snug.
const ELSEWHERE_LEAST: u64 = 8 << 20;
const ELSEWHERE_PART: u64 = 16;

/// How much of what is in use occupies memory: nobody looks at each block, so it is known from two sides.
struct InUse {
    least: u64,
    most: u64,
}

impl InUse {
    /// `all`: what is in use, touched or not; `beside`: what else may occupy memory; `going`: what surely does, and is free.
    fn of(occupied: u64, all: u64, beside: u64, going: u64) -> InUse {
        let most = all.min(occupied.saturating_sub(going));
        InUse { least: occupied.saturating_sub(beside).min(most), most }
    }

    /// Whether all of it does, as far as that matters.
    fn is_all(&self, all: u64) -> bool {
        let not_known = all - self.least;
        not_known < LEAST || not_known <= all / PART
    }
}

impl Values {
    /// What to do, in a few lines. `process`: its number while it runs.
    pub fn verdict(&self, process: Option<i32>) -> String {
        let get = |name: &str| self.get(name).unwrap_or(0);
        let elsewhere = self.elsewhere();
        if self.took_nothing() || get("live").saturating_add(get("heaps_live")) == 0 && self.weight() == 0 {
            let nothing = format!("It has taken no memory from snug{}.", elsewhere.unwrap_or_default());
            return crate::output::filled(&nothing, 78) + "\n";
        }
        let mut text =
            elsewhere.map_or(String::new(), |elsewhere| format!("snug had little of its memory{elsewhere}. "));
        text += if process.is_none() { self.at_the_peak() } else { String::new() }.as_str();
        text += if process.is_some() { "Now " } else { "At the end " };
        text += &self.in_use();
        let gains = self.gains(process);
        let what: Vec<&str> = gains.iter().take(TOLD).map(|(_, what)| what.as_str()).collect();
        text += "; ";
        text += if what.is_empty() { "there is little to gain" } else { "" };
        crate::output::filled(&(text + &what.join("; ") + "."), 78) + "\n"
    }

    /// Whether no page was ever in use, nor is a block.
    fn took_nothing(&self) -> bool {
        let all = ["used_peak", "live", "large_taken_bytes", "heaps_mapped", "peak_heaps"].iter().chain(&HARDENED);
        self.get("used_peak").is_some() && all.filter_map(|name| self.get(name)).all(|bytes| bytes == 0)
    }

    /// That nearly all of the process is not snug's: then these are no figures of its memory. It may be code, so nobody says
    /// that it is another malloc's. Of a hardened heap it is not known.
    fn elsewhere(&self) -> Option<String> {
        let get = |name: &str| self.get(name).unwrap_or(0);
        let resident = get("resident_peak").max(get("resident"));
        let most = self.get("mapped_peak")?.max(get("mapped").min(get("resident"))).saturating_add(get("heaps_mapped"));
        let had =
            if self.took_nothing() { 0 } else { HARDENED.iter().map(|name| get(name)).fold(most, u64::saturating_add) };
        (resident >= ELSEWHERE_LEAST && had <= resident / ELSEWHERE_PART).then(|| {
            format!(
                ", though {} were resident: a malloc of the program's own has the rest, or it is code, or straight from the \
                 system; what is said here is not about that",
                size(resident)
            )
        })
    }

    /// What is in use and, as far as that is known, how much of what snug occupies that is. A block may never have been
    /// touched: it is in use and occupies nothing.
    fn in_use(&self) -> String {
        let get = |name: &str| self.get(name).unwrap_or(0);
        let heaps = get("heaps_live");
        let all = get("live").saturating_add(heaps);
        let own = match heaps {
            0 => String::new(),
            _ => format!(", {} of it in heaps of the program's own", size(heaps)),
        };
        let Some(occupied) = self.occupied() else {
            return format!("{} are in use{own}, and how much of it occupies memory is not known", size(all));
        };
        let beside = BESIDE.iter().map(|gauge| get(gauge)).fold(0, u64::saturating_add);
        let beside = beside.saturating_add(get("heaps_mapped").saturating_sub(heaps));
        let used = InUse::of(occupied, all, beside, self.trimmable());
        let of = format!("{} of the {} that snug occupies are in use", size(used.most), size(occupied));
        let percent = part(used.most, occupied);
        let bound = if used.is_all(all) { "" } else { "at most " };
        let more = match all > used.most {
            true => format!(", of {} that the program has, touched or not", size(all)),
            false => String::new(),
        };
        format!("{bound}{of} ({percent} %){more}{own}")
    }

    /// What was in use at the highest point; nothing if there was none that was worth a copy. Of heaps of the program's own
    /// only their pages are known, which have more than is in use.
    fn at_the_peak(&self) -> String {
        let get = |name: &str| self.get(name).unwrap_or(0);
        let (live, used, heaps) = (get("peak_live"), get("used_peak"), get("peak_heaps"));
        if heaps > 0 {
            let (live, heaps) = (size(live), size(heaps));
            return format!("At the peak {live} were in use, beside pages of {heaps} in heaps of the program's own. ");
        }
        if used == 0 || live == 0 {
            return String::new();
        }
        format!("At the peak {} of {} were in use ({} %). ", size(live), size(used), part(live, used))
    }

    /// What snug occupies, in malloc's heap and in others; None if that is not known.
    fn occupied(&self) -> Option<u64> {
        let heaps = match self.get("heaps_mapped").unwrap_or(0) {
            0 => 0,
            _ => self.get("resident_heaps")?,
        };
        Some(self.get("resident_snug")?.saturating_add(heaps))
    }

    /// The same, or what it can be at most.
    fn weight(&self) -> u64 {
        let mapped = self.get("mapped").unwrap_or(0).saturating_add(self.get("heaps_mapped").unwrap_or(0));
        self.occupied().unwrap_or_else(|| self.get("resident").map_or(mapped, |resident| resident.min(mapped)))
    }

    /// What a trim gives back, as far as that is known.
    fn trimmable(&self) -> u64 {
        let known = self.get("trimmable").unwrap_or_else(|| self.get("purge_pending").unwrap_or(0));
        known.min(self.weight())
    }

    /// Of what is free some was never touched: no more than all that is resident can be occupied.
    fn matters(&self, bytes: u64) -> bool {
        let occupied = self.weight();
        bytes.min(occupied) >= LEAST && bytes >= occupied / PART
    }

    fn waiting(&self) -> u64 {
        ["cached_small", "cached_cells", "depots"].iter().filter_map(|name| self.get(name)).fold(0, u64::saturating_add)
    }

    /// What would give how much, in words that go on a sentence: a trim, which can be had now, and then most first.
    fn gains(&self, process: Option<i32>) -> Vec<(u64, String)> {
        let get = |name: &str| self.get(name).unwrap_or(0);
        let trimmable = self.trimmable();
        let trim = match process {
            Some(process) => format!("snug trim {process} gives back {}", size(trimmable)),
            None => format!("a trim, or smaller SNUG_DIRTY, would have given back {}", size(trimmable)),
        };
        let named = self.slabs().map_or(String::new(), |slabs| {
            let most: Vec<String> =
                sparsest(&slabs).iter().take(NAMED).map(|slabs| format!("{} B", slabs.size)).collect();
            format!(" ({})", most.join(", "))
        });
        let pinned = format!(
            "{} stay pinned by few objects{named}, until those are freed; a heap of their own would not spread them",
            size(get("pinned"))
        );
        let waiting =
            format!("{} wait for threads: smaller SNUG_THREAD_CACHE and SNUG_DEPOT keep less", size(self.waiting()));
        let mut gains = vec![(trimmable, trim), (get("pinned"), pinned), (self.waiting(), waiting)];
        gains[1..].sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        gains.retain(|(bytes, _)| self.matters(*bytes));
        gains
    }

    /// `process`: its number while it runs.
    pub fn explained(&self, process: Option<i32>) -> String {
        let mut text = String::new();
        let get = |name: &str| self.get(name).unwrap_or(0);
        let mut sentences = Vec::new();
        if self.matters(get("free_slabs")) {
            sentences.push(of_slabs(get("free_slabs"), self.slabs().as_deref()));
        }
        if self.matters(get("free_cells")) {
            sentences.push(of_cells(
                get("free_cells"),
                self.get("trimmable").map(|all| all - get("purge_pending").min(all)),
            ));
        }
        if self.matters(self.waiting()) {
            sentences.push(format!(
                "{} wait for threads, in magazines and depots: smaller SNUG_THREAD_CACHE and SNUG_DEPOT keep less; a trim \
                 gives back those of which whole slabs or pages become free.",
                size(self.waiting())
            ));
        }
        if self.matters(get("purge_pending")) {
            sentences.push(of_pages(get("purge_pending"), process));
        }
        if self.matters(get("resident_excess")) {
            let bytes = size(get("resident_excess"));
            sentences.push(format!("{bytes} are resident in free pages because of huge pages: SNUG_HUGE_PAGES=never."));
        }
        sentences.extend(self.heaps().iter().filter_map(of_quota));
        if sentences.is_empty() {
            return text;
        }
        let _ = writeln!(text, "what is free, and why (the words: snug man glossary)");
        for sentence in sentences {
            for line in crate::output::filled(&sentence, 76).lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        text + &occupancy(self.slabs().as_deref().unwrap_or_default())
    }
}

fn size(bytes: u64) -> HumanBytes {
    HumanBytes(bytes)
}

fn part(of: u64, all: u64) -> u64 {
    if all == 0 {
        return 0;
    }
    (u128::from(of) * 100 / u128::from(all)) as u64
}

/// Classes with sparse slabs, those first that pin most.
fn sparsest(slabs: &[Slabs]) -> Vec<&Slabs> {
    let mut sparse: Vec<&Slabs> = slabs.iter().filter(|slabs| slabs.sparse_free > 0).collect();
    sparse.sort_by_key(|slabs| std::cmp::Reverse(slabs.sparse_free));
    sparse
}

/// How full the slabs of each class are, of those that are half empty and weigh something; most bytes first.
fn occupancy(slabs: &[Slabs]) -> String {
    let free = |slabs: &Slabs| slabs.room.saturating_sub(slabs.live).saturating_mul(slabs.size);
    let mut rows: Vec<&Slabs> = slabs.iter().filter(|row| part(row.live, row.room) < HALF_EMPTY).collect();
    rows.retain(|row| free(row) >= LEAST / 4);
    rows.sort_by_key(|row| std::cmp::Reverse(free(row)));
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "half-empty slabs      slabs  in use of room          free  pinned in sparse ones\n".to_string();
    for row in rows.iter().take(ROWS) {
        let (free, pinned) = (size(free(row)).to_string(), size(row.sparse_free).to_string());
        let percent = part(row.live, row.room);
        let _ = writeln!(
            text,
            "{:>8} B {:>16} {percent:>13} % {free:>13} {pinned:>11} in {}",
            row.size, row.all, row.sparse
        );
    }
    text
}

fn of_cells(free: u64, trimmable: Option<u64>) -> String {
    let mut text = format!("{} are free between medium blocks; they serve requests of up to 128 KiB.", size(free));
    if let Some(trimmable) = trimmable.filter(|&bytes| bytes > 0) {
        let _ = write!(text, " {} of it lie in whole pages, which a trim gives back.", size(trimmable));
    }
    text
}

fn of_slabs(free: u64, slabs: Option<&[Slabs]>) -> String {
    let mut text = format!("{} are free in slabs; they serve requests of the same sizes.", HumanBytes(free));
    let Some(slabs) = slabs else { return text };
    let sum = |value: fn(&Slabs) -> u64| slabs.iter().map(value).fold(0, u64::saturating_add);
    let (all, sparse, bytes) = (sum(|slabs| slabs.all), sum(|slabs| slabs.sparse), sum(|slabs| slabs.sparse_free));
    if sparse == 0 {
        return text;
    }
    let most = sparsest(slabs);
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
        let mut heap = Heap {
            name: "left".into(),
            provider: "system".into(),
            heaps: 1,
            peak: 60 << 20,
            quota: Some(64 << 20),
            ..Heap::default()
        };
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
    fn what_was_never_touched_is_not_said_to_be_in_memory() {
        let mib = |count: u64| count << 20;
        // All that is beside it is accounted for: what is in use is the rest.
        let used = InUse::of(mib(8), mib(5), mib(3), mib(2));
        assert_eq!((used.least, used.most, used.is_all(mib(5))), (mib(5), mib(5), true));
        // 64 MiB of which nothing was touched, and 8 of 9 that go back.
        let used = InUse::of(mib(9), mib(64), mib(9), mib(8));
        assert_eq!((used.least, used.most, used.is_all(mib(64))), (0, mib(1), false));
        // It would fit in, but so would what is free.
        let used = InUse::of(mib(9), mib(5), mib(9), 0);
        assert_eq!((used.least, used.most, used.is_all(mib(5))), (0, mib(5), false));
        let used = InUse::of(0, 4096, 0, mib(1));
        assert_eq!((used.least, used.most, used.is_all(4096)), (0, 0, true));
    }

    #[test]
    fn pinned_memory_is_told_with_its_classes() {
        let slabs = [
            Slabs { size: 64, all: 10, sparse: 8, sparse_free: 4 << 20, live: 10, room: 100 },
            Slabs { size: 96, all: 5, ..Slabs::default() },
        ];
        let text = of_slabs(5 << 20, Some(&slabs));
        for part in ["5.00 MiB are free", "4.00 MiB of it are pinned", "8 of 15 slabs", "(64 B: 4.00 MiB in 8 of 10)"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!of_slabs(1 << 20, Some(&slabs[1..])).contains("pinned"));
    }
}
