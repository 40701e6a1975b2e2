/* Losing time on purpose: see slow.h. */
#include "ps/slow.h"

#include <math.h>

#include "sync/host.h"
#include "base/random.h"
#include "ps/meter.h"

#define PURPOSE      0x736c6f77 /* "slow" */
#define SHORTEST_NS  60000      /* a sleep takes about as much longer than it was told to (timer slack) */
#define SLICE_NS     50000000   /* how often a sleeper looks up */
#define MOST_DEBT_NS 1e18       /* 30 years: a time still */

bool shmt_slow_concerns(const struct shmt_slow_plan *plan, uint32_t worker) {
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->entry[i].worker == worker || plan->entry[i].worker == SHMT_SLOW_CHANCE) return true;
    return false;
}

static bool is_hit(const struct shmt_slow_plan *plan, uint32_t i, uint32_t worker, const struct shmtrain_work *work) {
    const struct shmt_slow_entry *entry = &plan->entry[i];
    if (entry->worker != SHMT_SLOW_CHANCE) return entry->worker == worker;
    return shmt_unit(shmt_hash64(plan->seed, PURPOSE + ((uint64_t)i << 32), work->epoch, work->first)) < entry->share;
}

void shmt_slow_of_item(const struct shmt_slow_plan *plan, uint32_t worker, const struct shmtrain_work *work, double *factor_out,
                       uint64_t *more_ns_out) {
    *factor_out = 1;
    *more_ns_out = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        if (!is_hit(plan, i, worker, work)) continue;
        *factor_out *= plan->entry[i].factor;
        *more_ns_out += plan->entry[i].more_ns;
    }
}

/* What the work until now_ns costs. */
static void ask_for(struct shmt_slow *slow, uint64_t now_ns) {
    const uint64_t busy_ns = shmt_meter_read(slow->busy_ns, now_ns);
    slow->debt_ns += (double)(busy_ns - slow->since_ns) * (slow->factor - 1);
    slow->since_ns = busy_ns;
}

void shmt_slow_begin(struct shmt_slow *slow, const struct shmtrain_work *work) {
    ask_for(slow, shmt_now_ns());
    shmt_slow_of_item(slow->plan, slow->worker, work, &slow->factor, &slow->more_ns);
}

/* relaxed: flags that carry nothing but themselves; whoever sees them late loses a slice more */
static bool is_over(const struct shmt_slow *slow) { return load_relaxed(slow->abort) != 0 || load_relaxed(slow->stop) != 0; }

/* Sleeps from now on until the debt is paid; returns the time then. */
static uint64_t sleep_off(struct shmt_slow *slow, uint64_t from_ns) {
    const uint64_t until_ns = from_ns + (uint64_t)slow->debt_ns;
    uint64_t now_ns = from_ns;
    while (now_ns < until_ns && !is_over(slow)) {
        const uint64_t wake_ns = until_ns - now_ns < SLICE_NS ? until_ns : now_ns + SLICE_NS;
        shmt_host()->sleep_until(wake_ns);
        now_ns = shmt_now_ns();
    }
    /* A sleep of minutes behind a Ctrl-Z is no credit for minutes. */
    slow->debt_ns = now_ns < until_ns ? 0 : fmax(slow->debt_ns - (double)(now_ns - from_ns), -(double)SLICE_NS);
    return now_ns;
}

void shmt_slow_pay(struct shmt_slow *slow) {
    const uint64_t now_ns = shmt_now_ns();
    ask_for(slow, now_ns);
    slow->debt_ns = fmin(slow->debt_ns + (double)slow->more_ns, MOST_DEBT_NS);
    slow->more_ns = 0;
    /* The meter has counted the sleep as work, for all who look at it; it is none that costs anything here. */
    if (slow->debt_ns > SHORTEST_NS) slow->since_ns = shmt_meter_read(slow->busy_ns, sleep_off(slow, now_ns));
}
