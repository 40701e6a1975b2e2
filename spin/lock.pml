/* Locks with owners, and deaths: row locks (src/update/lock.h), and with -DSLICES the lock words of slices, of which others wait
 * in the gates for the one that is held (src/backends/shm/rounds/slices.c).
 *
 * N workers change what one lock guards: in a row each adds 1, ITEMS times; a slice gets UPDATES updates in their order, each
 * block by block, by whoever finds it free. Up to DEATHS of them are killed, each between any two steps. A supervisor undoes
 * what a dead one had open, releases the lock if it names the dead one, wakes all, and starts the next life (RESPAWN) or leaves
 * it at that. Shown: never are two at it, nobody reads what is half-written, each change that was completed is there exactly
 * once, and the lock is free in the end; no wake-up is lost.
 *
 * A lock word is taken by compare-and-swap, and changed by its holder alone; an undo slot is its owner's, and the supervisor's
 * when that is dead. Waiting for a row lock is looking again; for slices it is as in answer.pml. FAULT plants one mistake, which
 * must be found: see `run`. */
#ifndef N
#define N 2
#endif
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef UPDATES
#define UPDATES 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef FAULT
#define FAULT 0
#endif

#ifdef SLICES
#define BLOCKS 2
#else
#define BLOCKS 1
#endif
#define TORN 255

byte holder;        /* of the lock word: rank + 1; 0: nobody */
byte holder_life;   /* of the lock word of a row: whose it is */
byte updates;       /* of the lock word of a slice: that it has had */
byte at_update;     /* slice, of one word that the supervisor alone writes: of which update it speaks, */
byte at_block;      /* and at which block who takes it begins */
byte value[BLOCKS];
byte undo_old[N];
bit undo_open[N];
byte undo_tag[N];   /* slice: of which update the slot is */
byte undo_next[N];  /* the block that is open, or that is next */

byte asleep[N];     /* of the gate */
bit queued[N];      /* the kernel's */
byte life[N];
byte dead[N];       /* the killer 1; supervisor 2 when it has noticed, 0 with the next life */
byte completed;     /* of no protocol: changes of a row that were completed */
byte n_at_it;       /* of no protocol: how many believe to hold it */

/* shmt_gates_notify */
inline wake_sleepers() {
    do
    :: atomic { i < N && asleep[i] == 0 -> i++ }
    :: i < N && asleep[i] != 0 -> asleep[i] = 0; queued[i] = 0; i++
    :: atomic { i == N -> i = 0; break }
    od
}

/* shmt_gates_wake_after_death */
inline wake_after_death() {
    do
    :: i < N -> atomic { asleep[i] = 0; queued[i] = 0; i++ }
    :: atomic { i == N -> i = 0; break }
    od
}

/* One block, which I hold: its old bytes are kept while it is half-written. `completed` stands for what its closing says. */
inline change(block) {
#if FAULT == 4
    atomic { undo_open[me] = 1; undo_tag[me] = updates; undo_next[me] = block };
#endif
    atomic { assert(n_at_it == 1 && value[block] != TORN); old = value[block] };
    undo_old[me] = old;
#if FAULT != 4
    atomic { undo_open[me] = 1; undo_tag[me] = updates; undo_next[me] = block };
#endif
    value[block] = TORN;
    value[block] = old + 1;
#if FAULT != 5
    atomic { undo_open[me] = 0; undo_next[me] = block + 1; completed++; old = 0 }
#endif
}

#ifndef SLICES
proctype worker(byte me; byte mine) {
    byte i, old, done;
    {
        do
        :: done < ITEMS ->
            atomic { holder == 0 -> holder = me + 1; holder_life = mine; n_at_it++ };
            change(0);
            atomic { holder = 0; holder_life = 0; n_at_it-- };
#if FAULT == 5
            atomic { undo_open[me] = 0; completed++; old = 0 };
#endif
            done++
        :: else -> break
        od
    } unless { atomic { life[me] != mine -> i = 0; old = 0; done = 0; mine = 0; me = 0 } }
}
#else

/* is_worth_a_walk, the question of shmt_gates_wait_until. */
#define IS_WORTH_A_WALK (updates >= UPDATES || holder == 0)

inline wait_until_worth_a_walk() {
    do
    :: IS_WORTH_A_WALK -> break
    :: else ->
        asleep[me] = 1;
        if
        :: IS_WORTH_A_WALK -> goto awake
        :: else
        fi;
        atomic {
            if
            :: asleep[me] -> queued[me] = 1
            :: else
            fi
        };
        queued[me] == 0; /* sleeps */
awake:
        asleep[me] = 0
    od
}

/* shmt_shm_apply_until */
proctype worker(byte me; byte mine) {
    byte i, old, block;
    {
        asleep[me] = 0;
        do
        :: updates < UPDATES ->
            if
            :: atomic { holder == 0 && updates < UPDATES -> holder = me + 1; holder_life = mine; n_at_it++ };
#if FAULT == 7
                block = 0;
#elif FAULT == 8
                block = at_block;
#else
                block = (at_update == updates -> at_block : 0);
#endif
                do
                :: block < BLOCKS -> change(block); block++
                :: else -> break
                od;
                block = 0;
                atomic { updates++; holder = 0; holder_life = 0; n_at_it-- };
                wake_sleepers()
            :: else -> wait_until_worth_a_walk()
            fi
        :: else -> break
        od
    } unless { atomic { life[me] != mine -> i = 0; old = 0; block = 0; mine = 0; me = 0 } }
}
#endif

active proctype killer() {
    byte victim, deaths;
    do
    :: atomic {
        deaths < DEATHS ->
            deaths++;
            if
            :: victim = 0
            :: victim = 1
#if N > 2
            :: victim = 2
#endif
#if N > 3
            :: victim = 3
#endif
            fi;
            if
            :: dead[victim] == 0 ->
                n_at_it = n_at_it - (holder == victim + 1 && holder_life == life[victim] -> 1 : 0);
                life[victim]++; /* SIGKILL */
                queued[victim] = 0;
                dead[victim] = 1
            :: else
            fi;
            victim = 0
       }
    :: break
    od
}

#define NOTICE(j) dead[j] = 2; victim = j

inline undo() {
    if
    :: undo_open[victim] ->
        value[undo_next[victim]] = undo_old[victim];
        undo_open[victim] = 0
    :: else
    fi
}

/* `was` names who is dead; the next life has another number. */
inline release() {
    if
    :: holder == victim + 1 && (holder_life == was || FAULT == 3) ->
#if defined(SLICES) && FAULT != 9
        atomic {
            if /* an older life's slot may speak of this update, too, and know less */
            :: undo_tag[victim] == updates && (at_update != updates || at_block < undo_next[victim]) ->
                at_update = updates;
                at_block = undo_next[victim]
            :: else
            fi
        };
#endif
        atomic { holder = 0; holder_life = 0 }
    :: else
    fi
}

inline start_again() {
#ifdef RESPAWN
    atomic { dead[victim] = 0; run worker(victim, life[victim]) }
#else
    skip
#endif
}

active proctype supervisor() {
    byte i, victim, was;
    atomic {
        for (i : 0 .. N - 1) {
            undo_tag[i] = TORN; /* none */
            run worker(i, 0)
        };
        i = 0;
        at_update = TORN
    };
end:
    do
    :: atomic {
        if
        :: dead[0] == 1 -> NOTICE(0)
        :: dead[1] == 1 -> NOTICE(1)
#if N > 2
        :: dead[2] == 1 -> NOTICE(2)
#endif
#if N > 3
        :: dead[3] == 1 -> NOTICE(3)
#endif
        fi;
        was = life[victim] - 1
       };
#if FAULT == 3
        start_again();
#endif
#if FAULT == 6
        wake_after_death();
#endif
#if FAULT == 1
        release();
        undo();
#elif FAULT == 2
        undo();
#else
        undo();
        release();
#endif
#if FAULT != 6
        wake_after_death();
#endif
#if FAULT != 3
        start_again();
#endif
        atomic { victim = 0; was = 0 }
    od
}

/* Whatever happens, it is free when all have ended or are dead, and what was completed is there. */
active proctype auditor() {
    atomic {
        timeout;
        assert(holder == 0 && n_at_it == 0);
#ifdef SLICES
        assert(updates < UPDATES || (value[0] == UPDATES && value[1] == UPDATES))
#else
        assert(value[0] == completed)
#endif
    }
}
