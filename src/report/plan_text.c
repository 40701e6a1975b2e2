/* A plan of the machine as lines for people: at most 80 columns, plain characters. */
#include <shmtrain/plan.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/words_priv.h"

#define MOST_LINES 32 /* of a list; the rest is counted. JSON has them all */

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
static void add_name(FILE *f, const char *name) {
    const size_t n = strlen(name), most = 60;
    fprintf(f, "%s", n > most ? "..." : "");
    for (const char *at = n > most ? name + n - most : name; *at; at++)
        fprintf(f, "%c", (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at);
    fprintf(f, "\n");
}

static void add_machine(FILE *f, const struct shmtrain_plan *plan) {
    uint32_t cores = 0, cpus = 0;
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        cores += plan->node[i].cores;
        cpus += plan->node[i].cpus;
    }
    fprintf(f, "machine     %s: %" PRIu32 " node%s, %" PRIu32 " core%s, %" PRIu32 " processor%s to use\n", plan->machine,
            plan->n_nodes, shmt_plural(plan->n_nodes), cores, shmt_plural(cores), cpus, shmt_plural(cpus));
    if (plan->data[0] != '\0') {
        fprintf(f, "data        ");
        add_name(f, plan->data);
    }
    fprintf(f, "workers     %" PRIu32, plan->n_workers);
    if (plan->n_threads > 1) fprintf(f, " of %" PRIu32 " threads", plan->n_threads);
    if (strcmp(plan->bind, "none") == 0)
        fprintf(f, ", not bound: the system places them\n");
    else
        fprintf(f, ", bound to %ss\n", plan->bind);
    fprintf(f, "memory      numa %s, hugepages %s, pages of %s\n", plan->numa, plan->hugepages,
            plan->page_bytes == 4096 ? "4 KiB" : "2 MiB");
    if (strcmp(plan->numa, "interleave") == 0)
        fprintf(f, "            parameters over all nodes, data and gradients %s\n",
                plan->data_local ? "near their workers" : "too");
}

static const char *or_unknown(uint64_t bytes, uint64_t memory_bytes, char out[16]) {
    if (memory_bytes == 0) return "?";
    return bytes_text(bytes, out);
}

/* Of words that fill more than a line, in as many as they take. */
static void add_copies(FILE *f, const struct shmtrain_plan *plan) {
    const size_t most = 68; /* beside the heading */
    const char *at = plan->copies_reason;
    while (at && *at) {
        size_t n = strlen(at);
        if (n > most)
            for (n = most; n > 0 && at[n] != ' ';) n--;
        if (n == 0) n = strcspn(at, " ");
        fprintf(f, "%-12s%.*s\n", at == plan->copies_reason ? "copies" : "", (int)n, at);
        at += n + (at[n] == ' ');
    }
}

/* A node whose need is above what is free is marked: the rest would go to other nodes. */
static void add_nodes(FILE *f, const struct shmtrain_plan *plan) {
    char memory[16], available[16], need[16];
    uint32_t n_unknown = 0;
    fprintf(f, "\nnode  cores  processors      memory   available    2M pages%s\n", plan->data[0] ? "    this run" : "");
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const struct shmtrain_plan_node *node = &plan->node[i];
        const int known = node->need_bytes > 0 || strcmp(plan->numa, "off") != 0;
        fprintf(f, "%4" PRIu32 " %6" PRIu32 " %11" PRIu32 " %11s %11s %11" PRIu64, node->node, node->cores, node->cpus,
                or_unknown(node->memory_bytes, node->memory_bytes, memory),
                or_unknown(node->available_bytes, node->memory_bytes, available), node->huge_free);
        if (plan->data[0] != '\0') fprintf(f, " %11s", known ? bytes_text(node->need_bytes, need) : "?");
        n_unknown += plan->data[0] != '\0' && !known;
        if (!node->usable) fprintf(f, " not usable");
        if (node->usable && node->memory_bytes > 0 && node->need_bytes > node->available_bytes) fprintf(f, " too much");
        fprintf(f, "\n");
    }
    if (n_unknown > 0) fprintf(f, "      ? the system decides where this run's memory is placed\n");
}

static void add_more(FILE *f, uint32_t n, const char *what) {
    if (n > MOST_LINES) fprintf(f, "      and %" PRIu32 " more %s\n", n - MOST_LINES, what);
}

/* Only what threads are bound to: a node has all of its cores for them, and who is bound to nothing is nowhere. */
static void add_places(FILE *f, const struct shmtrain_plan *plan) {
    const int to_cores = strcmp(plan->bind, "core") == 0;
    uint32_t n_shared = 0;
    if (strcmp(plan->bind, "none") == 0) return;
    fprintf(f, "\nworker  thread  node%s\n", to_cores ? "  core  processor" : "");
    for (uint32_t i = 0; i < plan->n_places && i < MOST_LINES; i++) {
        const struct shmtrain_plan_worker *place = &plan->place[i];
        fprintf(f, "%6" PRIu32 " %7" PRIu32 " %5" PRIu32, place->worker, place->thread, place->node);
        if (to_cores) fprintf(f, " %5" PRIu32 " %10" PRIu32 "%s", place->core, place->cpu, place->shared ? "  shared" : "");
        fprintf(f, "\n");
        n_shared += to_cores && place->shared;
    }
    if (n_shared > 0) fprintf(f, "        shared: another thread uses the same processor\n");
    add_more(f, plan->n_places, "threads");
}

/* Where a shard or part lies. */
static const char *where(int32_t node, char out[16]) {
    if (node >= 0)
        snprintf(out, 16, "%" PRId32, node);
    else
        snprintf(out, 16, "%s", node == SHMTRAIN_PLAN_ALL_NODES ? "all" : "any");
    return out;
}

static void add_shards(FILE *f, const struct shmtrain_plan *plan) {
    char size[16], node[16];
    fprintf(f, "\nshard  table                         first row         rows        size  node\n");
    for (uint32_t i = 0; i < plan->n_shards && i < MOST_LINES; i++) {
        const struct shmtrain_plan_shard *shard = &plan->shard[i];
        fprintf(f, "%5" PRIu32 "  %-26.26s %12" PRIu64 " %12" PRIu64 " %11s  %4s\n", i, shard->table, shard->first, shard->n,
                bytes_text(shard->bytes, size), where(shard->node, node));
    }
    add_more(f, plan->n_shards, "shards");
    fprintf(f, "\npart   of the data               first example     examples        size  node\n");
    for (uint32_t i = 0; i < plan->n_parts && i < MOST_LINES; i++) {
        const struct shmtrain_plan_part *part = &plan->part[i];
        fprintf(f, "%5" PRIu32 " %40" PRIu64 " %12" PRIu64 " %11s  %4s\n", i, part->first, part->n,
                bytes_text(part->bytes, size), where(part->node, node));
    }
    add_more(f, plan->n_parts, "parts");
}

static void add_hosts(FILE *f, const struct shmtrain_plan *plan) {
    char size[16];
    if (plan->n_hosts == 0) return;
    const bool is_batch = strcmp(plan->exchange, "batch") == 0;
    fprintf(f, "\nhost  name                         examples of %s     sends each, at most\n",
            is_batch ? "a batch" : "an epoch");
    for (uint32_t i = 0; i < plan->n_hosts && i < MOST_LINES; i++) {
        const struct shmtrain_plan_host *host = &plan->hosts[i];
        fprintf(f, "%4" PRIu32 "  %-24.24s %*" PRIu64 " %15s a %s%s\n", i, host->name[0] ? host->name : "of MPI",
                is_batch ? 23 : 24, host->examples, bytes_text(host->most_bytes, size), plan->exchange,
                i == plan->host ? "  this one" : "");
    }
    add_more(f, plan->n_hosts, "hosts");
}

static void add_memory(FILE *f, const struct shmtrain_plan *plan) {
    char text[6][16];
    fprintf(f, "\nneeded      %s: parameters %s, state %s, gradients %s,\n", bytes_text(plan->total_bytes, text[0]),
            bytes_text(plan->parameter_bytes, text[1]), bytes_text(plan->state_bytes, text[2]),
            bytes_text(plan->gradient_bytes, text[3]));
    fprintf(f, "            data %s, else %s\n", bytes_text(plan->data_bytes, text[4]), bytes_text(plan->other_bytes, text[5]));
}

static void add_available(FILE *f, const struct shmtrain_plan *plan) {
    char available[16];
    if (plan->available_bytes == 0) return;
    fprintf(f, "available   %s (", bytes_text(plan->available_bytes, available));
    const size_t n = strlen(plan->limit), most = 52;
    fprintf(f, "%s%s)\n", n > most ? "..." : "", n > most ? plan->limit + n - most : plan->limit);
    if (plan->total_bytes > plan->available_bytes) fprintf(f, "            which is too little: this run would be refused\n");
}

static void put_lines(FILE *f, const char *name, const void *what) {
    const struct shmtrain_plan *plan = what;
    (void)name;
    add_machine(f, plan);
    add_copies(f, plan);
    add_nodes(f, plan);
    add_places(f, plan);
    if (plan->data[0] != '\0') {
        add_hosts(f, plan);
        add_shards(f, plan);
        shmt_put_layers(f, plan->layer, plan->n_layers);
        add_memory(f, plan);
    }
    if (plan->data[0] == '\0') fprintf(f, "\n");
    add_available(f, plan);
    if (plan->data[0] == '\0')
        fprintf(f,
                "            the memory needed depends on the data: shmtrain topo DATA (train without\n            DATA uses "
                "builtin:sparse, with networks builtin:digits)\n");
}

char *shmtrain_plan_text(const struct shmtrain_plan *plan) { return shmt_text_by(put_lines, NULL, plan, 0); }
