/* What files say about the machine: see vitals.h. */
#include "doctor/vitals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "topo/cgroup.h"

#define CPUFREQ "/sys/devices/system/cpu/cpu0/cpufreq/"
#define CLOCK   "/sys/devices/system/clocksource/clocksource0/"
#define THP     "/sys/kernel/mm/transparent_hugepage/"
#define HUGE    "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static FILE *open_below(const char *root, const char *path) {
    char full[SHMT_CGROUP_PATH];
    const int n = snprintf(full, sizeof full, "%s%s", root, path);
    return n < 0 || (size_t)n >= sizeof full ? NULL : fopen(full, "re");
}

/* A file's first line, cut where it does not fit, without blanks at its end; "" where there is none. */
static void read_word(const char *root, const char *path, char *out, size_t bytes) {
    FILE *f = open_below(root, path);
    out[0] = '\0';
    if (!f) return;
    if (!fgets(out, (int)bytes, f)) out[0] = '\0';
    fclose(f);
    size_t n = strlen(out);
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' ')) out[--n] = '\0';
}

static uint64_t read_number(const char *root, const char *path) {
    char text[32];
    read_word(root, path, text, sizeof text);
    return strtoull(text, NULL, 10);
}

/* "never" of "always advise [never]". */
static void read_choice(const char *root, const char *path, char *out, size_t bytes) {
    char line[128];
    read_word(root, path, line, sizeof line);
    const char *from = strchr(line, '['), *to = from ? strchr(from, ']') : NULL;
    out[0] = '\0';
    if (to) snprintf(out, bytes, "%.*s", (int)(to - from - 1), from + 1);
}

/* ---- processors ---- */

/* The word "hypervisor" among the flags of x86 processors. */
static bool says_hypervisor(const char *root) {
    FILE *f = open_below(root, "/proc/cpuinfo");
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    if (!f) return false;
    while (!found && getline(&line, &room, f) > 0) found = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor");
    free(line);
    fclose(f);
    return found;
}

static double steal_share(const char *root) {
    unsigned long long t[8];
    FILE *f = open_below(root, "/proc/stat");
    if (!f) return -1;
    const int n =
        fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
    fclose(f);
    unsigned long long all = 0;
    for (int i = 0; n == 8 && i < 8; i++) all += t[i];
    return all > 0 ? (double)t[7] / (double)all : -1;
}

/* Of the group that was throttled most. */
static void read_throttling(const char *root, struct shmt_vitals *v) {
    for (uint32_t version = 1; version <= 2; version++) {
        struct shmt_cgroup group;
        if (!shmt_cgroup_find(root, version, "cpu", &group)) continue;
        do {
            uint64_t periods, throttled;
            if (!shmt_cgroup_stat(&group, "cpu.stat", "nr_periods", &periods) ||
                !shmt_cgroup_stat(&group, "cpu.stat", "nr_throttled", &throttled) || throttled < v->throttled)
                continue;
            v->periods = periods;
            v->throttled = throttled;
        } while (shmt_cgroup_to_parent(&group));
    }
}

static void read_processors(const char *root, struct shmt_vitals *v) {
    v->quota_millis = shmt_cgroup_cpu_millis(root);
    read_throttling(root, v);
    v->is_virtual = says_hypervisor(root);
    v->steal = steal_share(root);
    read_word(root, CPUFREQ "scaling_governor", v->governor, sizeof v->governor);
    read_word(root, CPUFREQ "scaling_driver", v->driver, sizeof v->driver);
    read_word(root, CLOCK "current_clocksource", v->clock, sizeof v->clock);
    read_word(root, CLOCK "available_clocksource", v->clocks, sizeof v->clocks);
    read_word(root, "/proc/sys/kernel/numa_balancing", v->numa_balancing, sizeof v->numa_balancing);
    v->best = shmt_cpu_best();
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++) v->has_path[cpu] = shmt_cpu_has(cpu);
    const char *forced = getenv("SHMTRAIN_CPU");
    snprintf(v->forced, sizeof v->forced, "%s", forced ? forced : "");
}

/* ---- memory ---- */

static uint64_t meminfo(const char *root, const char *key) {
    char path[SHMT_CGROUP_PATH];
    uint64_t kib;
    const int n = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (n < 0 || (size_t)n >= sizeof path || !shmt_keyed_number(path, key, &kib) || kib > UINT64_MAX / 1024) return 0;
    return kib * 1024;
}

static void read_memory(const char *root, struct shmt_vitals *v) {
    shmt_budget_read(root, &v->budget);
    v->total_bytes = meminfo(root, "MemTotal:");
    v->swap_bytes = meminfo(root, "SwapTotal:");
    v->swap_used = v->swap_bytes - meminfo(root, "SwapFree:");
    v->commit_limit = meminfo(root, "CommitLimit:");
    v->committed = meminfo(root, "Committed_AS:");
    read_word(root, "/proc/sys/vm/overcommit_memory", v->overcommit, sizeof v->overcommit);
    v->huge_all = read_number(root, HUGE "nr_hugepages");
    v->huge_free = read_number(root, HUGE "free_hugepages");
    read_choice(root, THP "shmem_enabled", v->shared_huge, sizeof v->shared_huge);
    read_choice(root, THP "enabled", v->private_huge, sizeof v->private_huge);
}

/* What the control groups leave of processes. */
static void read_group_processes(const char *root, struct shmt_limits *limit) {
    limit->group_processes = SHMT_NO_LIMIT;
    for (uint32_t version = 1; version <= 2; version++) {
        struct shmt_cgroup group;
        if (!shmt_cgroup_find(root, version, "pids", &group)) continue;
        do {
            uint64_t most, used;
            if (!shmt_cgroup_number(&group, "pids.max", &most) || !shmt_cgroup_number(&group, "pids.current", &used)) continue;
            if (limit->group_processes != SHMT_NO_LIMIT && most - used >= limit->group_processes - limit->group_used) continue;
            limit->group_processes = most;
            limit->group_used = used < most ? used : most;
        } while (shmt_cgroup_to_parent(&group));
    }
}

void shmt_vitals_read(const char *root, struct shmt_vitals *v) {
    char path[SHMT_CGROUP_PATH];
    uint64_t seccomp = 0;
    read_processors(root, v);
    read_memory(root, v);
    read_group_processes(root, &v->limit);
    const int n = snprintf(path, sizeof path, "%s/proc/self/status", root);
    v->filtered = n > 0 && (size_t)n < sizeof path && shmt_keyed_number(path, "Seccomp:", &seccomp) && seccomp == 2;
}

/* Whether the system says where memory lies, of some of our own. */
static bool tells_nodes(const struct shmt_topo *topo, uint32_t n_nodes) {
    enum { PAGE = 4096, MOST = 1024 };
    uint64_t on_node[MOST];
    struct shmt_error refused = {0};
    void *page = n_nodes <= MOST ? mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (page == MAP_FAILED) return false;
    const bool does = shmt_topo_where(topo, page, PAGE, PAGE, on_node, &refused) == 0;
    munmap(page, PAGE);
    return does;
}

int shmt_vitals_topo(const char *root, struct shmt_vitals *v, struct shmt_error *e) {
    struct shmt_topo *topo;
    const char *variable = shmt_topo_variable();
    const int rc = root[0] ? shmt_topo_open_at(root, &topo, e) : shmt_topo_open(&topo, e);
    if (rc < 0) return rc;
    uint32_t usable[SHMT_VITALS_NODES], n_usable = 0;
    snprintf(v->described, sizeof v->described, "%s", variable ? variable : "");
    v->cores = shmt_topo_cores(topo);
    v->cpus = shmt_topo_cpus(topo);
    v->n_nodes = shmt_topo_all_nodes(topo);
    v->shared_huge_on = shmt_topo_transparent(topo);
    for (uint32_t i = 0; i < v->n_nodes && i < SHMT_VITALS_NODES; i++) {
        shmt_topo_node(topo, i, &v->node[i]);
        if (v->node[i].usable) usable[n_usable++] = v->node[i].node;
    }
    struct shmt_error refused = {0};
    v->call.may_bind = shmt_topo_may_bind(topo, &refused) == 0;
    v->call.may_place = shmt_topo_may_place(topo, usable, n_usable, &refused) == 0;
    v->call.tells_nodes = tells_nodes(topo, v->n_nodes);
    shmt_topo_close(topo);
    return 0;
}
