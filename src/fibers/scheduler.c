/* The scheduler of fibers, and the host that answers them: see scheduler.h. */
#include "fibers/scheduler.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/own.h"
#include "base/random.h"
#include "fibers/context.h"

#define NOWHERE      UINT32_MAX
#define MOST_NS      1e16 /* of one piece of work: 115 days */
#define MOST_HICCUPS 1000 /* of one item */
#define BUCKETS      1024 /* of words that are waited for */

enum state { READY, WAITING, ENDED };

struct fiber {
    struct shmt_context context;
    uint64_t at_ns, tie; /* when it goes on, and whether before others of that time */
    uint32_t heap_at;    /* its place among those who will go on */
    enum state state;
    _Atomic uint32_t *word;  /* WAITING: for a change of it */
    uint32_t next, before;   /* WAITING: others in the same bucket; NOWHERE: none */
    uint64_t drawn;          /* costs so far */
    double slower;           /* times as long it computes */
    double item_ns, left_ns; /* what the item in hand takes, and what is left of that */
    bool computes;           /* it goes on when it has computed for so long, not at a time */
    bool began, dying;       /* it stands somewhere on its stack; where it goes on, it ends */
    uint64_t paused_ns;      /* until then it does not go on */
    struct shmt_own own;     /* what it has allocated */
    struct shmt_memory_bill bill;
};

struct bucket {
    uint32_t first, last;
};

struct shmt_fibers {
    struct shmt_fibers_spec spec;
    struct shmt_context thread;
    struct fiber *running; /* NULL: the thread itself */
    uint64_t now_ns;       /* of the last fiber that went on */
    uint64_t n_events, last_event, n_ties;
    uint64_t mishap_ns; /* of the next mishap; UINT64_MAX: there is none */
    uint32_t n_left, n_heap, n_mishaps, mishap;
    struct shmt_mishap mishaps[2 * SHMT_MAX_MISHAPS]; /* in the order of their times */
    struct bucket bucket[BUCKETS];
    uint32_t *heap;             /* (n) fibers that will go on, whoever is first at 0 */
    struct fiber *fiber;        /* (n) */
    struct shmt_memory *memory; /* NULL: it takes no time */
};

/* Who is answered by fibers: the thread that has made them. */
static _Thread_local struct shmt_fibers *mine;

/* ---- who goes on: a binary heap ---- */

static bool is_before(const struct fiber *a, const struct fiber *b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->tie < b->tie;
}

static void put(struct shmt_fibers *f, uint32_t at, uint32_t fiber) {
    f->heap[at] = fiber;
    f->fiber[fiber].heap_at = at;
}

static void sift_up(struct shmt_fibers *f, uint32_t at) {
    const uint32_t moving = f->heap[at];
    for (; at > 0 && is_before(&f->fiber[moving], &f->fiber[f->heap[(at - 1) / 2]]); at = (at - 1) / 2)
        put(f, at, f->heap[(at - 1) / 2]);
    put(f, at, moving);
}

static void sift_down(struct shmt_fibers *f, uint32_t at) {
    const uint32_t moving = f->heap[at];
    for (uint32_t child = 2 * at + 1; child < f->n_heap; child = 2 * at + 1) {
        if (child + 1 < f->n_heap && is_before(&f->fiber[f->heap[child + 1]], &f->fiber[f->heap[child]])) child++;
        if (!is_before(&f->fiber[f->heap[child]], &f->fiber[moving])) break;
        put(f, at, f->heap[child]);
        at = child;
    }
    put(f, at, moving);
}

static uint32_t index_of(const struct shmt_fibers *f, const struct fiber *fiber) { return (uint32_t)(fiber - f->fiber); }

/* It goes on at at_ns; equal times are in an order that the seed chooses. */
static void schedule(struct shmt_fibers *f, struct fiber *fiber, uint64_t at_ns) {
    fiber->at_ns = at_ns > fiber->paused_ns ? at_ns : fiber->paused_ns;
    fiber->tie = shmt_mix64(f->spec.seed ^ shmt_mix64(f->n_ties++));
    if (fiber->heap_at == NOWHERE) put(f, f->n_heap++, index_of(f, fiber));
    sift_up(f, fiber->heap_at);
    sift_down(f, fiber->heap_at);
}

static void take(struct shmt_fibers *f, struct fiber *fiber) {
    const uint32_t at = fiber->heap_at, last = f->heap[--f->n_heap];
    fiber->heap_at = NOWHERE;
    if (at == f->n_heap) return;
    put(f, at, last);
    sift_up(f, at);
    sift_down(f, f->fiber[last].heap_at);
}

/* ---- waits: lists by word ---- */

static struct bucket *bucket_of(struct shmt_fibers *f, const _Atomic uint32_t *word) {
    return &f->bucket[shmt_mix64((uint64_t)(uintptr_t)word) % BUCKETS];
}

static void queue(struct shmt_fibers *f, struct fiber *fiber, _Atomic uint32_t *word) {
    struct bucket *bucket = bucket_of(f, word);
    fiber->state = WAITING;
    fiber->word = word;
    fiber->next = NOWHERE;
    fiber->before = bucket->last;
    if (bucket->last == NOWHERE)
        bucket->first = index_of(f, fiber);
    else
        f->fiber[bucket->last].next = index_of(f, fiber);
    bucket->last = index_of(f, fiber);
}

static void leave_queue(struct shmt_fibers *f, struct fiber *fiber) {
    struct bucket *bucket = bucket_of(f, fiber->word);
    if (fiber->before == NOWHERE)
        bucket->first = fiber->next;
    else
        f->fiber[fiber->before].next = fiber->next;
    if (fiber->next == NOWHERE)
        bucket->last = fiber->before;
    else
        f->fiber[fiber->next].before = fiber->before;
    fiber->state = READY;
}

/* ---- the host, as fibers see it ---- */

/* Whoever stands there will never return; the thread does what else is to be done. */
static _Noreturn void end_on_own_stack(struct shmt_fibers *f, struct fiber *me) {
    shmt_context_switch(&me->context, &f->thread, 1);
    abort(); /* nobody goes on in one that has ended */
}

static void suspend(struct shmt_fibers *f, struct fiber *me) {
    shmt_context_switch(&me->context, &f->thread, 0);
    if (me->dying) end_on_own_stack(f, me);
}

/* The running fiber's clock is at at_ns; who is behind goes first, and so does the thread behind the last event that it has asked
 * for, and before a mishap. */
static void pass_until(struct shmt_fibers *f, uint64_t at_ns) {
    struct fiber *me = f->running;
    const bool other = f->n_heap > 0 && f->fiber[f->heap[0]].at_ns <= at_ns;
    if (other || f->mishap_ns <= at_ns || f->n_events >= f->last_event) {
        schedule(f, me, at_ns);
        suspend(f, me);
        return;
    }
    me->at_ns = f->now_ns = at_ns;
    f->n_events++;
}

static uint64_t look(struct shmt_fibers *f) { return f->running->at_ns + f->spec.sim.look_ns; }

static uint64_t now_ns(void) {
    if (!mine) return SHMT_HOST_MACHINE.now_ns();
    if (!mine->running) return mine->now_ns;
    pass_until(mine, look(mine));
    return mine->running->at_ns;
}

static void sleep_until(uint64_t at_ns) {
    if (!mine || !mine->running) {
        SHMT_HOST_MACHINE.sleep_until(at_ns);
        return;
    }
    pass_until(mine, at_ns > look(mine) ? at_ns : look(mine));
}

static void yield(void) {
    if (!mine || !mine->running)
        SHMT_HOST_MACHINE.yield();
    else
        pass_until(mine, look(mine));
}

static void wait_on(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns) {
    if (!mine || !mine->running) {
        SHMT_HOST_MACHINE.wait(word, expected, at_most_ns);
        return;
    }
    struct fiber *me = mine->running;
    if (load_relaxed(word) != expected) { /* fibers are one thread */
        pass_until(mine, look(mine));
        return;
    }
    queue(mine, me, word);
    schedule(mine, me, look(mine) + at_most_ns);
    suspend(mine, me);
}

/* Also from the thread itself, whose stop or abort word wakes sleepers. */
static void wake(_Atomic uint32_t *word) {
    if (!mine) {
        SHMT_HOST_MACHINE.wake(word);
        return;
    }
    struct shmt_fibers *f = mine;
    const uint64_t at_ns = (f->running ? f->running->at_ns : f->now_ns) + f->spec.sim.look_ns;
    for (uint32_t i = bucket_of(f, word)->first; i != NOWHERE;) {
        struct fiber *other = &f->fiber[i];
        i = other->next;
        if (other->word != word) continue;
        leave_queue(f, other);
        schedule(f, other, at_ns);
    }
}

static double draw(struct fiber *me, const struct shmt_cost *cost) {
    return (double)shmt_cost_draw(cost, mine->spec.seed, index_of(mine, me), me->drawn++);
}

/* The same of a cost that may be none at all: then nothing is drawn, and what is drawn later is what it would be without it. */
static double draw_some(struct fiber *me, const struct shmt_cost *cost) {
    return cost->ns > 0 || cost->param > 0 ? draw(me, cost) : 0;
}

/* What stops a worker while it computes for so long; nothing is drawn where there are none. */
static double draw_hiccups(struct fiber *me, double computing_ns) {
    const struct shmt_sim *sim = &mine->spec.sim;
    if (sim->hiccup_every_ns < 1) return 0;
    const double expected = fmin(computing_ns / sim->hiccup_every_ns, MOST_HICCUPS), whole = floor(expected);
    const double chance = shmt_unit(shmt_hash64(mine->spec.seed, 0x68696363, index_of(mine, me), me->drawn++));
    double ns = 0;
    for (int64_t n = (int64_t)whole + (chance < expected - whole); n > 0; n--) ns += draw(me, &sim->hiccup);
    return ns;
}

/* Of the fiber's clock, counted from the beginning: fractions of a nanosecond count in queues. */
static double since_begin(const struct fiber *me) { return (double)(me->at_ns - mine->spec.begin_ns); }

static void touch(const void *at, uint64_t bytes, bool writes) {
    if (!mine || !mine->running || !mine->memory) return;
    struct fiber *me = mine->running;
    shmt_memory_touch(mine->memory, index_of(mine, me), since_begin(me), at, bytes, writes, &me->bill);
}

static void spend(enum shmt_spent what, double times) {
    if (!mine || !mine->running) return;
    const struct shmt_sim *sim = &mine->spec.sim;
    struct fiber *me = mine->running;
    double ns = 0;
    switch (what) {
        case SHMT_SPENT_ITEM:
            me->item_ns = (draw(me, &sim->compute) * times + draw_some(me, &sim->item)) * me->slower;
            me->left_ns = me->item_ns += draw_hiccups(me, me->item_ns);
            return;
        case SHMT_SPENT_COMPUTING:
            ns = times < 1 ? fmin(times * me->item_ns, me->left_ns) : me->left_ns;
            me->left_ns -= ns;
            break;
        case SHMT_SPENT_PULLING:
            ns = draw(me, &sim->pull) * times;
            break;
        case SHMT_SPENT_PUSHING:
            ns = draw(me, &sim->push) * times;
            break;
        case SHMT_SPENT_ADDING:
            ns = draw_some(me, &sim->aggregate) * times * me->slower;
            break;
        case SHMT_SPENT_UPDATING:
            ns = draw_some(me, &sim->update) * times * me->slower;
            break;
        case SHMT_SPENT_LOOKING:
            ns = (double)sim->look_ns * times;
            break;
        case SHMT_SPENT_RACING:
            ns = draw(me, &sim->race);
            /* fall through */
        case SHMT_SPENT_TOUCHING:
            ns += shmt_memory_pay(&me->bill, since_begin(me));
            break;
    }
    if (ns < 1) return;
    me->computes = true;
    pass_until(mine, me->at_ns + (uint64_t)fmin(ns, MOST_NS));
    me->computes = false;
}

#define ANSWERS                                                                                                  \
    .now_ns = now_ns, .sleep_until = sleep_until, .yield = yield, .wait = wait_on, .wake = wake, .spend = spend, \
    .takes_turns = true
static const struct shmt_host_ops FIBERS = {ANSWERS}, FIBERS_THAT_TOUCH = {ANSWERS, .touch = touch};

/* ---- their life ---- */

static void live(void) {
    struct shmt_fibers *f = mine;
    struct fiber *me = f->running;
    shmt_context_entered(&f->thread);
    me->began = true;
    f->spec.body(f->spec.arg, index_of(f, me));
    me->state = ENDED;
    end_on_own_stack(f, me);
}

/* A process would take with it what it has not freed. */
static void note_end(struct shmt_fibers *f, struct fiber *fiber) {
    shmt_own_drop(&fiber->own);
    f->n_left--;
}

static void go_on(struct shmt_fibers *f, struct fiber *fiber) {
    f->running = fiber;
    shmt_own_use(&fiber->own);
    shmt_context_switch(&f->thread, &fiber->context, 0);
    shmt_own_use(NULL);
    f->running = NULL;
}

/* ---- and their deaths ---- */

/* Of one that stands nowhere any more. Who is asked what becomes of it finds everything freed, and its next life begins at once. */
static void note_death(struct shmt_fibers *f, struct fiber *fiber) {
    shmt_own_drop(&fiber->own);
    fiber->state = ENDED;
    fiber->dying = fiber->began = fiber->computes = false;
    fiber->paused_ns = 0;
    fiber->bill = (struct shmt_memory_bill){0};
    if (!f->spec.died || !f->spec.died(f->spec.arg, index_of(f, fiber))) {
        f->n_left--;
        return;
    }
    shmt_context_restart(&fiber->context, live);
    fiber->state = READY;
    schedule(f, fiber, f->now_ns);
}

/* One that has begun goes on for a moment, and ends at once, because sanitizers count who is on which stack. */
void shmt_fibers_kill(struct shmt_fibers *f, uint32_t i) {
    struct fiber *fiber = &f->fiber[i];
    if (fiber->state == ENDED) return;
    if (fiber->state == WAITING) leave_queue(f, fiber);
    take(f, fiber);
    fiber->dying = true;
    if (fiber->began) go_on(f, fiber);
    note_death(f, fiber);
}

void shmt_fiber_die(void) {
    struct fiber *me = mine->running;
    me->dying = true;
    end_on_own_stack(mine, me);
}

static void pause_fiber(struct shmt_fibers *f, struct fiber *fiber, uint64_t pause_ns) {
    const uint64_t until_ns = f->now_ns + pause_ns, from_ns = fiber->paused_ns > f->now_ns ? fiber->paused_ns : f->now_ns;
    if (fiber->state == ENDED || until_ns <= from_ns) return;
    fiber->paused_ns = until_ns;
    schedule(f, fiber, fiber->computes ? fiber->at_ns + (until_ns - from_ns) : fiber->at_ns);
}

static void set_mishap(struct shmt_fibers *f) {
    f->mishap_ns = f->mishap < f->n_mishaps ? f->spec.begin_ns + f->mishaps[f->mishap].at_ns : UINT64_MAX;
}

static void have_mishap(struct shmt_fibers *f) {
    const struct shmt_mishap mishap = f->mishaps[f->mishap++];
    f->now_ns = f->mishap_ns;
    set_mishap(f);
    if (mishap.pause_ns > 0)
        pause_fiber(f, &f->fiber[mishap.worker], mishap.pause_ns);
    else
        shmt_fibers_kill(f, mishap.worker);
}

/* Of two at one time a pause comes first: who is stopped may be killed. */
static void note_mishaps(struct shmt_fibers *f, const struct shmt_mishap *mishap, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = f->n_mishaps;
        if (mishap[i].worker >= f->spec.n) continue;
        f->n_mishaps++;
        for (; at > 0 && f->mishaps[at - 1].at_ns > mishap[i].at_ns; at--) f->mishaps[at] = f->mishaps[at - 1];
        f->mishaps[at] = mishap[i];
    }
}

/* ---- all of them ---- */

/* How many threads have fibers, and how many of them have some that touch memory at a cost: as long as there is one, the host is theirs,
 * and asks the machine for all others. */
static uint32_t n_threads, n_touching;
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER; /* guards them, and which host is in use */

static void count_host(const struct shmt_fibers *f, uint32_t more) {
    pthread_mutex_lock(&host_lock);
    n_threads += more;
    if (shmt_sim_touches(&f->spec.sim)) n_touching += more;
    shmt_host_use(n_touching > 0 ? &FIBERS_THAT_TOUCH : n_threads > 0 ? &FIBERS : &SHMT_HOST_MACHINE);
    pthread_mutex_unlock(&host_lock);
}

static void take_host(struct shmt_fibers *f) {
    count_host(f, 1);
    mine = f;
}

static void give_host_back(void) {
    const struct shmt_fibers *f = mine;
    mine = NULL;
    count_host(f, UINT32_MAX); /* one less */
}

int shmt_fibers_make(const struct shmt_fibers_spec *spec, struct shmt_fibers **out, struct shmt_error *e) {
    struct shmt_fibers *f = calloc(1, sizeof *f);
    int rc = 0;
    if (f) {
        f->fiber = calloc(spec->n, sizeof *f->fiber);
        f->heap = calloc(spec->n, sizeof *f->heap);
    }
    if (!f || !f->fiber || !f->heap) {
        if (f) {
            free(f->fiber);
            free(f->heap);
        }
        free(f);
        return shmt_no_memory(e, "for %u fibers", spec->n);
    }
    f->spec = *spec;
    f->now_ns = spec->begin_ns;
    note_mishaps(f, spec->sim.pause, spec->sim.n_pauses);
    note_mishaps(f, spec->sim.death, spec->sim.n_deaths);
    set_mishap(f);
    for (uint32_t i = 0; i < BUCKETS; i++) f->bucket[i] = (struct bucket){NOWHERE, NOWHERE};
    shmt_context_of_thread(&f->thread);
    for (; f->n_left < spec->n && rc == 0; f->n_left += rc == 0) {
        struct fiber *fiber = &f->fiber[f->n_left];
        fiber->heap_at = NOWHERE;
        fiber->slower = shmt_sim_times(&spec->sim, f->n_left);
        rc = shmt_context_make(&fiber->context, spec->stack_bytes, live, e);
        if (rc == 0) schedule(f, fiber, spec->begin_ns);
    }
    if (rc == 0 && shmt_memory_costs_any(&spec->sim.memory)) rc = shmt_memory_make(&spec->sim.memory, spec->n, &f->memory, e);
    if (rc < 0) {
        shmt_fibers_free(f);
        return rc;
    }
    take_host(f);
    *out = f;
    return 0;
}

bool shmt_fibers_run(struct shmt_fibers *f, uint64_t most_events) {
    f->last_event = f->n_events + most_events;
    while (f->n_left > 0 && f->n_events < f->last_event) {
        struct fiber *next = &f->fiber[f->heap[0]]; /* there is one: whoever has not ended goes on some time */
        if (f->mishap_ns <= next->at_ns) {
            have_mishap(f);
            continue;
        }
        take(f, next);
        if (next->state == WAITING) leave_queue(f, next);
        f->now_ns = next->at_ns;
        f->n_events++;
        go_on(f, next);
        if (next->dying)
            note_death(f, next);
        else if (next->state == ENDED)
            note_end(f, next);
    }
    return f->n_left == 0;
}

void shmt_fibers_free(struct shmt_fibers *f) {
    if (mine == f) give_host_back();
    for (uint32_t i = 0; i < f->spec.n; i++) shmt_context_free(&f->fiber[i].context);
    shmt_memory_free(f->memory);
    free(f->fiber);
    free(f->heap);
    free(f);
}

uint64_t shmt_fibers_now_ns(const struct shmt_fibers *f) { return f->now_ns; }

uint64_t shmt_fibers_events(const struct shmt_fibers *f) { return f->n_events; }

bool shmt_fiber_asks(uint32_t *which_out) {
    if (!mine || !mine->running) return false;
    *which_out = index_of(mine, mine->running);
    return true;
}
