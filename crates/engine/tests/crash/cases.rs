//! The fault cases, and for each the crash images that its situation is in: the table of
//! docs/testing.md.
//!
//! What the table says is asserted: `power_cut` that the lists of steps, done and crashed, reach each
//! situation that is named for them, this module that the tests exist and that the page shows the
//! very table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a fault case needs to have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Situation {
    /// The folder was crashed before its first manifest was in place.
    NoManifest,
    /// A temporary manifest was left.
    NewManifest,
    TornTail,
    /// A torn tail was cut away, records were written, and that was crashed again.
    CrashedAfterTornTail,
    /// More than one segment was unsealed, and records were lost.
    LostAcrossSegments,
    /// Something was deleted between two steps of a sweep.
    DeletedDuringSweep,
    /// Opened in the middle of a sweep, which went on.
    SweepResumed,
    /// Something was deleted that level 1 may hold.
    DeletedAfterMerge,
    /// All was deleted, and merging left nothing.
    MergedToNothing,
    MergedUnderSnapshot,
    /// What was recovered was merged: the figures are those of what is there, and all I/O ends.
    AccountedAndAtRest,
    /// Opened with the other durability and half of the memtable.
    OtherOptions,
    LongIdAndEmptyDocument,
    /// Deleted in the reserve.
    DeletedOnFullDisk,
    OpenedOnFullDisk,
}

impl Situation {
    fn title(self) -> &'static str {
        match self {
            Self::NoManifest => "no manifest yet",
            Self::NewManifest => "a temporary manifest is left",
            Self::TornTail => "a torn tail",
            Self::CrashedAfterTornTail => "written to behind a torn tail and crashed again",
            Self::LostAcrossSegments => "records lost with several segments unsealed",
            Self::DeletedDuringSweep => "deletes between the steps of a sweep",
            Self::SweepResumed => "a sweep that was cut short and goes on",
            Self::DeletedAfterMerge => "deletes of what was merged",
            Self::MergedToNothing => "all deleted, and merged to nothing",
            Self::MergedUnderSnapshot => "merges under a snapshot",
            Self::AccountedAndAtRest => "merged after the crash: exact figures, then no I/O",
            Self::OtherOptions => "opened with the other durability and smaller limits",
            Self::LongIdAndEmptyDocument => "ids of several sectors, empty documents",
            Self::DeletedOnFullDisk => "deletes on a full disk",
            Self::OpenedOnFullDisk => "opened on a full disk",
        }
    }
}

/// Where crash images of a case are.
enum Images {
    /// In these lists of steps, in both durabilities unless one is named.
    Of(&'static [&'static str], &'static [Situation]),
    /// Made by a test of this program.
    By(&'static str),
    /// There are none, because.
    None(&'static str),
}

/// A fault case: its number, what went wrong, the file and the name of its own test, and where it
/// is crashed.
struct Case(&'static str, &'static str, (&'static str, &'static str), Images);

const READS: &str = "it reads, and changes nothing that a crash could leave";
const DAMAGE: &str = "bytes that were synced change: no crash does that";

#[rustfmt::skip]
const CASES: &[Case] = {
    use Images::{By, None, Of};
    use Situation::*;
    &[
        Case("A1", "writes behind a torn tail that was cut away are lost at the next opening", ("fault_log_tail", "a1_writes_after_a_recovered_torn_tail_survive_the_second_reopen"), Of(&["log", "rounds"], &[CrashedAfterTornTail])),
        Case("A2", "a torn header and a torn body are taken for different things", ("fault_log_tail", "a2_a_record_cut_at_any_byte_is_a_torn_tail_at_every_reopening"), Of(&["log", "rounds"], &[TornTail])),
        Case("A6", "a flipped bit in the log passes as its end", ("fault_corruption", "a6_a_flipped_bit_in_the_synced_log_is_reported_wherever_it_is"), None(DAMAGE)),
        Case("A7", "a sealed file is cut, and later ones are believed", ("fault_corruption", "a7_a_truncated_or_missing_sealed_segment_is_named_by_every_read_that_needs_it"), None(DAMAGE)),
        Case("A8", "a partial last record in front of reserved space does not open", ("fault_log_tail", "a8_a_preallocated_log_whose_last_record_is_partial_opens"), Of(&["log, Durable"], &[TornTail])),
        Case("A9", "a length survives without its bytes", ("crash", "a9_a_length_that_survives_without_its_bytes_is_a_torn_tail"), By("a9_a_length_that_survives_without_its_bytes_is_a_torn_tail")),
        Case("A10", "with several writers, a newer record is there and an older one is not", ("fault_power_cuts", "a10_a_power_cut_under_several_buffered_writers_leaves_a_prefix_of_the_commit_order"), None("a recording that is the same each time has one writer; its own test cuts the power, and *kill* kills, under several")),
        Case("A11", "a hole where the log goes on in another segment", ("fault_log_tail", "a11_a_power_cut_across_a_roll_leaves_a_prefix"), Of(&["log, Buffered", "level 0, Buffered"], &[LostAcrossSegments])),
        Case("A13", "a synced file is gone, because its name was not synced", ("fault_lifecycle", "a13_a_power_cut_at_any_step_of_a_life_keeps_every_acknowledged_write"), Of(&["log", "sweep"], &[NoManifest, NewManifest])),
        Case("A14", "a crash while a database is created leaves a folder that never opens", ("fault_lifecycle", "a14_a_power_cut_at_any_step_of_the_first_open_leaves_a_folder_that_opens"), Of(&["log", "sweep"], &[NoManifest])),
        Case("A16", "the manifest names what was never synced", ("fault_compaction_crash", "a16_a_crash_at_any_step_of_a_merge_loses_nothing_and_leaves_nothing_behind"), Of(&["sweep"], &[SweepResumed])),
        Case("A20", "a crash in recovery damages what it recovers", ("fault_lifecycle", "a20_a_crash_at_any_step_of_recovery_leaves_what_was_there"), By("a20_recovery_cut_short_at_any_step_recovers_the_same_the_next_time")),
        Case("A24", "stale records come back from space that was written ahead", ("fault_log_tail", "a24_stale_bytes_never_return_while_zeroing_ahead_is_on_off_and_on"), Of(&["log", "rounds", "sweep"], &[OtherOptions])),
        Case("A28", "temporary files that were left block the opening", ("fault_lifecycle", "a28_leftover_temporary_files_do_not_block_opening_and_go"), Of(&["log", "level 0"], &[NewManifest])),
        Case("A30", "a foreign folder is changed", ("fault_lifecycle", "a30_a_folder_of_foreign_files_is_refused_and_unchanged"), None("a refused folder is not written to; what a creation leaves that was cut short is A14's")),
        Case("A33", "records behind a lost one verify again when one of equal length takes its place", ("fault_log_tail", "a33_records_behind_a_lost_one_stay_gone_when_one_of_equal_length_takes_its_place"), Of(&["rounds"], &[TornTail, CrashedAfterTornTail])),
        Case("A34", "a flipped bit in the last group passes as a torn tail", ("fault_corruption", "a34_after_a_clean_close_every_flip_in_a_record_is_reported_when_it_is_read"), None(DAMAGE)),
        Case("A35", "a flipped bit in an index answers \"not found\"", ("fault_corruption", "a35_a_flipped_bit_in_an_index_is_the_right_answer_or_corrupt"), None(DAMAGE)),
        Case("A36", "a segment is believed though the one before lost its end", ("fault_log_tail", "a36_a_segment_is_discarded_for_good_when_its_predecessor_lost_its_end"), Of(&["log, Buffered", "level 0, Buffered"], &[LostAcrossSegments])),
        Case("B1", "a failed append hides a later one", ("fault_failed_io", "b1_a_fault_at_any_call_costs_nothing_that_was_acknowledged_durable"), By("any_call_of_a_durable_log_fails")),
        Case("B4", "a failed sync is tried again and \"succeeds\"", ("fault_failed_io", "b4_a_failed_sync_is_not_believed_when_the_next_one_succeeds"), By("any_call_of_a_buffered_log_fails")),
        Case("B5", "of a group only the leader hears of a failed sync", ("group_commit", "b5_a_leaders_failed_sync_fails_all_eight_and_the_next_write_succeeds"), None("it is about what is answered; its own test kills and cuts the power behind it, and what a failed sync leaves is B4's")),
        Case("B8", "a disk that was full stays failed", ("fault_failed_io", "b8_writes_resume_without_a_reopen_once_space_is_freed"), By("b8_a_disk_that_is_full_at_any_boundary_loses_nothing_and_writes_resume")),
        Case("B8", "a full disk takes no deletes", ("fault_full_disk", "b8_a_full_disk_takes_deletes_and_refuses_documents_until_there_is_space"), Of(&["full disk"], &[DeletedOnFullDisk, OpenedOnFullDisk])),
        Case("B10", "a merge that met a full disk has lost its inputs", ("fault_compaction_crash", "b10_a_disk_that_is_full_at_any_byte_of_a_merge_loses_nothing"), By("b8_a_disk_that_is_full_at_any_boundary_loses_nothing_and_writes_resume")),
        Case("B11", "a merge takes a failed read for an empty input", ("fault_compaction_crash", "b11_a_read_that_fails_ends_the_merge_and_drops_nothing"), By("any_call_of_durable_sweeps_fails")),
        Case("B16", "a scan reports damage once and then skips it", ("fault_corruption", "b16_a_scan_that_meets_damage_yields_one_error_and_ends"), None(READS)),
        Case("B18", "a panic in the background spoils every later call", ("fault_panics", "b18_a_panic_at_any_call_of_background_work_is_an_error_and_costs_nothing"), None("a panic leaves on the disk what a kill at that call leaves: *crash* stops at each call")),
        Case("B21", "answered, buffered records are lost when a later sync fails", ("fault_failed_io", "b21_answered_buffered_writes_survive_a_sync_that_fails_later"), By("any_call_of_a_buffered_log_fails")),
        Case("C1", "deleted ids come back", ("fault_compaction", "c1_a_merge_of_newer_runs_keeps_what_deletes_in_older_ones"), Of(&["sweep", "rounds"], &[DeletedAfterMerge])),
        Case("C2", "a delete that races a merge is lost", ("fault_compaction", "c2_a_delete_or_update_that_races_a_merge_is_not_lost"), Of(&["sweep"], &[DeletedDuringSweep])),
        Case("C4", "put, merged, deleted, merged: back", ("fault_compaction", "c4_what_was_put_merged_deleted_and_merged_stays_away"), Of(&["rounds"], &[DeletedAfterMerge, MergedToNothing])),
        Case("C5", "tombstones are never reclaimed", ("space", "c5_tombstones_are_reclaimed"), Of(&["rounds"], &[MergedToNothing])),
        Case("C8", "removed files hold their space", ("fault_compaction", "c8_merged_files_are_readable_while_read_and_leave_nothing_behind"), Of(&["sweep", "rounds"], &[AccountedAndAtRest])),
        Case("C10", "what a snapshot sees changes in a merge", ("fault_compaction", "c10_what_snapshots_see_stays_at_every_step_of_every_merge_and_after_a_reopen"), Of(&["snapshots"], &[MergedUnderSnapshot])),
        Case("C16", "garbage is never freed", ("space", "c16_overwriting_the_same_data_stays_within_bounds_and_comes_back_when_idle"), Of(&["level 0", "sweep"], &[AccountedAndAtRest])),
        Case("C19", "compaction never ends", ("fault_compaction_debt", "c19_once_nothing_is_written_compaction_ends_in_every_state"), Of(&["level 0", "sweep"], &[AccountedAndAtRest])),
        Case("C21", "compaction never begins while there are writers", ("fault_compaction_debt", "c21_writers_that_never_pause_do_not_keep_compaction_from_beginning_and_ending"), None("it is about threads that take turns; it leaves what `sweep` leaves")),
        Case("C22", "what is superseded during a merge counts as live for ever", ("accounting", "c22_rows_superseded_during_a_sweep_are_not_counted_as_live"), Of(&["sweep"], &[SweepResumed, AccountedAndAtRest])),
        Case("C23", "a delete is merged away before an older put", ("fault_compaction_crash", "c23_what_is_deleted_in_a_newer_segment_stays_away_wherever_a_sweep_is_cut_short"), Of(&["sweep"], &[DeletedDuringSweep, SweepResumed])),
        Case("C24", "a damaged record stops compaction, or vanishes in it", ("fault_compaction_damage", "c24_a_damaged_record_neither_stops_compaction_nor_vanishes_in_it"), None("damage is not among what the lists do: *fault_compaction_damage* `c24_a_crash_in_a_sweep_past_a_damaged_record_leaves_it_damaged_and_the_others_right` takes images of its own")),
        Case("C25", "a merge makes damage valid", ("fault_compaction_damage", "c25_a_flip_between_the_read_and_the_write_of_a_merge_is_detected"), None(DAMAGE)),
        Case("D1", "a reverse scan is not the forward one reversed", ("scans", "d1_a_reverse_scan_is_the_forward_scan_reversed_for_every_prefix"), None("it reads; what is opened after a crash is scanned in both directions")),
        Case("D9", "an inverted range acts like an open one", ("scans", "d9_inverted_equal_and_doubly_excluded_ranges_are_empty"), None(READS)),
        Case("E1", "a write during one's own scan hangs", ("scans", "e1_an_iterator_held_through_writes_and_rolls_sees_the_moment_it_began"), None("a scan lives in memory, and ends with the process")),
        Case("E4", "the lock outlives the database", ("fault_lifecycle", "e4_the_lock_is_free_once_the_last_handle_is_dropped_a_thousand_times"), None("the operating system frees the lock of a process that ends: *kill* opens after each kill")),
        Case("E5", "opened after a kill with a smaller memtable, a database never gets on", ("fault_lifecycle", "e5_a_database_killed_under_load_makes_progress_with_smaller_limits"), Of(&["log", "level 0"], &[OtherOptions])),
        Case("E7", "a tree at rest never pays its debt", ("fault_compaction_debt", "e7_debt_drains_once_the_writers_that_it_slowed_down_stop"), Of(&["level 0", "sweep"], &[AccountedAndAtRest])),
        Case("E8", "long ids are cut", ("fault_limits", "e8_an_id_of_any_length_is_stored_or_refused_by_every_method"), Of(&["rounds"], &[LongIdAndEmptyDocument])),
        Case("E9", "the empty document reads as absent", ("fault_limits", "e9_the_empty_document_is_there_in_memtable_and_segment_and_after_reopening"), Of(&["rounds"], &[LongIdAndEmptyDocument])),
        Case("F1", "a scan over many deletes takes long", ("fault_compaction_debt", "f1_a_seek_over_many_deletes_costs_the_unmerged_ones_and_then_next_to_nothing"), None("it is about the cost of a read")),
        Case("F7", "opening takes longer the more is stored", ("fault_lifecycle", "f7_opening_after_a_crash_costs_the_unsealed_log_whatever_is_sealed"), None("it is about a cost; its own test opens after a crash")),
        Case("F8", "an old reader holds space without bound", ("fault_compaction_debt", "f8_what_a_snapshot_pins_is_reported_and_freed_after_it"), None("a snapshot ends with the process; what it held is C16's then")),
    ]
};

/// What a list of steps must have reached, by the table.
pub(crate) fn expected(script: &str) -> BTreeSet<Situation> {
    let named = CASES.iter().filter_map(|Case(_, _, _, images)| match images {
        Images::Of(scripts, found) => {
            let is_named =
                |name: &&str| *name == script || script.starts_with(&format!("{name}, "));
            scripts.iter().any(is_named).then_some(*found)
        }
        _ => None,
    });
    named.flatten().copied().collect()
}

fn row(Case(number, what, (file, test), images): &Case) -> String {
    let images = match images {
        Images::Of(scripts, found) => {
            let titles: Vec<_> = found.iter().map(|found| found.title()).collect();
            format!("`{}`: {}", scripts.join("`, `"), titles.join("; "))
        }
        Images::By(test) => format!("*crash* `{test}`"),
        Images::None(why) => format!("none: {why}"),
    };
    format!("| {number} | {what} | *{file}* `{test}` | {images} |")
}

/// The source of a test program.
fn source(file: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let one = tests.join(file).with_extension("rs");
    let mut text = fs::read_to_string(one).unwrap_or_default();
    if let Ok(entries) = fs::read_dir(tests.join(file)) {
        for entry in entries {
            text += &fs::read_to_string(entry.unwrap().path()).unwrap();
        }
    }
    text
}

#[test]
fn the_table_of_the_fault_cases_is_that_of_the_page_and_its_tests_exist() {
    for Case(number, _, (file, test), images) in CASES {
        let exists = |file: &str, test: &str| source(file).contains(&format!("fn {test}()"));
        assert!(exists(file, test), "{number}: {file} {test}");
        if let Images::By(test) = images {
            assert!(exists("crash", test), "{number}: {test}");
        }
    }
    let rows: Vec<String> = CASES.iter().map(row).collect();
    let table = format!(
        "| case | what went wrong elsewhere | its test | crash images |\n|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(&table), "docs/testing.md should say:\n{table}");
}
