/* Tests of loading where memory is short: what cannot be kept from counting to filling is read again, with the same result. */
#include "api_help.h"
#include "folder_help.h"
#include "skip.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "segment/budget.h"

enum { ROWS = 100000, EACH = 8 };

/* Readers are threads, which map and give back at the same time. */
static struct {
    _Atomic int growing_fails;          /* no mapping becomes larger */
    _Atomic int private_mappings_to_go; /* 1: the next large private mapping fails; 0: none does */
    _Atomic int failures;
    _Atomic uint64_t memory; /* bytes that the machine has for us; 0: as many as it really has */
    _Atomic uint64_t mapped; /* of them, in large private mappings */
} sys;

#define LARGE ((size_t)2 << 20)

/* `place` is given with MREMAP_FIXED alone. */
void *__real_mremap(void *at, size_t old, size_t bytes, int flags, void *place);
void *__wrap_mremap(void *at, size_t old, size_t bytes, int flags, void *place);
void *__wrap_mremap(void *at, size_t old, size_t bytes, int flags, void *place) {
    if (!sys.growing_fails) {
        sys.mapped += bytes - old;
        return __real_mremap(at, old, bytes, flags, place);
    }
    sys.failures++;
    errno = ENOMEM;
    return MAP_FAILED;
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off) {
    if (protection == PROT_NONE) return __real_mmap(at, bytes, protection, flags, fd, off); /* a place, no memory */
    const size_t least = ROWS * EACH * sizeof(float); /* what is kept while counting begins with less */
    if ((flags & MAP_PRIVATE) && bytes >= LARGE && !sys.private_mappings_to_go) sys.mapped += bytes;
    if (!(flags & MAP_PRIVATE) || bytes < least || atomic_exchange(&sys.private_mappings_to_go, 0) == 0)
        return __real_mmap(at, bytes, protection, flags, fd, off);
    sys.failures++;
    errno = ENOMEM;
    return MAP_FAILED;
}

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes) {
    uint64_t mapped = sys.mapped; /* what was mapped before a test began is not counted */
    while (bytes >= LARGE && !atomic_compare_exchange_weak(&sys.mapped, &mapped, mapped - (bytes < mapped ? bytes : mapped)))
        continue;
    return __real_munmap(at, bytes);
}

void __real_shmt_budget_read(const char *root, struct shmt_budget *out);
void __wrap_shmt_budget_read(const char *root, struct shmt_budget *out);
void __wrap_shmt_budget_read(const char *root, struct shmt_budget *out) {
    __real_shmt_budget_read(root, out);
    const uint64_t memory = sys.memory, mapped = sys.mapped;
    if (memory) out->available_bytes = memory - (mapped < memory ? mapped : memory);
}

/* `last`: the largest id, in the last row. */
static void write_rows(const char *path, uint32_t last) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (uint32_t i = 0; i < ROWS; i++) {
        fprintf(f, "%s", i % 3 ? "+1" : "-1");
        for (uint32_t j = 0; j < EACH; j++) fprintf(f, " %u:%g", 1 + j * 100 + (i * (j + 7)) % 100, 0.1 + (i + j) % 5);
        if (i == ROWS - 1) fprintf(f, " %u:1", last);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

static uint64_t train(const char *path) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "valid", path));
    WELL(store, shmtrain_store_train(store, path));
    const uint64_t hash = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return hash;
}

static void rows_that_cannot_be_kept_are_read_again(void **state) {
    (void)state;
    write_rows("rows.svm", 900);
    const uint64_t kept = train("rows.svm");
    sys.growing_fails = 1;
    sys.failures = 0;
    assert_true(train("rows.svm") == kept);
    assert_true(sys.failures > 0);
    sys.growing_fails = 0;
}

static void rows_that_leave_no_room_for_the_data_are_read_again(void **state) {
    (void)state;
    write_rows("rows.svm", 900);
    const uint64_t kept = train("rows.svm");
    sys.private_mappings_to_go = 1;
    sys.failures = 0;
    const uint64_t again = train("rows.svm");
    if (sys.failures == 0) {
        sys.private_mappings_to_go = 0;
        SKIP("no huge pages for private memory: the data is a memory file");
    }
    assert_true(again == kept);
}

/* 10,000,000 parameters, 38 MiB, and 8 MiB of data: beside the 16 to 24 MiB that are kept of it they do not fit. */
static void what_is_kept_is_no_reason_to_refuse_a_run(void **state) {
    (void)state;
    struct shmtrain_store *store;
    write_rows("rows.svm", 10000000);
    sys.memory = (uint64_t)60 << 20;
    sys.mapped = 0;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "mode", "hogwild"));
    WELL(store, shmtrain_store_set(store, "columns", "given"));
    WELL(store, shmtrain_store_set(store, "valid", "none"));
    WELL(store, shmtrain_store_train(store, "rows.svm"));
    shmtrain_store_destroy(store);
    sys.memory = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_that_cannot_be_kept_are_read_again, deadline),
        cmocka_unit_test_setup(rows_that_leave_no_room_for_the_data_are_read_again, deadline),
        cmocka_unit_test_setup(what_is_kept_is_no_reason_to_refuse_a_run, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
