/* Going through caches fast: the loops of each CPU path against plain ones, labels in runs, and files in whole huge pages. */
#include "data_file.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/cpu.h"
#include "data/cache_loops.h"
#include "data/cache_priv.h"

#define MOST 200 /* elements: more than three strides of the loops, and what is left */

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525 + 1013904223; }

/* ---- loops ---- */

static void checksums_are_those_of_the_library(void **state) {
    static unsigned char bytes[300000];
    uint32_t random = 1;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(next_random(&random) >> 24);
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++)
        for (size_t n = 0; n < sizeof bytes; n += n < 2000 ? 1 : 37003)
            assert_true(shmt_cache_loops_of(cpu)->hash(bytes + n % 3, n - n % 3) == XXH3_64bits(bytes + n % 3, n - n % 3));
}

static void one_id_that_is_none_is_seen_wherever_it_stands(void **state) {
    static const uint32_t LIMITS[] = {1, 47236, UINT32_C(1) << 31, UINT32_MAX};
    uint32_t x[MOST];
    (void)state;
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++)
        for (size_t l = 0; l < sizeof LIMITS / sizeof *LIMITS; l++) {
            const struct shmt_cache_loops *loops = shmt_cache_loops_of(cpu);
            for (uint64_t i = 0; i < MOST; i++) x[i] = LIMITS[l] - 1;
            assert_true(loops->are_below(x, 0, 0));
            for (uint64_t n = 1; n <= MOST; n += 7) assert_true(loops->are_below(x, n, LIMITS[l]));
            for (uint64_t i = 0; i < MOST; i++) {
                x[i] = i % 2 ? LIMITS[l] : UINT32_MAX;
                assert_false(loops->are_below(x, MOST, LIMITS[l]));
                assert_true(loops->are_below(x, i, LIMITS[l])); /* what is behind the end does not matter */
                x[i] = LIMITS[l] - 1;
            }
        }
}

static void one_float_that_is_no_number_is_seen_wherever_it_stands(void **state) {
    static const float GOOD[] = {0, -0.0f, 1e-45f, -1e-45f, 3.4028235e38f, -3.4028235e38f, 1};
    static const uint32_t BAD[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff};
    uint32_t x[MOST];
    (void)state;
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++) {
        const struct shmt_cache_loops *loops = shmt_cache_loops_of(cpu);
        for (uint64_t i = 0; i < MOST; i++) memcpy(&x[i], &GOOD[i % (sizeof GOOD / sizeof *GOOD)], sizeof *x);
        for (uint64_t n = 0; n <= MOST; n++) assert_true(loops->are_finite(x, n));
        for (uint64_t i = 0; i < MOST; i++) {
            const uint32_t kept = x[i];
            x[i] = BAD[i % (sizeof BAD / sizeof *BAD)];
            assert_false(loops->are_finite(x, MOST));
            assert_true(loops->are_finite(x, i));
            x[i] = kept;
        }
    }
}

static void one_row_that_goes_back_or_beyond_is_seen_wherever_it_stands(void **state) {
    uint64_t start[MOST + 1];
    (void)state;
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++) {
        const struct shmt_cache_loops *loops = shmt_cache_loops_of(cpu);
        for (uint64_t i = 0; i <= MOST; i++) start[i] = i / 2 * 3; /* some are empty */
        const uint64_t most = start[MOST];
        for (uint64_t n = 0; n <= MOST; n++) assert_true(loops->do_follow(start, n, most));
        assert_false(loops->do_follow(start, MOST, most - 1));
        for (uint64_t i = 0; i <= MOST; i++) {
            const uint64_t kept = start[i], bad[] = {most + 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - most};
            for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
                start[i] = bad[k];
                assert_false(loops->do_follow(start, MOST, most));
                start[i] = kept;
            }
            if (i < 2 || kept == 0) continue;
            start[i] = start[i - 2] - (i > 3);
            if (start[i] < start[i - 1]) assert_false(loops->do_follow(start, MOST, most));
            start[i] = kept;
        }
    }
}

static void one_label_that_is_new_is_seen_wherever_it_stands(void **state) {
    float x[MOST], known[SHMT_CACHE_MOST_AMONG];
    (void)state;
    for (uint32_t c = 0; c < SHMT_CACHE_MOST_AMONG; c++) known[c] = (float)c - 3;
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++)
        for (uint32_t n_known = 1; n_known <= SHMT_CACHE_MOST_AMONG; n_known += 5) {
            const struct shmt_cache_loops *loops = shmt_cache_loops_of(cpu);
            for (uint64_t i = 0; i < MOST; i++) x[i] = known[i * 7 % n_known];
            for (uint64_t n = 0; n <= MOST; n += 9) assert_true(loops->are_among(x, n, known, n_known));
            for (uint64_t i = 0; i < MOST; i++) {
                const float kept = x[i];
                x[i] = i % 2 ? NAN : known[0] + 0.5f;
                assert_false(loops->are_among(x, MOST, known, n_known));
                x[i] = kept;
            }
        }
}

/* ---- files ---- */

#define HUGE_BYTES   (UINT64_C(2) << 20)
#define N_EXAMPLES   30000
#define N_NONZEROS   1000000
#define MANY_COLUMNS 5000

static bool g_watches;
static uint64_t g_whole, g_others; /* writes of a piece where a huge page lies, and any others */

ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at) {
    const bool is_whole = bytes == HUGE_BYTES && (uint64_t)at % HUGE_BYTES == 0;
    if (g_watches) *(is_whole ? &g_whole : &g_others) += 1;
    return __real_pwrite(fd, from, bytes, at);
}

struct made {
    uint64_t *start;
    uint32_t *id;
    float *value, *label;
};

static struct made make(void) {
    struct made m = {malloc((N_EXAMPLES + 1) * sizeof *m.start), malloc(N_NONZEROS * sizeof *m.id),
                     malloc(N_NONZEROS * sizeof *m.value), malloc(N_EXAMPLES * sizeof *m.label)};
    uint32_t random = 7;
    for (uint64_t i = 0; i <= N_EXAMPLES; i++) m.start[i] = i * N_NONZEROS / N_EXAMPLES;
    for (uint64_t j = 0; j < N_NONZEROS; j++) m.id[j] = next_random(&random) % MANY_COLUMNS;
    for (uint64_t j = 0; j < N_NONZEROS; j++) m.value[j] = (float)(next_random(&random) >> 8) * 1e-6f;
    for (uint64_t i = 0; i < N_EXAMPLES; i++) m.label[i] = (float)(i % 3);
    return m;
}

static void write_made(const struct made *m) {
    struct shmt_error e = {0};
    const struct shmt_cache cache = {.n_examples = N_EXAMPLES,
                                     .n_nonzeros = N_NONZEROS,
                                     .n_columns = MANY_COLUMNS,
                                     .max_id = MANY_COLUMNS - 1,
                                     .best_loss = NAN,
                                     .start = m->start,
                                     .id = m->id,
                                     .value = m->value,
                                     .label = m->label};
    if (shmt_cache_write(g_path, &cache, NULL, &e) < 0) fail_msg("%s", e.text);
}

static void free_made(struct made *m) {
    free(m->start);
    free(m->id);
    free(m->value);
    free(m->label);
}

static unsigned char *read_file(uint64_t *bytes_out) {
    struct stat s;
    assert_int_equal(stat(g_path, &s), 0);
    unsigned char *bytes = malloc((size_t)s.st_size);
    FILE *f = fopen(g_path, "rb");
    assert_int_equal(fread(bytes, 1, (size_t)s.st_size, f), s.st_size);
    fclose(f);
    *bytes_out = (uint64_t)s.st_size;
    return bytes;
}

static void assert_zeros(const unsigned char *bytes, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) assert_int_equal(bytes[i], 0);
}

static void a_file_is_written_by_whole_huge_pages(void **state) {
    struct made m = make();
    struct shmt_cache_header h;
    uint64_t n, end = sizeof h;
    (void)state;
    g_whole = g_others = 0;
    g_watches = true;
    write_made(&m);
    g_watches = false;
    unsigned char *bytes = read_file(&n);
    memcpy(&h, bytes, sizeof h);
    assert_int_equal(n, h.file_bytes);
    assert_int_equal(g_whole, n / HUGE_BYTES);
    assert_int_equal(g_others, 2); /* what is left of the last one, and the header */
    const void *const from[] = {m.start, m.id, m.value, m.label};
    for (uint32_t part = 0; part < SHMT_CACHE_PARTS; part++) {
        const struct shmt_cache_section *s = &h.section[part];
        if (s->bytes == 0) continue;
        assert_zeros(bytes, end, s->off);
        if (part <= SHMT_CACHE_LABEL) assert_memory_equal(bytes + s->off, from[part], s->bytes);
        end = s->off + s->bytes;
    }
    assert_zeros(bytes, end, n);
    free(bytes);
    free_made(&m);
}

static void count_made(struct loaded *l, uint32_t n_parts) {
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    assert_int_equal(shmt_source_open(g_path, 0, 0, &source, &l->error), 0);
    if (load_count(l, source, n_parts, COLUMNS(0, MANY_COLUMNS)) < 0) fail_msg("%s", l->error.text);
    shmt_source_close(source);
}

/* Labels are gone through in runs of those that were met; new ones begin within runs, and there are few, or too many. */
static void labels_are_found_where_they_stand_first(void **state) {
    static const uint32_t MOST_LABELS[] = {
        1, 2, 3, SHMT_CACHE_MOST_AMONG, SHMT_CACHE_MOST_AMONG + 1, 40, SHMT_LABELS_KEPT + 50};
    struct made m = make();
    (void)state;
    for (size_t k = 0; k < sizeof MOST_LABELS / sizeof *MOST_LABELS; k++)
        for (uint32_t n_parts = 1; n_parts < 20; n_parts += 9) {
            static struct shmt_labels expected;
            struct loaded l;
            float low = INFINITY, high = -INFINITY;
            memset(&expected, 0, sizeof expected);
            for (uint64_t i = 0; i < N_EXAMPLES; i++) {
                const uint64_t met = i / 61 + 1; /* a new one now and then, and below those before it as often as above */
                const uint64_t which = i * 2654435761u % (met < MOST_LABELS[k] ? met : MOST_LABELS[k]);
                m.label[i] = which % 2 ? (float)which : -(float)which;
                shmt_labels_add(&expected, m.label[i], i);
                low = fminf(low, m.label[i]);
                high = fmaxf(high, m.label[i]);
            }
            write_made(&m);
            count_made(&l, n_parts);
            assert_int_equal(l.totals.n_examples, N_EXAMPLES);
            assert_int_equal(l.totals.labels.n, expected.n);
            assert_memory_equal(l.totals.labels.label, expected.label, expected.n * sizeof *expected.label);
            assert_memory_equal(l.totals.labels.at, expected.at, expected.n * sizeof *expected.at);
            assert_true(l.totals.label_low == low && l.totals.label_high == high);
            load_free(&l);
        }
    free_made(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_those_of_the_library),
        cmocka_unit_test(one_id_that_is_none_is_seen_wherever_it_stands),
        cmocka_unit_test(one_float_that_is_no_number_is_seen_wherever_it_stands),
        cmocka_unit_test(one_row_that_goes_back_or_beyond_is_seen_wherever_it_stands),
        cmocka_unit_test(one_label_that_is_new_is_seen_wherever_it_stands),
        cmocka_unit_test(a_file_is_written_by_whole_huge_pages),
        cmocka_unit_test(labels_are_found_where_they_stand_first),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
