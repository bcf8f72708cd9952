//! Collections that grow, shrink and are replaced, as programs in Rust use them: collections NAME.
//!
//! One line: nanoseconds of an operation, and the most resident KiB. Without a name the names.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::hint::black_box;
use std::time::Instant;

#[cfg(feature = "snug")]
#[global_allocator]
static ALLOCATOR: snug::Snug = snug::Snug;
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The same numbers on each run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

/// 2,000 vectors; one of them at random gets 1 to 20 numbers more, or is dropped once it has 2,000. An operation is a number.
fn vec_push(random: &mut Random) -> usize {
    let mut vectors: Vec<Vec<u64>> = vec![Vec::new(); 2000];
    let mut operations = 0;
    for _ in 0..600_000 {
        let vector = &mut vectors[random.below(2000)];
        if vector.len() > 2000 {
            *vector = Vec::new();
        }
        let count = 1 + random.below(20);
        vector.extend((0..count).map(|number| number as u64));
        operations += count;
    }
    black_box(&vectors);
    operations
}

/// Lines of words: a vector of strings is made, cloned, sorted and dropped. An operation is a string.
fn vec_of_strings(random: &mut Random) -> usize {
    let mut operations = 0;
    for _ in 0..400 {
        let mut lines: Vec<String> = (0..1000).map(|_| "word ".repeat(1 + random.below(12))).collect();
        let copy = lines.clone();
        lines.sort();
        black_box((&lines, &copy));
        operations += 2000;
    }
    operations
}

/// A map of strings of which one is replaced by another, of 100,000.
fn hash_map(random: &mut Random) -> usize {
    let mut map: HashMap<String, Vec<u8>> = HashMap::new();
    for _ in 0..700_000 {
        let key = format!("key {}", random.below(100_000));
        if map.remove(&key).is_none() {
            map.insert(key, vec![1; 16 + random.below(200)]);
        }
    }
    black_box(&map);
    700_000
}

/// The same in order.
fn btree_map(random: &mut Random) -> usize {
    let mut map: BTreeMap<u64, Box<[u8; 48]>> = BTreeMap::new();
    for _ in 0..1_500_000 {
        let key = random.below(200_000) as u64;
        if map.remove(&key).is_none() {
            map.insert(key, Box::new([1; 48]));
        }
    }
    black_box(&map);
    1_500_000
}

type Workload = (&'static str, fn(&mut Random) -> usize);
const WORKLOADS: [Workload; 4] =
    [("Vec, push", vec_push), ("Vec of String", vec_of_strings), ("HashMap", hash_map), ("BTreeMap", btree_map)];

fn peak_kib() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.chars().filter(char::is_ascii_digit).collect()
}

fn main() {
    let Some(name) = std::env::args().nth(1) else {
        WORKLOADS.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let Some((_, workload)) = WORKLOADS.iter().find(|(other, _)| *other == name) else {
        eprintln!("collections: there is no '{name}'");
        std::process::exit(2);
    };
    let begun = Instant::now();
    let operations = workload(&mut Random(88172645463325252));
    println!("{:.1} {}", begun.elapsed().as_nanos() as f64 / operations as f64, peak_kib());
}
