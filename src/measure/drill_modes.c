/* What the runs of a drill are told: see drill_priv.h. */
#include "measure/drill_priv.h"

#define SPARSE "builtin:sparse:examples=20000,features=2000,nonzeros=20"
#define MORE   "builtin:sparse:examples=50000,features=2000,nonzeros=20"   /* for runs that have to last */
#define WIDE   "builtin:sparse:examples=10000,features=300000,nonzeros=20" /* too large for a copy: of the hot rows only */
#define DENSE  "builtin:dense:examples=4000"

static const struct shmt_drill_mode MODES[] = {
    {.name = "sync", .options = "mode=sync epochs=6", .data = SPARSE, .same_bits = true},
    {.name = "sync, adam", .options = "mode=sync optimizer=adam epochs=4", .data = SPARSE, .same_bits = true},
    {.name = "sync, softmax", .options = "mode=sync model=softmax epochs=4", .data = DENSE, .same_bits = true},
    {.name = "async", .options = "mode=async replicas=one epochs=30", .data = SPARSE, .may_skip = true},
    {.name = "async, copies", .options = "mode=async epochs=20", .data = SPARSE},
    {.name = "async, hot rows", .options = "mode=async epochs=20", .data = WIDE},
    {.name = "async, locked", .options = "mode=async replicas=one write=locked epochs=20", .data = SPARSE, .may_skip = true},
    {.name = "async, atomic", .options = "mode=async replicas=one write=atomic epochs=20", .data = SPARSE, .may_skip = true},
    {.name = "async, locked, adagrad",
     .options = "mode=async replicas=one write=locked optimizer=adagrad epochs=12",
     .data = SPARSE,
     .may_skip = true},
    {.name = "async, ftrl", .options = "mode=async replicas=one optimizer=ftrl epochs=20", .data = SPARSE, .may_skip = true},
    {.name = "async, locked, softmax",
     .options = "mode=async replicas=one write=locked model=softmax epochs=6",
     .data = DENSE,
     .may_skip = true},
    {.name = "ssp:2", .options = "mode=ssp:2 epochs=20", .data = SPARSE, .may_skip = true},
    {.name = "aggregate, staleness 2", .options = "write=aggregate staleness=2 epochs=12", .data = SPARSE},
    {.name = "backup:3", .options = "mode=backup:3 epochs=10", .data = SPARSE},
    {.name = "backup:3, fold", .options = "mode=backup:3 late=fold epochs=10", .data = SPARSE},
    {.name = "local:4", .options = "mode=local:4 epochs=20", .data = SPARSE},
    {.name = "local:4, alone", .options = "mode=local:4 staleness=inf epochs=20", .data = SPARSE},
    {.name = "node", .options = "mode=node epochs=20", .data = SPARSE},
    {.name = "sync, 2 threads",
     .options = "mode=sync optimizer=adam epochs=4",
     .data = SPARSE,
     .same_bits = true,
     .threads = 2},
    {.name = "async, 2 threads",
     .options = "mode=async replicas=one write=locked epochs=20",
     .data = SPARSE,
     .may_skip = true,
     .threads = 2},
    {.name = "async, locked, continue",
     .options = "mode=async replicas=one write=locked epochs=20",
     .data = SPARSE,
     .continues = true},
    {.name = "ssp:2, continue", .options = "mode=ssp:2 epochs=20", .data = SPARSE, .continues = true},
    {.name = "backup:2, fold, continue", .options = "mode=backup:2 late=fold epochs=10", .data = SPARSE, .continues = true},
    {.name = "sync, guests", .options = "mode=sync epochs=10", .data = SPARSE, .same_bits = true, .has_guests = true},
    {.name = "async, guests",
     .options = "mode=async replicas=one write=locked epochs=24",
     .data = MORE,
     .may_skip = true,
     .has_guests = true},
    {.name = "sync, resumed", .options = "mode=sync epochs=6", .data = MORE, .same_bits = true, .saves_every = "70"},
    {.name = "async, resumed",
     .options = "mode=async replicas=one optimizer=adagrad epochs=16",
     .data = MORE,
     .may_skip = true,
     .saves_every = "20"},
};
#define N_MODES (sizeof MODES / sizeof *MODES)
_Static_assert(N_MODES <= SHMTRAIN_DRILL_MODES, "the result has a line for each mode");

const struct shmt_drill_mode *shmt_drill_mode_at(uint32_t m) { return &MODES[m]; }

uint32_t shmt_drill_n_modes(void) { return N_MODES; }
