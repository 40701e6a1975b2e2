/* Meetings: shmt_gates_meet (whose store and fence are (c) here), shmt_gates_wait and shmt_gates_wake_after_death of src/sync/gate.c, with
 * deaths.
 *
 * N members meet MEETINGS times. There are up to DEATHS deaths, each between any two steps, also of a sleeper, while the
 * supervisor handles another death, and several of the same member. A supervisor notices at any later time, and either takes the
 * dead one out (its member word is cleared, and all are woken) or starts it again (RESPAWN: all are woken, and a new life goes
 * on from the words that the old one left: it is awake, and if the last one had come to a meeting it waits there). Shown: nobody
 * sleeps for ever (no invalid end), and nobody leaves a meeting before all have come who count (the assertion).
 *
 * With -DVICTIM=i only member i dies, as often as before. With -DMET members tell one another what they have seen, as groups of many
 * do.
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
byte sleepers[N]; /* of the gate: anybody */
byte met;         /* anybody: a meeting * 4 + how many were seen there, from the last one downwards */
bit queued[N];   /* the kernel's: in the queue of `asleep` */
bit member[N];   /* supervisor */
byte life[N];    /* the killer; who finds another life than his own there is dead */
byte dead[N];    /* the killer 1; supervisor 2 when it has noticed, 0 with the next life */

#if FAULT == 3
#define WAKE(who) queued[who] = 0; asleep[who] = 0
#else
#define WAKE(who) asleep[who] = 0; queued[who] = 0
#endif

/* By one who does not die between the two: nothing is lost by making one step of them, because a wake-up that comes later than
 * its 0 can only be one in vain. */
#if FAULT == 3
#define WAKE_WHOLE(who) WAKE(who)
#else
#define WAKE_WHOLE(who) atomic { WAKE(who) }
#endif
#if DEATHS == 0
#define MAY_DIE(who) false
#elif defined(VICTIM)
#define MAY_DIE(who) (who == VICTIM)
#else
#define MAY_DIE(who) true
#endif

/* shmt_gate_reach */
inline reach(value) {
#if FAULT != 2
    phase[me] = value; /* (c) */
#endif
    if
    :: sleepers[me] == 0 -> i = N /* (d') */
    :: else
    fi;
    do
    :: atomic { i < N && asleep[i] != me + 1 -> i++ } /* (d) */
    :: i < N && asleep[i] == me + 1 ->
        if
        :: until[i] <= value && MAY_DIE(me) -> WAKE(i)
        :: until[i] <= value && !MAY_DIE(me) -> WAKE_WHOLE(i)
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
#if FAULT != 9
    sleepers[i]++; /* (a') */
#endif
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
#if FAULT == 9
    sleepers[i]++;
#endif
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
    sleepers[i]--;
looked:
    skip
}

#define NEXT i = (i + N - 1) % N; left--

#ifdef MET /* groups of many: all go the same way, and what one has seen is seen */
#define FROM N - 1
#define TELL_SEEN(target)                                                 \
    if                                                                    \
    :: met < target * 4 + N - left -> met = target * 4 + N - left         \
    :: else                                                               \
    fi
#if FAULT == 10
#define OF_THIS(target) true
#else
#define OF_THIS(target) met / 4 == target
#endif
#define TAKE_SEEN(target)                                                 \
    atomic {                                                              \
        if                                                                \
        :: met / 4 > target -> left = 0; i = 0                            \
        :: met / 4 <= target && OF_THIS(target) && N - met % 4 < left -> \
            left = N - met % 4;                                           \
            i = (left > 0 -> left - 1 : 0)                                \
        :: else                                                           \
        fi                                                                \
    }
#else
#define FROM (me + N - 1) % N
#define TELL_SEEN(target) skip
#define TAKE_SEEN(target) skip
#endif

/* shmt_gates_wait: members are seen once each, downwards. */
inline wait_for_all(target) {
    atomic {
        i = FROM;
        left = N
    };
    TAKE_SEEN(target);
    do
    :: atomic { left > 0 && !member[i] -> NEXT }
    :: atomic { left > 0 && phase[i] >= target -> NEXT }
    :: left > 0 && member[i] && phase[i] < target ->
        TELL_SEEN(target);
        sleep_for(target);
        TAKE_SEEN(target)
    :: atomic { left == 0 -> i = 0 };
        TELL_SEEN(target);
        break
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
        if
        :: mine > 0 -> asleep[me] = 0 /* tidy, no more: what stands there costs a wake-up of nobody */
        :: else
        fi;
#if FAULT == 8
        m = 0; /* begins anew */
#else
        m = phase[me];
#endif
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

/* shmt_gates_wake_after_death: everybody, because the dead one may have emptied somebody's `asleep` without waking him. */
inline wake_after_death() {
    do
#if FAULT == 7
    :: atomic { i < N && asleep[i] == 0 -> i++ }
    :: i < N && asleep[i] != 0 -> WAKE_WHOLE(i); i++
#else
    :: i < N -> WAKE_WHOLE(i); i++
#endif
    :: atomic { i == N -> i = 0; break }
    od
}

#ifdef VICTIM
#define ANYBODY victim = VICTIM
#elif N == 2
#define ANYBODY if :: victim = 0 :: victim = 1 fi
#elif N == 3
#define ANYBODY if :: victim = 0 :: victim = 1 :: victim = 2 fi
#else
#define ANYBODY if :: victim = 0 :: victim = 1 :: victim = 2 :: victim = 3 fi
#endif

#if DEATHS > 0
active proctype killer() {
    byte victim, deaths;
    do
    :: atomic {
        deaths < DEATHS ->
            deaths++;
            ANYBODY;
            if
            :: dead[victim] == 0 ->
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

#endif

#define NOTICE(j) dead[j] = 2; victim = j

active proctype supervisor() {
    byte i, victim;
    atomic {
        for (i : 0 .. N - 1) {
            member[i] = 1
        };
        for (i : 0 .. N - 1) {
            run worker(i, 0)
        };
        i = 0
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
        fi
       };
#ifndef RESPAWN
        member[victim] = 0;
#endif
#if FAULT != 4
        wake_after_death();
#endif
#ifdef RESPAWN
        atomic {
            dead[victim] = 0;
            run worker(victim, life[victim]);
            victim = 0
        }
#endif
    od
}
