/* Judging memory: huge pages, /dev/shm, what is free, limits. See vitals.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor/vitals.h"
#include "base/checked.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define LEAST_MEMORY (64 * MIB) /* with less no run is worth beginning */
#define LEAST_SHM    (16 * MIB)

struct bytes {
    char text[32];
};

static struct bytes words(uint64_t bytes) {
    struct bytes out;
    shmt_bytes_text(bytes, out.text, sizeof out.text);
    return out;
}

/* ---- huge pages ---- */

static void judge_huge(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const char *shared = v->shared_huge[0] ? v->shared_huge : "not there", *private = v->private_huge;
    if (v->huge_free > 0)
        shmt_checkup_add(c, SHMTRAIN_FINE, "huge pages", "", "%" PRIu64 " of %" PRIu64 " reserved ones of 2 MiB are free",
                         v->huge_free, v->huge_all);
    else if (v->shared_huge_on)
        shmt_checkup_add(c, SHMTRAIN_FINE, "huge pages", "",
                         "none are reserved; transparent ones are used (shmem_enabled is %s)", shared);
    else
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "huge pages",
                         v->shared_huge[0] ? "echo advise | sudo tee /sys/kernel/mm/transparent_hugepage/shmem_enabled"
                                           : "sudo sysctl vm.nr_hugepages=1024",
                         "none for parameters: %s reserved, and shmem_enabled is %s",
                         v->huge_all ? "no free ones are" : "none are", shared);
    if (strcmp(private, "never") == 0)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "private pages",
                         "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
                         "data gets no transparent huge pages (enabled is never)");
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "private pages", "", "%s%s%s",
                         private[0] ? "data gets transparent huge ones (enabled is " : "ordinary", private,
                         private[0] ? ")" : "");
}

/* ---- stores with a name ---- */

static void judge_shm(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const uint64_t large = shmt_min_u64(GIB, v->budget.available_bytes / 8);
    if (!v->has_shm)
        shmt_checkup_add(c, SHMTRAIN_STOPS, "/dev/shm", "sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm",
                         "there is no /dev/shm: runs with a name (--name) cannot start; others can");
    else if (!v->may_write_shm)
        shmt_checkup_add(c, SHMTRAIN_STOPS, "/dev/shm", "sudo mount -o remount,rw,mode=1777 /dev/shm",
                         "it cannot be written: runs with a name (--name) cannot start; others can");
    else if (v->shm_free < LEAST_SHM)
        shmt_checkup_add(c, SHMTRAIN_STOPS, "/dev/shm", "sudo mount -o remount,size=50% /dev/shm",
                         "%s free of %s: hardly any run with a name (--name) fits; other runs do not need it",
                         words(v->shm_free).text, words(v->shm_bytes).text);
    else if (v->shm_free < large)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "/dev/shm", "sudo mount -o remount,size=50% /dev/shm; docker run --shm-size 8g ...",
                         "%s free of %s: larger runs with a name (--name) are refused; other runs do not need it",
                         words(v->shm_free).text, words(v->shm_bytes).text);
    else if (v->shm_free == UINT64_MAX)
        shmt_checkup_add(c, SHMTRAIN_FINE, "/dev/shm", "", "no limit of its own");
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "/dev/shm", "", "%s free of %s (for runs with a name)", words(v->shm_free).text,
                         words(v->shm_bytes).text);
    if (v->left.n_dead > 0) {
        char remedy[96];
        snprintf(remedy, sizeof remedy, "shmtrain rm %.63s", v->left.dead);
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "leftovers", remedy,
                         "%" PRIu32 " dead or damaged named store%s hold%s %s of memory (shmtrain ls)", v->left.n_dead,
                         v->left.n_dead > 1 ? "s" : "", v->left.n_dead > 1 ? "" : "s", words(v->left.dead_bytes).text);
    } else if (v->left.n_over > 0) {
        shmt_checkup_add(c, SHMTRAIN_FINE, "leftovers", "", "%" PRIu32 " named store%s of ended runs hold%s %s (shmtrain ls)",
                         v->left.n_over, v->left.n_over > 1 ? "s" : "", v->left.n_over > 1 ? "" : "s",
                         words(v->left.over_bytes).text);
    } else {
        shmt_checkup_add(c, SHMTRAIN_FINE, "leftovers", "", "no named stores are left behind");
    }
}

/* ---- what is free ---- */

static void judge_free(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const struct shmt_budget *b = &v->budget;
    const bool of_group = strncmp(b->limit, "memory of the machine", 21) != 0;
    if (b->available_bytes == UINT64_MAX) {
        shmt_checkup_add(c, SHMTRAIN_FINE, "memory", "", "the system does not report how much there is");
        return;
    }
    const enum shmtrain_verdict verdict = b->available_bytes < LEAST_MEMORY                 ? SHMTRAIN_STOPS
                                          : b->available_bytes < b->limit_bytes / 8         ? SHMTRAIN_SLOWS
                                          : of_group && b->limit_bytes < v->total_bytes / 2 ? SHMTRAIN_SLOWS
                                                                                            : SHMTRAIN_FINE;
    shmt_checkup_add(c, verdict, "memory",
                     verdict == SHMTRAIN_FINE ? ""
                     : of_group ? "docker update --memory SIZE CONTAINER; systemctl set-property UNIT MemoryMax=SIZE"
                                : "ps -eo rss,pid,user,args --sort=-rss | head",
                     "%s left of %s (%.150s)", words(b->available_bytes).text, words(b->limit_bytes).text, b->limit);
}

static void judge_swap(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    if (v->swap_bytes == 0)
        shmt_checkup_add(c, SHMTRAIN_FINE, "swap", "", "none: parameters stay in memory");
    else if (v->swap_used > v->total_bytes / 20)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "swap", "sudo sysctl vm.swappiness=1; sudo swapoff -a && sudo swapon -a",
                         "%s of %s in use: parameters may be swapped out as well", words(v->swap_used).text,
                         words(v->swap_bytes).text);
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "swap", "", "%s of %s in use", words(v->swap_used).text, words(v->swap_bytes).text);
}

/* Strict accounting counts what was promised, and not what is used. */
static void judge_overcommit(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const uint64_t room = v->commit_limit - shmt_min_u64(v->commit_limit, v->committed);
    if (strcmp(v->overcommit, "2") != 0)
        shmt_checkup_add(c, SHMTRAIN_FINE, "overcommit", "", "vm.overcommit_memory is %s",
                         v->overcommit[0] ? v->overcommit : "unknown");
    else if (room < LEAST_MEMORY)
        shmt_checkup_add(c, SHMTRAIN_STOPS, "overcommit", "sudo sysctl vm.overcommit_memory=0",
                         "vm.overcommit_memory is 2 and leaves %s: segments are refused", words(room).text);
    else if (room < v->budget.available_bytes / 2)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "overcommit", "sudo sysctl vm.overcommit_memory=0",
                         "vm.overcommit_memory is 2 and leaves %s of the free memory", words(room).text);
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "overcommit", "", "vm.overcommit_memory is 2, and leaves %s", words(room).text);
}

/* ---- limits ---- */

static void judge_size_limit(struct shmtrain_checkup *c, uint64_t limit, uint64_t least, const char *letter, const char *what) {
    char remedy[32];
    if (limit == SHMT_NO_LIMIT) return;
    snprintf(remedy, sizeof remedy, "ulimit -%s unlimited", letter);
    shmt_checkup_add(c, limit < least ? SHMTRAIN_STOPS : SHMTRAIN_SLOWS, "limits", remedy,
                     "%s %s (ulimit -%s): larger runs are refused", what, words(limit).text, letter);
}

/* A worker, a supervisor and the program itself are the least that a run takes. */
static void judge_processes(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const struct shmt_limits *l = &v->limit;
    const uint64_t wanted = (uint64_t)v->cores + 2;
    if (l->group_processes != SHMT_NO_LIMIT && l->group_processes - l->group_used < wanted)
        shmt_checkup_add(c, l->group_processes - l->group_used < 3 ? SHMTRAIN_STOPS : SHMTRAIN_SLOWS, "limits",
                         "docker update --pids-limit -1 CONTAINER; systemctl set-property UNIT TasksMax=",
                         "a control group allows %" PRIu64 " processes and already has %" PRIu64
                         ": too few left for a worker per core",
                         l->group_processes, l->group_used);
    if (!l->is_root && l->processes < wanted)
        shmt_checkup_add(c, l->processes < 3 ? SHMTRAIN_STOPS : SHMTRAIN_SLOWS, "limits", "ulimit -u unlimited",
                         "this user may have %" PRIu64 " processes (ulimit -u): too few for a worker per core", l->processes);
    if (l->files < wanted + 30)
        shmt_checkup_add(c, l->files < 16 ? SHMTRAIN_STOPS : SHMTRAIN_SLOWS, "limits", "ulimit -n 1024",
                         "%" PRIu64 " open files (ulimit -n): too few to see each worker's death at once", l->files);
}

static void judge_limits(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const struct shmt_limits *l = &v->limit;
    const uint32_t before = c->n;
    judge_size_limit(c, l->file_bytes, 16 * MIB, "f", "files, and so segments, may have");
    judge_size_limit(c, l->address_bytes, 512 * MIB, "v", "a process may have addresses for");
    if (l->cpu_seconds != SHMT_NO_LIMIT)
        shmt_checkup_add(c, l->cpu_seconds < 60 ? SHMTRAIN_STOPS : SHMTRAIN_SLOWS, "limits", "ulimit -t unlimited",
                         "each worker is killed after %" PRIu64 " s of computing (ulimit -t)", l->cpu_seconds);
    judge_processes(v, c);
    if (c->n == before) shmt_checkup_add(c, SHMTRAIN_FINE, "limits", "", "no limit of this process would affect a run");
}

void shmt_judge_memory(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    judge_huge(v, c);
    judge_shm(v, c);
    judge_free(v, c);
    judge_swap(v, c);
    judge_overcommit(v, c);
    judge_limits(v, c);
}
