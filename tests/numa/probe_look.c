/* Looking where a run's memory and threads are, and comparing with the plan: see probe.h. The plan is the public one; addresses
 * come from the library's own structures; places are the kernel's word (move_pages). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/store_priv.h"
#include "backends/shm/shm_priv.h"
#include "probe.h"
#include "ps/replicas.h"

/* ---- pages ---- */

uint64_t pages_on(const struct look *look, const void *at, uint64_t bytes, uint64_t page, uint64_t *on) {
    const uintptr_t first = ((uintptr_t)at + page - 1) & ~(uintptr_t)(page - 1),
                    end = ((uintptr_t)at + bytes) & ~(uintptr_t)(page - 1);
    struct shmt_error e = {0};
    memset(on, 0, MOST_NODES * sizeof *on);
    if (end <= first) return 0;
    if (shmt_topo_where(look->topo, (const void *)first, end - first, page, on, &e) != 0) {
        check(0, "%s", e.text);
        return 0;
    }
    for (uint32_t i = 0; i < MOST_NODES; i++) on[i] /= page;
    return (end - first) / page;
}

uint32_t index_of(const struct look *look, int32_t node) {
    uint32_t i = 0;
    while (i < look->plan->n_nodes && (int32_t)look->plan->node[i].node != node) i++;
    return i;
}

/* `percent` of the whole pages are on the node; boundaries that were estimated cost a few. */
static void expect_on(const struct look *look, const char *what, const void *at, uint64_t bytes, uint64_t page, int32_t node,
                      unsigned percent) {
    uint64_t on[MOST_NODES];
    const uint64_t n = pages_on(look, at, bytes, page, on), there = on[index_of(look, node)];
    check(there * 100 >= n * percent, "%s: %llu of %llu pages on node %d", what, (unsigned long long)there,
          (unsigned long long)n, node);
}

/* On each node that workers are on, as many pages as on the others; of very many pages the kernel is asked about some only. */
static void expect_spread(const struct look *look, const char *what, const void *at, uint64_t bytes, uint64_t page) {
    uint64_t on[MOST_NODES], used = 0, spread = 0;
    const uint64_t n = pages_on(look, at, bytes, page, on);
    const struct shmt_placement *p = &look->store->run.spec.placement;
    const uint64_t each = n / p->n_nodes, play = n > 4096 ? each / 50 : 2;
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        const uint64_t there = on[index_of(look, (int32_t)p->node[k])];
        used += there;
        spread += there + play >= each && there <= each + play;
    }
    check(used + p->n_nodes > n && spread == p->n_nodes, "%s: %llu pages, spread evenly over %u nodes", what,
          (unsigned long long)n, p->n_nodes);
}

/* Nobody has said where these pages shall be. */
static void expect_no_policy(const char *what, const void *at) {
    int policy = -1;
    const long rc = syscall(SYS_get_mempolicy, &policy, NULL, 0, at, 2 /* MPOL_F_ADDR */);
    check(rc == 0 && policy == 0, "%s: placed by nobody (policy %d)", what, policy);
}

static void expect(const struct look *look, const char *what, const void *at, uint64_t bytes, uint64_t page, int32_t node,
                   unsigned percent) {
    if (strcmp(look->plan->numa, "off") == 0)
        expect_no_policy(what, at);
    else if (node >= 0)
        expect_on(look, what, at, bytes, page, node, percent);
    else
        expect_spread(look, what, at, bytes, page);
}

/* ---- a run's memory ---- */

static void look_at_shards(const struct look *look, const struct shmt_store *shm) {
    char what[96];
    for (uint32_t i = 0; i < look->plan->n_shards; i++) {
        const struct shmtrain_plan_shard *shard = &look->plan->shard[i];
        const float *at = shm->weight + shm->layout.flat.start[0] + shard->first; /* one table, of width 1 */
        snprintf(what, sizeof what, "shard %u, rows %llu ..", i, (unsigned long long)shard->first);
        if (shard->node >= 0) expect(look, what, at, shard->n * sizeof *at, shm->segment.page_bytes, shard->node, 100);
        if (shm->layout.planes == 0 || shard->node < 0) continue;
        snprintf(what, sizeof what, "state of shard %u", i);
        expect(look, what, shm->state + shard->first, shard->n * sizeof *at, shm->segment.page_bytes, shard->node, 100);
    }
    if (look->plan->n_shards == 0 || look->plan->shard[0].node >= 0) return;
    expect(look, "all shards", shm->weight, shm->layout.flat.n * sizeof(float), shm->segment.page_bytes, -1, 100);
    if (shm->layout.planes > 0)
        expect(look, "all state", shm->state, shm->layout.flat.n * sizeof(float), shm->segment.page_bytes, -1, 100);
}

/* Gradient buffers are on the seat's node where the plan says that what one uses is its own: then parts of the data are,
 * too. */
static void look_at_gradients(const struct look *look, const struct shmt_store *shm) {
    char what[64];
    const struct shmt_shm_layout *l = &shm->layout;
    for (uint32_t seat = 0; seat < shm->spec.n_seats && l->grad.each > 0; seat++) {
        const unsigned char *at = shmt_segment_at(&shm->segment, l->grad.off + seat * l->grad.each, l->grad.each);
        const struct shmtrain_plan_worker *place = &look->plan->place[seat];
        if (!look->plan->node[index_of(look, (int32_t)place->node)].usable || !shm->spec.placement.private_local) continue;
        snprintf(what, sizeof what, "gradients of seat %u", seat);
        expect(look, what, at, l->grad.each, shm->segment.page_bytes, (int32_t)place->node, 100);
    }
}

/* Each on the node of its workers, with state and base, unless what is a seat's own is spread, too. */
static void look_at_replicas(const struct look *look, const struct shmt_store *shm) {
    char what[64];
    const struct shmt_shm_layout *l = &shm->layout;
    const uint64_t all = l->n_replicas * l->replica.each, page = shm->segment.page_bytes;
    const unsigned char *at = (const unsigned char *)shm->replica;
    uint32_t seats = 0;
    if (l->n_replicas > 0 && !shm->spec.placement.private_local) expect(look, "all replicas", at, all, page, -1, 100);
    for (uint32_t i = 0; i < l->n_replicas; i++) {
        for (uint32_t seat = 0; seat < shm->spec.n_seats; seat++) {
            if (shmt_replicas_of(&shm->spec, seat) != i) continue;
            const struct shmtrain_plan_worker *place = &look->plan->place[seat];
            seats++;
            if (!look->plan->node[index_of(look, (int32_t)place->node)].usable || !shm->spec.placement.private_local) continue;
            snprintf(what, sizeof what, "replica %u, of seat %u", i, seat);
            expect(look, what, at + i * l->replica.each, l->replica.each, page, (int32_t)place->node, 100);
        }
    }
    if (shmt_policy_merges_replicas(&shm->spec.policy))
        check(seats == shm->spec.n_seats, "%u seats have %u replicas", seats, l->n_replicas);
}

/* Arrays by example lie exactly where they should, those by nonzero nearly. */
static void look_at_data(const struct look *look, uint64_t page) {
    const struct shmtrain_data *data = look->store->run.job.train;
    char what[96];
    for (uint32_t i = 0; i < look->plan->n_parts; i++) {
        const struct shmtrain_plan_part *part = &look->plan->part[i];
        const uint64_t from = data->start[part->first], to = data->start[part->first + part->n];
        const unsigned near = page > 4096 ? 0 : 85; /* a few huge pages lie wholly in no part */
        snprintf(what, sizeof what, "data part %u: labels", i);
        expect(look, what, data->label + part->first, part->n * sizeof(float), page, part->node, 100);
        snprintf(what, sizeof what, "data part %u: starts", i);
        expect(look, what, data->start + part->first, part->n * sizeof(uint64_t), page, part->node, 100);
        snprintf(what, sizeof what, "data part %u: columns", i);
        expect(look, what, data->id + from, (to - from) * sizeof(uint32_t), page, part->node, near);
    }
}

/* KernelPageSize of the mapping that holds `at`, in bytes; 0: not found. */
static uint64_t page_bytes_at(const void *at) {
    char line[512];
    unsigned long long kib = 0, from, to;
    int inside = 0;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2) inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        if (inside && sscanf(line, "KernelPageSize: %llu", &kib) == 1) break;
    }
    if (f) fclose(f);
    return kib * 1024;
}

/* Where shards lie that need not lie where they should. */
static void show_overflow(const struct look *look, const struct shmt_store *shm) {
    uint64_t on[MOST_NODES];
    for (uint32_t i = 0; i < look->plan->n_shards; i++) {
        const struct shmtrain_plan_shard *shard = &look->plan->shard[i];
        const uint64_t n = pages_on(look, shm->weight + shard->first, shard->n * sizeof(float), shm->segment.page_bytes, on);
        printf("# shard %u for node %d: %llu pages,", i, shard->node, (unsigned long long)n);
        for (uint32_t k = 0; k < look->plan->n_nodes; k++)
            printf(" %llu on node %u", (unsigned long long)on[k], look->plan->node[k].node);
        printf("\n");
    }
}

static void begin(void *arg, const struct shmtrain_report *report) {
    struct look *look = arg;
    const struct shmt_store *shm = look->store->run.job.store;
    const uint64_t data_page = page_bytes_at(look->store->run.job.train->label);
    look->looked = 1;
    check(strcmp(report->numa, look->plan->numa) == 0, "the run's policy is the plan's: %s", report->numa);
    check(report->page_bytes == shm->segment.page_bytes && page_bytes_at(shm->weight) == report->page_bytes,
          "pages of the store are of %llu bytes as it says", (unsigned long long)report->page_bytes);
    if (look->page_bytes) {
        check(report->page_bytes == look->page_bytes, "they are of %llu bytes", (unsigned long long)look->page_bytes);
        check(data_page == look->page_bytes, "those of the data, too");
    }
    if (look->refused) return;
    if (look->overflows) {
        show_overflow(look, shm);
        return;
    }
    look_at_shards(look, shm);
    look_at_gradients(look, shm);
    look_at_replicas(look, shm);
    look_at_data(look, data_page);
}

static void note(void *arg, const char *line) {
    struct look *look = arg;
    const size_t used = strlen(look->notes.text);
    snprintf(look->notes.text + used, sizeof look->notes.text - used, "%s\n", line);
    printf("# note: %s\n", line);
}

void look_at_training(struct look *look, const char *data) {
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = look, .begin = begin, .note = note};
    shmtrain_store_listen(look->store, &listener);
    const int rc = shmtrain_store_train(look->store, data);
    check(rc == 0, "training ends well%s%s", rc ? ": " : "", rc ? shmtrain_store_message(look->store) : "");
    check(look->looked, "there was something to look at");
}
