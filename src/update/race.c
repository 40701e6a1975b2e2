/* Widening the race on purpose: see race.h. */
#include "update/race.h"

#include "sync/host.h"
#include "base/random.h"

/* relaxed: flags that carry nothing but themselves; whoever sees them late waits once more */
static int is_over(const struct shmt_race *race) { return load_relaxed(race->abort) != 0 || load_relaxed(race->stop) != 0; }

void shmt_race_wait(struct shmt_race *race) {
    if (shmt_host_touches()) shmt_spend(SHMT_SPENT_RACING, 1);
    if (race->window_ns == 0) return;
    if (race->share < 1 && shmt_unit(shmt_mix64(race->seed + race->drawn++)) >= race->share) return;
    if (is_over(race)) return;
    const uint64_t until_ns = shmt_now_ns() + race->window_ns;
    if (race->window_ns < shmt_host()->shortest_sleep_ns) {
        while (shmt_now_ns() < until_ns) shmt_relax();
        return;
    }
    shmt_host()->sleep_until(until_ns); /* interrupted: the push goes on at once */
}
