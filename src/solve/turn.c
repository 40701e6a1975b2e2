/* Rows into columns: see turn.h. A counting sort in slabs of rows (as parallel radix sorts are). */
#include "solve/turn.h"

#include <stdlib.h>
#include <string.h>

static void rows_of_slab(const struct shmt_solve_plan *plan, uint32_t slab, uint64_t *from, uint64_t *to) {
    shmt_solve_share(plan->of.n, slab, plan->n_slabs, from, to);
}

void shmt_turn_count(const struct shmt_problem *p, const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m,
                     uint32_t part, uint32_t n_parts) {
    uint64_t first, behind;
    shmt_solve_share(plan->n_slabs, part, n_parts, &first, &behind);
    for (uint64_t slab = first; slab < behind; slab++) {
        uint32_t *count = m->count + slab * plan->of.n_columns;
        uint64_t from, to;
        memset(count, 0, plan->of.n_columns * sizeof *count);
        rows_of_slab(plan, (uint32_t)slab, &from, &to);
        for (uint64_t i = from; i < to; i++) {
            const uint64_t e = shmt_problem_example(p, i);
            for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++) count[p->data->id[at]]++;
        }
    }
}

void shmt_turn_place(const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m) {
    uint64_t at = 0;
    for (uint32_t j = 0; j < plan->of.n_columns; j++) {
        m->start[j] = at;
        for (uint32_t slab = 0; slab < plan->n_slabs; slab++) {
            const uint64_t place = (uint64_t)slab * plan->of.n_columns + j;
            m->cursor[place] = at;
            at += m->count[place];
        }
    }
    m->start[plan->of.n_columns] = at;
}

static void fill_slab(const struct shmt_problem *p, const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m,
                      uint32_t slab, uint64_t *next) {
    uint64_t from, to;
    memcpy(next, m->cursor + (uint64_t)slab * plan->of.n_columns, plan->of.n_columns * sizeof *next);
    rows_of_slab(plan, slab, &from, &to);
    for (uint64_t i = from; i < to; i++) {
        const uint64_t e = shmt_problem_example(p, i);
        for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++) {
            const uint64_t place = next[p->data->id[at]]++;
            m->row[place] = (uint32_t)i;
            if (m->value) m->value[place] = p->data->value ? p->data->value[at] : 1;
        }
    }
}

int shmt_turn_fill(const struct shmt_problem *p, const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m,
                   uint32_t part, uint32_t n_parts) {
    uint64_t first, behind;
    shmt_solve_share(plan->n_slabs, part, n_parts, &first, &behind);
    if (first == behind) return 0;
    uint64_t *next = malloc((plan->of.n_columns + UINT64_C(1)) * sizeof *next); /* a slab's places as they are taken */
    if (!next) return -1;
    for (uint64_t slab = first; slab < behind; slab++) fill_slab(p, plan, m, (uint32_t)slab, next);
    free(next);
    return 0;
}
