/* What all benches share: options, memory, helpers that run in step, quiet machines, and figures with medians and quartiles.
 *
 * Machines drift, and this one may have other work. So whatever is compared is measured in turns, within one round; a figure is
 * the median over the rounds, a ratio the median of the ratios within the rounds, both with their quartiles. A round in which
 * others used the processors is measured once more (bench_round_end). Benches are programs of one thread; what goes wrong ends
 * them. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_MAX_ROUNDS = 99 };

/* From the command line: --quick (tiny sizes, 2 rounds: shows that the bench works, the figures mean nothing), --rounds N. */
struct bench_options {
    bool quick;
    uint32_t rounds;
};
struct bench_options bench_options_read(int argc, char **argv, uint32_t rounds);

/* Prints a sentence to stderr and ends this process with status 1. */
void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- memory ---- */

/* Zeroed memory of small pages that forked helpers share, as the segments of the library are; pages are there. */
void *bench_shared(uint64_t bytes);
void bench_unshare(void *at, uint64_t bytes);

/* Four times the last-level cache (32 MiB where it is not known), or 1 MiB when quick. */
uint64_t bench_far_bytes(const struct bench_options *o);

/* ---- figures ---- */

struct bench_figure {
    const char *name, *unit;
    uint32_t n;
    double x[BENCH_MAX_ROUNDS];
};
void bench_add(struct bench_figure *f, double x);
double bench_median(const struct bench_figure *f);

/* One line: name, median, unit, first and third quartile, number of rounds. */
void bench_show(const struct bench_figure *f);
/* Starts a group of lines. */
void bench_head(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- rounds ---- */

/* Processor time used by others, as /proc/stat tells it (the hypervisor's share included). */
struct bench_round {
    uint64_t began_ns, total_ticks, own_ns;
};
void bench_round_begin(struct bench_round *r);

/* Was this machine ours meanwhile? True when others used less than 4 % of what two processors give, when that cannot be told,
 * when quick, and when the bench has waited for quiet long enough. Own helpers must have been waited for. */
bool bench_round_end(const struct bench_round *r, const struct bench_options *o);

/* How many rounds were thrown away, as a line; nothing when there were none. */
void bench_show_noise(void);

/* ---- helpers ---- */

/* Two places on distinct cores; false when there is only one. */
bool bench_two_cores(void);
/* Binds the calling process to core 0 or 1 of these. */
void bench_pin(uint32_t core);
/* To both of them. */
void bench_pin_to_both(void);

/* Runs body(arg, 0 .. n-1) in n forked processes, each bound to its core, and waits for all; a failure, or more than ten
 * minutes, ends the bench. */
void bench_run(uint32_t n, void (*body)(void *arg, uint32_t rank), void *arg);

/* A meeting of two: each spins until the other has come as often as itself. In shared memory, zeros at first. */
struct bench_meeting {
    _Alignas(128) _Atomic uint32_t come_0;
    _Alignas(128) _Atomic uint32_t come_1;
};
void bench_meet(struct bench_meeting *m, uint32_t rank);

/* A ball on a line of its own, 0 at first, that two hit in turns: trip 0, 1, ... of each. A trip is the way of a cache line to
 * the other core and back. (With a pause in the loop, which is faster: who looks without one gets in the hitter's way.) */
void bench_hit(_Atomic uint32_t *ball, uint32_t rank, uint32_t trip);

/* ---- the floor ---- */

/* The thread's own time: programs that take the core in between do not count. For work that waits for nobody. */
uint64_t bench_thread_ns(void);

/* The thread's time for reading these bytes once, by the best of several loops that only read. Up to two ranges. */
struct bench_bytes {
    const void *at[2];
    uint64_t bytes[2];
};
double bench_floor_ns(const struct bench_bytes *b);

#endif
