/* Guests that die, and whose seat is reclaimed (src/backends/shm/guests.c, src/naming/lease.c): one seat, VISITORS programs that want it
 * one after the other, the application, which reclaims, and the chief, which counts in. A program reserves the seat, and its worker
 * enters; the program may die first and its worker a moment later, each between any two steps, and a child that has the mark may
 * outlive both.
 *
 * Shown: nobody who lives loses its seat, or stops being waited for; and in the end nobody waits for a seat that a dead one has
 * entered, or that is nobody's. One who is killed between two words of its reservation keeps the seat as long as a child keeps its
 * mark. Others wait for it only if the chief has counted in the dead one before it at that very moment. Nobody asks to leave here.
 *
 * FAULT plants one mistake, which must be found: see `run`. */
#ifndef VISITORS
#define VISITORS 2
#endif
#ifndef FAULT
#define FAULT 0
#endif
#define APPLICATION 9
#define WORKER(v) ((v) + VISITORS) /* its life; that of a program is v */

byte guest;                    /* whose: 0: nobody's */
bit on_its_way;                /* the mark in the same word */
byte life;                     /* a program (v), its worker, or 0 */
bit alive;
byte mark;                     /* who holds it, or a child of it */
bit dead[APPLICATION + VISITORS + 1];
bit kept[VISITORS + 1];        /* of no protocol: a child keeps its mark */

#define ENDED (guest != 0 && life != 0 && dead[life] && (!on_its_way || life == guest || FAULT == 4))

/* let_go(g, w): clears the life, then compares and swaps */
inline let_go(g, w) {
    if
    :: g != 0 && guest == g && on_its_way == w ->
        life = 0;
        atomic {
            if
            :: guest == g && on_its_way == w ->
                assert(g == APPLICATION || dead[g] || dead[WORKER(g)]); /* nobody who lives loses its seat */
                guest = 0; on_its_way = 0
            :: else
            fi
        }
    :: else
    fi
}

proctype visitor(byte v) {
    bit seen;
    {
        skip;
endwait:
        atomic { mark == 0 -> mark = v };
        if
        :: alive || guest != 0 -> mark = 0; goto endwait
        :: else
        fi;
        atomic {
            if
            :: guest == 0 -> guest = v; on_its_way = 1
            :: else -> mark = 0; goto endwait
            fi
        };
        life = v;
        /* its worker */
        atomic { seen = (guest == v && on_its_way) };
        life = WORKER(v);
#if FAULT == 3
        if :: seen -> atomic { guest = v; on_its_way = 0 } :: else fi;
#else
        if :: seen -> atomic { if :: guest == v && on_its_way -> on_its_way = 0 :: else fi } :: else fi;
#endif
        if :: guest != v -> mark = 0 :: else fi; /* it is sent away */
endworks:
        false
    } unless { dead[WORKER(v)] }
}

/* A program dies, then its worker. What they held of the mark goes with the last who has it. */
proctype killer(byte v) {
    if
    :: skip /* it lives */
    :: dead[v] = 1; atomic { dead[WORKER(v)] = 1; if :: mark == v && !kept[v] -> mark = 0 :: mark == v -> kept[v] = 1 :: mark != v fi }
    fi
}

active proctype application() {
    byte g, l;
    bit w, held;
endlook:
    do
    :: (guest != 0 || alive) && (mark == 0 || ENDED || (guest == 0 && FAULT != 1)) ->
        atomic { if :: mark == 0 -> mark = APPLICATION; held = 1 :: else -> held = 0 fi };
        atomic { g = guest; w = on_its_way };
        if
        :: held
#if FAULT != 1
        :: !held && g == 0 -> if :: alive :: else -> goto next fi
#endif
        :: !held && (g != 0 || FAULT == 1) ->
            l = life;
            if
            :: guest == g && on_its_way == w && life == l && l != 0 && dead[l] && (!w || l == g || FAULT == 4)
            :: else -> goto next
            fi
        fi;
        /* reclaim: of whom it is about, it looks again; nobody takes the seat, or enters, behind the next step */
        atomic { g = guest; w = on_its_way };
        if
        :: g == 0 && !alive -> goto next
        :: FAULT == 5 || held || (g == 0 && alive)
        :: FAULT != 5 && !held && g != 0 ->
            l = life;
            if
            :: guest == g && on_its_way == w && life == l && l != 0 && dead[l] && (!w || l == g || FAULT == 4)
            :: else -> goto next
            fi
        fi;
#if FAULT != 2
        if
        :: g == 0 || w ->
            atomic {
                if
                :: guest == g && on_its_way == w ->
                    assert(guest == 0 || dead[guest]); /* or somebody who lives would not get in */
                    guest = APPLICATION; on_its_way = 1; g = APPLICATION; w = 1
                :: else -> goto next
                fi
            }
        :: else
        fi;
#endif
        /* whoever has entered, and lives, is among those who are waited for, and its locks are its own */
        atomic { assert(guest == 0 || on_its_way || dead[WORKER(guest)]); alive = 0 };
        let_go(g, w);
next:
        atomic { if :: held && mark == APPLICATION -> mark = 0 :: else fi; held = 0; g = 0; l = 0; w = 0 }
    od
}

active proctype chief() {
    byte n;
endturn:
    do
    :: n < 2 * VISITORS && !alive && guest != 0 && !on_its_way -> n++; alive = 1
    od
}

init {
    byte v = 1;
    atomic {
        do
        :: v <= VISITORS -> run visitor(v); run killer(v); v++
        :: else -> break
        od
    }
    timeout -> assert(guest == 0 || on_its_way || !dead[WORKER(guest)]); assert(!alive || on_its_way || (guest != 0 && !dead[WORKER(guest)]))
}
