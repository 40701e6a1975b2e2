/* Whether tapes are those of a run: see tape.h. What is checked here is what replaying relies on, so that a file can be anything.
 *
 * With a quorum rounds are closed in the order of their numbers. Round r waits until all gradients that were begun with r or fewer
 * updates are begun, and its members have come. A gradient waits for the updates that it was begun with, and, where it was late, for
 * those before its own. So when each gradient names an update that is not before those that it had seen, a seat's next one has seen
 * that update, and an epoch's have seen all of those before it, round r needs rounds before it alone.
 *
 * With staleness the gradient that was begun with the fewest updates of those that are not begun waits for nobody: all seats that
 * have work are at that clock, or further. */
#include "ps/tape.h"

#include <stdlib.h>

#define SHARES 4    /* of an equal share, where there are more seats than that */
#define LEAST  1024 /* gradients */

static uint64_t steps_due(const struct shmt_spec *spec, uint32_t epochs) {
    return shmt_min_u64(epochs * shmt_spec_steps(spec), spec->max_steps);
}

uint64_t shmt_tape_room(const struct shmt_spec *spec) {
    const uint64_t all = steps_due(spec, spec->epochs);
    if (spec->n_seats <= SHARES) return all;
    return shmt_min_u64(all, SHARES * shmt_ceil_div(all, spec->n_seats) + LEAST);
}

/* ---- checking ---- */

struct round {
    uint64_t found, members; /* gradients that name it; those that it was closed with */
    bool closed;
};

/* On its way. */
struct check {
    const struct shmt_spec *spec;
    const uint64_t *n;
    const struct shmt_taped *gradient;
    uint64_t total, steps;
    uint32_t epochs;
    uint64_t *end;       /* (epochs + 1) [e + 1]: updates when epoch e was over */
    unsigned char *done; /* (total) a step was done */
    struct round *round; /* (total) with a quorum */
    struct shmt_error *e;
};

static int refuse(const struct check *c, uint32_t seat, uint64_t i, const char *why) {
    return shmt_fail(c->e, SHMTRAIN_E_DATA, "gradient %llu of worker %u %s", (unsigned long long)i, seat, why);
}

static uint32_t epoch_of(const struct check *c, const struct shmt_taped *t) { return (uint32_t)(t->step / c->steps); }

/* Each step of whole epochs was done once, and each seat went through epochs in their order. */
static int check_steps(struct check *c) {
    const struct shmt_taped *t = c->gradient;
    for (uint32_t seat = 0; seat < c->spec->n_seats; seat++)
        for (uint64_t i = 0; i < c->n[seat]; i++, t++) {
            if (t->step >= steps_due(c->spec, c->spec->epochs))
                return refuse(c, seat, i, "is of a step that the run does not have");
            if (i > 0 && epoch_of(c, t) < epoch_of(c, t - 1)) return refuse(c, seat, i, "is of an epoch that was over");
            if (epoch_of(c, t) >= c->epochs) c->epochs = epoch_of(c, t) + 1;
        }
    if (c->total == 0 || steps_due(c->spec, c->epochs) != c->total)
        return shmt_fail(c->e, SHMTRAIN_E_DATA, "%llu gradients are not those of whole epochs", (unsigned long long)c->total);
    c->done = calloc(c->total, sizeof *c->done);
    if (!c->done) return shmt_no_memory(c->e, "to check a record");
    for (uint64_t i = 0; i < c->total; i++) {
        if (c->done[c->gradient[i].step]++ > 0)
            return shmt_fail(c->e, SHMTRAIN_E_DATA, "step %llu was done twice", (unsigned long long)c->gradient[i].step);
    }
    return 0;
}

/* ---- with a quorum ---- */

static int check_fate(const struct check *c, uint32_t seat, uint64_t i, const struct shmt_taped *t) {
    const bool dropped = t->applied == SHMT_TAPED_NONE, drops = c->spec->policy.late == SHMT_LATE_DROP;
    if (dropped && !drops) return refuse(c, seat, i, "was dropped, where late ones are folded");
    if (!dropped && (t->applied < t->pulled || t->applied >= c->total || (drops && t->applied != t->pulled)))
        return refuse(c, seat, i, "is in an update that it cannot be in");
    if (t->closing == SHMT_TAPED_NONE) return t->members == 0 ? 0 : refuse(c, seat, i, "closed no round, with members");
    if (dropped || t->closing > c->steps || c->round[t->applied].closed)
        return refuse(c, seat, i, "closed a round that it cannot have closed");
    c->round[t->applied].closed = true;
    c->round[t->applied].members = t->members;
    return 0;
}

static int check_rounds(struct check *c) {
    const struct shmt_taped *t = c->gradient;
    uint64_t rounds = 0;
    c->round = calloc(c->total, sizeof *c->round);
    if (!c->round) return shmt_no_memory(c->e, "to check a record");
    for (uint32_t seat = 0; seat < c->spec->n_seats; seat++)
        for (uint64_t i = 0; i < c->n[seat]; i++, t++) {
            const int rc = check_fate(c, seat, i, t);
            if (rc < 0) return rc;
            if (t->applied == SHMT_TAPED_NONE) continue;
            uint64_t *end = &c->end[epoch_of(c, t) + 1];
            *end = shmt_max_u64(*end, t->applied + 1);
            c->round[t->applied].found++;
        }
    for (uint32_t epoch = 0; epoch < c->epochs; epoch++)
        rounds = c->end[epoch + 1] = shmt_max_u64(c->end[epoch + 1], c->end[epoch]);
    for (uint64_t r = 0; r < rounds; r++)
        if (!c->round[r].closed || c->round[r].found != c->round[r].members)
            return shmt_fail(c->e, SHMTRAIN_E_DATA, "update %llu does not have the gradients that it was made of",
                             (unsigned long long)r);
    return 0;
}

static int check_order(const struct check *c) {
    const struct shmt_taped *t = c->gradient;
    for (uint32_t seat = 0; seat < c->spec->n_seats; seat++) {
        uint64_t least = 0;
        for (uint64_t i = 0; i < c->n[seat]; i++, t++) {
            const uint64_t from = c->end[epoch_of(c, t)], to = c->end[epoch_of(c, t) + 1];
            if (t->pulled < least || t->pulled < from || t->pulled >= to || (t->applied != SHMT_TAPED_NONE && t->applied >= to))
                return refuse(c, seat, i, "was begun with updates that it cannot have seen");
            least = (t->applied == SHMT_TAPED_NONE ? t->pulled : t->applied) + 1;
        }
    }
    return 0;
}

/* ---- with staleness ---- */

/* Clocks of the epochs: each is as long as the longest row of gradients in it. */
static void count_clocks(const struct check *c) {
    const struct shmt_taped *t = c->gradient;
    for (uint32_t seat = 0; seat < c->spec->n_seats; seat++)
        for (uint64_t i = 0, row = 0; i < c->n[seat]; i++, t++) {
            row = i > 0 && epoch_of(c, t) == epoch_of(c, t - 1) ? row + 1 : 1;
            c->end[epoch_of(c, t) + 1] = shmt_max_u64(c->end[epoch_of(c, t) + 1], row);
        }
    for (uint32_t epoch = 0; epoch < c->epochs; epoch++) c->end[epoch + 1] += c->end[epoch];
}

static int check_clocks(const struct check *c) {
    const struct shmt_taped *t = c->gradient;
    count_clocks(c);
    for (uint32_t seat = 0; seat < c->spec->n_seats; seat++)
        for (uint64_t i = 0, clock = 0; i < c->n[seat]; i++, t++, clock++) {
            const uint64_t from = c->end[epoch_of(c, t)];
            if (i == 0 || epoch_of(c, t) != epoch_of(c, t - 1)) clock = from;
            if (t->applied != clock || t->closing != SHMT_TAPED_NONE || t->members != 0)
                return refuse(c, seat, i, "is in an update that it cannot be in");
            if (t->pulled > clock || t->pulled < from || clock - t->pulled > c->spec->policy.staleness)
                return refuse(c, seat, i, "was begun with updates that it cannot have seen");
        }
    return 0;
}

int shmt_tape_check(const struct shmt_spec *spec, const uint64_t *n, const struct shmt_taped *gradient, uint32_t *epochs_out,
                    struct shmt_error *e) {
    struct check c = {.spec = spec, .n = n, .gradient = gradient, .steps = shmt_spec_steps(spec), .e = e};
    for (uint32_t seat = 0; seat < spec->n_seats; seat++) c.total += n[seat];
    int rc = check_steps(&c);
    if (rc == 0) c.end = calloc(c.epochs + UINT64_C(1), sizeof *c.end);
    if (rc == 0 && !c.end) rc = shmt_no_memory(e, "to check a record");
    if (rc == 0 && spec->policy.quorum == SHMT_QUORUM_ALL) rc = check_clocks(&c);
    if (rc == 0 && spec->policy.quorum != SHMT_QUORUM_ALL) rc = check_rounds(&c);
    if (rc == 0 && spec->policy.quorum != SHMT_QUORUM_ALL) rc = check_order(&c);
    free(c.round);
    free(c.done);
    free(c.end);
    if (rc == 0) *epochs_out = c.epochs;
    return rc;
}
