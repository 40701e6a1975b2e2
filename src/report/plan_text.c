/* A plan of the machine as lines for people: at most 80 columns, plain characters. */
#include <shmtrain/plan.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"

#define MOST_LINES 32 /* of a list; the rest is counted. JSON has them all */

/* A text that grows; `at` is NULL once there was no memory. */
struct text {
    FILE *file;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(t->file, format, args);
    va_end(args);
}

/* "512 B", "1.25 MiB", "16.0 GiB": three digits. */
static const char *bytes_text(uint64_t bytes, char out[16]) {
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double x = (double)bytes;
    size_t unit = 0;
    while (x >= 1000 && unit < 6) {
        x /= 1024;
        unit++;
    }
    snprintf(out, 16, "%.*f %s", unit == 0 || x >= 99.95 ? 0 : x < 9.995 ? 2 : 1, x, UNITS[unit]);
    return out;
}

/* What a terminal would obey instead of showing it is shown as '?'; of a long name its end. */
static void add_name(struct text *t, const char *name) {
    const size_t n = strlen(name), most = 60;
    add(t, "%s", n > most ? "..." : "");
    for (const char *at = n > most ? name + n - most : name; *at; at++)
        add(t, "%c", (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at);
    add(t, "\n");
}

static void add_machine(struct text *t, const struct shmtrain_plan *plan) {
    uint32_t cores = 0, cpus = 0;
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        cores += plan->node[i].cores;
        cpus += plan->node[i].cpus;
    }
    add(t, "machine     %s: %" PRIu32 " node%s, %" PRIu32 " core%s, %" PRIu32 " processor%s to use\n", plan->machine,
        plan->n_nodes, plan->n_nodes == 1 ? "" : "s", cores, cores == 1 ? "" : "s", cpus, cpus == 1 ? "" : "s");
    if (plan->data[0] != '\0') {
        add(t, "data        ");
        add_name(t, plan->data);
    }
    add(t, "workers     %" PRIu32, plan->n_workers);
    if (plan->n_threads > 1) add(t, " of %" PRIu32 " threads", plan->n_threads);
    if (strcmp(plan->bind, "none") == 0)
        add(t, ", not bound: the system places them\n");
    else
        add(t, ", bound to %ss\n", plan->bind);
    add(t, "memory      numa %s, hugepages %s, pages of %s\n", plan->numa, plan->hugepages,
        plan->page_bytes == 4096 ? "4 KiB" : "2 MiB");
    if (strcmp(plan->numa, "interleave") == 0)
        add(t, "            parameters over all nodes, data and gradients %s\n",
            plan->data_local ? "near their workers" : "too");
}

static const char *or_unknown(uint64_t bytes, uint64_t memory_bytes, char out[16]) {
    if (memory_bytes == 0) return "?";
    return bytes_text(bytes, out);
}

/* Of words that fill more than a line, in as many as they take. */
static void add_copies(struct text *t, const struct shmtrain_plan *plan) {
    const size_t most = 68; /* beside the heading */
    const char *at = plan->copies_reason;
    while (at && *at) {
        size_t n = strlen(at);
        if (n > most)
            for (n = most; n > 0 && at[n] != ' ';) n--;
        if (n == 0) n = strcspn(at, " ");
        add(t, "%-12s%.*s\n", at == plan->copies_reason ? "copies" : "", (int)n, at);
        at += n + (at[n] == ' ');
    }
}

/* A node whose need is above what is free is marked: the rest would go to other nodes. */
static void add_nodes(struct text *t, const struct shmtrain_plan *plan) {
    char memory[16], available[16], need[16];
    uint32_t n_unknown = 0;
    add(t, "\nnode  cores  processors      memory   available    2M pages%s\n", plan->data[0] ? "    this run" : "");
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const struct shmtrain_plan_node *node = &plan->node[i];
        const int known = node->need_bytes > 0 || strcmp(plan->numa, "off") != 0;
        add(t, "%4" PRIu32 " %6" PRIu32 " %11" PRIu32 " %11s %11s %11" PRIu64, node->node, node->cores, node->cpus,
            or_unknown(node->memory_bytes, node->memory_bytes, memory),
            or_unknown(node->available_bytes, node->memory_bytes, available), node->huge_free);
        if (plan->data[0] != '\0') add(t, " %11s", known ? bytes_text(node->need_bytes, need) : "?");
        n_unknown += plan->data[0] != '\0' && !known;
        if (!node->usable) add(t, " not usable");
        if (node->usable && node->memory_bytes > 0 && node->need_bytes > node->available_bytes) add(t, " too much");
        add(t, "\n");
    }
    if (n_unknown > 0) add(t, "      ? the system decides where this run's memory is placed\n");
}

static void add_more(struct text *t, uint32_t n, const char *what) {
    if (n > MOST_LINES) add(t, "      and %" PRIu32 " more %s\n", n - MOST_LINES, what);
}

/* Only what threads are bound to: a node has all of its cores for them, and who is bound to nothing is nowhere. */
static void add_places(struct text *t, const struct shmtrain_plan *plan) {
    const int to_cores = strcmp(plan->bind, "core") == 0;
    uint32_t n_shared = 0;
    if (strcmp(plan->bind, "none") == 0) return;
    add(t, "\nworker  thread  node%s\n", to_cores ? "  core  processor" : "");
    for (uint32_t i = 0; i < plan->n_places && i < MOST_LINES; i++) {
        const struct shmtrain_plan_worker *place = &plan->place[i];
        add(t, "%6" PRIu32 " %7" PRIu32 " %5" PRIu32, place->worker, place->thread, place->node);
        if (to_cores) add(t, " %5" PRIu32 " %10" PRIu32 "%s", place->core, place->cpu, place->shared ? "  shared" : "");
        add(t, "\n");
        n_shared += to_cores && place->shared;
    }
    if (n_shared > 0) add(t, "        shared: another thread uses the same processor\n");
    add_more(t, plan->n_places, "threads");
}

/* Where a shard or part lies. */
static const char *where(int32_t node, char out[16]) {
    if (node >= 0)
        snprintf(out, 16, "%" PRId32, node);
    else
        snprintf(out, 16, "%s", node == SHMTRAIN_PLAN_ALL_NODES ? "all" : "any");
    return out;
}

static void add_shards(struct text *t, const struct shmtrain_plan *plan) {
    char size[16], node[16];
    add(t, "\nshard  table                         first row         rows        size  node\n");
    for (uint32_t i = 0; i < plan->n_shards && i < MOST_LINES; i++) {
        const struct shmtrain_plan_shard *shard = &plan->shard[i];
        add(t, "%5" PRIu32 "  %-26.26s %12" PRIu64 " %12" PRIu64 " %11s  %4s\n", i, shard->table, shard->first, shard->n,
            bytes_text(shard->bytes, size), where(shard->node, node));
    }
    add_more(t, plan->n_shards, "shards");
    add(t, "\npart   of the data               first example     examples        size  node\n");
    for (uint32_t i = 0; i < plan->n_parts && i < MOST_LINES; i++) {
        const struct shmtrain_plan_part *part = &plan->part[i];
        add(t, "%5" PRIu32 " %40" PRIu64 " %12" PRIu64 " %11s  %4s\n", i, part->first, part->n, bytes_text(part->bytes, size),
            where(part->node, node));
    }
    add_more(t, plan->n_parts, "parts");
}

static void add_memory(struct text *t, const struct shmtrain_plan *plan) {
    char text[6][16];
    add(t, "\nneeded      %s: parameters %s, state %s, gradients %s,\n", bytes_text(plan->total_bytes, text[0]),
        bytes_text(plan->parameter_bytes, text[1]), bytes_text(plan->state_bytes, text[2]),
        bytes_text(plan->gradient_bytes, text[3]));
    add(t, "            data %s, else %s\n", bytes_text(plan->data_bytes, text[4]), bytes_text(plan->other_bytes, text[5]));
}

static void add_available(struct text *t, const struct shmtrain_plan *plan) {
    char available[16];
    if (plan->available_bytes == 0) return;
    add(t, "available   %s (", bytes_text(plan->available_bytes, available));
    const size_t n = strlen(plan->limit), most = 52;
    add(t, "%s%s)\n", n > most ? "..." : "", n > most ? plan->limit + n - most : plan->limit);
    if (plan->total_bytes > plan->available_bytes) add(t, "            which is too little: this run would be refused\n");
}

char *shmtrain_plan_text(const struct shmtrain_plan *plan) {
    SHMT_PLAIN_NUMBERS;
    char *out = NULL;
    size_t bytes = 0;
    struct text t = {.file = open_memstream(&out, &bytes)};
    if (!t.file) return NULL;
    add_machine(&t, plan);
    add_copies(&t, plan);
    add_nodes(&t, plan);
    add_places(&t, plan);
    if (plan->data[0] != '\0') {
        add_shards(&t, plan);
        add_memory(&t, plan);
    }
    if (plan->data[0] == '\0') add(&t, "\n");
    add_available(&t, plan);
    if (plan->data[0] == '\0')
        add(&t,
            "            the memory needed depends on the data: shmtrain topo DATA (train without\n            DATA uses "
            "builtin:sparse)\n");
    const int failed = ferror(t.file);
    if (fclose(t.file) == 0 && !failed) return out;
    free(out);
    return NULL;
}
