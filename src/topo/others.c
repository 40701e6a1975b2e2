/* What others use of the processors, by /proc/stat: see others.h. */
#include "topo/others.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

/* Ticks that all processors spent on work, as of boot, or stolen from them; 0 when nobody says. */
static uint64_t busy_ticks(void) {
    unsigned long long user, nice, system, idle, wait, irq, softirq, steal = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file) return 0;
    const int n = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &irq,
                         &softirq, &steal);
    fclose(file);
    return n >= 7 ? user + nice + system + irq + softirq + steal : 0;
}

static uint64_t own_ns(void) {
    uint64_t us = 0;
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        getrusage(whose[i], &usage);
        us += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
              (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return us * 1000;
}

void shmt_others_begin(struct shmt_others *o) {
    *o = (struct shmt_others){.began_ns = shmt_machine_ns(), .busy_ticks = busy_ticks(), .own_ns = own_ns()};
}

double shmt_others_end(const struct shmt_others *o) {
    const double wall = (double)(shmt_machine_ns() - o->began_ns), tick = 1e9 / (double)sysconf(_SC_CLK_TCK);
    const double busy = (double)(busy_ticks() - o->busy_ticks) * tick, own = (double)(own_ns() - o->own_ns);
    if (o->busy_ticks == 0 || wall <= 0) return -1;
    return busy > own ? (busy - own) / wall : 0;
}
