/* Meetings: shmt_gate_reach, shmt_gates_wait and shmt_gates_mourn of src/sync/gate.c, with deaths.
 *
 * N members meet MEETINGS times. Up to DEATHS of them are killed, each between any two steps, in its sleep, too. A supervisor
 * notices at any later time, and either takes the dead one out (LEAVE: its member word is cleared, and all are woken) or starts
 * it again (RESPAWN: a new life goes on from the words that the old one left). Shown: nobody sleeps for ever (no invalid end),
 * and nobody leaves a meeting before all have come who count (the assertion).
 *
 * A step of the model is one access to a shared word, (a) .. (d) of gate.c among them, which are seq_cst there; `until` goes before
 * (a), the member words are ordered by the fences beside it, and a late 0 in `asleep` does no harm. Left out is what would hide a
 * mistake: the nap of 100 ms after which a sleeper looks again, and spinning; and the abort word, which a sleeper looks at where
 * it looks at the member words. FAULT plants one mistake, which must be found: see `run`. */
#ifndef N
#define N 3
#endif
#ifndef MEETINGS
#define MEETINGS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef FAULT
#define FAULT 0
#endif

byte phase[N];   /* of the gate: owner */
byte until[N];   /* of the gate: owner */
byte asleep[N];  /* of the gate: owner 1 + whom it may be sleeping for; anybody 0 */
bit queued[N];   /* the kernel's: in the queue of `asleep` */
bit member[N];   /* supervisor */
byte life[N];    /* the killer; who finds another life than his own there is dead */

#if FAULT == 3
#define WAKE(who) queued[who] = 0; asleep[who] = 0
#else
#define WAKE(who) asleep[who] = 0; queued[who] = 0
#endif

/* shmt_gate_reach */
inline reach(value) {
#if FAULT != 2
    phase[me] = value; /* (c) */
#endif
    do
    :: atomic { i < N && asleep[i] != me + 1 -> i++ } /* (d) */
    :: i < N && asleep[i] == me + 1 ->
        if
        :: until[i] <= value -> WAKE(i)
        :: else
        fi;
        i++
    :: atomic { i == N -> i = 0; break }
    od;
#if FAULT == 2
    phase[me] = value;
#endif
}

/* sleep_for: member i is missing. */
inline sleep_for(target) {
#if FAULT == 1
    if
    :: phase[i] >= target -> goto looked
    :: else
    fi;
#endif
    until[me] = target;
    asleep[me] = i + 1; /* (a) */
#if FAULT != 1
    if
    :: phase[i] >= target -> goto awake /* (b) */
    :: else
    fi;
#endif
    if
    :: !member[i] -> goto awake
    :: else
    fi;
    /* the kernel compares and queues under its lock */
    atomic {
        if
#if FAULT == 5
        :: true -> queued[me] = 1
#else
        :: asleep[me] == i + 1 -> queued[me] = 1
#endif
        :: else
        fi
    };
    queued[me] == 0; /* sleeps */
awake:
    asleep[me] = 0;
looked:
    skip
}

#define NEXT i = (i + N - 1) % N; left--

/* shmt_gates_wait: members are seen once each, downwards. */
inline wait_for_all(target) {
    atomic {
        i = (me + N - 1) % N;
        left = N
    };
    do
    :: atomic { left > 0 && !member[i] -> NEXT }
    :: atomic { left > 0 && phase[i] >= target -> NEXT }
    :: left > 0 && member[i] && phase[i] < target -> sleep_for(target)
    :: atomic { left == 0 -> i = 0; break }
    od
}

#define HAS_COME(j, m) (phase[j] >= m || !member[j])
#if N == 2
#define ALL_HAVE_COME(m) (HAS_COME(0, m) && HAS_COME(1, m))
#elif N == 3
#define ALL_HAVE_COME(m) (HAS_COME(0, m) && HAS_COME(1, m) && HAS_COME(2, m))
#else
#define ALL_HAVE_COME(m) (HAS_COME(0, m) && HAS_COME(1, m) && HAS_COME(2, m) && HAS_COME(3, m))
#endif

proctype worker(byte me; byte mine) {
    byte i, left, m;
    {
        m = phase[me];
#if FAULT != 6
        if
        :: m > 0 -> wait_for_all(m) /* a new life: the meeting that my words say I have come to */
        :: else
        fi;
#endif
        do
        :: true ->
            assert(m == 0 || ALL_HAVE_COME(m)); /* what follows reads what others wrote before the meeting */
            if
            :: m == MEETINGS -> break
            :: else
            fi;
            m++;
            reach(m);
            wait_for_all(m)
        od
    } unless { atomic { life[me] != mine -> i = 0; left = 0; m = 0; mine = 0; me = 0 } }
}

/* shmt_gates_mourn: everybody, because the dead one may have emptied somebody's `asleep` without waking him. */
inline mourn() {
    do
#if FAULT == 7
    :: atomic { i < N && asleep[i] == 0 -> i++ }
    :: i < N && asleep[i] != 0 -> WAKE(i); i++
#else
    :: i < N -> WAKE(i); i++
#endif
    :: atomic { i == N -> i = 0; break }
    od
}

/* Kills, and is the supervisor that notices it. */
active proctype supervisor() {
    byte i, victim, deaths;
    atomic {
        for (i : 0 .. N - 1) {
            member[i] = 1
        };
        for (i : 0 .. N - 1) {
            run worker(i, 0)
        };
        i = 0
    };
    do
    :: deaths < DEATHS ->
        atomic {
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
            life[victim]++; /* SIGKILL */
            queued[victim] = 0
        };
#ifdef RESPAWN
        asleep[victim] = 0; /* a new life is awake */
        run worker(victim, life[victim]);
#else
        member[victim] = 0;
#endif
#if FAULT != 4
        mourn()
#endif
    :: break
    od
}
