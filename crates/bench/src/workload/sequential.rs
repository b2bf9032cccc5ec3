//! The keys in the order of their numbers, round and round.

/// Draws `min, min + 1, …, max, min, …`.
#[derive(Clone, Debug)]
pub(crate) struct Sequential {
    min: u64,
    max: u64,
    next: u64,
}

impl Sequential {
    pub(crate) fn new(min: u64, max: u64) -> Self {
        Self { min, max, next: min }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        let item = self.next;
        self.next = if item == self.max { self.min } else { item + 1 };
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_again_after_the_last_item() {
        let mut sequential = Sequential::new(3, 5);
        let drawn: Vec<u64> = (0..7).map(|_| sequential.draw()).collect();
        assert_eq!(drawn, [3, 4, 5, 3, 4, 5, 3]);
    }
}
