/* Exact fits whose workers are threads, so that ThreadSanitizer sees them (make check-threads): of each kind, live ones too; and stops that
 * come in the middle of a phase, at a point that is aimed at (base/point.h). With processes: test_program_tolerance.c, test_points.c. */
#include "api_help.h"

#include <math.h>
#include <stdbool.h>

#include "api/store_priv.h"
#include "base/atomic.h"
#include "base/point.h"

enum { SOON = 10 }; /* looks of a worker that leaves a phase: one for each loop that it has to come out of */

/* ---- where a run is stopped ---- */

static struct shmtrain_store *g_store;
static uint64_t g_stop_at; /* at so many looks of all workers, from 1; 0: never */
static _Atomic uint64_t g_looks, g_most_late;
static _Atomic uint32_t g_stopped;
static _Thread_local uint64_t t_late;

void shmt_point(const char *name) {
    if (strcmp(name, "fit:look") == 0) {
        if (load_relaxed(&g_stopped)) t_late++;
        if (take_relaxed(&g_looks, 1) + 1 != g_stop_at) return;
        store_relaxed(g_store->run.backend->store->stop_word(g_store->run.job.store),
                      1); /* at once; shmtrain_store_stop waits until the application looks up */
        store_relaxed(&g_stopped, 1);
    } else if (strcmp(name, "fit:phase") == 0) {
        /* of the phase in which the stop has come; in those behind it the parameters are written, and proved */
        const uint64_t phase_behind = UINT64_C(1) << 32;
        if (load_relaxed(&g_stopped) && t_late < phase_behind) {
            uint64_t most = load_relaxed(&g_most_late);
            while (t_late > most && !swap_relaxed(&g_most_late, &most, t_late)) continue;
            t_late = phase_behind;
        }
    }
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    (void)what;
    (void)before;
    (void)after;
}

/* ---- runs ---- */

#define FEW  "builtin:sparse:examples=1500,valid=100,features=100,nonzeros=8"
#define MANY "builtin:sparse:examples=1500,valid=100,features=1500,nonzeros=8"
static const struct fit {
    const char *data, *options[4][2];
} FITS[] = {
    {FEW, {{"model", "logistic"}, {"C", "1"}, {"tolerance", "1e-6"}}},
    {MANY, {{"model", "logistic"}, {"C", "10"}, {"tolerance", "1e-6"}}},
    {FEW, {{"model", "logistic"}, {"l1", "1e-3"}, {"tolerance", "1e-4"}}},
    {MANY, {{"model", "logistic"}, {"l1", "1e-3"}, {"tolerance", "1e-4"}}},
    {FEW, {{"model", "logistic"}, {"tolerance", "1e-4"}}},
    {FEW, {{"model", "svm"}, {"C", "100"}, {"tolerance", "1e-4"}}},
    {MANY, {{"model", "svm"}, {"C", "1"}, {"tolerance", "1e-3"}}},
    {"builtin:dense:examples=300,features=6", {{"model", "softmax"}, {"tolerance", "1e-3"}}},
    {MANY, {{"model", "logistic"}, {"C", "1"}, {"mode", "hogwild"}, {"tolerance", "1e-3"}}},
    {FEW, {{"model", "svm"}, {"C", "1"}, {"mode", "hogwild"}, {"tolerance", "1e-3"}}},
    {MANY, {{"model", "svm"}, {"C", "1"}, {"mode", "async"}, {"tolerance", "1e-3"}}},
    {MANY, {{"model", "linear"}, {"C", "0.1"}, {"mode", "async"}, {"tolerance", "1e-3"}}},
};
#define N_FITS (sizeof FITS / sizeof *FITS)

static const struct shmtrain_report *run(const struct fit *fit, uint64_t stop_at) {
    assert_int_equal(shmtrain_store_create(&g_store), 0);
    g_stop_at = stop_at;
    store_relaxed(&g_looks, 0);
    store_relaxed(&g_stopped, 0);
    store_relaxed(&g_most_late, 0);
    WELL(g_store, shmtrain_store_set(g_store, "spawn", "threads"));
    WELL(g_store, shmtrain_store_set(g_store, "workers", "3"));
    for (int i = 0; i < 4 && fit->options[i][0]; i++)
        WELL(g_store, shmtrain_store_set(g_store, fit->options[i][0], fit->options[i][1]));
    WELL(g_store, shmtrain_store_train(g_store, fit->data));
    return shmtrain_store_report(g_store);
}

static const struct shmtrain_epoch *last_of(const struct shmtrain_report *r) {
    assert_true(r->n_epochs > 0);
    return &r->epoch[r->n_epochs - 1];
}

static void threads_prove_the_optimum(void **state) {
    (void)state;
    for (size_t i = 0; i < N_FITS; i++) {
        const struct shmtrain_report *r = run(&FITS[i], 0);
        if (strcmp(r->stopped_by, "tolerance") != 0) fail_msg("fit %zu: \"%s\"", i, r->stopped_by);
        assert_true(shmtrain_epoch_gap(last_of(r)) <= r->tolerance);
        shmtrain_store_destroy(g_store);
    }
}

/* From the first look on, in steps that grow: most are in the middle of a phase. */
static void a_stop_ends_the_phase_in_which_it_comes(void **state) {
    (void)state;
    for (size_t i = 0; i < N_FITS; i++)
        for (uint64_t at = 1; at < 20000; at += 1 + at) {
            const struct shmtrain_report *r = run(&FITS[i], at);
            const bool reached = load_relaxed(&g_stopped) != 0;
            if (load_relaxed(&g_most_late) > SOON)
                fail_msg("fit %zu, look %llu: %llu more", i, (unsigned long long)at,
                         (unsigned long long)load_relaxed(&g_most_late));
            if (reached && last_of(r)->partial) {
                const struct shmtrain_epoch *last = last_of(r);
                assert_int_equal(r->stopped, 1);
                assert_true(isnan(last->objective) || isfinite(last->objective));
                assert_true(!(last->bound > last->objective * (1 + 1e-9)));
            }
            shmtrain_store_destroy(g_store);
            if (!reached) break; /* the fit has not so many */
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(threads_prove_the_optimum, deadline),
        cmocka_unit_test_setup(a_stop_ends_the_phase_in_which_it_comes, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
