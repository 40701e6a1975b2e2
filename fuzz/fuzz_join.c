/* Named stores whose files somebody has damaged, with the sum over the manifest right or wrong: observers and guests, up to where
 * work would begin, refuse them in a sentence or read them to the end. An input's first byte says which run it is and how it is
 * visited, the rest what is damaged (stores.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shmtrain/shmtrain.h>

#include "naming/guest_data.h"
#include "api/store_priv.h"
#include "fuzz.h"
#include "stores.h"
#include "sync/host.h"

#define MOST_EPOCHS 10000 /* of a report that is written out; the rest is the same, and slow */

/* Nobody waits here: the naps are for a maker that goes on meanwhile. */
static void sleep_until(uint64_t at_ns) { (void)at_ns; }

static void read_tables(struct shmtrain_store *store) {
    uint64_t rows, width;
    for (int t = 0; shmtrain_store_table_at(store, t, NULL, &rows, &width) == 0; t++) {
        float *value = malloc(rows * width > 0 ? rows * width * sizeof *value : 1);
        FUZZ_CHECK(value);
        (void)shmtrain_store_read(store, t, 0, rows, value);
        free(value);
    }
}

static void observe(struct shmtrain_store *store) {
    const struct shmtrain_progress *now;
    char line[256];
    const int status = shmtrain_store_observe(store, fuzz_store_name);
    FUZZ_CHECK(status <= 0);
    if (status < 0) {
        fuzz_check_sentence(shmtrain_store_message(store));
        return;
    }
    (void)shmtrain_store_look(store, &now);
    const struct shmtrain_report *r = shmtrain_store_report(store);
    if (r->n_epochs <= MOST_EPOCHS) free(shmtrain_report_json(r));
    shmtrain_report_opening(r, line, sizeof line);
    shmtrain_report_summary(r, line, sizeof line);
    for (uint32_t i = 0; i < r->n_epochs && i < 100; i++) shmtrain_report_line(r, &r->epoch[i], line, sizeof line);
    read_tables(store);
}

/* What a worker would read of the data. */
static double sum_of(const struct shmtrain_data *d) {
    double sum = 0;
    for (uint64_t i = 0; i < d->n_examples; i++) {
        sum += (double)d->label[i] + (d->weight ? (double)d->weight[i] : 1);
        for (uint64_t k = d->start ? d->start[i] : 0; d->start && k < d->start[i + 1]; k++) {
            FUZZ_CHECK(d->id[k] < d->n_features);
            sum += d->value ? (double)d->value[k] : 1;
        }
        for (uint32_t j = 0; d->dense && j < d->n_features; j++) sum += (double)d->dense[i * d->n_features + j];
    }
    return sum;
}

static void visit(struct shmtrain_store *store) {
    struct shmt_guest_data data = {0};
    int status = shmt_visit_begin(&store->run, fuzz_store_name, true);
    if (status == 0) status = shmt_guest_data_open(&data, &store->run);
    if (status == 0) {
        volatile double sum = sum_of(&data.train) + (data.valid.label ? sum_of(&data.valid) : 0);
        (void)sum;
        FUZZ_CHECK(store->run.job.model != NULL);
    } else {
        fuzz_check_error(status, &store->call.error);
    }
    shmt_guest_data_close(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct fuzz_input in = {bytes, n};
    struct shmtrain_store *store;
    static struct shmt_host_ops host;
    const uint8_t how = fuzz_u8(&in);
    host = SHMT_HOST_MACHINE;
    host.sleep_until = sleep_until;
    shmt_host_use(&host);
    fuzz_store_put(how & 7, (how & 8) == 0, (how & 0x30) != 0x30, &in);
    FUZZ_CHECK(shmtrain_store_create(&store) == 0);
    if (how & 0x40)
        observe(store);
    else
        visit(store);
    shmtrain_store_destroy(store);
    return 0;
}
