/* Schedulers that mean harm: see hostile.h. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define POINTS 256

enum strategy { BY_CHANCE, RARE_LAST, ONE_STARVES, ALL_AT_ONE_POINT, STRATEGIES };

/* One thread. */
static struct {
    uint64_t seed, drawn;
    enum strategy strategy;
    uint32_t starved;
    struct {
        const char *name;
        uint64_t passed;
    } point[POINTS];
} g;

void hostile_begin(uint64_t seed, uint32_t workers) {
    memset(&g, 0, sizeof g);
    g.seed = seed;
    g.strategy = (enum strategy)(seed % STRATEGIES);
    g.starved = (uint32_t)(seed / STRATEGIES % workers);
}

uint64_t hostile_asked(const char *variable, uint64_t standard) {
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : standard;
}

uint64_t hostile_draw(uint64_t below) { return shmt_below(shmt_hash64(g.seed, 0x706f696e, g.drawn++, 0), below); }

static uint64_t times_passed(const char *name) {
    const size_t first = ((uintptr_t)name >> 2) % POINTS;
    for (size_t k = 0; k < POINTS; k++) {
        const size_t at = (first + k) % POINTS;
        if (!g.point[at].name) g.point[at].name = name;
        if (g.point[at].name == name) return ++g.point[at].passed;
    }
    return 1;
}

uint64_t hostile_delay(const char *point, uint32_t who, uint64_t *passed_out) {
    const uint64_t passed = times_passed(point);
    if (passed_out) *passed_out = passed;
    switch (g.strategy) {
        case RARE_LAST:
            return hostile_draw(20000) / passed + hostile_draw(50);
        case ONE_STARVES:
            return who == g.starved ? hostile_draw(5000) : hostile_draw(20);
        case ALL_AT_ONE_POINT:
            return shmt_mix64((uint64_t)strlen(point) ^ (uint64_t)point[0] << 8 ^ g.seed) % 16 == 0 ? hostile_draw(20000) : 0;
        default:
            return hostile_draw(4) == 0 ? hostile_draw(3000) : 0;
    }
}
