/* shmtrain doctor: gathering facts and judging them; here the processors and NUMA nodes. See <shmtrain/doctor.h>, vitals.h.
 *
 * A finding is written for who has the machine and not the source: what was seen, in figures, and a command. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/vitals.h"
#include "base/plain.h"

#define LOOK_MS 200

void shmt_checkup_add(struct shmtrain_checkup *c, enum shmtrain_verdict verdict, const char *subject, const char *remedy,
                      const char *seen, ...) {
    va_list args;
    if (c->n == SHMTRAIN_MOST_FINDINGS) return;
    struct shmtrain_finding *f = &c->finding[c->n++];
    *f = (struct shmtrain_finding){.verdict = verdict};
    c->n_slow += verdict == SHMTRAIN_SLOWS;
    c->n_stops += verdict == SHMTRAIN_STOPS;
    snprintf(f->subject, sizeof f->subject, "%s", subject);
    snprintf(f->remedy, sizeof f->remedy, "%s", remedy);
    va_start(args, seen);
    vsnprintf(f->seen, sizeof f->seen, seen, args);
    va_end(args);
}

/* ---- processors ---- */

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void judge_cores(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    if (v->described[0]) {
        char remedy[64];
        snprintf(remedy, sizeof remedy, "unset %s", v->described);
        shmt_checkup_add(c, SHMTRAIN_STOPS, "machine", remedy,
                         "%s describes another machine: shmtrain can plan for it, but not run", v->described);
    }
    shmt_checkup_add(c, SHMTRAIN_FINE, "cores", "", "%" PRIu32 " core%s for workers, %" PRIu32 " hardware thread%s", v->cores,
                     plural(v->cores), v->cpus, plural(v->cpus));
    if (!v->described[0] && v->cpus < v->online_cpus) {
        char remedy[64];
        snprintf(remedy, sizeof remedy, "taskset -c 0-%" PRIu32 " shmtrain ...", v->online_cpus - 1);
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "affinity", remedy,
                         "taskset, or a cpuset of a container, leaves %" PRIu32 " of the machine's %" PRIu32 " processors",
                         v->cpus, v->online_cpus);
    } else {
        shmt_checkup_add(c, SHMTRAIN_FINE, "affinity", "", "this process may use all processors");
    }
    if (v->call.may_bind)
        shmt_checkup_add(c, SHMTRAIN_FINE, "binding", "", "workers can be bound to processors");
    else
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "binding", "docker run --security-opt seccomp=unconfined ...",
                         "the system refuses to bind threads (sched_setaffinity): workers move between cores");
}

static void judge_quota(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const double processors = (double)v->quota_millis / 1000;
    if (v->quota_millis == 0) {
        shmt_checkup_add(c, SHMTRAIN_FINE, "CPU quota", "", "none");
    } else if (v->quota_millis < 1000 * (uint64_t)v->cpus) {
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "CPU quota",
                         "docker update --cpus 0 CONTAINER, systemctl set-property UNIT CPUQuota=",
                         "a control group allows %.4g of %" PRIu32
                         " processors and pauses all workers beyond that (so far in %" PRIu64 " of %" PRIu64 " periods)",
                         processors, v->cpus, v->throttled, v->periods);
    } else {
        shmt_checkup_add(c, SHMTRAIN_FINE, "CPU quota", "", "%.4g processors, which is enough for all of them", processors);
    }
}

static void judge_others(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    if (v->others < 0)
        shmt_checkup_add(c, SHMTRAIN_FINE, "others", "",
                         "the system does not report whether other programs use the processors");
    else if (v->others > 0.1 * v->cores)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "others", "ps -eo pcpu,pid,user,args --sort=-pcpu | head",
                         "other programs use %.1f of the processors right now", v->others);
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "others", "", "no other program uses the processors right now");
    if (v->steal > 0.02)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "hypervisor", "ask the provider for dedicated processors",
                         "%.1f %% of the processors' time went to other virtual machines since boot (steal)", 100 * v->steal);
    else if (v->is_virtual)
        shmt_checkup_add(c, SHMTRAIN_FINE, "hypervisor", "", "a virtual machine; %.1f %% of the time was stolen since boot",
                         100 * (v->steal > 0 ? v->steal : 0));
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "hypervisor", "", "none seen");
}

/* The drivers of Intel's and AMD's own call a governor "powersave" that raises the clock under load. */
static void judge_clocks(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const bool adapts = strcmp(v->driver, "intel_pstate") == 0 || strncmp(v->driver, "amd-pstate-epp", 14) == 0 ||
                        strncmp(v->driver, "amd_pstate_epp", 14) == 0;
    if (strcmp(v->governor, "powersave") == 0 && !adapts)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "clock speed", "sudo cpupower frequency-set -g performance",
                         "the governor is powersave: processors stay at their lowest clock");
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "clock speed", "", "%s%s", v->governor[0] ? "the governor is " : "no governor found",
                         v->governor);
    if (strcmp(v->clock, "hpet") != 0 && strcmp(v->clock, "acpi_pm") != 0 && strcmp(v->clock, "jiffies") != 0) {
        shmt_checkup_add(c, SHMTRAIN_FINE, "clock", "", "%s",
                         v->clock[0] ? v->clock : "unknown: the system does not report it");
        return;
    }
    shmt_checkup_add(c, SHMTRAIN_SLOWS, "clock",
                     strstr(v->clocks, "tsc")
                         ? "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
                         : "boot with clocksource=tsc tsc=reliable",
                     "reading the time from %s takes a microsecond", v->clock);
}

static void judge_path(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    char has[64] = "";
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++)
        if (v->has_path[cpu])
            snprintf(has + strlen(has), sizeof has - strlen(has), "%s%s", has[0] ? ", " : "", shmt_cpu_name(cpu));
    const char *best = shmt_cpu_name(v->best);
    if (v->forced[0] && strcmp(v->forced, "auto") != 0 && strcmp(v->forced, best) != 0)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "CPU path", "unset SHMTRAIN_CPU",
                         "SHMTRAIN_CPU forces %s; %s is faster (available: %s)", v->forced, best, has);
    else if (v->best == SHMT_CPU_PORTABLE)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "CPU path", "a processor, or a virtual machine's model of one, with AVX2",
                         "portable: the inner loops cannot use wide vectors here");
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "CPU path", "", "%s (available: %s)", best, has);
}

/* ---- NUMA ---- */

static void judge_placing(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const enum shmtrain_verdict bad = v->n_nodes > 1 ? SHMTRAIN_SLOWS : SHMTRAIN_FINE;
    const char *no_matter = v->n_nodes > 1 ? "" : ", which does not matter with one node";
    const char *remedy = v->n_nodes > 1 ? "docker run --cap-add SYS_NICE ..." : "";
    if (!v->call.may_place)
        shmt_checkup_add(c, bad, "placing", remedy, "the system refuses to place memory on NUMA nodes (mbind)%s", no_matter);
    if (!v->call.tells_nodes)
        shmt_checkup_add(c, bad, "placing", remedy, "the system does not report where memory is (move_pages)%s", no_matter);
    if (v->call.may_place && v->call.tells_nodes)
        shmt_checkup_add(c, SHMTRAIN_FINE, "placing", "", "memory can be placed on NUMA nodes and located there");
}

/* Parameters are spread over all nodes that workers are on: the one with least memory left is full first. */
static void judge_nodes(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    uint64_t least = UINT64_MAX, most = 0;
    uint32_t closed = 0, fullest = 0;
    for (uint32_t i = 0; i < v->n_nodes && i < SHMT_VITALS_NODES; i++) {
        const struct shmt_node *node = &v->node[i];
        if (!node->usable && node->memory_bytes > 0) closed++;
        if (!node->usable || node->memory_bytes == 0) continue;
        if (node->free_bytes < least) {
            least = node->free_bytes;
            fullest = node->node;
        }
        if (node->free_bytes > most) most = node->free_bytes;
    }
    char low[32], high[32];
    shmt_bytes_text(least == UINT64_MAX ? 0 : least, low, sizeof low);
    shmt_bytes_text(most, high, sizeof high);
    if (v->n_nodes < 2)
        shmt_checkup_add(c, SHMTRAIN_FINE, "NUMA", "", "one node");
    else if (closed > 0)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "NUMA", "docker update --cpuset-mems 0-N CONTAINER",
                         "a cpuset keeps %" PRIu32 " of the %" PRIu32 " nodes' memory from this process", closed, v->n_nodes);
    else if (least < most / 4)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "NUMA", "numastat -m; shmtrain topo DATA shows what a run would put where",
                         "node %" PRIu32 " has %s free, another one %s: memory that does not fit is far from its workers",
                         fullest, low, high);
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "NUMA", "", "%" PRIu32 " nodes, with %s to %s free", v->n_nodes, low, high);
    if (v->n_nodes > 1 && v->numa_balancing[0] > '0')
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "NUMA balancing", "sudo sysctl kernel.numa_balancing=0",
                         "the kernel moves pages by itself and causes page faults to choose them");
}

void shmt_judge_machine(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    judge_cores(v, c);
    judge_quota(v, c);
    judge_others(v, c);
    judge_clocks(v, c);
    judge_path(v, c);
    judge_nodes(v, c);
    judge_placing(v, c);
}

/* ---- all of it ---- */

void shmt_judge(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    SHMT_PLAIN_NUMBERS;
    shmt_judge_machine(v, c);
    shmt_judge_memory(v, c);
    shmt_judge_system(v, c);
}

int shmtrain_doctor(struct shmtrain_checkup **out, char *message, uint64_t bytes) {
    struct shmt_vitals *v = calloc(1, sizeof *v);
    struct shmtrain_checkup *c = calloc(1, sizeof *c);
    struct shmt_error e = {0};
    if (c) c->size = sizeof *c;
    int rc = v && c ? 0 : shmt_no_memory(&e, "to examine the machine");
    if (rc == 0) rc = shmt_vitals_topo("", v, &e);
    if (rc == 0) {
        shmt_vitals_read("", v);
        shmt_vitals_ask(LOOK_MS, v);
        shmt_judge(v, c);
        *out = c;
    } else {
        if (message) snprintf(message, bytes, "%s", e.text);
        free(c);
    }
    free(v);
    return rc;
}
