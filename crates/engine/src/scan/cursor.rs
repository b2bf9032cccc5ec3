//! What a merge needs of each run.

use crate::error::Result;
use crate::format::{Direction, Position};
use crate::segment::Record;

/// A place in one run of records, in the order (collection, id, newest version first).
pub(crate) trait Cursor: Send {
    /// Does what a seek does before it has to wait for memory. A seek with the same arguments must
    /// follow, and is complete without this.
    fn approach(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        let _ = (position, direction);
        Ok(())
    }

    /// Forward: stands on the first entry after the position. Reverse: on the last entry before
    /// it.
    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()>;

    /// Moves one entry in the direction. The cursor must stand on an entry. After an error the
    /// cursor must not be used.
    fn step(&mut self, direction: Direction) -> Result<()>;

    /// Steps, and says where it came to.
    #[inline]
    fn advance(&mut self, direction: Direction) -> Result<Option<&Record>> {
        self.step(direction)?;
        Ok(self.current())
    }

    /// The record under the cursor, verified; `None` past either end.
    fn current(&self) -> Option<&Record>;
}
