//! Every form of a range, over ids of all kinds.

use std::ops::Bound;

use engine::{Collection, Database, Id, IdRange, Snapshot, prefix};
use serde_json::json;

use super::Calls;
use super::calls::database;

/// In order: integers, strings, bytes.
fn ids() -> Vec<Id<'static>> {
    let mut ids: Vec<Id<'static>> = [i64::MIN, -1, 0, 1, 300, i64::MAX].map(Id::from).into();
    ids.extend(["", "\0", "a", "aa", "ab", "a\u{10FFFF}", "b", "ÿ", "\u{10FFFF}"].map(Id::from));
    ids.extend([&b""[..], b"\0", b"a", b"\xFF", b"\xFF\xFF"].map(Id::from));
    ids
}

pub(crate) fn table(calls: &Calls) {
    let (database, things) = database();
    // Neighbours, into which no range may reach.
    let (before, after) = (database.collection("before"), database.collection("zzz"));
    for id in ids().iter().rev() {
        for collection in [&things, before.as_ref().unwrap(), after.as_ref().unwrap()] {
            collection.put(id, &json!({ "id": id.to_string() })).unwrap();
        }
    }
    let check = Check { database: &database, things: &things };
    forms(&check);
    prefixes(calls, &check);
    ends(&check);
}

struct Check<'a> {
    database: &'a Database,
    things: &'a Collection,
}

impl Check<'_> {
    /// Scans a range in every way and asserts that it yields the ids that `holds` says.
    fn range<'r, R: IdRange<'r>>(
        &self,
        name: &str,
        range: impl Fn() -> R,
        holds: impl Fn(&Id<'_>) -> bool,
    ) {
        let expected: Vec<_> = ids().into_iter().filter(holds).collect();
        let reversed: Vec<_> = expected.iter().rev().cloned().collect();
        let snapshot = self.database.snapshot().unwrap();
        let snapshot: &Snapshot = &snapshot;
        let ids = || self.things.scan_ids(range()).unwrap().map(Result::unwrap);
        assert_eq!(ids().collect::<Vec<_>>(), expected, "{name}");
        assert_eq!(ids().rev().collect::<Vec<_>>(), reversed, "{name}, backwards");
        let ids = || snapshot.scan_ids(self.things, range()).unwrap().map(Result::unwrap);
        assert_eq!(ids().collect::<Vec<_>>(), expected, "{name}, by a snapshot");
        assert_eq!(ids().rev().collect::<Vec<_>>(), reversed, "{name}, by a snapshot, backwards");
        let scans =
            [self.things.scan(range()).unwrap(), snapshot.scan(self.things, range()).unwrap()];
        for mut scan in scans {
            // From both ends in turn, until they meet.
            let (mut front, mut back) = (Vec::new(), Vec::new());
            while let Some(row) =
                if front.len() == back.len() { scan.next() } else { scan.next_back() }
            {
                let (id, document) = row.unwrap();
                assert_eq!(
                    document.get_str("id").unwrap(),
                    Some(id.to_string().as_str()),
                    "{name}"
                );
                if front.len() == back.len() { front.push(id) } else { back.push(id) }
            }
            front.extend(back.into_iter().rev());
            assert_eq!(front, expected, "{name}, from both ends");
            assert!(
                scan.next().is_none() && scan.next_back().is_none(),
                "{name}: an ended scan goes on"
            );
        }
    }
}

fn forms(check: &Check<'_>) {
    let id = |id: i64| Id::from(id);
    check.range("all", || .., |_| true);
    check.range("integers", || 0..300, |i| (id(0)..id(300)).contains(i));
    check.range("up to an integer", || 0..=300, |i| (id(0)..=id(300)).contains(i));
    check.range("the largest integer", || i64::MAX..=i64::MAX, |i| *i == id(i64::MAX));
    check.range("from an integer", || 1_i64.., |i| *i >= id(1));
    check.range("before an integer", || ..1_i64, |i| *i < id(1));
    check.range("through an integer", || ..=1_u32, |i| *i <= id(1));
    check.range("strings", || "a".."b", |i| (Id::from("a")..Id::from("b")).contains(i));
    check.range(
        "a string's place",
        || "a0".."a\u{7F}",
        |i| *i == Id::from("aa") || *i == Id::from("ab"),
    );
    check.range(
        "owned strings",
        || String::from("a")..=String::from("b"),
        |i| (Id::from("a")..=Id::from("b")).contains(i),
    );
    check.range("from a string", || "ÿ".., |i| *i >= Id::from("ÿ"));
    check.range("from bytes", || &b"a"[..].., |i| *i >= Id::from(b"a"));
    check.range("through no bytes", || ..=b"", |i| *i <= Id::from(b""));
    check.range(
        "across kinds",
        || Id::from(0)..Id::from(b""),
        |i| *i >= id(0) && *i < Id::from(b""),
    );
    check.range("an open pair", || (Bound::<&str>::Unbounded, Bound::Unbounded), |_| true);
    check.range(
        "an excluded pair",
        || (Bound::Excluded("a"), Bound::Excluded("b")),
        |i| *i > Id::from("a") && *i < Id::from("b"),
    );
    check.range(
        "a mixed pair",
        || (Bound::Excluded(-1), Bound::Included(1)),
        |i| *i == id(0) || *i == id(1),
    );
    // Empty, and no error.
    check.range("equal ends", || "a".."a", |_| false);
    check.range("excluded equal ends", || (Bound::Excluded("a"), Bound::Excluded("a")), |_| false);
    let (large, small) = (300, 0);
    check.range("inverted integers", || large..small, |_| false);
    check.range("inverted integers, inclusive", || large..=small, |_| false);
    check.range("inverted strings", || "b"..="a", |_| false);
    check.range("inverted kinds", || Id::from(b"")..Id::from(0), |_| false);
    check.range("before the first", || ..i64::MIN, |_| false);
}

fn prefixes(calls: &Calls, check: &Check<'_>) {
    for text in ["", "a", "ab", "abc", "ÿ", "\0", "\u{10FFFF}"] {
        check.range(
            &format!("the prefix {text:?}"),
            || call!(calls, prefix(text)),
            |i| matches!(i, Id::String(string) if string.starts_with(text)),
        );
    }
    let (longest, too_long) = ("x".repeat(65_534), "x".repeat(65_535));
    check.range("the longest prefix", || prefix(&longest), |_| false);
    refused!(check.things.scan(prefix(&too_long)), InvalidId, "too long a prefix");
    refused!(check.things.scan_ids(prefix(&too_long)), InvalidId, "too long a prefix");
}

/// An end that is too long is an error even where the range is empty anyway.
fn ends(check: &Check<'_>) {
    let long = "x".repeat(65_535);
    let long = long.as_str();
    refused!(check.things.scan(long.."a"), InvalidId, "a long start");
    refused!(check.things.scan("a"..=long), InvalidId, "a long end");
    refused!(
        check.things.scan_ids((Bound::Excluded(long), Bound::Unbounded)),
        InvalidId,
        "a long bound"
    );
}
