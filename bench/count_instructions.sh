#!/bin/sh
# What measuring costs: instructions of training with --measure 1 (the default) as a multiple of those with --measure 0.
#
#     make count-instructions                 # or bench/count_instructions.sh [./shmtrain]; some minutes, on any machine,
#                                             # whatever else runs on it
#
# Counted by valgrind (callgrind), which runs every instruction one by one, so the counts are the same each time but for waiting:
# what waiting itself executes (spinning, yielding) depends on who comes when, and is left out. Loading is left out, too, by taking
# the difference of a run of 6 epochs and one of 2. Without valgrind perf counts, if it may, with waiting: then some per cents of
# difference mean nothing.
#
# Prints for each run of the table below: instructions for each example without measuring, with it, and the ratio. Exits with 1
# when a ratio is above 1.02, which is what we allow ourselves.
set -eu
program=${1:-./shmtrain}
data=builtin:sparse:examples=20000 # shaped like RCV1: 74 of 47,236 features
out=$(mktemp -d "${TMPDIR:-/tmp}/count.XXXXXX")
trap 'rm -rf "$out"' EXIT

# Instructions of one run: $1 is --measure, $2 the epochs, the rest its options.
by_valgrind() {
    measure=$1 epochs=$2; shift 2
    valgrind --tool=callgrind --callgrind-out-file="$out/callgrind" \
        "$program" -q --spawn threads --valid none -e "$epochs" --measure "$measure" "$@" "$data" 2>"$out/errors" >&2 </dev/null ||
        { cat "$out/errors" >&2; exit 1; }
    # Lines are "1,234 (5.6%)  FILE:FUNCTION [OBJECT]".
    callgrind_annotate --auto=no --tree=none --threshold=100 "$out/callgrind" |
        awk '/^ *[0-9,]+ \(.*:[^ ]+/ && !/PROGRAM TOTALS/ && !/:shmt_gates_wait|yield|futex/ { gsub(",", "", $1); sum += $1 }
             END { printf "%.0f\n", sum }'
}

by_perf() {
    measure=$1 epochs=$2; shift 2
    perf stat -x, -e instructions:u -o "$out/perf" \
        "$program" -q --spawn threads --valid none -e "$epochs" --measure "$measure" "$@" "$data"
    awk -F, '/instructions/ { print $1 }' "$out/perf"
}

if command -v valgrind >/dev/null && command -v callgrind_annotate >/dev/null; then
    count=by_valgrind
elif perf stat -x, -e instructions:u true 2>&1 | grep -q '^[0-9]'; then
    count=by_perf
    echo "counted by perf: waiting is included, and some per cents of difference mean nothing"
else
    echo "skipped: neither valgrind nor perf counts instructions here"
    exit 77
fi

# Of four epochs, for each example.
each() { echo "$(($($count "$1" 6 $2) - $($count "$1" 2 $2)))" | awk '{ print $1 / 80000 }'; }

status=0
echo "instructions for each example               unmeasured  measured   ratio"
while read -r options; do
    without=$(each 0 "$options")
    with=$(each 1 "$options")
    echo "$without $with" | awk -v what="$options" '{ if (!($1 > 0 && $2 > 0)) exit 1
                                                      printf "%-42s %11.1f %9.1f  %6.4f\n", what, $1, $2, $2 / $1
                                                      exit $2 / $1 > 1.02 }' || status=1
done <<END
--mode async -w 2
--mode async -w 8
--mode async -w 8 --item 16
--mode ssp:4 -w 2
--mode sync -b 64 -w 2
--mode sync -b 64 -w 8
--mode local:4 -w 2
END
exit $status
