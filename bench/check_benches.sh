#!/bin/sh
# Fails when a bench does not run on tiny sizes, or prints something else than figures above zero. How large they are does not
# matter here.
#
# usage: bench/check_benches.sh      (in `make check`, which sets TEST_BUILDDIR)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${TEST_BUILDDIR:-.}"

# What AddressSanitizer keeps of freed memory would grow for as long as bench_start waits for memory to come to rest.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=2:thread_local_quarantine_size_kb=1024"

out=$(mktemp "${TMPDIR:-/tmp}/check_benches.XXXXXX")
trap 'rm -f "$out"' EXIT

fail() {
    echo "check_benches.sh: $1" >&2
    cat "$out" >&2
    exit 1
}

# $1 a bench, $2 the least number of figures that it must print, $3 the form of their lines, then its options.
check() {
    bench=$1 least=$2 form=$3
    shift 3
    "bench/$bench" "$@" > "$out" || fail "$bench failed"
    n=$(grep -Ec "$form" "$out") || true
    [ "$n" -ge "$least" ] || fail "$bench: $n figures, expected at least $least"
    if grep -Eiq 'nan|inf([^o]|$)' "$out"; then fail "$bench: a figure that is no number"; fi
}

number='[0-9]*[1-9][0-9]*\.[0-9]{3}|[0-9]+\.[0-9]*[1-9][0-9]*'
figure="^  .{46} +($number) [A-Za-z/ ]{1,11} +\[($number) \.\. ($number)\] of [0-9]+\$"
check bench_floors 1 "$figure" --quick
check bench_epoch 5 "$figure" --quick
check bench_start 13 "$figure" --quick
check bench_barrier 9 "$figure" --quick
check bench_sync 0 "$figure" --quick
n=$(grep -Ec "$figure" "$out") || true
grep -q 'one core, and nothing to say about two' "$out" || [ "$n" -eq 18 ] || fail "bench_sync: $n figures, expected 18"
check bench_layers 15 "$figure" --quick
check bench_updates 60 "$figure" --quick
check bench_collective 19 "$figure" --quick
check bench_link 18 "$figure" --quick
check bench_async 1 "^  .{46} +-?($number) [A-Za-z/ ]{1,11} +\\[-?($number) \\.\\. -?($number)\\] of [0-9]+\$|one core" --quick
check bench_lost 1 "^  .{46} +[0-9]+\\.[0-9]+ % +\\[[0-9]+\\.[0-9]+ \\.\\. [0-9]+\\.[0-9]+\\] of [0-9]+\$" --quick
check bench_kernels 9 '^(floor|lines|plain|group +[0-9]+) +[0-9]+\.[0-9] ns/example( |$)' mbytes=1 rounds=1

# The loss of two workers is another one than that of one.
if command -v python3 > /dev/null; then
    python3 "$here/losses.py" --seeds 2 --workers 2 --epochs 2 ./shmtrain -- builtin:sparse:examples=2000 > "$out" 2>&1 ||
        fail "losses.py failed"
    grep -Eq '^ +2 +([+-][0-9]+\.[0-9]{2} \([0-9]+\.[0-9]{2}\) *){2}$' "$out" || fail "losses.py: not the figures of two epochs"
fi

# What is no option is refused.
if bench/bench_floors --rounds 0 > "$out" 2>&1; then fail "bench_floors took --rounds 0"; fi
