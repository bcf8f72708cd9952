//! A program whose allocator is snug: collections, threads, alignments, and heaps that several threads use.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::thread;

use snug::{Heap, HeapConfig, OutOfMemory, Snug};

#[global_allocator]
static ALLOCATOR: Snug = Snug;

#[test]
fn collections_and_threads() {
    let before = snug::stats();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            thread::spawn(move || {
                let map: HashMap<u64, String> = (0..5000).map(|n| (n, format!("{seed}:{n}"))).collect();
                let tree: BTreeMap<_, _> = map.iter().map(|(n, text)| (text.clone(), *n)).collect();
                (map, tree)
            })
        })
        .collect();
    // Freed by another thread than the one that took them.
    let made: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for (seed, (map, tree)) in made.iter().enumerate() {
        assert_eq!(tree[&format!("{seed}:4999")], 4999);
        assert_eq!(map[&17], format!("{seed}:17"));
    }
    let between = snug::stats();
    assert!(between.blocks > before.blocks + 40_000, "{before:?} {between:?}");
    drop(made);
    assert!(snug::check());
    assert!(snug::stats().taken_bytes > before.taken_bytes);
}

#[test]
fn every_alignment_is_kept_and_zero_is_zero() {
    for shift in 0..16 {
        for size in [1, 24, 1000, 5000, 300_000] {
            let layout = Layout::from_size_align(size, 1 << shift).unwrap();
            // SAFETY: sizes are not 0, and each block is freed with the layout that it has by then.
            unsafe {
                let block = alloc(layout);
                assert!(!block.is_null() && block as usize % layout.align() == 0, "{layout:?}");
                block.write_bytes(0xa5, size);
                let block = realloc(block, layout, 2 * size);
                assert_eq!(block as usize % layout.align(), 0, "{layout:?}");
                assert!((0..size).all(|byte| *block.add(byte) == 0xa5), "{layout:?}");
                dealloc(block, Layout::from_size_align(2 * size, 1 << shift).unwrap());
                let block = alloc_zeroed(layout);
                assert!((0..size).all(|byte| *block.add(byte) == 0), "{layout:?}");
                dealloc(block, layout);
            }
        }
    }
}

#[test]
fn a_heap_serves_threads_and_keeps_to_its_quota() {
    let mut heap = Heap::with(HeapConfig { name: Some(c"test"), quota: 8 << 20 }).unwrap();
    for _ in 0..3 {
        thread::scope(|scope| {
            for seed in 0..4u8 {
                let heap = &heap;
                scope.spawn(move || {
                    let parts: Vec<&mut [u8]> = (1..200).map(|n| heap.alloc_slice_fill(n, seed).unwrap()).collect();
                    assert!(parts.iter().all(|part| part.iter().all(|byte| *byte == seed)));
                });
            }
        });
        assert!(heap.stats().used >= 4 * 199 * 200 / 2 && heap.stats().quota == 8 << 20, "{:?}", heap.stats());
        assert_eq!(heap.alloc_slice_fill(9 << 20, 0u8), Err(OutOfMemory));
        assert_eq!(heap.alloc_slice_fill(usize::MAX / 2, 0u32), Err(OutOfMemory), "its size overflows");
        heap.clear();
        assert_eq!(heap.stats().used, 0);
    }
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let page = heap.alloc(Page([1; 4096])).unwrap();
    assert!(page as *const Page as usize % 4096 == 0 && page.0[4095] == 1);
    assert_eq!(heap.alloc(()), Ok(&mut ()));
}

#[test]
fn memory_that_is_too_small_makes_no_heap() {
    let mut memory = [std::mem::MaybeUninit::uninit(); 100];
    assert_eq!(Heap::within(&mut memory, |_| ()).unwrap_err(), OutOfMemory);
}

/// The same address at once, and what was freed still there, is what others do.
#[cfg(feature = "hardened")]
#[test]
fn freed_memory_waits_and_is_cleared() {
    let layout = Layout::from_size_align(64, 8).unwrap();
    for _ in 0..100 {
        // SAFETY: each block is freed once, and of the freed one the address alone is used.
        unsafe {
            let block = alloc(layout);
            block.write_bytes(0xa5, 64);
            dealloc(block, layout);
            let other = alloc(layout);
            assert_ne!(block, other);
            assert!((0..64).all(|byte| *other.add(byte) == 0));
            dealloc(other, layout);
        }
    }
}
