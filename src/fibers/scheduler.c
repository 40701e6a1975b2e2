/* The scheduler of fibers, and the host that answers them: see scheduler.h. */
#include "fibers/scheduler.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/random.h"
#include "fibers/context.h"

#define NOWHERE UINT32_MAX
#define MOST_NS 1e16 /* of one piece of work: 115 days */
#define BUCKETS 1024 /* of words that are waited for */

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
    uint32_t n_left, n_heap;
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
    fiber->at_ns = at_ns;
    fiber->tie = shmt_mix64(f->spec.seed ^ shmt_mix64(f->n_ties++));
    if (fiber->heap_at == NOWHERE) put(f, f->n_heap++, index_of(f, fiber));
    sift_up(f, fiber->heap_at);
    sift_down(f, fiber->heap_at);
}

static struct fiber *take_first(struct shmt_fibers *f) {
    struct fiber *first = &f->fiber[f->heap[0]];
    first->heap_at = NOWHERE;
    f->n_heap--;
    if (f->n_heap > 0) {
        put(f, 0, f->heap[f->n_heap]);
        sift_down(f, 0);
    }
    return first;
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

/* The running fiber's clock is at at_ns; who is behind goes first, and so does the thread behind the last event that it has asked for. */
static void pass_until(struct shmt_fibers *f, uint64_t at_ns) {
    struct fiber *me = f->running;
    if ((f->n_heap > 0 && f->fiber[f->heap[0]].at_ns <= at_ns) || f->n_events >= f->last_event) {
        schedule(f, me, at_ns);
        shmt_context_switch(&me->context, &f->thread, 0);
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
    shmt_context_switch(&me->context, &mine->thread, 0);
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
            me->item_ns = me->left_ns = draw(me, &sim->compute) * times * me->slower;
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
    if (ns >= 1) pass_until(mine, me->at_ns + (uint64_t)fmin(ns, MOST_NS));
}

#define ANSWERS .now_ns = now_ns, .sleep_until = sleep_until, .yield = yield, .wait = wait_on, .wake = wake, .spend = spend
static const struct shmt_host_ops FIBERS = {ANSWERS}, FIBERS_THAT_TOUCH = {ANSWERS, .touch = touch};

/* ---- their life ---- */

static void live(void) {
    struct shmt_fibers *f = mine;
    struct fiber *me = f->running;
    shmt_context_entered(&f->thread);
    f->spec.body(f->spec.arg, index_of(f, me));
    me->state = ENDED;
    f->n_left--;
    shmt_context_switch(&me->context, &f->thread, 1);
    abort(); /* nobody goes on in one that has ended */
}

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
        struct fiber *next = take_first(f); /* there is one: whoever has not ended goes on some time */
        if (next->state == WAITING) leave_queue(f, next);
        f->now_ns = next->at_ns;
        f->n_events++;
        f->running = next;
        shmt_context_switch(&f->thread, &next->context, 0);
        f->running = NULL;
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
