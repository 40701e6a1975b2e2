/* Rows into columns: see turn.h. A counting sort in slabs of rows (as parallel radix sorts are). */
#include "solve/turn.h"

#include "base/own.h"

#include <string.h>

#define LOOK_EVERY 4096 /* rows or columns */

static void rows_of_slab(const struct shmt_solve_plan *plan, uint64_t slab, uint64_t *from, uint64_t *to) {
    shmt_solve_share(plan->of.n, (uint32_t)slab, plan->n_slabs, from, to);
}

static bool goes_on_at(const struct shmt_pass *pass, uint64_t i) { return i % LOOK_EVERY != 0 || shmt_pass_goes_on(pass); }

static void count_slab(const struct shmt_pass *pass, uint64_t slab, uint32_t *count) {
    const struct shmt_problem *p = pass->problem;
    uint64_t from, to;
    memset(count, 0, pass->plan->of.n_columns * sizeof *count);
    rows_of_slab(pass->plan, slab, &from, &to);
    for (uint64_t i = from; i < to && goes_on_at(pass, i); i++) {
        const uint64_t e = shmt_problem_example(p, i);
        for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++) count[p->data->id[at]]++;
    }
}

void shmt_turn_count(const struct shmt_pass *pass) {
    uint64_t first, behind;
    shmt_solve_share(pass->plan->n_slabs, pass->part, pass->n_parts, &first, &behind);
    for (uint64_t slab = first; slab < behind && shmt_pass_goes_on(pass); slab++)
        count_slab(pass, slab, pass->memory->count + slab * pass->plan->of.n_columns);
}

void shmt_turn_place(const struct shmt_pass *pass) {
    const struct shmt_solve_plan *plan = pass->plan;
    const struct shmt_solve_memory *m = pass->memory;
    uint64_t at = 0;
    for (uint32_t j = 0; j < plan->of.n_columns && goes_on_at(pass, j); j++) {
        m->start[j] = at;
        for (uint32_t slab = 0; slab < plan->n_slabs; slab++) {
            const uint64_t place = (uint64_t)slab * plan->of.n_columns + j;
            m->cursor[place] = at;
            at += m->count[place];
        }
    }
    m->start[plan->of.n_columns] = at;
}

static void fill_slab(const struct shmt_pass *pass, uint64_t slab, uint64_t *next) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t columns = pass->plan->of.n_columns;
    uint64_t from, to;
    memcpy(next, m->cursor + slab * columns, columns * sizeof *next);
    rows_of_slab(pass->plan, slab, &from, &to);
    for (uint64_t i = from; i < to && goes_on_at(pass, i); i++) {
        const uint64_t e = shmt_problem_example(p, i);
        for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++) {
            const uint64_t place = next[p->data->id[at]]++;
            m->row[place] = (uint32_t)i;
            if (m->value) m->value[place] = p->data->value ? p->data->value[at] : 1;
        }
    }
}

int shmt_turn_fill(const struct shmt_pass *pass) {
    uint64_t first, behind;
    shmt_solve_share(pass->plan->n_slabs, pass->part, pass->n_parts, &first, &behind);
    if (first == behind) return 0;
    uint64_t *next =
        shmt_own_malloc(pass->plan->of.n_columns + UINT64_C(1), sizeof *next); /* a slab's places as they are taken */
    if (!next) return -1;
    for (uint64_t slab = first; slab < behind && shmt_pass_goes_on(pass); slab++) fill_slab(pass, slab, next);
    shmt_own_free(next);
    return 0;
}
