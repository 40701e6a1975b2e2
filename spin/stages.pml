/* Stages that may be done twice: `place`, undo slots and meetings as in docs/reliability.md, for the batches of `sync`.
 *
 * N seats train BATCHES batches. Each has two stages, which end in a meeting each: its gradient (the buffer is cleared, PUSHES
 * pushes are added), and its slice of the update (BLOCKS blocks, each from the sum of all gradients). Up to DEATHS deaths, each
 * between any two steps, of new lives, too. The supervisor undoes what was open, and starts the dead one again, where its words
 * say it stood. Shown: no gradient is read while it changes, each is in each block exactly once (the assertions), and all come to
 * the end.
 *
 * A meeting is one condition here: how it is waited for is in gate.pml. A float is a number of three states while it is being
 * written: old, torn, new. FAULT plants one mistake, which must be found: see `run`. */
#ifndef N
#define N 2
#endif
#ifndef BATCHES
#define BATCHES 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef FAULT
#define FAULT 0
#endif

#define GRADIENT 0
#define UPDATE   1
#define TORN     255

/* of each seat, which alone writes them; the undo slot also the supervisor, when the seat is dead */
byte phase[N];       /* meetings it has come to: of the gate */
byte place_stage[N]; /* of the word `place`, which is stored in one step: what it is at, */
byte place_phase[N]; /* and its phase before that */
byte undo_phase[N];  /* of the word of the undo slot, stored in one step: of which stage, */
byte undo_block[N];  /* the block that is the next one, */
bit undo_open[N];    /* and whether it is open */
byte undo_old[N];    /* its old bytes */

byte gradient[N];
byte weight[N * BLOCKS];
byte life[N];
bit dead[N];

#if N == 2
#define SUM             (gradient[0] + gradient[1])
#define HAVE_COME(what) (phase[0] >= (what) && phase[1] >= (what))
#elif N == 3
#define SUM             (gradient[0] + gradient[1] + gradient[2])
#define HAVE_COME(what) (phase[0] >= (what) && phase[1] >= (what) && phase[2] >= (what))
#else
#define SUM             (gradient[0] + gradient[1] + gradient[2] + gradient[3])
#define HAVE_COME(what) (phase[0] >= (what) && phase[1] >= (what) && phase[2] >= (what) && phase[3] >= (what))
#endif

#define MY_BLOCK weight[me * BLOCKS + block]

inline compute() {
#if FAULT == 4
    if
    :: p == place_phase[me] && mine > 0 && first -> skip /* what the last life has pushed is taken for whole */
    :: else -> gradient[me] = 0
    fi;
#else
    gradient[me] = 0;
#endif
    do
    :: atomic { k < PUSHES -> gradient[me] = gradient[me] + 1; k++ }
    :: atomic { k == PUSHES -> k = 0; break }
    od
}

/* The weights of my slice, the undo slot and the gradients of others rest while I read them. */
inline update() {
#if FAULT == 6
    block = undo_block[me];
#else
    block = (undo_phase[me] == p -> undo_block[me] : 0); /* another stage's says nothing */
#endif
    do
    :: block < BLOCKS ->
#if FAULT == 1
        atomic { undo_phase[me] = p; undo_block[me] = block; undo_open[me] = 1 };
        atomic { undo_old[me] = MY_BLOCK; old = MY_BLOCK };
#elif FAULT == 3
        old = MY_BLOCK;
#else
        atomic { undo_old[me] = MY_BLOCK; old = MY_BLOCK };
        atomic { undo_phase[me] = p; undo_block[me] = block; undo_open[me] = 1 };
#endif
#if FAULT == 2
        atomic { undo_block[me] = block + 1; undo_open[me] = 0 };
#endif
        MY_BLOCK = TORN;
        atomic {
            assert(HAVE_COME(p) && SUM == N * PUSHES); /* all gradients are whole */
            MY_BLOCK = old + SUM
        };
        atomic { undo_phase[me] = p; undo_block[me] = block + 1; undo_open[me] = 0; block++ }
    :: atomic { block == BLOCKS -> block = 0; old = 0; break }
    od
}

proctype seat(byte me; byte mine) {
    byte p, stage, k, block, old;
    bit first;
    {
        /* where I stand */
        atomic { p = place_phase[me]; stage = place_stage[me]; first = 1 };
#if FAULT != 5
        if
        :: phase[me] != p -> /* I had come to the meeting that ends it */
            p++;
            HAVE_COME(p);
            atomic { stage = 1 - stage; first = 0 }
        :: else
        fi;
#endif
        do
        :: p < 2 * BATCHES ->
            atomic { place_phase[me] = p; place_stage[me] = stage };
            if
            :: stage == GRADIENT -> compute()
            :: else -> update()
            fi;
            atomic { p++; phase[me] = p };
            HAVE_COME(p);
            atomic { stage = 1 - stage; first = 0 }
        :: else -> break
        od;
        assert(weight[me * BLOCKS] == BATCHES * N * PUSHES && weight[me * BLOCKS + BLOCKS - 1] == BATCHES * N * PUSHES)
    } unless { atomic { life[me] != mine -> p = 0; stage = 0; k = 0; block = 0; old = 0; first = 0; mine = 0; me = 0 } }
}

/* Kills, and is the supervisor that reclaims: several may be dead at a time. */
active proctype supervisor() {
    byte victim, deaths, i;
    atomic {
        for (i : 0 .. N - 1) {
            run seat(i, 0)
        };
        i = 0
    };
    do
    :: atomic {
        deaths < DEATHS ->
            deaths++;
            if
            :: !dead[0] -> victim = 0
            :: !dead[1] -> victim = 1
#if N > 2
            :: !dead[2] -> victim = 2
#endif
#if N > 3
            :: !dead[3] -> victim = 3
#endif
            :: else -> victim = 0
            fi;
            life[victim]++;
            dead[victim] = 1;
            victim = 0
       }
    :: atomic {
        if
        :: dead[0] -> victim = 0
        :: dead[1] -> victim = 1
#if N > 2
        :: dead[2] -> victim = 2
#endif
#if N > 3
        :: dead[3] -> victim = 3
#endif
        fi
       };
        if
        :: undo_open[victim] ->
            weight[victim * BLOCKS + undo_block[victim]] = undo_old[victim];
            undo_open[victim] = 0
        :: else
        fi;
        atomic {
            dead[victim] = 0;
            run seat(victim, life[victim]);
            victim = 0
        }
    :: atomic { deaths == DEATHS && !dead[0] && !dead[1] && !dead[N - 2] && !dead[N - 1] -> break }
    od
}
