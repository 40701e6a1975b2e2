#!/bin/sh
# Two hosts on one machine, step by step, as it is done on two: keys for each, a file with the public ones, and the same command on both,
# which differs in --rank and --key alone. At the end both have the same parameters.
#
# usage: examples/two_hosts.sh [PROGRAM]      ./shmtrain unless another one is named
set -eu
program=$(cd "$(dirname "${1:-./shmtrain}")" && pwd)/$(basename "${1:-./shmtrain}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# On each host. FILE.pub is what the other one needs; FILE stays.
"$program" keygen a.key 2> keygen.log > /dev/null
"$program" keygen b.key 2>> keygen.log > /dev/null
cat a.key.pub b.key.pub > peers # in the order of --hosts

# On two machines these would be names of machines, as in a:5000,b:5000, and each of the two commands would be typed on its own.
hosts=127.0.0.1:${PORT:-25000},127.0.0.1:$((${PORT:-25000} + 1))
data=builtin:sparse:examples=20000,valid=2000,features=2000,nonzeros=20
"$program" --hosts "$hosts" --rank 1 --key b.key --peers peers -w 1 -e 3 "$data" > b.out &
"$program" --hosts "$hosts" --rank 0 --key a.key --peers peers -w 1 -e 3 -o model.safetensors "$data" > a.out
wait $!

grep -E '^ +[0-9]+ +0|^network' a.out
echo "host 0: $(grep xxh64 a.out)"
echo "host 1: $(grep xxh64 b.out)"
