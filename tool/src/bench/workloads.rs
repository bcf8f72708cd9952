//! The workloads: programs of bench/, each with the arguments that make a row of it. What they imitate stands at length
//! in the heads of their sources.
//!
//! Sizes are such that a run takes about a tenth of a second, in long runs a few tenths: the figures come from many short
//! runs side by side rather than from few long ones.

use super::catalog::{Entry, Source};
use super::results::{Row, Unit};

/// What is chosen for quick runs and for long ones.
struct Scale<'a> {
    quick: bool,
    /// The numbers of threads that the user wants, for all workloads that have a choice.
    threads: &'a [u32],
}

impl Scale<'_> {
    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick {
            quick
        } else {
            full
        }
    }

    fn threads(&self, quick: &[u32], full: &[u32]) -> Vec<u32> {
        match self.threads {
            [] => self.pick(quick, full).to_vec(),
            chosen => chosen.to_vec(),
        }
    }
}

/// All rows, in the order in which they run.
pub fn rows(quick: bool, threads: &[u32]) -> Vec<Entry> {
    let scale = Scale { quick, threads };
    let families = [
        pairs,
        churn,
        random_mixed,
        calloc_mixed,
        sized_delete,
        same_thread,
        separate_thread,
        waves,
        bursts,
        larson,
        producer_consumer,
        cells,
        many_threads,
        sleeping_threads,
        realloc_growth,
        realloc_small,
        aligned,
        big,
        large_pairs,
        replace_large,
        large_buffers,
        sparse,
        fragmented,
        cold,
        trees,
        overhead,
        fragment,
        moving_sizes,
        peak_idle,
        latency,
    ];
    families.iter().flat_map(|family| family(&scale)).collect()
}

/// A row of a workload.
fn entry(name: &str, about: &str, threads: u32, program: &'static str, args: &[&str]) -> Entry {
    let family = name.split('/').next().unwrap_or(name).to_string();
    let row = Row { name: name.into(), family, about: about.into(), threads, unit: Unit::NsPerOperation };
    Entry { row, source: Source::Workload { program, args: owned(args), doubled: Vec::new() } }
}

/// A row of one thread; the last of its arguments is the number of operations, or of rounds of them.
fn countable(name: &str, about: &str, program: &'static str, args: &[&str], operations: u64) -> Entry {
    let with = |operations: u64| owned(&[args, &[&operations.to_string()]].concat());
    let source = Source::Workload { program, args: with(operations), doubled: with(2 * operations) };
    Entry { source, ..entry(name, about, 1, program, args) }
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| arg.to_string()).collect()
}

fn pairs(scale: &Scale) -> Vec<Entry> {
    const ROWS: [(&str, u32, &str); 8] = [
        ("freed-at-once", 1, "64 B, freed before the next: a temporary in a loop"),
        ("reverse-100", 1, "100 blocks of 64 B, freed last first: a call that unwinds"),
        ("in-order-10000", 1, "10,000 blocks of 64 B, freed first first: a list that is torn down"),
        ("random-16-1024", 1, "10,000 live blocks of 16..1,024 B, any replaced by another"),
        ("random-16-256", 1, "200,000 live blocks of 16..256 B: a heap larger than the caches of the processor"),
        ("random-1-30000", 1, "1,000 live blocks of 1..30,000 B: buffers"),
        ("producer-consumer", 2, "64 B, taken by one thread and freed by the other"),
        ("fill-250MB-two-threads", 2, "two threads fill 250 MB each, then free: a large data set"),
    ];
    // Within a process; the least time of these counts. The last row takes a second as it is.
    const REPEATS: u64 = 3;
    let repeats = |name: &str| if name.starts_with("fill") { 1 } else { REPEATS };
    let wanted = ROWS.iter().filter(|(name, ..)| !scale.quick || *name != "fill-250MB-two-threads");
    let make = |&(name, threads, about): &(&str, u32, &str)| {
        let row = format!("pairs/{name}");
        match threads {
            1 => countable(&row, about, "pairs", &[name], repeats(name)),
            _ => entry(&row, about, threads, "pairs", &[name, &repeats(name).to_string()]),
        }
    };
    wanted.map(make).collect()
}

fn churn(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick(2_000_000, 5_000_000);
    let about = |size: &str, many: &str| format!("{many} {size} B, taken and freed together, again and again");
    let make = |name: &str, size: &str, blocks: &str, many: &str| {
        countable(name, &about(size, many), "churn", &[size, blocks], operations)
    };
    vec![
        make("churn/64-one-page", "64", "64", "a page of"),
        make("churn/16-pages", "16", "1000", "1,000 blocks of"),
        make("churn/64-pages", "64", "1000", "1,000 blocks of"),
    ]
}

fn random_mixed(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick(1_000_000, 3_000_000);
    let sizes = [("16", "1024"), ("129", "256"), ("257", "512"), ("257", "768"), ("513", "1024")];
    let make = |&(low, high): &(&str, &str)| {
        let about = format!("a working set of 400 blocks of {low}..{high} B, any replaced by another");
        countable(&format!("random-mixed/{low}-{high}"), &about, "random_mixed", &[low, high], operations)
    };
    let of_256 = |&(name, operations): &(&str, u64)| {
        let about = format!("400 blocks of 256 B, {name} operations: what a start costs, and what stays");
        countable(&format!("random-mixed/256-{name}"), &about, "random_mixed", &["256", "256"], operations)
    };
    let lengths = [("100k", 100_000), ("1m", 1_000_000), ("10m", 10_000_000)];
    let lengths = &lengths[..scale.pick(2, 3)];
    let about = "4 blocks of 1,000..30,000 B, any replaced by another: buffers that are wanted for a moment";
    let args = ["1000", "30000", &operations.to_string(), "4"];
    let few = entry("random-mixed/1000-30000-of-4", about, 1, "random_mixed", &args);
    sizes.iter().map(make).chain(lengths.iter().map(of_256)).chain([few]).collect()
}

fn calloc_mixed(scale: &Scale) -> Vec<Entry> {
    let make = |low: &str, high: &str, operations: u64| {
        let about = format!("400 blocks of {low}..{high} B from calloc, any replaced by another and written in full");
        countable(&format!("calloc/{low}-{high}"), &about, "calloc_mixed", &[low, high], operations)
    };
    vec![
        make("16", "256", scale.pick(1_000_000, 3_000_000)),
        make("16", "1024", scale.pick(1_000_000, 3_000_000)),
        make("1", "30000", scale.pick(50_000, 100_000)),
    ]
}

fn sized_delete(scale: &Scale) -> Vec<Entry> {
    let about = "400 blocks of 16..1,024 B from operator new, any deleted with its size and replaced (C++)";
    let operations = scale.pick(1_000_000, 3_000_000);
    vec![countable("sized-delete/16-1024", about, "sized_delete", &["16", "1024"], operations)]
}

/// The two ranges of sizes of the workloads of many threads, and how many times fewer blocks of the second are taken.
const THREAD_SIZES: [(u32, u64); 2] = [(500, 1), (5000, 5)];

fn same_thread(scale: &Scale) -> Vec<Entry> {
    let counts = scale.threads(&[1, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let make = |size: u32, fewer: u64, threads: u32| {
        let about = format!("threads take many blocks of 0..{size} B each, then free them in order");
        let (count, size, blocks) = (threads.to_string(), size.to_string(), (50_000 / fewer).to_string());
        let args = [count.as_str(), &size, &blocks, "2"];
        entry(&format!("same-thread/{size}/{threads}"), &about, threads, "same_thread", &args)
    };
    by_size_and_threads(&counts, make)
}

fn separate_thread(scale: &Scale) -> Vec<Entry> {
    let counts = scale.threads(&[2], &[2, 4, 8]);
    let make = |size: u32, fewer: u64, threads: u32| {
        let about = format!("threads take and free blocks of 0..{size} B in slots that they share, in random order");
        let operations = (scale.pick(1_000_000, 2_000_000) / fewer).to_string();
        let args = [&threads.to_string(), &size.to_string(), operations.as_str(), "20000"];
        entry(&format!("separate-thread/{size}/{threads}"), &about, threads, "separate_thread", &args)
    };
    by_size_and_threads(&counts, make)
}

fn waves(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("1000000", "5000000");
    let make = |threads: u32| {
        let about = "threads that each fill 2,500 places with blocks of 1..500 B and free most of them, over and over";
        entry(&format!("waves/{threads}"), about, threads, "waves", &[&threads.to_string(), "500", operations])
    };
    scale.threads(&[2], &[2, 4]).into_iter().map(make).collect()
}

fn bursts(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("100000", "400000");
    let make = |threads: u32| {
        let about = "threads that replace blocks of 8..16,000 B in bursts of 100, some for each other, and pause";
        let args = [&threads.to_string(), "8", "16000", operations];
        entry(&format!("bursts/{threads}"), about, threads, "bursts", &args)
    };
    scale.threads(&[2], &[2]).into_iter().map(make).collect()
}

fn by_size_and_threads(counts: &[u32], make: impl Fn(u32, u64, u32) -> Entry) -> Vec<Entry> {
    let make = &make;
    let of_size = |&(size, fewer): &(u32, u64)| counts.iter().map(move |&threads| make(size, fewer, threads));
    THREAD_SIZES.iter().flat_map(of_size).collect()
}

fn larson(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("1000000", "3000000");
    let make = |threads: u32| {
        let about = "a server: objects handed from thread to thread, threads that end and are replaced (C++)";
        let args = [&threads.to_string(), "8", "1000", "1000", "10", operations];
        entry(&format!("larson/{threads}"), about, threads, "larson", &args)
    };
    scale.threads(&[1, 2], &[1, 2, 4, 8]).into_iter().map(make).collect()
}

fn producer_consumer(scale: &Scale) -> Vec<Entry> {
    let blocks = scale.pick("500000", "1000000");
    let make = |threads: u32| {
        let about = "stages of a pipeline: 16..512 B, taken and filled by one thread, freed by another";
        let pairs = (threads / 2).max(1);
        let args = [&pairs.to_string(), "16", "512", blocks];
        entry(&format!("producer-consumer/{}", 2 * pairs), about, 2 * pairs, "producer_consumer", &args)
    };
    let mut rows: Vec<Entry> = scale.threads(&[2], &[2, 4, 8]).into_iter().map(make).collect();
    rows.dedup_by(|a, b| a.row.name == b.row.name);
    rows
}

fn cells(_: &Scale) -> Vec<Entry> {
    let about = "blocks of 20..128 KiB in a heap with many small holes";
    vec![entry("cells/holes", about, 1, "cells_malloc", &["--figures", "--rounds=1"])]
}

fn many_threads(scale: &Scale) -> Vec<Entry> {
    let make = |threads: u32| {
        let about = "threads that each take 20 blocks of 16..512 B and wait: a thread for each connection";
        entry(&format!("many-threads/{threads}"), about, threads, "many_threads", &[&threads.to_string()])
    };
    scale.threads(&[100], &[1000]).into_iter().map(make).collect()
}

fn sleeping_threads(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("1000000", "4000000");
    let make = |threads: u32| {
        let about = "1,000 blocks of 16..1,015 B, any replaced by another, beside threads that did the same and sleep";
        let args = [&threads.to_string(), "1015", operations];
        entry(&format!("sleeping-threads/{threads}"), about, threads, "sleeping_threads", &args)
    };
    scale.threads(&[60], &[60, 300]).into_iter().map(make).collect()
}

fn realloc_growth(scale: &Scale) -> Vec<Entry> {
    let make = |kind: &str, quick: u64, full: u64, about: &str| {
        let rounds = scale.pick(quick, full);
        countable(&format!("realloc-growth/{kind}"), about, "realloc_growth", &[kind], rounds)
    };
    let rows = vec![
        make("vectors", 2, 5, "100 vectors that double, from 16 B to 256 KiB, at the same time"),
        make("strings", 2, 8, "2,000 strings to which some bytes are added a hundred times"),
        make("buffer", 1, 1, "one buffer that grows to 64 MiB by 64 KiB"),
        make("array", 1, 6, "one array that grows by half of itself, from 64 KiB to 60 MiB, again and again"),
    ];
    let wanted = scale.pick(2, rows.len());
    rows.into_iter().take(wanted).collect()
}

fn realloc_small(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick(1_000_000, 3_000_000);
    let make = |low: &str, high: &str| {
        let about = format!("1,000 blocks, any resized to {low}..{high} B: strings and lists of an interpreter");
        countable(&format!("realloc-small/{low}-{high}"), &about, "realloc_small", &[low, high], operations)
    };
    vec![make("50", "64"), make("1", "256"), make("8", "1024")]
}

fn aligned(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("300000", "1000000");
    let about = "1,000 blocks of 16..4,096 B with alignments of 32 to 4,096, any replaced by another";
    vec![entry("aligned/32-4096", about, 1, "aligned", &["4096", operations])]
}

fn big(scale: &Scale) -> Vec<Entry> {
    let (args, name) = scale.pick((["20", "4", "1", "16"], "big/1-16M"), (["40", "4", "1", "64"], "big/1-64M"));
    let about = "blocks of some MiB, each page of them written: pictures, matrices, files";
    vec![entry(name, about, 1, "big", &args)]
}

fn large_pairs(scale: &Scale) -> Vec<Entry> {
    let make = |name: &str, about: &str, low: &str, high: &str, operations: u64| {
        let about = format!("{about}, freed before the next, one byte of it written");
        countable(&format!("large-pairs/{name}"), &about, "large_pairs", &[low, high], operations)
    };
    let (often, seldom) = scale.pick((100_000, 5_000), (300_000, 20_000));
    vec![
        make("128K", "a block of 131,072 B", "131072", "131072", often),
        make("1M", "a block of 1 MiB", "1048576", "1048576", often),
        make("8M", "a block of 8 MiB", "8388608", "8388608", seldom),
        make("64M", "a block of 64 MiB", "67108864", "67108864", seldom),
        make("128K-64M", "a block of 131,072 B to 64 MiB", "131072", "67108864", seldom),
    ]
}

fn replace_large(scale: &Scale) -> Vec<Entry> {
    let rows = [
        ("200K-1600K", "100 MiB", ["200000", "1600000", "100", scale.pick("2000", "20000")]),
        ("1M-10M", "200 MiB", ["1000000", "10000000", "200", scale.pick("500", "5000")]),
    ];
    let make = |&(name, all, args): &(&str, &str, [&str; 4])| {
        let about = format!("a cache of {all} in blocks of {name}, any replaced by others, every page written");
        entry(&format!("replace-large/{name}"), &about, 1, "replace_large", &args)
    };
    rows[..scale.pick(1, 2)].iter().map(make).collect()
}

fn large_buffers(scale: &Scale) -> Vec<Entry> {
    let row = |part: &str, written: &str, high: &str, operations: &str| {
        let about =
            format!("2 threads with 2 buffers each of 200,000..{high} B, any replaced by another, {written} written");
        let args = ["2", part, "200000", high, "2", operations];
        entry(&format!("large-buffers/{part}"), &about, 2, "large_buffers", &args)
    };
    vec![
        row("full", "all of it", "300000", scale.pick("4000", "40000")),
        row("ends", "its ends", "1000000", scale.pick("20000", "200000")),
    ]
}

fn sparse(scale: &Scale) -> Vec<Entry> {
    let make = |name: &str, about: &str, args: [&str; 5]| entry(&format!("sparse/{name}"), about, 1, "sparse", &args);
    let rows = vec![
        make(
            "40K",
            "blocks of 40 KiB with one byte written, 5,000 live, then none",
            ["fill", "20000", "5000", "40", "40"],
        ),
        make(
            "300K",
            "blocks of 300 KiB with one byte written, 1,000 live, then none",
            ["fill", "4000", "1000", "300", "300"],
        ),
        make(
            "1500K",
            "blocks of 1.5 MiB with one byte written, 500 live, then none",
            ["fill", "2000", "500", "1536", "1536"],
        ),
        make(
            "ring-5-7M",
            "60 blocks of 5 to 7.5 MB with one byte written, the oldest replaced",
            ["ring", "1000", "60", "5000", "7500"],
        ),
        make("calloc-200M", "200 MB from calloc, four live, never touched", ["calloc", "40", "4", "200000", "200000"]),
    ];
    let wanted = scale.pick(1, rows.len());
    rows.into_iter().take(wanted).collect()
}

fn fragmented(scale: &Scale) -> Vec<Entry> {
    let args = scale.pick(["20", "2", "60", "500"], ["90", "2", "1000", "500"]);
    let about =
        "two threads fill with blocks of up to 500 B and free in order, on a machine whose free memory is in pieces";
    vec![entry("fragmented/1-500", about, 2, "fragmented", &args)]
}

fn cold(scale: &Scale) -> Vec<Entry> {
    let (operations, live) = scale.pick(("200000", "100000"), ("4000000", "1000000"));
    let make = |name: &str, about: &str, manner: &str| {
        entry(&format!("cold/{name}"), about, 1, "cold", &[manner, operations, live])
    };
    vec![
        make("free", "a million blocks of 16..112 B, freed in random order without a look at them", "free"),
        make("replace", "a million blocks of 16..112 B, any freed without a look at it and another taken", "replace"),
    ]
}

fn trees(scale: &Scale) -> Vec<Entry> {
    let rounds = scale.pick("500", "6000");
    let make = |kind: &str, about: &str| {
        let about = format!("100 trees of up to 1,000 nodes with names, {about}; any is taken down and built anew");
        entry(&format!("trees/{kind}"), &about, 1, "trees", &[kind, "1000", "100", rounds])
    };
    vec![
        make("search", "built in random order and read in that of their keys"),
        make("syntax", "built in the order in which they are read"),
    ]
}

fn overhead(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("80000", "300000");
    let sizes = [("16", "1024", "10000"), ("1", "5000", "20000"), ("1000", "30000", "1000")];
    let make = |&(low, high, live): &(&str, &str, &str)| {
        let about = format!("{live} live blocks of {low}..{high} B, any replaced by another, all written in full");
        entry(&format!("overhead/{low}-{high}"), &about, 1, "overhead", &[low, high, live, operations])
    };
    sizes.iter().map(make).collect()
}

fn fragment(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("100000", "800000");
    let about = "a long run in which sizes drift from 256 B to 16 KiB and back, twenty times";
    vec![entry("fragment/drift", about, 1, "fragment", &[operations, "5000"])]
}

fn moving_sizes(scale: &Scale) -> Vec<Entry> {
    let make = |&(first, last, way): &(&str, &str, &str)| {
        let about = format!("12 MiB of each size {way} by 16 B, of which every 20th block stays");
        let args = [first, last, "16", scale.pick("2", "12"), "20"];
        entry(&format!("moving-sizes/{first}-{last}"), &about, 1, "moving_sizes", &args)
    };
    [("1000", "296", "down"), ("16", "400", "up")][..scale.pick(1, 2)].iter().map(make).collect()
}

fn peak_idle(scale: &Scale) -> Vec<Entry> {
    let args = scale.pick(["60", "5", "200"], ["100", "5", "1000"]);
    let about = "a peak of 16..4,096 B blocks, all but 5 % freed, then nothing: what is given back?";
    vec![entry("peak-idle/5-percent", about, 1, "peak_idle", &args)]
}

fn latency(scale: &Scale) -> Vec<Entry> {
    let operations = scale.pick("500000", "2000000");
    let make = |threads: u32| {
        let about = "16..1,024 B, 10,000 live, each call timed by the processor's counter";
        let args = [&threads.to_string(), "16", "1024", "10000", operations];
        entry(&format!("latency/{threads}"), about, threads, "latency", &args)
    };
    scale.threads(&[1], &[1, 2]).into_iter().map(make).collect()
}
