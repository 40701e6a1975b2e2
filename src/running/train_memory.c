/* What training takes of the machine's memory: where data lies, and whether all of it fits. See train_priv.h. */
#include "running/run_priv.h"
#include "running/train_priv.h"
#include "base/checked.h"
#include "keeping/parameters.h"
#include "keeping/places.h"
#include "loading/arrays.h"
#include "loading/cache.h"
#include "loading/rows.h"
#include "loading/standard.h"
#include "naming/lease.h"
#include "train/opened.h"

int shmt_train_choose_memory(struct shmt_training *s) {
    struct shmt_machine *machine = &s->crew.machine;
    const int rc = shmt_machine_settle(machine, s->run->backend, &s->run->spec, &s->run->call->error);
    if (rc < 0) return rc;
    shmt_cache_decide(&s->train, s->run->config, &s->run->spec, s->model, true);
    if (s->has_valid) shmt_cache_decide(&s->valid, s->run->config, &s->run->spec, s->model, false);
    shmt_arrays_decide(&s->train, s->run->call, s->run->config, &s->run->spec, true);
    if (s->has_valid) shmt_arrays_decide(&s->valid, s->run->call, s->run->config, &s->run->spec, true);
    if (!s->train.in_place) s->train.pages = shmt_machine_pages(machine, s->train.bytes, "data");
    if (s->has_valid && !s->valid.in_place) s->valid.pages = shmt_machine_pages(machine, s->valid.bytes, "validation data");
    s->train.file_maker = s->valid.file_maker = (struct shmt_file_maker){shmt_lease_make_file, s->run->lease};
    s->train.named_part = SHMT_NAMED_DATA;
    s->valid.named_part = SHMT_NAMED_VALID;
    return shmt_lease_decide(s->run, s->train.bytes, s->has_valid ? s->valid.bytes : 0);
}

/* Of all seats of this run, for its items. */
static uint64_t workspaces_bytes(const struct shmt_training *s) {
    static const float SOMEWHERE[1];
    const struct shmt_run *run = s->run;
    struct shmtrain_data like = s->train.data;
    if (s->train.dense) like.dense = SOMEWHERE; /* it will be there */
    const uint64_t each =
        shmt_opened_workspace_bytes(&run->job.opened, &like, &run->job.settings, shmt_spec_largest_piece(&run->spec));
    uint64_t all;
    return shmt_mul_u64(each, run->spec.n_seats - run->spec.n_guests, &all) ? all : UINT64_MAX;
}

/* Of first values that are not zeros. */
static uint64_t first_values_bytes(const struct shmt_training *s) {
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    const struct shmt_run *run = s->run;
    uint64_t floats = 0;
    (void)shmt_opened_tables(&run->job.opened, &s->train.data, &run->job.settings, shape);
    for (uint32_t t = 0; t < run->params->n_tables; t++)
        if (s->model->begin || shape[t].start != SHMTRAIN_ZEROS) floats += shmt_table_floats(&run->params->table[t].table);
    return floats * sizeof(float);
}

uint64_t shmt_train_work_bytes(const struct shmt_training *s) {
    const struct shmt_run *run = s->run;
    const uint64_t id_bytes = s->train.ids.n * (sizeof(uint64_t) + 2 * sizeof(uint32_t));
    const uint64_t scaled = run->scales ? shmt_standard_work_bytes(&s->train) + shmt_standard_work_bytes(&s->valid) : 0;
    const uint64_t bytes = scaled + first_values_bytes(s) + id_bytes + shmt_rows_work_bytes(&run->spec) +
                           shmt_places_work_bytes(&s->train.data, &run->spec);
    uint64_t all;
    return shmt_add_u64(bytes, workspaces_bytes(s), &all) ? all : UINT64_MAX;
}

/* What a set will take of the free memory, of which reserved huge pages are no part. */
static uint64_t free_bytes_for(const struct shmt_load *load) {
    return load->pages == SHMT_PAGES_2M && !load->in_place ? 0 : shmt_load_own_bytes(load);
}

int shmt_train_check_need(struct shmt_training *s) {
    uint64_t bytes = shmt_train_work_bytes(s);
    if (!shmt_add_u64(bytes, free_bytes_for(&s->train), &bytes)) bytes = UINT64_MAX;
    if (!shmt_add_u64(bytes, free_bytes_for(&s->valid), &bytes)) bytes = UINT64_MAX;
    return shmt_check_memory(s->run->call, s->run->backend, &s->run->spec, bytes);
}

int shmt_train_check_memory(struct shmt_training *s) {
    const int rc = shmt_train_check_need(s);
    if (rc != SHMTRAIN_E_MEMORY) return rc;
    const bool train = shmt_load_drop_buffers(&s->train), valid = shmt_load_drop_buffers(&s->valid);
    return train || valid ? shmt_train_check_need(s) : rc;
}
