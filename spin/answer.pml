/* Rounds that are closed by whoever sees enough: shmt_gates_wait_until and shmt_gates_notify of src/sync/gate.c, as
 * src/backends/shm/rounds/quorum.c uses them, with deaths.
 *
 * N workers offer gradients in ROUNDS rounds; a round is closed when QUORUM of them, or all who have work, have arrived at it, by
 * one of those. Who comes later goes on with the round that is open. Up to DEATHS of them are killed between any two steps; a
 * supervisor notices at any later time, says that they have no work, and wakes all. Shown: nobody sleeps for ever (no invalid
 * end), and a round is closed once, with enough of them (the assertions).
 *
 * Steps, what is left out, and FAULT are as in gate.pml; but a seat's `working` and `clock` are looked at in one step. Offers that
 * come late, new lives, and what becomes of the gradients are in quorum.pml. */
#ifndef N
#define N 3
#endif
#ifndef QUORUM
#define QUORUM 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef FAULT
#define FAULT 0
#endif

byte clock[N];  /* of the gate: owner; r + 1: it has arrived at round r */
bit asleep[N];  /* of the gate: owner 1, it may be sleeping for an answer; anybody 0 */
bit queued[N];  /* the kernel's: in the queue of `asleep` */
bit working[N]; /* owner, supervisor of the dead */
byte closed;    /* control->round: how many are closed */
byte life[N];   /* the killer */

/* shmt_gates_notify, shmt_gates_wake */
inline wake_sleepers() {
    do
    :: atomic { i < N && asleep[i] == 0 -> i++ }
    :: i < N && asleep[i] != 0 -> asleep[i] = 0; queued[i] = 0; i++
    :: atomic { i == N -> i = 0; break }
    od
}

/* shmt_gates_wake_after_death */
inline wake_after_death() {
#if FAULT == 6
    wake_sleepers();
#else
    do
    :: i < N -> asleep[i] = 0; queued[i] = 0; i++
    :: atomic { i == N -> i = 0; break }
    od;
#endif
}

/* look_around: one look at all, seat by seat. */
inline look_around() {
    do
    :: atomic {
        i < N ->
            able = able + (working[i] || clock[i] == r + 1 -> 1 : 0); /* see quorum.pml */
            arrived = arrived + (clock[i] == r + 1 -> 1 : 0);
            i++
       }
    :: atomic {
        i == N ->
            enough = (arrived > 0 && (arrived >= QUORUM || arrived >= able));
            arrived = 0;
            able = 0;
            i = 0;
            break
       }
    od
}

/* is_decided, the question of shmt_gates_wait_until. */
inline ask() {
    if
    :: closed > r -> enough = 1
    :: else -> look_around()
    fi
}

inline wait_until_decided() {
    do
    :: true ->
        ask();
        if
        :: enough -> break
        :: else
        fi;
        asleep[me] = 1; /* (a) */
#if FAULT != 1
        ask(); /* (b) */
        if
        :: enough -> goto awake
        :: else
        fi;
#endif
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

#define ARRIVED(j) (clock[j] == r + 1)
#define ABSENT(j)  (working[j] && clock[j] != r + 1)
#if N == 2
#define N_ARRIVED  (ARRIVED(0) + ARRIVED(1))
#define ANY_ABSENT (ABSENT(0) || ABSENT(1))
#elif N == 3
#define N_ARRIVED  (ARRIVED(0) + ARRIVED(1) + ARRIVED(2))
#define ANY_ABSENT (ABSENT(0) || ABSENT(1) || ABSENT(2))
#else
#define N_ARRIVED  (ARRIVED(0) + ARRIVED(1) + ARRIVED(2) + ARRIVED(3))
#define ANY_ABSENT (ABSENT(0) || ABSENT(1) || ABSENT(2) || ABSENT(3))
#endif

/* close_round: the compare-and-swap, which one of those who try wins. */
inline close_round() {
    won = 0;
#if FAULT == 4
    if
    :: closed == r -> won = 1
    :: else
    fi;
    if
    :: won -> assert(closed == r); closed = r + 1
    :: else
    fi
#else
    atomic {
        if
        :: closed == r ->
            assert(N_ARRIVED >= QUORUM || !ANY_ABSENT);
            closed = r + 1;
            won = 1
        :: else
        fi
    }
#endif
}

proctype worker(byte me) {
    byte i, r, arrived, able;
    bit enough, won;
    {
        do
        :: true ->
            r = closed;
            if
            :: r >= ROUNDS -> break
            :: else
            fi;
            clock[me] = r + 1;
            do
            :: closed <= r ->
                wait_until_decided();
                look_around();
                if
                :: enough ->
                    close_round();
                    if
#if FAULT != 2
                    :: won -> wake_sleepers() /* shmt_gates_notify */
#endif
                    :: else
                    fi
                :: else
                fi
            :: else -> break
            od
        od;
        working[me] = 0;
        wake_sleepers() /* shmt_gates_wake */
    } unless { atomic { life[me] != 0 -> i = 0; r = 0; arrived = 0; able = 0; enough = 0; won = 0; me = 0 } }
}

/* Kills, and is the supervisor that notices it. */
active proctype supervisor() {
    byte i, victim, deaths;
    atomic {
        for (i : 0 .. N - 1) {
            working[i] = 1
        };
        for (i : 0 .. N - 1) {
            run worker(i)
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
            life[victim] = 1; /* SIGKILL */
            queued[victim] = 0
        };
#if FAULT != 5
        working[victim] = 0;
#endif
#if FAULT != 3
        wake_after_death();
#endif
    :: break
    od
}
