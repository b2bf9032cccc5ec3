//! The bytes of every structure of a segment file, written out: a change to them is a change of the
//! format.
//!
//! The expected bytes come from `docs/format.md` by way of an independent program, not from this
//! code.

use super::bytes::Reader;
use super::*;

const INCARNATION: u64 = 0x1122_3344_5566_7788;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Bytes and then zeros.
fn padded(hex: &str, len: usize) -> Vec<u8> {
    let mut bytes = bytes(hex);
    bytes.resize(len, 0);
    bytes
}

#[test]
fn the_place_mix_has_its_documented_values() {
    assert_eq!(mix(0, 0, 0), 0);
    assert_eq!(mix(1, 2, 3), 0x082648DD);
    assert_eq!(mix(INCARNATION, 4096, u64::MAX), 0x3EC8_B7D0);
}

#[test]
fn the_key_hash_is_xxh3_with_the_collection_as_seed() {
    assert_eq!(key_hash(CollectionId(5), b"user1"), 0x92B3_1A24_96D6_16C4);
    assert_eq!(key_hash(CollectionId(0), b""), 0x2D06_8005_38D3_94C2);
    let long: Vec<u8> = (0..200).collect();
    assert_eq!(key_hash(CollectionId(5), &long), 0x7E48_9765_49BB_D9A1);
}

#[test]
fn a_put_is_its_header_its_id_its_document_and_padding() {
    let expected = bytes(
        "ec8f51a5 01 00 0200 08000000 05000000 0900000000000000 9f902289
         6964 646f63756d656e74 0000",
    );
    let mut record = Vec::new();
    append_record(&mut record, Kind::Put, CollectionId(5), b"id", b"document");
    place_record(&mut record, INCARNATION, 4096, Sequence(9));
    assert_eq!(record, expected);

    let header = RecordHeader::parse(&expected, INCARNATION, 4096).unwrap();
    assert_eq!((header.kind, header.collection), (Kind::Put, CollectionId(5)));
    assert_eq!((header.sequence, header.id_len, header.document_len), (Sequence(9), 2, 8));
    assert_eq!((header.used_len(), header.record_len()), (38, 40));
    assert_eq!(header.verify(&expected, INCARNATION, 4096), Ok(()));
}

#[test]
fn a_tombstone_has_no_document() {
    let mut record = Vec::new();
    append_record(&mut record, Kind::Delete, CollectionId(5), b"id", b"");
    place_record(&mut record, INCARNATION, 4136, Sequence(10));
    let expected = "5e0d0ad8 02 00 0200 00000000 05000000 0a00000000000000 a5a56ae5 6964 0000";
    assert_eq!(record, bytes(expected));
}

#[test]
fn marks_catalogue_records_and_batch_records_have_their_documented_contents() {
    let place = |kind, collection, id: &[u8], document: &[u8]| {
        let mut record = Vec::new();
        append_record(&mut record, kind, CollectionId(collection), id, document);
        place_record(&mut record, INCARNATION, 4096, Sequence(9));
        record
    };
    let mark = place(Kind::Mark, 0, b"", &4136_u64.to_le_bytes());
    let expected = "aa0e05bc 07 00 0000 08000000 00000000 0900000000000000 ba5bc508
                    2810000000000000 00000000";
    assert_eq!(mark, bytes(expected));
    let created = place(Kind::Catalogue, 5, b"ab", &[1]);
    let expected = "c66c9680 08 00 0200 01000000 05000000 0900000000000000 7e464975 6162 01 00";
    assert_eq!(created, bytes(expected));
    let batch = place(Kind::Batch, 0, b"", &bytes("02000000 5000000000000000"));
    let expected = "4a09cc71 09 00 0000 0c000000 00000000 0900000000000000 6a687fa6
                    02000000 5000000000000000";
    assert_eq!(batch, bytes(expected));
}

#[test]
fn a_manifest_is_a_header_and_records_of_edits() {
    let mut database_id = [0; 16];
    database_id.iter_mut().zip(0..).for_each(|(byte, n)| *byte = n);
    let header = ManifestHeader { database_id, incarnation: INCARNATION };
    let expected = bytes(
        "5345444d414e4946 0100 0000 00000000 00000000 00000000 000102030405060708090a0b0c0d0e0f
         8877665544332211 000000000000000000000000 7f566fb2",
    );
    assert_eq!(header.encode()[..], expected);
    assert_eq!(ManifestHeader::decode(&expected), Ok(header));

    let (segment, collection) = (SegmentId(3), CollectionId(5));
    let name = "ab".to_owned();
    let edits = [
        Edit::Created { segment, incarnation: 7 },
        Edit::Ended { segment, end: 8192 },
        Edit::Removed { segment: SegmentId(2) },
        Edit::Catalogue(CatalogueChange::Create { collection, name }),
        Edit::Catalogue(CatalogueChange::Drop { collection, at: Sequence(9) }),
        Edit::Next { segment: SegmentId(4), collection: CollectionId(6), sequence: Sequence(10) },
        Edit::Closed,
    ];
    let expected = bytes(
        "57000000 3b844da7
         01 0300000000000000 0700000000000000
         03 0300000000000000 0020000000000000
         04 0200000000000000
         05 05000000 0200 6162
         06 05000000 0900000000000000
         07 0400000000000000 06000000 0a00000000000000
         08 00",
    );
    assert_eq!(encode_edits(&edits, INCARNATION, 64), expected);
    let (decoded, len) = decode_edits(&expected, INCARNATION, 64).unwrap().unwrap();
    assert_eq!((decoded.as_slice(), len), (edits.as_slice(), 96));
    assert!(decode_edits(&expected, INCARNATION, 72).is_none(), "another place");
    assert!(decode_edits(&expected, INCARNATION + 1, 64).is_none(), "another manifest");

    let mut sealed = Vec::new();
    meta().encode(&mut sealed);
    let record = encode_edits(&[Edit::Sealed(meta())], INCARNATION, 64);
    assert_eq!(record[8], 2);
    assert_eq!(record[9..9 + sealed.len()], sealed);
}

#[test]
fn an_edit_that_is_not_known_needs_a_newer_version() {
    let mut record = encode_edits(&[Edit::Closed], INCARNATION, 64);
    record[8] = 200;
    let mut hasher = crc32fast::Hasher::new_with_initial(1);
    hasher.update(&[200]);
    let check = hasher.finalize() ^ mix(INCARNATION, 64, !2);
    record[4..8].copy_from_slice(&check.to_le_bytes());
    let decoded = decode_edits(&record, INCARNATION, 64).unwrap();
    assert_eq!(decoded, Err(ManifestFault::Newer("manifest edit 200".to_owned())));
}

#[test]
fn a_record_verifies_only_in_its_file_at_its_place_with_its_sequence() {
    let mut record = Vec::new();
    append_record(&mut record, Kind::Put, CollectionId(5), b"id", b"document");
    place_record(&mut record, INCARNATION, 4096, Sequence(9));
    let verify = |record: &[u8], incarnation, offset| {
        let header = RecordHeader::parse_unchecked(record)?;
        header.verify(record, incarnation, offset)
    };
    assert_eq!(verify(&record, INCARNATION, 4096), Ok(()));
    assert_eq!(verify(&record, INCARNATION + 1, 4096), Err(RecordFault::Content));
    assert_eq!(verify(&record, INCARNATION, 4104), Err(RecordFault::Content));
    let header = RecordHeader::parse(&record, INCARNATION, 4104);
    assert_eq!(header, Err(RecordFault::Header));
    for bit in 4 * 8..38 * 8 {
        record[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&record, INCARNATION, 4096).is_err(), "bit {bit}");
        record[bit / 8] ^= 1 << (bit % 8);
    }
    for bit in 0..24 * 8 {
        record[bit / 8] ^= 1 << (bit % 8);
        assert!(RecordHeader::parse(&record, INCARNATION, 4096).is_err(), "bit {bit}");
        record[bit / 8] ^= 1 << (bit % 8);
    }
    unplace_record(&mut record, INCARNATION, 4096);
    place_record(&mut record, 1, 8192, Sequence(20));
    assert_eq!(verify(&record, 1, 8192), Ok(()));
}

fn header() -> SegmentHeader {
    SegmentHeader {
        file_kind: FileKind::Log,
        database_id: std::array::from_fn(|i| u8::try_from(i).unwrap()),
        segment: SegmentId(7),
        incarnation: INCARNATION,
        first_sequence: Sequence(100),
        predecessor: SegmentId(6),
        predecessor_end: 0x5000,
    }
}

#[test]
fn a_segment_header_is_128_bytes_as_documented() {
    let expected = bytes(
        "534544494d454e54 0100 01 01 00 000000 00000000 00000000 00000000 00000000
         000102030405060708090a0b0c0d0e0f 0700000000000000 8877665544332211 6400000000000000
         0600000000000000 0050000000000000
         000000000000000000000000000000000000000000000000000000000000000000000000 efe97b8e",
    );
    assert_eq!(header().encode().as_slice(), expected);
    assert_eq!(SegmentHeader::decode(&expected), Ok(header()));
}

#[test]
fn a_damaged_header_is_never_taken_for_a_newer_one() {
    let whole = header().encode();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let decoded = SegmentHeader::decode(&damaged);
        assert!(matches!(decoded, Err(FormatFault::Damaged(_))), "bit {bit}: {decoded:?}");
    }
    assert!(matches!(SegmentHeader::decode(&whole[..127]), Err(FormatFault::Damaged(_))));
}

#[test]
fn unknown_features_are_refused_unless_they_are_compatible() {
    let with = |at: usize, value: u8| {
        let mut bytes = header().encode();
        bytes[at] = value;
        let check = crc32fast::hash(&bytes[..124]);
        bytes[124..].copy_from_slice(&check.to_le_bytes());
        SegmentHeader::decode(&bytes)
    };
    for (at, value) in [(8, 2), (9, 1), (10, 4), (11, 2), (12, 1), (20, 1), (23, 128), (24, 1)] {
        let decoded = with(at, value);
        assert!(matches!(decoded, Err(FormatFault::Unsupported(_))), "byte {at}: {decoded:?}");
    }
    assert_eq!(with(16, 1), Ok(header()));
    assert_eq!(with(19, 255), Ok(header()));
}

#[test]
fn a_sorted_block_is_a_header_and_entries_of_head_and_place() {
    let expected = padded(
        "502ca3b0 02 00 0200 08 00000000000000
         0000000575736572
         00000000000000000000000000000000000000000000000000000000000000000000000000000000
         0000000000000031 00020000 3837363534333231 05020000",
        BLOCK_BYTES,
    );
    let mut block = vec![0; BLOCK_BYTES];
    let mut prefix = [0; PREFIX_BYTES_MAX];
    let (first, last) = (&b"user1"[..], &b"user123456789"[..]);
    let collection = CollectionId(5);
    let shared = common_prefix((collection, first), (collection, last), &mut prefix);
    assert_eq!(&prefix[..shared], b"\0\0\0\x05user1");
    // A shorter prefix than the longest is as good.
    let prefix = &prefix[..8];
    put_entry(&mut block, Width::Narrow, 0, head(collection, first, 8), 4096);
    put_entry(&mut block, Width::Narrow, 1, head(collection, last, 8), 4136);
    let header = BlockHeader { block_type: BlockType::Sorted, level: 0, count: 2, prefix };
    header.seal(&mut block, INCARNATION, 8192);
    assert_eq!(block, expected);

    verify_block(&expected, INCARNATION, 8192, (BlockType::Sorted, 0, 2)).unwrap();
    let entries = SortedBlock::new(&expected, Width::Narrow);
    assert_eq!(entries.len(), 2);
    assert_eq!([entries.offset(0), entries.offset(1)], [4096, 4136]);
    assert_eq!(entries.ties(collection, b"user1"), 0..1);
    assert_eq!(entries.ties(collection, b"user12345678"), 1..2);
    assert_eq!(entries.ties(collection, b"user2"), 2..2);
    assert_eq!(entries.ties(collection, b"use"), 0..0);
    assert_eq!(entries.ties(CollectionId(6), b"user1"), 2..2);
}

#[test]
fn a_block_verifies_only_in_its_file_at_its_place_as_what_it_is() {
    let mut block = vec![0; BLOCK_BYTES];
    let header =
        BlockHeader { block_type: BlockType::Sorted, level: 1, count: 0, prefix: b"prefix" };
    header.seal(&mut block, INCARNATION, 8192);
    let verify = |block: &[u8], incarnation, offset, what| {
        verify_block(block, incarnation, offset, what).is_ok()
    };
    let what = (BlockType::Sorted, 1, 0);
    assert!(verify(&block, INCARNATION, 8192, what));
    assert!(!verify(&block, INCARNATION + 1, 8192, what));
    assert!(!verify(&block, INCARNATION, 12288, what));
    assert!(!verify(&block[..4095], INCARNATION, 8192, what));
    for other in
        [(BlockType::Fingerprints, 1, 0), (BlockType::Sorted, 0, 0), (BlockType::Sorted, 1, 1)]
    {
        assert!(!verify(&block, INCARNATION, 8192, other));
    }
    for bit in 0..BLOCK_BYTES * 8 {
        block[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&block, INCARNATION, 8192, what), "bit {bit}");
        block[bit / 8] ^= 1 << (bit % 8);
    }
}

fn meta() -> SealedMeta {
    SealedMeta {
        id: SegmentId(7),
        incarnation: INCARNATION,
        file_kind: FileKind::Log,
        log_end: 4176,
        index_offset: 8192,
        trailer_offset: 16384,
        records: 2,
        ids: 2,
        tombstones: 1,
        sequence_min: Sequence(9),
        sequence_max: Sequence(10),
        first_key: KeyBound::lower(CollectionId(5), b"id"),
        last_key: KeyBound::upper(CollectionId(5), b"ie"),
        content_bytes: 12,
        pinned_bytes: 0,
        tombstone_bytes: 2,
        superseded_bytes: 7,
        damaged: 0,
    }
}

fn layout() -> IndexLayout {
    IndexLayout {
        fingerprints: FingerprintLayout {
            offset: 12288,
            blocks: 1,
            buckets: 1,
            slots: Width::Narrow,
            place_bits: 10,
        },
        places: Width::Narrow,
        levels: vec![LevelLayout { offset: 8192, entries: 2, blocks: 1 }],
        members: Vec::new(),
    }
}

const META: &str = "0700000000000000 8877665544332211 5010000000000000 0020000000000000
    0040000000000000 0200000000000000 0200000000000000 0100000000000000 0900000000000000
    0a00000000000000 01 06 06 0000000000
    000000056964 0000000000000000000000000000000000000000000000000000
    000000056965 0000000000000000000000000000000000000000000000000000
    0c00000000000000 0000000000000000 0200000000000000 0700000000000000 0000000000000000";

#[test]
fn a_trailer_is_a_header_the_meta_and_the_layout() {
    let header = "9b38f705 03 00 0000 00 00000000000000
        000000000000000000000000000000000000000000000000
        000000000000000000000000000000000000000000000000
        534544545241494c 0100 000000000000";
    let layout_bytes = "0030000000000000 01000000 01000000 04 0a 04 01 00000000
        0020000000000000 0200000000000000 01000000 00000000";
    let expected = padded(&format!("{header}{META}{layout_bytes}"), BLOCK_BYTES);
    assert_eq!(layout().encode_trailer(&meta()), expected);
    let decoded = IndexLayout::decode_trailer(&expected, INCARNATION, 16384);
    assert_eq!(decoded, Ok((meta(), layout())));
}

#[test]
fn a_meta_is_192_bytes_and_comes_back() {
    let mut encoded = Vec::new();
    meta().encode(&mut encoded);
    assert_eq!(encoded, bytes(META));
    assert_eq!(encoded.len(), 192);
    assert_eq!(SealedMeta::decode(&mut Reader::new(&encoded)), Some(meta()));
    for len in 0..encoded.len() {
        assert_eq!(SealedMeta::decode(&mut Reader::new(&encoded[..len])), None, "{len} bytes");
    }
}

#[test]
fn a_trailer_that_contradicts_itself_is_damaged_and_reads_nothing_out_of_bounds() {
    let refused = |meta: &SealedMeta, layout: &IndexLayout| {
        let block = layout.encode_trailer(meta);
        let decoded = IndexLayout::decode_trailer(&block, INCARNATION, meta.trailer_offset);
        assert!(matches!(decoded, Err(FormatFault::Damaged(_))), "{meta:?} {layout:?}");
    };
    let with_meta = |change: fn(&mut SealedMeta)| {
        let mut meta = meta();
        change(&mut meta);
        refused(&meta, &layout());
    };
    with_meta(|m| m.log_end = 8200);
    with_meta(|m| m.log_end = 0);
    with_meta(|m| m.index_offset = 8193);
    with_meta(|m| m.index_offset = 12288);
    with_meta(|m| m.records = 3);
    with_meta(|m| m.ids = 3);
    with_meta(|m| m.tombstones = 3);
    with_meta(|m| m.damaged = 2);
    with_meta(|m| m.damaged = u64::MAX);
    with_meta(|m| m.pinned_bytes = 11);
    with_meta(|m| m.tombstone_bytes = u64::MAX);
    with_meta(|m| m.file_kind = FileKind::Index);
    with_meta(|m| m.sequence_min = Sequence(11));
    with_meta(|m| m.incarnation = 1);
    let with_layout = |change: fn(&mut IndexLayout)| {
        let mut layout = layout();
        change(&mut layout);
        refused(&meta(), &layout);
    };
    with_layout(|l| l.fingerprints.offset = 16384);
    with_layout(|l| l.fingerprints.offset = 4096);
    with_layout(|l| l.fingerprints.offset = !4095);
    with_layout(|l| l.fingerprints.blocks = 2);
    with_layout(|l| l.fingerprints.buckets = 0);
    with_layout(|l| l.fingerprints.buckets = 64);
    with_layout(|l| l.fingerprints.place_bits = 11);
    with_layout(|l| l.fingerprints.slots = Width::Wide);
    with_layout(|l| l.places = Width::Wide);
    with_layout(|l| l.levels.clear());
    with_layout(|l| l.levels.push(l.levels[0]));
    with_layout(|l| l.levels[0].entries = 1);
    with_layout(|l| l.levels[0].blocks = 2);
    with_layout(|l| l.levels[0].offset = 16384);
    with_layout(|l| l.members.push(Member::of(&meta())));
}

#[test]
fn the_trailer_of_an_index_segment_names_its_members() {
    let index_meta = SealedMeta {
        file_kind: FileKind::Index,
        log_end: 8296,
        index_offset: 4096,
        trailer_offset: 12288,
        ..meta()
    };
    let member = |segment, incarnation, log_end, file_kind, collection| Member {
        segment: SegmentId(segment),
        incarnation,
        log_end,
        file_kind,
        collection: CollectionId(collection),
    };
    let index_layout = IndexLayout {
        fingerprints: FingerprintLayout { offset: 8192, place_bits: 11, ..layout().fingerprints },
        levels: vec![LevelLayout { offset: 4096, entries: 2, blocks: 1 }],
        members: vec![
            member(3, INCARNATION + 1, 4176, FileKind::Log, 0),
            member(4, INCARNATION + 2, 4120, FileKind::Sorted, 5),
        ],
        ..layout()
    };
    let block = index_layout.encode_trailer(&index_meta);
    assert_eq!(block[..4], bytes("a95079cb"));
    let expected = "0020000000000000 01000000 01000000 04 0b 04 01 02 000000
        0010000000000000 0200000000000000 01000000 00000000
        0300000000000000 8977665544332211 5010000000000000 01 000000 00000000
        0400000000000000 8a77665544332211 1810000000000000 02 000000 05000000";
    assert_eq!(block[272..], padded(expected, BLOCK_BYTES - 272));
    let decode = |meta: &SealedMeta, layout: &IndexLayout| {
        let block = layout.encode_trailer(meta);
        IndexLayout::decode_trailer(&block, INCARNATION, meta.trailer_offset)
    };
    assert_eq!(decode(&index_meta, &index_layout), Ok((index_meta.clone(), index_layout.clone())));

    let refused = |change: fn(&mut SealedMeta, &mut IndexLayout)| {
        let (mut meta, mut layout) = (index_meta.clone(), index_layout.clone());
        change(&mut meta, &mut layout);
        let decoded = decode(&meta, &layout);
        assert!(matches!(decoded, Err(FormatFault::Damaged(_))), "{meta:?} {layout:?}");
    };
    refused(|_, layout| layout.members.truncate(1));
    refused(|_, layout| layout.members.clear());
    refused(|_, layout| layout.members[0].log_end += 8);
    refused(|_, layout| layout.members[0].log_end = u64::MAX);
    refused(|_, layout| layout.members[0].file_kind = FileKind::Index);
    refused(|meta, _| meta.index_offset = 8192);
    refused(|meta, _| meta.file_kind = FileKind::Log);
    refused(|meta, layout| {
        layout.members = vec![layout.members[1]; MEMBERS_MAX + 1];
        meta.log_end = layout.members.iter().map(|member| member.log_end).sum();
    });
}

#[test]
fn a_sorted_record_says_only_what_does_not_go_without_saying() {
    let (id, wide_id, document) = (b"id", [b'k'; 256], [b'd'; 65_536]);
    type Case<'a> = (Kind, u32, u64, &'a [u8], &'a [u8], u64, &'a str);
    let cases: [Case<'_>; 6] = [
        (Kind::Put, 5, 0, id, b"document", 4096, "01 02 0800 a07b4fc8"),
        (Kind::Delete, 5, 10, id, b"", 4136, "22 02 0000 a5a56ae5 0a00000000000000"),
        (Kind::Put, 6, 0, id, b"document", 4096, "41 02 0800 6a40563c 06000000"),
        (Kind::Damaged, 6, 9, id, b"", 4096, "66 02 0000 ad6ecc97 0900000000000000 06000000"),
        (Kind::Put, 5, 0, &wide_id, b"", 4096, "11 00 0000 d69eb035 00000000 0001 0000"),
        (
            Kind::Put,
            6,
            9,
            id,
            &document,
            4096,
            "71 00 0000 de4641a6 00000100 0200 0000 0900000000000000 06000000",
        ),
    ];
    for (kind, collection, sequence, id, document, offset, expected) in cases {
        let (collection, expected) = (CollectionId(collection), bytes(expected));
        let id_len = u16::try_from(id.len()).unwrap();
        let document_len = u32::try_from(document.len()).unwrap();
        let content = [id, document].concat();
        let header = SortedHeader {
            kind,
            id_len,
            document_len,
            collection,
            sequence: Sequence(sequence),
            content_checksum: content_checksum(kind, collection, id_len, document_len, &content),
        };
        let mut out = Vec::new();
        header.append(&mut out, CollectionId(5), INCARNATION, offset);
        assert_eq!(out, expected, "{header:?}");
        let parsed = SortedHeader::parse(&expected, CollectionId(5), INCARNATION, offset);
        assert_eq!(parsed, Ok((header, expected.len())));
    }
}

#[test]
fn bounds_hold_every_key_between_them_however_they_are_cut() {
    let ids: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"a".to_vec(),
        vec![b'b'; 27],
        vec![b'b'; 28],
        vec![b'b'; 29],
        [vec![b'b'; 27], vec![0xFF; 9]].concat(),
        vec![0xFF; 28],
        vec![0xFF; 29],
        vec![0xFF; 300],
    ];
    let keys: Vec<_> = [1, 2, 0xFFFF_FFFF]
        .into_iter()
        .flat_map(|c| ids.iter().map(move |id| (CollectionId(c), id.as_slice())))
        .collect();
    for (i, first) in keys.iter().enumerate() {
        for (j, last) in keys.iter().enumerate().skip(i) {
            let meta = SealedMeta {
                first_key: KeyBound::lower(first.0, first.1),
                last_key: KeyBound::upper(last.0, last.1),
                ..meta()
            };
            for (k, key) in keys.iter().enumerate() {
                let inside = meta.may_hold(&Key::new(key.0, key.1));
                assert!(inside || k < i || k > j, "{key:?} is between {first:?} and {last:?}");
                let uncut = first.1.len() <= 28 && last.1.len() <= 28;
                assert!(!(inside && uncut) || (i..=j).contains(&k), "{key:?} is outside");
            }
        }
    }
    assert_eq!(KeyBound::upper(CollectionId(u32::MAX), &[0xFF; 29]).as_bytes(), b"");
    assert_eq!(KeyBound::upper(CollectionId(1), &[0xFF; 29]).as_bytes(), [0, 0, 0, 2]);
}
