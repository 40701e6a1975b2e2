/* The table of a spec's fields: see spec_fields.h. */
#include "ps/spec_fields.h"

#include <string.h>

#include "consistency/chunks.h"
#include "update/race.h"

/* ---- words ---- */

static const char *write_word(uint32_t i) { return shmt_write_name((enum shmt_write)i); }
static const char *late_word(uint32_t i) { return shmt_late_name((enum shmt_late)i); }
static const char *replicas_word(uint32_t i) { return shmt_replicas_name((enum shmt_replicas)i); }
static const char *merge_word(uint32_t i) { return shmt_merge_name((enum shmt_merge)i); }
static const char *rule_word(uint32_t i) { return shmt_rule_name((enum shmt_rule_kind)i); }
static const char *schedule_word(uint32_t i) { return shmt_rate_name(&(struct shmt_rate){.kind = (int)i}); }

_Static_assert(sizeof(enum shmt_write) == 4 && sizeof(enum shmt_late) == 4 && sizeof(enum shmt_replicas) == 4 &&
                   sizeof(enum shmt_merge) == 4 && sizeof(int) == 4,
               "words are 32 bits");

/* ---- the table ---- */

#define ANY        2e19 /* above 2^64 */
#define FAR        1e300
#define MOST_TRACE (1 << 24)
#define MOST_SPIN  1000000000
#define MOST_PARTS (1 << 20)

#define NOTE      SHMT_IN_NOTE
#define SAME      (NOTE | SHMT_SAME)
#define REPORT(m) SHMT_IN_REPORT, offsetof(struct shmtrain_report, m)

#define AS_WIDE(member, m) (sizeof(((struct shmt_spec *)NULL)->member) == sizeof(((struct shmtrain_report *)NULL)->m))
_Static_assert(AS_WIDE(policy.staleness, staleness) && AS_WIDE(policy.merge_every, merge_every) &&
                   AS_WIDE(n_workers, workers) && AS_WIDE(batch, batch) && AS_WIDE(item, item) && AS_WIDE(order.seed, seed) &&
                   AS_WIDE(hot_floats, hot_rows),
               "whole numbers are as wide in a report as in the spec");

/* Key, member, bounds; the last word and the words; what has "no bound", too. */
#define NUMBER(key, member, least, most) \
    { key, SHMT_FIELD(struct shmt_spec, member), least, most, NULL, 0, false }
/* What notes that were written before there was one do not have: it is 0 there. */
#define LATER(key, member, least, most) \
    { key, SHMT_FIELD(struct shmt_spec, member), least, most, NULL, 0, true }
#define FLAG(key, member) NUMBER(key, member, 0, 1)
#define WORDS(key, member, last, words) \
    { key, SHMT_WORD32, offsetof(struct shmt_spec, member), 0, last, words, 0, false }
#define OPEN(key, member) \
    { key, SHMT_OPEN64, offsetof(struct shmt_spec, member), 0, ANY, NULL, 0, false }

/* clang-format off */
static const struct shmt_spec_field FIELDS[] = {
    {WORDS("write", policy.write, SHMT_WRITE_AGGREGATE, write_word), SHMT_PART_WORK, 88, SAME | REPORT(write)},
    {OPEN("staleness", policy.staleness), SHMT_PART_WORK, 40, NOTE | REPORT(staleness)},
    {NUMBER("quorum", policy.quorum, 0, SHMT_MAX_SEATS), SHMT_PART_WORK, 56, NOTE, 0},
    {WORDS("late", policy.late, SHMT_LATE_FOLD, late_word), SHMT_PART_WORK, 60, NOTE, 0},
    {WORDS("replicas", policy.replicas, SHMT_REPLICAS_EQUAL, replicas_word), SHMT_PART_WORK, 64, NOTE | REPORT(replicas)},
    {NUMBER("merge_every", policy.merge_every, 0, INT32_MAX), SHMT_PART_MERGES, 68, NOTE | REPORT(merge_every)},
    {WORDS("merge", policy.merge, SHMT_MERGE_DAMPED, merge_word), SHMT_PART_WORK, 72, NOTE, 0},
    {NUMBER("workers", n_workers, 1, SHMT_MAX_SEATS), SHMT_PART_SEATS, 8, NOTE | REPORT(workers)},
    {NUMBER("seats", n_seats, 1, SHMT_MAX_SEATS), SHMT_PART_SEATS, 0, NOTE, 0},
    {NUMBER("epochs", epochs, 1, SHMT_MAX_EPOCHS), SHMT_PART_WORK, 12, NOTE, 0},
    {NUMBER("examples", n_examples, 1, UINT32_MAX), SHMT_PART_WORK, 16, NOTE, 0},
    {NUMBER("batch", batch, 1, 2e9), SHMT_PART_WORK, 92, NOTE | SHMT_SAME_BATCHED | REPORT(batch)},
    {NUMBER("chunks", n_chunks, 1, SHMT_MAX_CHUNKS), SHMT_PART_WORK, 96, NOTE | SHMT_SAME_BATCHED, 0},
    {NUMBER("item", item, 1, 2e9), SHMT_PART_WORK, 100, NOTE | SHMT_SAME_LIVE | SHMT_TAKEN | REPORT(item)},
    {NUMBER("seed", order.seed, 0, ANY), SHMT_PART_WORK, 48, SAME | REPORT(seed)},
    {FLAG("shuffle", order.shuffle), SHMT_PART_WORK, 104, SAME, 0},
    {WORDS("optimizer", rule.kind, SHMT_N_RULES - 1, rule_word), SHMT_PART_RATE, 128, SAME | REPORT(optimizer)},
    {NUMBER("l1", rule.l1, 0, FAR), SHMT_PART_RATE, 160, SAME | REPORT(l1)},
    {NUMBER("l2", rule.l2, 0, FAR), SHMT_PART_RATE, 164, NOTE | REPORT(l2)}, /* may have been chosen: checkpoints/resume.c */
    {NUMBER("momentum", rule.momentum, 0, 1), SHMT_PART_RATE, 168, SAME | SHMT_TAKEN | REPORT(momentum)},
    {NUMBER("beta2", rule.beta2, 0, 1), SHMT_PART_RATE, 172, SAME, 0},
    {NUMBER("epsilon", rule.epsilon, 0, FAR), SHMT_PART_RATE, 176, SAME, 0},
    {NUMBER("beta", rule.beta, 0, FAR), SHMT_PART_RATE, 180, SAME, 0},
    {LATER("rho", rule.rho, 0, 1), SHMT_PART_RATE, 288, SAME, 0},
    {LATER("weight_decay", rule.weight_decay, 0, FAR), SHMT_PART_RATE, 292, SAME | REPORT(weight_decay)},
    {LATER("clip_value", rule.clip, 0, FAR), SHMT_PART_RATE, 296, SAME | REPORT(clip_value)},
    {LATER("clip_norm", rule.clip_norm, 0, FAR), SHMT_PART_RATE, 300, SAME | SHMT_TAKEN | REPORT(clip_norm)},
    {LATER("staleness_aware", staleness_aware, 0, 1), SHMT_PART_RATE, 304, SAME | SHMT_PACKED64, 0},
    {NUMBER("rate", rate.base, 0, FAR), SHMT_PART_RATE, 184, SAME | SHMT_TAKEN | REPORT(rate)},
    {WORDS("schedule", rate.kind, SHMT_RATE_ONE_CYCLE, schedule_word), SHMT_PART_RATE, 132, SAME | SHMT_TAKEN | REPORT(schedule)},
    {NUMBER("power", rate.power, 0, (double)SHMT_RATE_MAX_POWER), SHMT_PART_RATE, 188, SAME | SHMT_TAKEN, 0},
    {NUMBER("decay_every", rate.every, 0, FAR), SHMT_PART_RATE, 192, SAME | SHMT_TAKEN, 0},
    {NUMBER("decay_by", rate.factor, 0, 1), SHMT_PART_RATE, 200, SAME, 0},
    {NUMBER("warmup", rate.warmup, 0, FAR), SHMT_PART_RATE, 208, SAME | SHMT_TAKEN | REPORT(warmup)},
    {NUMBER("rate_epochs", rate.epochs, 0, FAR), SHMT_PART_RATE, 216, NOTE, 0},
    /* of a named store, and not of a checkpoint */
    {NUMBER("guest_seats", n_guests, 0, SHMT_MAX_SEATS - 1), SHMT_PART_SEATS, 4, 0, 0},
    {NUMBER("max_steps", max_steps, 1, ANY), SHMT_PART_WORK, 24, 0, 0},
    {NUMBER("steps_before", steps_before, 0, ANY), SHMT_PART_WORK, 32, 0, 0},
    {FLAG("unmeasured", unmeasured), SHMT_PART_WORK, 76, 0, 0},
    {NUMBER("trace_events", trace_events, 0, MOST_TRACE), SHMT_PART_WORK, 80, 0, 0},
    {FLAG("row_places", row_places), SHMT_PART_WORK, 84, 0, 0},
    {FLAG("count_lost", count_lost), SHMT_PART_WORK, 108, 0, 0},
    {FLAG("l2_shares", l2_shares), SHMT_PART_WORK, 112, 0, 0},
    {NUMBER("spin_ns", spin_ns, 0, MOST_SPIN), SHMT_PART_WORK, 116, 0, 0},
    {NUMBER("spin_seats", spin_seats, 0, ANY), SHMT_PART_WORK, 120, 0, 0},
    {FLAG("curvatures", curvatures), SHMT_PART_WORK, 136, 0, 0},
    {NUMBER("hot_floats", hot_floats, 0, ANY), SHMT_PART_WORK, 140, REPORT(hot_rows)}, /* of a table of width 1 */
    {NUMBER("race_ns", race_ns, 0, (double)SHMT_RACE_MOST_NS), SHMT_PART_WORK, 144, 0, 0},
    {NUMBER("race_share", race_share, 0, 1), SHMT_PART_WORK, 152, 0, 0},
    {NUMBER("board_bytes", board_bytes, 0, ANY), SHMT_PART_WORK, 224, 0, 0},
    {NUMBER("first_epoch", first_epoch, 0, SHMT_MAX_EPOCHS), SHMT_PART_WORK, 232, SHMT_PACKED64, 0},
    {NUMBER("first_step", first_step, 0, ANY), SHMT_PART_WORK, 240, 0, 0},
    {NUMBER("pause_steps", pauses.steps, 0, ANY), SHMT_PART_WORK, 248, 0, 0},
    {NUMBER("pause_epochs", pauses.epochs, 0, ANY), SHMT_PART_WORK, 256, 0, 0},
    {FLAG("may_pause", pauses.allowed), SHMT_PART_WORK, 260, 0, 0},
    {NUMBER("place_policy", placement.policy, 0, SHMT_PLACE_BIND), SHMT_PART_PLACES, 264, 0, 0},
    {FLAG("place_private_local", placement.private_local), SHMT_PART_PLACES, 268, 0, 0},
    {NUMBER("place_strategy", placement.strategy, 0, SHMT_SHARDS_GREEDY), SHMT_PART_PLACES, 272, 0, 0},
    {NUMBER("place_parts", placement.parts, 0, MOST_PARTS), SHMT_PART_PLACES, 276, 0, 0},
    {NUMBER("place_n_nodes", placement.n_nodes, 0, SHMT_MAX_NODES), SHMT_PART_PLACES, 280, 0, 0},
    {NUMBER("place_page_bytes", placement.page_bytes, 0, ANY), SHMT_PART_PLACES, 284, 0, 0},
    {FLAG("place_transparent", placement.transparent), SHMT_PART_PLACES, 124, 0, 0},
};
/* clang-format on */

#define N_FIELDS (sizeof FIELDS / sizeof *FIELDS)

const struct shmt_spec_field *shmt_spec_field_at(size_t i) { return i < N_FIELDS ? &FIELDS[i] : NULL; }

/* ---- the packed form ---- */

/* How a field stands there: flags are 32 bits, as they are for other programs. */
static struct shmt_bounded packed(const struct shmt_spec_field *field) {
    struct shmt_bounded at = field->is;
    at.offset = field->packed;
    if (at.kind == SHMT_BOOL) at.kind = SHMT_U32;
    if (field->uses & SHMT_PACKED64) at.kind = SHMT_U64;
    return at;
}

void shmt_spec_pack(const struct shmt_spec *spec, unsigned char out[SHMT_SPEC_PACKED]) {
    for (size_t i = 0; i < N_FIELDS; i++) {
        const struct shmt_bounded *from = &FIELDS[i].is, to = packed(&FIELDS[i]);
        if (to.kind == from->kind) /* as it is: whoever reads it holds it against the bounds */
            memcpy(out + to.offset, (const unsigned char *)spec + from->offset, shmt_bounded_size(from));
        else
            (void)shmt_bounded_copy(from, spec, &to, out); /* flags, and numbers that fit */
    }
}

const struct shmt_spec_field *shmt_spec_unpack(const unsigned char in[SHMT_SPEC_PACKED], struct shmt_spec *out) {
    const struct shmt_spec_field *wrong = NULL;
    for (size_t i = 0; i < N_FIELDS; i++) {
        const struct shmt_bounded from = packed(&FIELDS[i]);
        if (!shmt_bounded_copy(&from, in, &FIELDS[i].is, out) && !wrong) wrong = &FIELDS[i];
    }
    out->order.n_examples = out->n_examples;
    return wrong;
}

/* ---- the report ---- */

void shmt_spec_report(const struct shmt_spec *spec, struct shmtrain_report *out) {
    for (size_t i = 0; i < N_FIELDS; i++) {
        const struct shmt_bounded *f = &FIELDS[i].is;
        unsigned char *at = (unsigned char *)out + FIELDS[i].report;
        if (!(FIELDS[i].uses & SHMT_IN_REPORT)) continue;
        if (f->word) {
            const char *word = f->word((uint32_t)shmt_bounded_count(f, spec));
            memcpy(at, &word, sizeof word);
        } else if (shmt_bounded_is_real(f)) {
            const double x = shmt_bounded_real(f, spec);
            memcpy(at, &x, sizeof x);
        } else { /* as wide as in the spec */
            memcpy(at, (const unsigned char *)spec + f->offset, shmt_bounded_size(f));
        }
    }
}
