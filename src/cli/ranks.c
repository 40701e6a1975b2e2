/* Hosts that one launcher has started: see ranks.h. */
#include "cli/ranks.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

char *rank_word(const char *word, uint32_t rank) {
    char *out;
    size_t n;
    FILE *f = open_memstream(&out, &n);
    if (!f) return NULL;
    for (; *word; word++) {
        const bool is_rank = word[0] == '%' && word[1] == 'r', is_percent = word[0] == '%' && word[1] == '%';
        if (is_rank) fprintf(f, "%" PRIu32, rank);
        if (!is_rank) fputc(*word, f);
        word += is_rank || is_percent;
    }
    return fclose(f) == 0 ? out : NULL;
}

void rank_take_processors(uint32_t rank, uint32_t n) {
    cpu_set_t all, mine;
    int seen = 0;
    if (sched_getaffinity(0, sizeof all, &all) < 0) return; /* more than a set has: they share them all */
    const int n_all = CPU_COUNT(&all);
    if (n_all < (int)n) return;
    CPU_ZERO(&mine);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (uint32_t)((long)seen++ * n / n_all) == rank) CPU_SET(cpu, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}
