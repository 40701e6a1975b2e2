/* Stores with a name that somebody has damaged, on purpose or not: each is refused in one sentence, or harmless.
 *
 * A run is made in a process of its own, and its files are copied while it goes on. Then the copies are damaged: single fields
 * of the manifest, with the sum over it as it was or made right again; any bytes; the files' lengths; the arrays of the data.
 * Whatever the library still takes is read to its end. */
#include "manifest_help.h"

#include <time.h>

#include "base/cpu.h"
#include "base/random.h"
#include "sanitized.h"

#define SEED 20240817u

/* Where `make check` tries n damages, tests/check_long tries SHMTRAIN_DAMAGES times as many. */
static int damages(int n) {
    const char *text = getenv("SHMTRAIN_DAMAGES");
    const int times = text ? atoi(text) : 1;
    assert_in_range(times, 1, 1000);
    return n * times;
}

/* ---- tests ---- */

static void a_copy_is_as_good_as_the_store_itself(void **state) {
    (void)state;
    for (int run = 0; run < N_RUNS; run++) {
        int fd[N_FILES];
        if (!make_copy(run)) continue;
        put(fd);
        assert_true(use());
        put_manifest(fd[STORE], &manifest, true); /* sealed once more: the same */
        assert_true(use());
        take_away(fd);
    }
}

static void an_observer_without_the_model_sees_what_it_is_judged_by(void **state) {
    static const struct {
        int run;
        uint32_t classifies;
    } CASES[] = {{0, 1}, {2, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store;
        int fd[N_FILES];
        assert_true(make_copy(CASES[i].run));
        struct shmt_manifest m = manifest;
        snprintf(m.model, sizeof m.model, "offered-elsewhere");
        put(fd);
        put_manifest(fd[STORE], &m, true);
        assert_int_equal(shmtrain_store_create(&store), 0);
        WELL(store, shmtrain_store_observe(store, COPY));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_string_equal(r->model, "offered-elsewhere");
        assert_int_equal(r->with_accuracy, CASES[i].classifies);
        assert_int_equal(r->with_auc, CASES[i].classifies);
        shmtrain_store_destroy(store);
        take_away(fd);
    }
}

/* As of another build of the program, made by a compiler that knows more. */
static void a_guest_without_the_loops_of_the_run_is_refused_and_an_observer_is_not(void **state) {
    struct shmtrain_store *store;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(0));
    struct shmt_manifest m = manifest;
    for (m.cpu = 0; shmt_cpu_has(m.cpu);) m.cpu++;
    assert_true(m.cpu < SHMT_N_CPUS);
    put(fd);
    put_manifest(fd[STORE], &m, true);
    assert_int_equal(shmtrain_store_create(&store), 0);
    refused(store, shmtrain_store_join(store, COPY, NULL, NULL), SHMTRAIN_E_USAGE, "which this program does not have");
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, COPY));
    assert_string_equal(shmtrain_store_report(store)->cpu, shmt_cpu_name((enum shmt_cpu)m.cpu));
    shmtrain_store_destroy(store);
    take_away(fd);
}

static uint64_t draw(uint64_t *n, uint64_t below) { return shmt_hash64(SEED, (*n)++, 0, 0) % below; }

/* One word of the manifest becomes something else. */
static void spoil_word(struct shmt_manifest *m, uint64_t *n) {
    static const uint64_t VALUES[] = {0, 1, 2, 3, 255, 4095, 4096, 4097, 65535, UINT32_MAX, INT32_MAX, INT64_MAX, UINT64_MAX};
    const size_t size = draw(n, 2) ? 4 : 8, at = draw(n, sizeof *m / size) * size;
    uint64_t value = 0;
    memcpy(&value, (unsigned char *)m + at, size);
    const uint64_t how = draw(n, 4);
    if (how == 0)
        value = VALUES[draw(n, sizeof VALUES / sizeof *VALUES)];
    else if (how == 1)
        value += draw(n, 2) ? 1 : UINT64_MAX;
    else if (how == 2)
        value ^= UINT64_C(1) << draw(n, 8 * size);
    else
        value = shmt_hash64(SEED, (*n)++, 1, 0);
    memcpy((unsigned char *)m + at, &value, size);
}

/* Places are most of the manifest: other words would seldom be hit. Half of them are the spec's. */
static void spoil_named_word(struct shmt_manifest *m, uint64_t *n) {
    uint32_t *const words[] = {&m->n_tables,      &m->n_threads,      &m->with_accuracy,      &m->with_auc,
                               &m->features.kind, &m->features.first, &m->features.hash_bits, &m->n_outputs,
                               &m->bias,          &m->group,          &m->n_classes,          &m->table[0].width,
                               &m->train.shared,  &m->valid.shared,   &m->train.n_features,   &m->train.n_labels,
                               &m->cpu,           &m->deaths};
    uint64_t *const longs[] = {&m->table[0].rows,    &m->table[0].l2_rows, &m->n_valid,         &m->train.n_examples,
                               &m->train.n_nonzeros, &m->train.bytes,      &m->train.start_off, &m->train.id_off,
                               &m->train.value_off,  &m->train.label_off,  &m->train.dense_off, &m->train.weight_off,
                               &m->valid.n_examples, &m->valid.bytes,      &m->valid.start_off, &m->valid.label_off};
    static const uint64_t VALUES[] = {0, 1, 2, 3, 4, 7, 64, 4096, 5000, UINT32_MAX, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
    const uint64_t value = VALUES[draw(n, sizeof VALUES / sizeof *VALUES)];
    size_t n_fields = 0;
    while (shmt_spec_field_at(n_fields)) n_fields++;
    const struct shmt_spec_field *field = shmt_spec_field_at(draw(n, n_fields));
    if (draw(n, 2))
        memcpy(m->spec + field->packed, &value, shmt_bounded_size(&field->is) == 8 ? 8 : 4);
    else if (draw(n, 2))
        *words[draw(n, sizeof words / sizeof *words)] = (uint32_t)value;
    else
        *longs[draw(n, sizeof longs / sizeof *longs)] = value;
}

static void a_spoilt_manifest_is_refused_or_harmless(void **state) {
    uint64_t n = 0, taken = 0, refused_times = 0;
    (void)state;
    for (int run = 0; run < N_RUNS; run++) {
        int fd[N_FILES];
        if (!make_copy(run)) continue;
        put(fd);
        for (int i = 0; i < damages(SANITIZED ? 50 : 150); i++) {
            struct shmt_manifest m = manifest;
            const bool seal = i % 8 != 0;
            for (uint64_t k = 1 + draw(&n, 2); k > 0; k--) i % 2 ? spoil_word(&m, &n) : spoil_named_word(&m, &n);
            put_manifest(fd[STORE], &m, seal);
            const bool well = use();
            if (!seal && memcmp(&m, &manifest, sizeof m) != 0) assert_false(well);
            well ? taken++ : refused_times++;
        }
        take_away(fd);
    }
    print_message("  %llu taken, %llu refused\n", (unsigned long long)taken, (unsigned long long)refused_times);
    assert_true(refused_times > (taken + refused_times) / 4);
}

/* True: an observer takes it. */
static bool observe(void) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    const bool taken = shmtrain_store_observe(store, COPY) == 0;
    if (taken)
        read_all(store);
    else
        check_sentence(store);
    shmtrain_store_destroy(store);
    return taken;
}

static bool observe_with(int fd, struct shmt_manifest m) {
    put_manifest(fd, &m, true);
    return observe();
}

/* Whoever watches a fit reads a note of its memory, where the manifest says. */
static void a_spoilt_fit_is_refused_or_harmless(void **state) {
    uint64_t n = 4000000, taken = 0;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(FIT));
    struct shmt_spec spec;
    assert_null(shmt_manifest_spec(&manifest, &spec));
    assert_true(manifest.fit_tolerance == 1e-12 && manifest.choice_examples == 20000 && spec.n_guests == 0);
    put(fd);
    assert_true(observe_with(fd[STORE], manifest));
    struct shmt_manifest m = manifest;
    const uint64_t offsets[] = {spec.board_bytes, spec.board_bytes - 8, UINT64_MAX - 7, m.fit_note_off + 1};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        m.fit_note_off = offsets[i];
        assert_false(observe_with(fd[STORE], m));
    }
    m = manifest;
    m.fit_tolerance = 0; /* then its board is no run's */
    assert_false(observe_with(fd[STORE], m));
    m.fit_tolerance = NAN;
    assert_false(observe_with(fd[STORE], m));
    m = manifest;
    set_spec(&m, "guest_seats", 1);
    assert_false(observe_with(fd[STORE], m));
    for (int i = 0; i < damages(SANITIZED ? 50 : 150); i++) {
        m = manifest;
        const size_t from = offsetof(struct shmt_manifest, fit_tolerance),
                     words = (offsetof(struct shmt_manifest, load_seconds) - from) / 4;
        const uint32_t word = (uint32_t)shmt_hash64(SEED, n++, 3, 0), few = (uint32_t)draw(&n, 5);
        memcpy((unsigned char *)&m + from + 4 * draw(&n, words), draw(&n, 2) ? &word : &few, 4);
        if (i % 2) spoil_word(&m, &n);
        taken += observe_with(fd[STORE], m);
    }
    take_away(fd);
    print_message("  %llu taken\n", (unsigned long long)taken);
}

/* Anything in the segment: also words that live, which nobody checks. */
static void spoilt_bytes_of_the_store_do_no_harm(void **state) {
    uint64_t n = 1000000;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(0));
    for (int i = 0; i < damages(60); i++) {
        put(fd);
        const uint64_t most = i % 3 == 0 ? 64 : i % 3 == 1 ? 3 * 4096 : length[STORE];
        for (uint64_t k = 1 + draw(&n, 64); k > 0; k--) {
            const unsigned char byte = (unsigned char)draw(&n, 256);
            assert_int_equal(pwrite(fd[STORE], &byte, 1, (off_t)draw(&n, most)), 1);
        }
        (void)use();
        take_away(fd);
    }
}

static void a_store_of_another_length_is_refused(void **state) {
    uint64_t n = 2000000;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(0));
    for (int i = 0; i < 90; i++) {
        put(fd);
        const int file = i % 3;
        const uint64_t to = i < 30 ? draw(&n, 20000) % length[file] : i < 60 ? draw(&n, length[file]) : length[file] + 4096;
        assert_int_equal(ftruncate(fd[file], (off_t)to), 0);
        assert_false(use());
        take_away(fd);
    }
}

static void spoilt_data_is_refused_or_harmless(void **state) {
    uint64_t n = 3000000;
    (void)state;
    for (int run = 0; run < N_RUNS; run++) {
        int fd[N_FILES];
        if (!make_copy(run)) continue;
        for (int i = 0; i < damages(SANITIZED ? 6 : 20); i++) {
            put(fd);
            const int file = fd[VALID] >= 0 && i % 2 ? VALID : DATA;
            for (uint64_t k = 1 + draw(&n, 4); k > 0; k--) {
                const uint64_t word = draw(&n, 2) ? UINT64_MAX : shmt_hash64(SEED, n++, 2, 0);
                const uint64_t at = draw(&n, (length[file] - 8) / 8) * 8;
                assert_int_equal(pwrite(fd[file], &word, 8, (off_t)at), 8);
            }
            (void)use();
            take_away(fd);
        }
    }
}

/* One field of the spec of a run. */
struct word {
    int run;
    const char *key;
    uint32_t value;
    const char *why; /* NULL: it is taken, as what a run might have */
};

/* Of a run that goes on from one of fewer workers. */
static void items_of_an_earlier_run_are_taken(void **state) {
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(0));
    for (int i = 0; i < 2; i++) {
        struct shmt_manifest m = manifest;
        const uint32_t item = i ? 501 : 126; /* a fourth of the 500 examples is what one worker has; all of them are the most */
        set_spec(&m, "first_epoch", 1);
        set_spec(&m, "item", item);
        put(fd);
        put_manifest(fd[STORE], &m, true);
        if (use() != !i) fail_msg("%u examples of an item were%s taken", item, i ? "" : " not");
        take_away(fd);
    }
}

/* Divisors, and what examples and turns are multiplied by. */
static void items_and_merges_that_no_run_has_are_refused(void **state) {
    static const char ITEMS[] = "its work cannot be shared out", MERGES[] = "its replicas cannot be merged";
    static const struct word WORDS[] = {
        {0, "item", 0, ITEMS},
        {0, "item", 126, ITEMS}, /* more than a fourth of what one worker has of 500 */
        {0, "item", 125, NULL},
        {0, "item", 124, NULL}, /* its ledger is as many pages long */
        {0, "item", UINT32_MAX, ITEMS},
        {0, "merge_every", 1, MERGES}, /* of one copy */
        {0, "curvatures", 1, MERGES},
        {0, "first_epoch", UINT32_MAX, ITEMS},
        {0, "may_pause", 2, ITEMS},
        {0, "first_step", UINT32_MAX, "cannot start after"},
        {0, "pause_epochs", 1, "never pauses"}, /* and has no room for a snapshot */
        {DAMPED, "item", 0, ITEMS},
        {DAMPED, "item", UINT32_MAX, ITEMS},
        {DAMPED, "item", 1u << 31, ITEMS},
        {DAMPED, "merge_every", 0, MERGES},
        {DAMPED, "merge_every", 7, NULL},
        {DAMPED, "merge_every", INT32_MAX, NULL},
        {DAMPED, "merge_every", 1u << 31, MERGES},
        {DAMPED, "merge_every", UINT32_MAX, MERGES},
        {DAMPED, "merge", SHMT_MERGE_SUM, MERGES}, /* which needs no curvatures */
        {DAMPED, "merge", SHMT_MERGE_DAMPED + 1, ITEMS},
        {DAMPED, "curvatures", 0, MERGES},
        {DAMPED, "replicas", SHMT_REPLICAS_ONE, MERGES},
        {IN_ROUNDS, "item", 0, ITEMS},
        {IN_ROUNDS, "item", 63, ITEMS}, /* a batch of one worker has 64 */
        {IN_ROUNDS, "item", 65, ITEMS},
        {IN_ROUNDS, "item", UINT32_MAX, ITEMS},
        {IN_ROUNDS, "batch", 128, ITEMS},
        {IN_ROUNDS, "merge_every", 4, MERGES},
    };
    struct shmtrain_store *store;
    int fd[N_FILES], copied = -1;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        const struct word *w = &WORDS[i];
        if (copied != w->run) assert_true(make_copy(w->run));
        copied = w->run;
        struct shmt_manifest m = manifest;
        set_spec(&m, w->key, w->value);
        put(fd);
        put_manifest(fd[STORE], &m, true);
        if (use() != !w->why) fail_msg("case %zu was%s taken", i, w->why ? "" : " not");
        if (w->why) refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, w->why);
        take_away(fd);
    }
    shmtrain_store_destroy(store);
}

/* The sentences that users meet. */
static void what_is_wrong_is_said(void **state) {
    struct shmtrain_store *store;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(0));
    put(fd);
    assert_int_equal(shmtrain_store_create(&store), 0);
    struct shmt_manifest m = manifest;
    set_spec(&m, "epochs", 100001);
    put_manifest(fd[STORE], &m, false);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "its description is damaged");
    m = manifest;
    m.version++;
    put_manifest(fd[STORE], &m, false);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "use the same shmtrain in all programs");
    m = manifest;
    m.uid++;
    put_manifest(fd[STORE], &m, true);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "says that user");
    m = manifest;
    set_spec(&m, "epochs", 100001);
    put_manifest(fd[STORE], &m, true);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "but its description needs");
    m = manifest;
    set_spec(&m, "hot_floats", 1024); /* of copies that there are not */
    put_manifest(fd[STORE], &m, true);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "only with merge damped");
    m = manifest;
    m.valid.n_features = m.train.n_features + 1000; /* whose ids the parameters have not */
    put_manifest(fd[STORE], &m, true);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "its model or its data is invalid");
    m = manifest;
    memset(m.table[0].name, '\n', sizeof m.table[0].name); /* no end, either */
    put_manifest(fd[STORE], &m, true);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "continues with a character");
    m = manifest;
    snprintf(m.model, sizeof m.model, "two\nlines \033[31m");
    put_manifest(fd[STORE], &m, true);
    refused(store, shmtrain_store_join(store, COPY, NULL, NULL), SHMTRAIN_E_USAGE, "trains \"two?lines ?[31m\"");
    assert_int_equal(ftruncate(fd[STORE], 0), 0);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_AGAIN, "is not ready");
    assert_int_equal(ftruncate(fd[STORE], 1 << 20), 0);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_AGAIN, "is not ready");
    shmt_mark_drop(fd[STORE], SHMT_MARK_RUN);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_DIED, "died before it started");
    assert_int_equal(pwrite(fd[STORE], "foreign", 8, SHMT_SEGMENT_HEADER_BYTES + offsetof(struct shmt_head, manifest)), 8);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "its file is not a store of shmtrain");
    assert_int_equal(ftruncate(fd[STORE], 100), 0);
    refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE, "its file is not a store of shmtrain");
    shmtrain_store_destroy(store);
    take_away(fd);
}

/* What is listed as a store can be observed, and what cannot is listed as damaged. */
static void the_list_calls_damaged_what_observers_refuse(void **state) {
    struct shmtrain_named *all = NULL;
    struct shmtrain_store *store;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(0));
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (int damaged = 0; damaged <= 1; damaged++) {
        put(fd);
        if (damaged) assert_int_equal(pwrite(fd[STORE], "overwritten", 8, 0), 8); /* the segment's own header */
        const int n = shmtrain_named_list(&all);
        int found = 0;
        for (int i = 0; i < n; i++) {
            if (strcmp(all[i].name, COPY) != 0) continue;
            found++;
            assert_int_equal(all[i].intact, !damaged);
        }
        assert_int_equal(found, 1);
        free(all);
        assert_int_equal(shmtrain_store_observe(store, COPY) == 0, !damaged);
        take_away(fd);
    }
    shmtrain_store_destroy(store);
}

/* The model would read beyond the end of its table. */
static void a_model_is_not_evaluated_on_tables_that_are_not_its_own(void **state) {
    const struct shmtrain_evaluation *evaluation;
    struct shmtrain_store *store;
    struct shmt_manifest m;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(0));
    put(fd);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    WELL(store, shmtrain_store_observe(store, COPY));
    WELL(store, shmtrain_store_evaluate(store, "builtin:sparse:examples=500,features=300", &evaluation));
    m = manifest;
    m.train.n_features = m.valid.n_features = 1 << 30;
    put_manifest(fd[STORE], &m, true);
    WELL(store, shmtrain_store_observe(store, COPY)); /* parameters can be read all the same */
    refused(store, shmtrain_store_evaluate(store, "builtin:sparse:examples=500,features=4000000", &evaluation),
            SHMTRAIN_E_USAGE, "there is no model");
    shmtrain_store_destroy(store);
    take_away(fd);
}

int main(void) {
    name_copies("test_manifest");
    print_message("  seed %u\n", SEED);
#define TEST(f) cmocka_unit_test_setup(f, deadline_and_clean)
    const struct CMUnitTest tests[] = {
        TEST(a_copy_is_as_good_as_the_store_itself),
        TEST(a_spoilt_manifest_is_refused_or_harmless),
        TEST(a_spoilt_fit_is_refused_or_harmless),
        TEST(spoilt_bytes_of_the_store_do_no_harm),
        TEST(a_store_of_another_length_is_refused),
        TEST(spoilt_data_is_refused_or_harmless),
        TEST(items_of_an_earlier_run_are_taken),
        TEST(items_and_merges_that_no_run_has_are_refused),
        TEST(what_is_wrong_is_said),
        TEST(an_observer_without_the_model_sees_what_it_is_judged_by),
        TEST(a_guest_without_the_loops_of_the_run_is_refused_and_an_observer_is_not),
        TEST(the_list_calls_damaged_what_observers_refuse),
        TEST(a_model_is_not_evaluated_on_tables_that_are_not_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, forget_copies);
}
