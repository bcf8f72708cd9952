//! Fragmentation by site: which sites' blocks hold pages that are mostly empty, so what would have to go for memory to go.
//!
//! The idea: a page cannot go back to the system while a block is on it, whichever it is. So the blocks on a page share it
//! evenly: one of four blocks on a page holds 1024 bytes of it, one that is alone all 4096, however small it is. What a
//! site's blocks hold adds up over all sites to exactly the pages that have a block on them. What they hold beyond their
//! own size is what they pin.
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

/// Bytes of pages that the blocks of each stack hold.
pub fn held(blocks: &[Block]) -> HashMap<u64, f64> {
    let mut on_page: HashMap<u64, u32> = HashMap::new();
    for block in blocks {
        ends_of(block).into_iter().flatten().for_each(|page| *on_page.entry(page).or_default() += 1);
    }
    let mut held: HashMap<u64, f64> = HashMap::new();
    for block in blocks {
        let ends = ends_of(block);
        let shared: f64 = ends.iter().flatten().map(|page| PAGE as f64 / f64::from(on_page[page])).sum();
        let between = match ends {
            [Some(first), Some(last)] => (last - first - 1) * PAGE,
            _ => 0,
        };
        *held.entry(u64::from(block.stack)).or_default() += shared + between as f64;
    }
    held
}

/// The first page and the last: only those can have other blocks. One page: the first.
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
    fn pages_are_shared_evenly() {
        let blocks = [block(4096, 64, 1), block(5000, 64, 2), block(6000, 64, 2), block(7000, 64, 2)];
        assert_eq!(held(&blocks), HashMap::from([(1, 1024.0), (2, 3072.0)]));
        // One that is alone on its page however small; and one of three pages, of which the last has another block.
        assert_eq!(held(&[block(40960, 0, 1)]), HashMap::from([(1, 4096.0)]));
        let blocks = [block(8192, 2 * 4096 + 100, 2), block(4 * 4096 + 3000, 8, 3)];
        assert_eq!(held(&blocks), HashMap::from([(2, 8192.0 + 2048.0), (3, 2048.0)]));
        assert_eq!(held(&[]), HashMap::new());
    }

    #[test]
    fn what_is_held_adds_up_to_the_pages() {
        let blocks: Vec<Block> = (0..5000).map(|at| block(at * 1331, at % 1300, (at % 7) as u32)).collect();
        let mut pages: Vec<u64> = blocks.iter().flat_map(ends_of).flatten().collect();
        pages.sort_unstable();
        pages.dedup();
        let sum: f64 = held(&blocks).values().sum();
        assert!((sum - (pages.len() as u64 * PAGE) as f64).abs() < 1.0, "{sum}");
    }
}
