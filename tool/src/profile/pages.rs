//! Fragmentation by site: which sites' blocks hold pages that are mostly empty, so what would have to go for memory to go.
//!
//! The idea: a page cannot go back to the system while a block is on it, whichever it is. So the blocks on a page share
//! evenly what is empty there: each of four blocks of 24 bytes pins 1000 bytes, one that is alone 4072. What sites pin adds
//! up to exactly what is empty on the pages that have a block on them, and no site pins less than nothing, as one with
//! large blocks would if pages themselves were shared.
//!
//! It needs to know every block that is live, so there are such numbers where each allocation was looked at
//! (SNUG_PROFILE_BYTES=1), and then they have no error. Samples of one block in thousands say nothing: they lie in a heap of
//! their own (decision 13), beside each other and not beside the blocks that they would have had for neighbours. That heap
//! is all there is when every block is in it. It has no magazines, so it is as dense as the program's heap can be: what is
//! pinned is rather less than without the profile. A slab of several pages goes as a whole; here its pages count singly.
//!
//! Cost: an entry for each page that has a block on it.

use std::collections::HashMap;

use crate::live::profile::Block;

/// Bytes.
const PAGE: u64 = 4096;

/// The blocks on a page, and their bytes there.
#[derive(Default)]
struct Taken {
    blocks: u32,
    bytes: u64,
}

/// Bytes that are empty on pages and that the blocks of each stack pin.
pub fn pinned(blocks: &[Block]) -> HashMap<u64, f64> {
    let mut on_page: HashMap<u64, Taken> = HashMap::new();
    for block in blocks {
        for page in ends_of(block).into_iter().flatten() {
            let taken = on_page.entry(page).or_default();
            taken.blocks += 1;
            taken.bytes += bytes_on(block, page);
        }
    }
    let mut pinned: HashMap<u64, f64> = HashMap::new();
    for block in blocks {
        let share = |page: &u64| {
            let taken = &on_page[page];
            PAGE.saturating_sub(taken.bytes) as f64 / f64::from(taken.blocks)
        };
        *pinned.entry(u64::from(block.stack)).or_default() += ends_of(block).iter().flatten().map(share).sum::<f64>();
    }
    pinned
}

fn bytes_on(block: &Block, page: u64) -> u64 {
    let start = page * PAGE;
    let end = block.address.saturating_add(block.size).min(start.saturating_add(PAGE));
    end.saturating_sub(block.address.max(start))
}

/// The first page and the last: only those can have other blocks, or anything empty. One page: the first.
fn ends_of(block: &Block) -> [Option<u64>; 2] {
    let (first, last) = (block.address / PAGE, block.address.saturating_add(block.size.max(1) - 1) / PAGE);
    [Some(first), (last != first).then_some(last)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64, size: u64, stack: u32) -> Block {
        Block { address, size, stack, unused: 0 }
    }

    #[test]
    fn what_is_empty_is_shared_evenly() {
        let blocks = [block(4096, 64, 1), block(5000, 64, 2), block(6000, 64, 2), block(7000, 64, 2)];
        assert_eq!(pinned(&blocks), HashMap::from([(1, 960.0), (2, 2880.0)]));
        // One that is alone on its page however small; and one of three pages, of which the last has another block.
        assert_eq!(pinned(&[block(40960, 0, 1)]), HashMap::from([(1, 4096.0)]));
        let blocks = [block(8192, 2 * 4096 + 100, 2), block(4 * 4096 + 3000, 8, 3)];
        assert_eq!(pinned(&blocks), HashMap::from([(2, 1994.0), (3, 1994.0)]));
        // A large one beside small ones, which has more than its share of the page.
        assert_eq!(pinned(&[block(4096, 4000, 1), block(8096, 32, 2)]), HashMap::from([(1, 32.0), (2, 32.0)]));
        assert_eq!(pinned(&[]), HashMap::new());
    }

    #[test]
    fn what_is_pinned_adds_up_to_what_is_empty() {
        let blocks: Vec<Block> = (0..5000).map(|at| block(at * 1331, at % 1300, (at % 7) as u32)).collect();
        let mut pages: Vec<u64> = blocks.iter().flat_map(ends_of).flatten().collect();
        pages.sort_unstable();
        pages.dedup();
        let empty = pages.len() as u64 * PAGE - blocks.iter().map(|block| block.size).sum::<u64>();
        let sum: f64 = pinned(&blocks).values().sum();
        assert!((sum - empty as f64).abs() < 1.0, "{sum}");
    }
}
