//! In a program of its own, because an allocator counts for all of a program.

use structures::allocation::{Counting, bytes_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn what_is_kept_is_counted_with_what_the_allocator_adds() {
    let (kept, bytes) = bytes_of(|| {
        let given_back = vec![0u8; 1 << 20];
        vec![1u8; 1000 + given_back.len() % 2]
    });
    // A block is a multiple of 16 bytes, of which 8 are the allocator's.
    assert_eq!((kept.len(), bytes), (1000, 1008));
    let (kept, bytes) = bytes_of(|| vec![0u64; 1000]);
    assert_eq!((kept.len(), bytes), (1000, 8016));
}
