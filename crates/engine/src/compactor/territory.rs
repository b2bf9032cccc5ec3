//! Cutting a sweep into steps.
//!
//! Each segment of level 1 has a *territory*: the keys from its first one up to the first of the
//! next segment; the first segment's begins at the least key. What level 0 has in a territory
//! decides what becomes of the segment:
//!
//! - nothing: it stays as it is;
//! - little: rewriting the segment would write many times as much as level 0 has there. The records
//!   are carried forward instead, into a sorted run of level 0 that is as new as the cut;
//! - more: both are merged into new segments;
//! - only records behind the segment's last key, and enough for a segment of their own: they become
//!   one, and the segment stays. Ids that only rise are never written twice.

use crate::error::Result;
use crate::format::FullKey;

/// What level 0 has in a territory, ids and documents in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Up to the segment's last key.
    pub(crate) within: u64,
    /// Behind it.
    pub(crate) behind: u64,
}

impl Share {
    pub(crate) fn sum(self) -> u64 {
        self.within + self.behind
    }
}

/// A segment of level 1, as the plan sees it.
#[derive(Clone, Debug)]
pub(crate) struct Territory {
    pub(crate) first: FullKey,
    pub(crate) last: FullKey,
    pub(crate) bytes: u64,
    /// A sweep of it would free something.
    pub(crate) has_garbage: bool,
}

/// Sizes that the plan goes by, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Of a segment of level 1.
    pub(crate) target: u64,
    /// Shares of a segment below one in this many are carried forward; 0 carries nothing.
    pub(crate) carry_one_in: u64,
}

/// The next step of a sweep. Keys are from `from` up to and without `until`; without one, to the
/// end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Level 0 and these segments of level 1, by position, are merged.
    Rewrite {
        segments: std::ops::Range<usize>,
        from: Option<FullKey>,
        until: Option<FullKey>,
        /// Of level 0, about.
        share: u64,
    },
    /// Level 0's records become a run of their own.
    Carry { from: Option<FullKey>, until: Option<FullKey>, share: u64 },
    /// Nothing is left to do.
    End,
}

/// Plans the step that begins at a key. `segments` are all of level 1; `share` counts what level 0
/// has in a range of keys, the first included and the last not.
pub(crate) fn plan(
    segments: &[Territory],
    cursor: Option<&FullKey>,
    sizes: Sizes,
    mut share: impl FnMut(Option<&FullKey>, Option<&FullKey>) -> Result<u64>,
) -> Result<Plan> {
    let mut from = cursor.cloned();
    let mut next = segments.partition_point(|segment| Some(&segment.last) < cursor);
    let mut carried: Option<(Option<FullKey>, u64)> = None;
    loop {
        let Some(segment) = segments.get(next) else {
            // Behind all segments.
            let share = share(from.as_ref(), None)?;
            return Ok(match share {
                0 => Plan::End,
                _ => Plan::Rewrite { segments: next..next, from, until: None, share },
            });
        };
        let until = segments.get(next + 1).map(|following| following.first.clone());
        let behind = after(&segment.last);
        let found = Share {
            within: share(from.as_ref(), Some(&behind))?,
            behind: share(Some(&behind), until.as_ref())?,
        };
        let step = judge(segment, found, sizes);
        if step != Step::Carry
            && step != Step::Skip
            && let Some((from, bytes)) = carried
        {
            return Ok(Plan::Carry { from, until: Some(segment.first.clone()), share: bytes });
        }
        match step {
            Step::Skip => {}
            Step::Carry => {
                let (_, bytes) = carried.get_or_insert((from, 0));
                *bytes += found.sum();
                if *bytes >= sizes.target {
                    let (from, bytes) = carried.unwrap_or_default();
                    return Ok(Plan::Carry { from, until, share: bytes });
                }
            }
            Step::Append => {
                let (from, share) = (Some(behind), found.behind);
                return Ok(Plan::Rewrite { segments: next..next, from, until, share });
            }
            Step::Rewrite => {
                let (end, until) = extend(segments, next, sizes);
                let bytes = share(from.as_ref(), until.as_ref())?;
                return Ok(Plan::Rewrite { segments: next..end, from, until, share: bytes });
            }
        }
        if until.is_none() {
            return Ok(match carried {
                Some((from, bytes)) => Plan::Carry { from, until: None, share: bytes },
                None => Plan::End,
            });
        }
        from = until;
        next += 1;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Skip,
    Carry,
    Append,
    Rewrite,
}

fn judge(segment: &Territory, share: Share, sizes: Sizes) -> Step {
    if segment.has_garbage {
        return Step::Rewrite;
    }
    if share.sum() == 0 {
        return Step::Skip;
    }
    if share.within == 0 && share.behind >= sizes.target / 4 {
        return Step::Append;
    }
    let is_little = sizes.carry_one_in != 0
        && segment.bytes >= sizes.target / 4
        && share.sum().saturating_mul(sizes.carry_one_in) < segment.bytes;
    if is_little { Step::Carry } else { Step::Rewrite }
}

/// Takes small segments that follow into the same step, so that they become one. The number behind
/// the last, and the end of its territory.
fn extend(segments: &[Territory], first: usize, sizes: Sizes) -> (usize, Option<FullKey>) {
    let mut bytes = segments[first].bytes;
    let mut end = first + 1;
    while let Some(segment) = segments.get(end) {
        bytes += segment.bytes;
        if bytes > sizes.target / 2 {
            break;
        }
        end += 1;
    }
    (end, segments.get(end).map(|segment| segment.first.clone()))
}

/// The least key behind a key.
pub(crate) fn after(key: &FullKey) -> FullKey {
    FullKey::new(key.collection(), &[key.id(), &[0]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::CollectionId;

    fn key(id: &str) -> FullKey {
        FullKey::new(CollectionId(1), id.as_bytes())
    }

    const SIZES: Sizes = Sizes { target: 1000, carry_one_in: 10 };

    /// Segments of 1000 bytes from 10 to 19, 20 to 29 and so on.
    fn level1(count: usize) -> Vec<Territory> {
        (1..=count)
            .map(|i| Territory {
                first: key(&format!("{i}0")),
                last: key(&format!("{i}9")),
                bytes: 1000,
                has_garbage: false,
            })
            .collect()
    }

    /// Plans with level 0 having so many bytes at each key.
    fn planned(
        segments: &[Territory],
        cursor: Option<&str>,
        sizes: Sizes,
        level0: &[(&str, u64)],
    ) -> Plan {
        let cursor = cursor.map(key);
        plan(segments, cursor.as_ref(), sizes, |from, until| {
            let is_within = |at: &FullKey| {
                from.is_none_or(|from| from <= at) && until.is_none_or(|until| at < until)
            };
            Ok(level0.iter().filter(|(at, _)| is_within(&key(at))).map(|(_, n)| n).sum())
        })
        .unwrap()
    }

    fn rewrite(
        segments: std::ops::Range<usize>,
        from: Option<FullKey>,
        until: Option<&str>,
        share: u64,
    ) -> Plan {
        Plan::Rewrite { segments, from, until: until.map(key), share }
    }

    #[test]
    fn without_level_1_everything_is_one_territory() {
        assert_eq!(planned(&[], None, SIZES, &[("15", 7)]), rewrite(0..0, None, None, 7));
        assert_eq!(planned(&[], Some("2"), SIZES, &[("15", 7)]), Plan::End);
    }

    #[test]
    fn segments_without_level_0_are_passed_over() {
        let level1 = level1(4);
        let level0 = [("31", 500), ("45", 500)];
        let step = planned(&level1, None, SIZES, &level0);
        assert_eq!(step, rewrite(2..3, Some(key("30")), Some("40"), 500));
        let step = planned(&level1, Some("40"), SIZES, &level0);
        assert_eq!(step, rewrite(3..4, Some(key("40")), None, 500));
        assert_eq!(planned(&level1, Some("46"), SIZES, &level0), Plan::End);
        assert_eq!(planned(&level1, None, SIZES, &[]), Plan::End);
    }

    #[test]
    fn what_is_before_the_first_segment_and_between_two_belongs_to_the_one_before() {
        let level1 = level1(2);
        let level0 = [("0", 400), ("195", 400)];
        assert_eq!(planned(&level1, None, SIZES, &level0), rewrite(0..1, None, Some("20"), 800));
        let within = planned(&level1, Some("195"), SIZES, &level0);
        assert_eq!(within, rewrite(1..2, Some(key("195")), None, 400), "a step that ended there");
    }

    #[test]
    fn enough_behind_a_segment_becomes_one_of_its_own() {
        let level1 = level1(2);
        let behind = |i: &str| Some(after(&key(i)));
        let step = planned(&level1, None, SIZES, &[("195", 250)]);
        assert_eq!(step, rewrite(0..0, behind("19"), Some("20"), 250));
        let step = planned(&level1, None, SIZES, &[("3", 5000)]);
        assert_eq!(step, rewrite(1..1, behind("29"), None, 5000), "rising ids");
        let no_carry = Sizes { carry_one_in: 0, ..SIZES };
        let step = planned(&level1, None, no_carry, &[("195", 249)]);
        assert_eq!(step, rewrite(0..1, None, Some("20"), 249));
    }

    #[test]
    fn small_shares_are_carried_up_to_the_next_that_is_not() {
        let level1 = level1(5);
        let carry = |from: Option<&str>, until: Option<&str>, share| Plan::Carry {
            from: from.map(key),
            until: until.map(key),
            share,
        };
        let level0 = [("11", 99), ("31", 50), ("41", 100)];
        assert_eq!(planned(&level1, None, SIZES, &level0), carry(None, Some("40"), 149));
        let step = planned(&level1, Some("40"), SIZES, &level0);
        assert_eq!(step, rewrite(3..4, Some(key("40")), Some("50"), 100));
        assert_eq!(planned(&level1, None, SIZES, &[("11", 1)]), carry(None, None, 1));
        let no_carry = Sizes { carry_one_in: 0, ..SIZES };
        assert_eq!(planned(&level1, None, no_carry, &level0), rewrite(0..1, None, Some("20"), 99));
        let small = Sizes { target: 60, carry_one_in: 10 };
        let level0 = [("11", 40), ("21", 40), ("31", 40)];
        assert_eq!(planned(&level1, None, small, &level0), carry(None, Some("30"), 80));
    }

    #[test]
    fn garbage_is_swept_without_level_0_and_small_segments_become_one() {
        let mut level1 = level1(5);
        for segment in &mut level1[1..4] {
            segment.bytes = 200;
        }
        level1[1].has_garbage = true;
        let step = planned(&level1, None, SIZES, &[]);
        assert_eq!(step, rewrite(1..3, Some(key("20")), Some("40"), 0));
    }
}
