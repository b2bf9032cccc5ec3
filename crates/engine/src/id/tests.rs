use std::cmp::Ordering;
use std::ops::Bound;

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{EncodedId, Id, IdRange, prefix};
use crate::error::{Error, Result};

const SEED: u64 = 0x1d5;

/// Integers, strings and bytes from small alphabets, so that many share beginnings and many are
/// equal.
fn random_id(rng: &mut impl Rng) -> Id<'static> {
    let len = *[0, 1, 2, 3, 61, 62, 63, 100].get(rng.random_range(0..8)).unwrap();
    match rng.random_range(0..3) {
        0 => Id::from([i64::MIN, i64::MAX, -1, 0, 1, rng.random()][rng.random_range(0..6)]),
        1 => {
            let text: String =
                (0..len).map(|_| ['\0', 'a', 'ÿ', '\u{10FFFF}'][rng.random_range(0..4)]).collect();
            Id::from(text)
        }
        _ => Id::from(
            (0..len).map(|_| [0, 1, 0x7F, 0xFF][rng.random_range(0..4)]).collect::<Vec<u8>>(),
        ),
    }
}

/// The documented order, written out.
fn naive_order(a: &Id<'_>, b: &Id<'_>) -> Ordering {
    match (a, b) {
        (Id::Integer(a), Id::Integer(b)) => a.cmp(b),
        (Id::String(a), Id::String(b)) => a.chars().cmp(b.chars()),
        (Id::Bytes(a), Id::Bytes(b)) => a.iter().cmp(b.iter()),
        (Id::Integer(_), _) | (Id::String(_), Id::Bytes(_)) => Ordering::Less,
        _ => Ordering::Greater,
    }
}

#[test]
fn encodings_order_as_ids_do() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let ids: Vec<_> = (0..400).map(|_| random_id(&mut rng)).collect();
    let encoded: Vec<_> = ids.iter().map(|id| id.encode().unwrap()).collect();
    for (a, a_encoded) in ids.iter().zip(&encoded) {
        for (b, b_encoded) in ids.iter().zip(&encoded) {
            let expected = naive_order(a, b);
            assert_eq!(a_encoded.cmp(b_encoded), expected, "seed {SEED}: {a} {b}");
            assert_eq!(a.cmp(b), expected, "seed {SEED}: {a} {b}");
            assert_eq!(a_encoded == b_encoded, a == b, "seed {SEED}: {a} {b}");
        }
    }
}

#[test]
fn ids_survive_a_round_trip() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    for _ in 0..2_000 {
        let id = random_id(&mut rng);
        let encoded = id.encode().unwrap();
        assert_eq!(Id::decode(encoded.as_ref()).unwrap(), id, "seed {SEED}");
        assert_eq!(Id::decode(encoded.as_ref()).unwrap().into_owned(), id, "seed {SEED}");
    }
}

#[test]
fn an_encoding_takes_one_to_65_535_bytes() {
    for len in [0, 1, 60, 61, 62, 63, 254, 255, 256, 65_533, 65_534] {
        for id in [Id::from("x".repeat(len)), Id::from(vec![0xFF; len])] {
            let encoded = id.encode().unwrap();
            assert_eq!(encoded.as_ref().len(), len + 1);
            assert_eq!(Id::decode(encoded.as_ref()).unwrap(), id);
        }
    }
    for len in [65_535, 65_536, 1 << 20] {
        for id in [Id::from("x".repeat(len)), Id::from(vec![0xFF; len])] {
            let message = id.encode().unwrap_err().to_string();
            assert!(message.contains(&(len + 1).to_string()), "{message}");
            assert!(message.contains("65535"), "{message}");
            assert!(message.len() < 300, "{message}");
        }
    }
}

#[test]
fn bytes_that_are_no_encoding_are_refused() {
    let long = vec![0x30; 65_536];
    for bytes in [
        &b""[..],
        b"\x00",
        b"\x11",
        b"\x31",
        b"\x10",
        b"\x102345678",
        b"\x10234567890",
        b"\x20\xFF",
        &long,
    ] {
        assert!(
            matches!(Id::decode(bytes), Err(Error::InvalidId { .. })),
            "{:?}",
            &bytes[..bytes.len().min(9)]
        );
    }
}

#[test]
fn unsigned_integers_convert_up_to_the_largest_id() {
    assert_eq!(Id::try_from(i64::MAX as u64).unwrap(), Id::Integer(i64::MAX));
    let message = Id::try_from(i64::MAX as u64 + 1).unwrap_err().to_string();
    assert!(message.contains("9223372036854775808"), "{message}");
    assert!(message.contains("9223372036854775807"), "{message}");
}

#[test]
fn an_encoded_id_fills_one_cache_line() {
    assert_eq!(size_of::<EncodedId>(), 64);
}

#[test]
fn long_ids_are_displayed_shortened() {
    assert_eq!(Id::from(-5).to_string(), "-5");
    assert_eq!(Id::from("a\"b").to_string(), r#""a\"b""#);
    assert_eq!(Id::from(b"\x00\xFF").to_string(), "0x00ff");
    let text = Id::from("ÿ".repeat(41)).to_string();
    assert_eq!(text, format!("\"{}\"… (82 bytes)", "ÿ".repeat(40)));
    let bytes = Id::from(vec![1; 41]).to_string();
    assert_eq!(bytes, format!("0x{}… (41 bytes)", "01".repeat(40)));
}

type Bounds = (Bound<EncodedId>, Bound<EncodedId>);

fn bounds<'a>(range: impl IdRange<'a>) -> Result<Bounds> {
    range.bounds()
}

fn contains(bounds: &Bounds, id: &Id<'_>) -> bool {
    let id = id.encode().unwrap();
    (match &bounds.0 {
        Bound::Included(start) => *start <= id,
        Bound::Excluded(start) => *start < id,
        Bound::Unbounded => true,
    }) && match &bounds.1 {
        Bound::Included(end) => id <= *end,
        Bound::Excluded(end) => id < *end,
        Bound::Unbounded => true,
    }
}

#[test]
fn ranges_of_everything_that_converts_have_bounds() {
    let e = |id: Id<'_>| id.encode().unwrap();
    let (included, excluded) = (Bound::Included, Bound::Excluded);
    assert_eq!(bounds(..).unwrap(), (Bound::Unbounded, Bound::Unbounded));
    assert_eq!(bounds("a".."b").unwrap(), (included(e("a".into())), excluded(e("b".into()))));
    assert_eq!(bounds(5..=7).unwrap(), (included(e(5.into())), included(e(7.into()))));
    assert_eq!(bounds(5_i64..).unwrap(), (included(e(5.into())), Bound::Unbounded));
    assert_eq!(bounds(..String::from("x")).unwrap(), (Bound::Unbounded, excluded(e("x".into()))));
    assert_eq!(
        bounds(..=&[1_u8, 2][..]).unwrap(),
        (Bound::Unbounded, included(e(Id::from(b"\x01\x02"))))
    );
    let id = Id::from(9);
    assert_eq!(bounds(&id..).unwrap(), (included(e(9.into())), Bound::Unbounded));
    assert_eq!(
        bounds((Bound::Excluded("a"), Bound::Unbounded)).unwrap(),
        (excluded(e("a".into())), Bound::Unbounded)
    );
}

#[test]
fn an_inverted_range_is_passed_on_and_a_long_end_is_not() {
    assert!(bounds("b".."a").is_ok());
    let long = "x".repeat(65_535);
    assert!(matches!(bounds("a"..long.as_str()), Err(Error::InvalidId { .. })));
    assert!(matches!(bounds(prefix(&long)), Err(Error::InvalidId { .. })));
}

#[test]
fn a_prefix_holds_the_strings_that_begin_with_it_and_nothing_else() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    for text in ["", "a", "ÿ", "\u{10FFFF}", "a\u{10FFFF}\u{10FFFF}", "\0"] {
        let range = bounds(prefix(text)).unwrap();
        for _ in 0..2_000 {
            let id = random_id(&mut rng);
            let expected = matches!(&id, Id::String(string) if string.starts_with(text));
            assert_eq!(contains(&range, &id), expected, "seed {SEED}: {text:?} {id}");
        }
    }
}

#[test]
fn the_end_of_a_prefix_carries_over_full_bytes() {
    let end = |content: &[u8]| EncodedId::new(content[0], &content[1..]).prefix_end();
    assert_eq!(end(b"\x30\xFF\xFF").unwrap().as_ref(), b"\x31");
    assert_eq!(end(b"\x30\x01\xFF").unwrap().as_ref(), b"\x30\x02");
    assert_eq!(end(b"\xFF\xFF"), None);
}

#[test]
fn ids_have_their_documented_bytes() {
    let encoded = |id: Id<'_>| id.encode().unwrap().as_bytes().to_vec();
    assert_eq!(encoded(Id::from(0_i64)), [0x10, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded(Id::from(-2_i64)), [0x10, 0x7F, 255, 255, 255, 255, 255, 255, 254]);
    assert_eq!(encoded(Id::from("aé")), [0x20, b'a', 0xC3, 0xA9]);
    assert_eq!(encoded(Id::from(&[1_u8, 2])), [0x30, 1, 2]);
}
