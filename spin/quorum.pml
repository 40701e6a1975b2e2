/* A quorum from first item to last: src/backends/shm/rounds/{rounds_priv.h,rounds.c,quorum.c}, with late offers, members that run out
 * of work, and deaths.
 *
 * N workers take ITEMS items; each makes a gradient of it and offers it for the open round. A round is closed by compare-and-swap
 * when QUORUM of them, or all who have work, have arrived at it. A gradient that came too late is dropped, or (FOLD) offered as
 * late for the round that is open. Closed rounds are applied before their members go on. Up to DEATHS deaths, each between any
 * two steps; a supervisor notices at any later time, and starts the next life, which goes on where the words of the old one say
 * that it stood (ON_DEATH 0); says that the dead one has no work (1, continue); or sets the abort word (2). All are woken.
 * Shown: nobody sleeps for ever (no invalid end); a round is closed once, and not without somebody who has work while fewer than
 * QUORUM are in; each gradient is in at most one update, once, and its owner knows whether; no gradient changes that an update
 * still needs; what is closed is applied in the end, and with ON_DEATH 0 each item's gradient is in or was dropped
 * by its owner (the assertions).
 *
 * Waiting is as in answer.pml. An update is applied in one step here: see lock.pml. A seat's words are looked at in one step.
 * FAULT plants one mistake, which must be found: see `run`. */
#ifndef N
#define N 2
#endif
#ifndef QUORUM
#define QUORUM 2
#endif
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef ON_DEATH
#define ON_DEATH 0
#endif
#ifndef FAULT
#define FAULT 0
#endif

byte clock[N];   /* of the gate: owner; r + 1: it has arrived at round r */
bit late[N];     /* of the offer: owner, before its clock */
bit asleep[N];   /* of the gate */
bit queued[N];   /* the kernel's */
bit working[N];  /* owner; supervisor of the dead */
bit gone[N];     /* supervisor: nobody waits for it at meetings */
bit abort_word;  /* supervisor */
byte closed;     /* of control->round: how many are closed, */
byte closer;     /* and who has closed the last */
byte list_in[2 * N], list_turned[2 * N]; /* two lists of each seat, by parity: owner */
byte applied;    /* the slices: updates that they have had */
byte left;       /* the ledger: items that nobody has */
bit done[N];     /* the ledger: the item in hand is done */

/* The word `place`, which its owner stores in one step: what it is at, for which round, and its bit of the lists before. */
#define NOTHING 0
#define HAS     1 /* an item in hand */
#define OFFERS  2
#define LATE    3
#define OUT     4 /* of work */
byte place[N], place_round[N];
bit place_before[N];

byte life[N];
byte dead[N];    /* the killer 1; supervisor 2 when it has noticed, 0 with the next life */
bit whole[N];    /* the gradient buffer holds a gradient */
byte n_in[N];    /* of no protocol: updates that the gradient in hand is in */
byte settled;    /* of no protocol: items whose gradient is in, or was dropped */

inline wake_sleepers() {
    do
    :: atomic { i < N && asleep[i] == 0 -> i++ }
    :: i < N && asleep[i] != 0 -> asleep[i] = 0; queued[i] = 0; i++
    :: atomic { i == N -> i = 0; break }
    od
}

inline wake_after_death() {
    do
    :: i < N -> atomic { asleep[i] = 0; queued[i] = 0; i++ }
    :: atomic { i == N -> i = 0; break }
    od
}

#if FAULT == 1
#define IS_ABLE(j) working[j]
#else
#define IS_ABLE(j) (working[j] || clock[j] == r + 1) /* who has arrived is one of whom the round is, alive or not */
#endif

/* look_around. Late ones are not among those who have arrived, nor among those who are needed. */
inline look_around() {
    do
    :: atomic {
        i < N ->
            able = able + (IS_ABLE(i) -> 1 : 0);
#if FAULT == 2
            arrived = arrived + (clock[i] == r + 1 -> 1 : 0);
#else
            arrived = arrived + (clock[i] == r + 1 && !late[i] -> 1 : 0);
            n_late = n_late + (clock[i] == r + 1 && late[i] -> 1 : 0);
#endif
            in = in | (clock[i] == r + 1 -> 1 << i : 0);
            i++
       }
    :: atomic {
        i == N ->
            enough = (in != 0 && (arrived >= QUORUM || arrived + n_late >= able));
            arrived = 0;
            n_late = 0;
            able = 0;
            i = 0;
            break
       }
    od
}

inline ask() {
    in = 0;
    if
    :: abort_word || closed > r -> enough = 1
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
        ask();          /* (b) */
        if
        :: enough -> goto awake
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

#define ARRIVED(j) (clock[j] == r + 1 && !late[j])
#define IS_OUT(j)  (place[j] == OUT || gone[j]) /* it has come to the meeting behind the last round */
#define ABSENT(j)  (working[j] && clock[j] != r + 1)
#if N == 2
#define ALL_OUT    (IS_OUT(0) && IS_OUT(1))
#define N_ARRIVED  (ARRIVED(0) + ARRIVED(1))
#define ANY_ABSENT (ABSENT(0) || ABSENT(1))
#elif N == 3
#define ALL_OUT    (IS_OUT(0) && IS_OUT(1) && IS_OUT(2))
#define N_ARRIVED  (ARRIVED(0) + ARRIVED(1) + ARRIVED(2))
#define ANY_ABSENT (ABSENT(0) || ABSENT(1) || ABSENT(2))
#else
#define ALL_OUT    (IS_OUT(0) && IS_OUT(1) && IS_OUT(2) && IS_OUT(3))
#define N_ARRIVED  (ARRIVED(0) + ARRIVED(1) + ARRIVED(2) + ARRIVED(3))
#define ANY_ABSENT (ABSENT(0) || ABSENT(1) || ABSENT(2) || ABSENT(3))
#endif

#define LAST_TURNED (closed == 0 -> 0 : list_turned[2 * closer + (closed - 1) % 2])

/* write_list, and the compare-and-swap, which one of those who try wins. */
inline close_round() {
    won = 0;
    atomic { was = closed; was_closer = closer };
    if
    :: was == r ->
        list_in[2 * me + r % 2] = in;
        list_turned[2 * me + r % 2] = in ^ (r == 0 -> 0 : list_turned[2 * was_closer + (r - 1) % 2]);
        atomic {
            if
#if FAULT == 3
            :: true ->
#else
            :: closed == was && closer == was_closer ->
#endif
                assert(closed == r && (N_ARRIVED >= QUORUM || !ANY_ABSENT));
                closed = r + 1;
                closer = me;
                won = 1;
                for (k : 0 .. N - 1) {
                    if
                    :: in >> k & 1 -> n_in[k]++; assert(n_in[k] == 1 && whole[k])
                    :: else
                    fi
                };
                k = 0
            :: else
            fi
        }
    :: else
    fi;
    atomic { was = 0; was_closer = 0; in = 0 }
}

/* shmt_shm_wait_for_round */
inline wait_for_round() {
    do
    :: closed <= r ->
        wait_until_decided();
        if
        :: abort_word -> goto over
        :: else
        fi;
        in = 0;
        look_around();
        if
        :: enough ->
            close_round();
            if
            :: won -> wake_sleepers() /* shmt_gates_notify */
            :: else
            fi
        :: else
        fi
    :: else -> break
    od
}

/* shmt_shm_turned: a list that is written over while it is read is seen by the round's word. */
inline read_turned() {
    do
    :: atomic { was = closed; was_closer = closer };
        turned = (was == 0 -> 0 : list_turned[2 * was_closer + (was - 1) % 2] >> me & 1);
        if
        :: atomic { closed == was && closer == was_closer -> was = 0; was_closer = 0; break }
        :: else
        fi
    od
}

/* Applies what is closed, and goes on with the open round. */
inline catch_up() {
    do
    :: atomic {
        applied < closed ->
            assert(closed == applied + 1); /* its list rests */
            for (k : 0 .. N - 1) {
                assert(!(list_in[2 * closer + applied % 2] >> k & 1) || whole[k])
            };
            k = 0;
            applied++
       }
    :: atomic { applied == closed -> r = closed; break }
    od
}

proctype worker(byte me; byte mine) {
    byte i, k, r, in, arrived, able, n_late, was, was_closer;
    bit enough, won, turned, before;
    {
        asleep[me] = 0;
        r = place_round[me];
        if
        :: place[me] == OUT -> goto out
        :: place[me] == OFFERS || place[me] == LATE ->
#if FAULT == 4
            whole[me] = 0; goto compute
#elif FAULT == 5
            read_turned();
            before = turned;
#else
            before = place_before[me];
#endif
            if
            :: clock[me] == r + 1 -> goto offered
            :: else -> goto offer
            fi
        :: place[me] == HAS && !done[me] -> goto claimed
        :: else -> catch_up() /* the old one may have closed a round, and died before that was applied */
        fi;
next:
        if
        :: atomic { left > 0 -> left--; done[me] = 0; place[me] = HAS }
        :: left == 0 -> goto out
        fi;
claimed:
        catch_up();
        read_turned(); /* I have no offer that could turn it */
        before = turned;
        atomic { whole[me] = 0; n_in[me] = 0 };
#if FAULT == 4
compute:
#endif
        whole[me] = 1;
#if FAULT == 6
        done[me] = 1;
#endif
        atomic { place[me] = OFFERS; place_round[me] = r; place_before[me] = before };
offer:
        late[me] = (place[me] == LATE -> 1 : 0);
        clock[me] = r + 1;
offered:
        done[me] = 1;
        wait_for_round();
        read_turned();
        assert((turned != before) == (n_in[me] == 1));
#ifdef FOLD
        if
        :: turned == before ->
            catch_up();
            atomic { place[me] = LATE; place_round[me] = r };
            goto offer
        :: else
        fi;
#endif
        atomic { before = turned; turned = 0; place[me] = NOTHING; settled++ };
        catch_up();
        goto next;
out:
        working[me] = 0;
        wake_sleepers();
        place[me] = OUT;
        ALL_OUT || abort_word;
        if
        :: abort_word -> goto over
        :: else
        fi;
#if FAULT != 8
        catch_up(); /* who has closed the last round may have died before that was applied */
#endif
over:
        skip
    } unless {
        atomic {
            life[me] != mine ->
                i = 0; k = 0; r = 0; in = 0; arrived = 0; able = 0; n_late = 0; was = 0; was_closer = 0;
                enough = 0; won = 0; turned = 0; before = 0; mine = 0; me = 0
        }
    }
}

#if DEATHS > 0
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
            working[i] = 1
        };
        left = ITEMS;
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
#if ON_DEATH == 1
        working[victim] = 0;
        gone[victim] = 1;
#elif ON_DEATH == 2
        abort_word = 1;
#endif
#if FAULT != 7
        wake_after_death();
#endif
        atomic {
#if ON_DEATH == 0
            dead[victim] = 0;
            run worker(victim, life[victim]);
#endif
            victim = 0
        }
    od
}

#if ON_DEATH != 2
active proctype auditor() {
    atomic {
        timeout;
        assert(applied == closed);
        assert(ON_DEATH == 1 || settled == ITEMS)
    }
}
#endif
