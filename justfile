# Every cargo command on `bench` runs in the release profile and through with-libclang, so that one
# build of RocksDB serves them all.

set positional-arguments

# List the recipes
default:
    @{{ quote(just_executable()) }} --list

# Run the engine and RocksDB over a table larger than their caches; `--help` lists the arguments
bench-table-bound *ARGS:
    scripts/with-libclang cargo run -p bench --release -- table-bound "$@"

# Run the engine and RocksDB with everything within the memtable's reach
bench-memtable-bound *ARGS:
    scripts/with-libclang cargo run -p bench --release -- memtable-bound "$@"

# Run sizes and durabilities in one run, with scans after the updates and afresh
bench-sequence *ARGS:
    scripts/with-libclang cargo run -p bench --release -- sequence "$@"

# Run the whole grid: stores × clients × durabilities × sizes; `--quick` takes minutes, `--resume FILE` goes on
bench-ycsb *ARGS:
    scripts/with-libclang cargo run -p bench --release -- ycsb "$@"

# Overwrite live sets of 0.5, 2 and 8 GB and count what is written for it
bench-write-amplification *ARGS:
    scripts/with-libclang cargo run -p bench --release -- write-amplification "$@"

# Time the opening of stores that were killed with an unsealed tail
bench-open-time *ARGS:
    scripts/with-libclang cargo run -p bench --release -- open-time "$@"

# What one kind of call costs, what deleted space becomes, and a line of the history
bench-micro *ARGS:
    scripts/with-libclang cargo run -p bench --release -- micro "$@"

# Check every answer of concurrent runs of the workloads against the writes that could explain it
bench-verify *ARGS:
    scripts/with-libclang cargo run -p bench --release -- verify "$@"

# Put the table of results files into the README, between its `figures` marks
figures +FILES:
    scripts/with-libclang cargo run -q -p bench --release -- table --markdown "$@" | scripts/figures README.md

# Write the page of results files with its charts, in docs/bench; `--check` compares it instead
report *ARGS:
    scripts/with-libclang cargo run -q -p bench --release -- report "$@"

# Measure the engine's structures beside others, and fill docs/performance.md: six minutes at most
bench-structures:
    #!/bin/sh
    set -eu
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
    rm -rf "$CARGO_TARGET_DIR/criterion" # no figure of another run
    cargo bench -p structures -- --quiet
    cargo build -q -p structures --release --bin tables
    "$CARGO_TARGET_DIR/release/tables" | while read -r name; do
        "$CARGO_TARGET_DIR/release/tables" "$name" | scripts/figures docs/performance.md "$name"
    done

# Test the engine; compiles no C++
test *ARGS:
    cargo test -p engine "$@"

# Kill writing processes for so many minutes, and compare what they leave with what was answered
soak MINUTES="30":
    SEDIMENT_SOAK_MINUTES={{ quote(MINUTES) }} cargo test -p engine --test kill soak -- --ignored --exact --nocapture

# Plant bugs in the engine, one at a time, and see that the tests named for each fail
planted-bugs:
    scripts/planted-bugs

# Open every image of every crash of the lists whose counts are not in the folder yet; half an hour and more
exhaustive-crashes FOLDER:
    #!/bin/sh
    set -eu
    mkdir -p {{ quote(FOLDER) }}
    SEDIMENT_REPORT=$(cd {{ quote(FOLDER) }} && pwd)
    export SEDIMENT_REPORT SEDIMENT_EXHAUSTIVE=1
    for mode in durable buffered; do
        for list in "of_a_${mode}_log" "of_${mode}_merges_in_level_0" "of_${mode}_sweeps" \
            "under_${mode}_snapshots" "of_${mode}_collections" "of_${mode}_rounds" \
            "of_a_${mode}_full_disk"; do
            [ ! -e "$SEDIMENT_REPORT/$list.done" ] || continue
            cargo test -p engine --test crash -- --exact "power_cut::a_power_cut_at_any_step_$list"
            touch "$SEDIMENT_REPORT/$list.done"
        done
    done
    table=$(scripts/testing-report "$SEDIMENT_REPORT" "power cuts")
    echo "$table" | scripts/figures docs/testing.md "all power cuts"

# Run the tests of crashes, kills and planted bugs, and fill docs/testing.md with what they counted
testing-report:
    #!/bin/sh
    set -eu
    SEDIMENT_REPORT=$(mktemp -d)
    export SEDIMENT_REPORT
    trap 'rm -rf "$SEDIMENT_REPORT"' EXIT
    cargo test -p engine --test crash --test kill
    scripts/planted-bugs
    for name in run "power cuts" recovery failing "full disk" sites kills planted; do
        table=$(scripts/testing-report "$SEDIMENT_REPORT" "$name")
        echo "$table" | scripts/figures docs/testing.md "$name"
    done

# Test the benchmark program; `--features peers` adds the peers
test-bench *ARGS:
    scripts/with-libclang cargo test -p bench --release "$@"

# Test the benches of structures
test-structures *ARGS:
    cargo test -p structures "$@"

# Check formatting, and run clippy with warnings denied
lint:
    cargo fmt --all --check
    cargo clippy -p engine --all-targets -- -D warnings
    cargo clippy -p engine --all-targets --features internals -- -D warnings
    cargo clippy -p structures --all-targets -- -D warnings
    scripts/with-libclang cargo clippy -p bench --release --all-targets -- -D warnings
    scripts/with-libclang cargo clippy -p bench --release --features peers --all-targets -- -D warnings

# Build the engine's documentation, with warnings denied
doc *ARGS:
    RUSTDOCFLAGS="-D warnings" cargo doc -p engine --no-deps "$@"

# Everything that continuous integration checks
ci:
    .ci/run

# The README's two commands in a fresh clone, with empty caches; takes half an hour
fresh-machine *ARGS:
    scripts/fresh-machine "$@"
