// main.rs - runs all generated parts on several threads and prints checksums.
use std::collections::{BTreeMap, HashMap};
use std::{sync::mpsc, thread};

mod parts {
    include!(concat!(env!("OUT_DIR"), "/parts.rs"));
}

pub trait Step {
    fn step(&self, x: u64) -> u64;
}

fn count_words(seed: u64) -> u64 {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut x = seed + 1;
    for _ in 0..20_000 {
        x = x * 16_807 % 2_147_483_647;
        *counts.entry(format!("{:x}", x % 5_000)).or_default() += x;
    }
    let sorted: BTreeMap<_, _> = counts.into_iter().collect();
    sorted.iter().fold(0, |sum, (word, n)| sum.rotate_left(5) ^ n ^ word.len() as u64)
}

fn main() {
    let (sender, receiver) = mpsc::channel();
    for n in 0..4_u64 {
        let sender = sender.clone();
        thread::spawn(move || {
            let sum = parts::all().iter().fold(n, |x, part| part.step(x));
            sender.send((n, sum, count_words(n))).unwrap();
        });
    }
    drop(sender);
    let results: BTreeMap<_, _> = receiver.iter().map(|(n, a, b)| (n, (a, b))).collect();
    for (n, (a, b)) in results {
        println!("{n} {a:016x} {b:016x}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_counted_the_same_twice() {
        assert_eq!(super::count_words(3), super::count_words(3));
    }
}
