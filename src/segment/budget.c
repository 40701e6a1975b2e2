/* What memory there is: see budget.h. Called before every large allocation, by the api room and by segment.c. */
#include "segment/budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "topo/cgroup.h"

#define RESERVE_BYTES (64u << 20)
#define RESERVE_PART  32

/* Takes over a limit that leaves less than those before. */
static void apply_limit(struct shmt_budget *budget, uint64_t available, uint64_t limit, const char *what, const char *where) {
    if (available >= budget->available_bytes) return;
    budget->available_bytes = available;
    budget->limit_bytes = limit;
    const size_t length = strlen(where), room = sizeof budget->limit - strlen(what) - sizeof " ...";
    if (length == 0) {
        snprintf(budget->limit, sizeof budget->limit, "%s", what);
    } else if (length <= room) {
        snprintf(budget->limit, sizeof budget->limit, "%s %s", what, where);
    } else {
        /* The end of a long path says more than its beginning. */
        snprintf(budget->limit, sizeof budget->limit, "%s ...%s", what, where + (length - room));
    }
}

/* Returns the machine's memory, or the most there is where it cannot be read. */
static uint64_t consider_machine(const char *root, struct shmt_budget *budget) {
    char path[SHMT_CGROUP_PATH];
    uint64_t available_kib, total_kib;
    int n = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (n < 0 || (size_t)n >= sizeof path) return UINT64_MAX;
    if (!shmt_keyed_number(path, "MemAvailable:", &available_kib) || available_kib > UINT64_MAX / 1024) return UINT64_MAX;
    if (!shmt_keyed_number(path, "MemTotal:", &total_kib) || total_kib > UINT64_MAX / 1024) total_kib = available_kib;
    apply_limit(budget, available_kib * 1024, total_kib * 1024, "memory of the machine", "");
    return total_kib * 1024;
}

/* What one group allows; 0 when it sets no limit. In version 2, beyond memory.high everything nearly stands still, which is no
 * better than the kill beyond memory.max. */
static int read_limit(const struct shmt_cgroup *group, uint64_t *out) {
    if (group->version == 1) return shmt_cgroup_number(group, "memory.limit_in_bytes", out);
    uint64_t max = UINT64_MAX, high = UINT64_MAX;
    const int has_max = shmt_cgroup_number(group, "memory.max", &max);
    const int has_high = shmt_cgroup_number(group, "memory.high", &high);
    *out = shmt_min_u64(max, high);
    return has_max || has_high;
}

/* What the group and all below it use, page cache of files not counted (shared memory is not in the file lists and so does
 * count). */
static int read_use(const struct shmt_cgroup *group, uint64_t *out) {
    const int v1 = group->version == 1;
    uint64_t use, inactive = 0, active = 0;
    if (!shmt_cgroup_number(group, v1 ? "memory.usage_in_bytes" : "memory.current", &use)) return 0;
    shmt_cgroup_stat(group, "memory.stat", v1 ? "total_inactive_file" : "inactive_file", &inactive);
    shmt_cgroup_stat(group, "memory.stat", v1 ? "total_active_file" : "active_file", &active);
    use -= shmt_min_u64(use, inactive);
    *out = use - shmt_min_u64(use, active);
    return 1;
}

void shmt_budget_read(const char *root, struct shmt_budget *out) {
    *out = (struct shmt_budget){.available_bytes = UINT64_MAX, .limit_bytes = UINT64_MAX};
    const uint64_t machine = consider_machine(root, out);
    for (uint32_t version = 1; version <= 2; version++) {
        struct shmt_cgroup group;
        if (!shmt_cgroup_find(root, version, "memory", &group)) continue;
        do {
            uint64_t limit, use;
            if (!read_limit(&group, &limit)) continue;
            /* No group uses more than there is; memory.stat takes the kernel longer than all else here. */
            if (limit > machine && limit - machine >= out->available_bytes) continue;
            if (!read_use(&group, &use)) use = 0;
            apply_limit(out, limit - shmt_min_u64(limit, use), limit, "memory limit of control group",
                        shmt_cgroup_name(&group));
        } while (shmt_cgroup_to_parent(&group));
    }
}

int shmt_budget_check(const struct shmt_budget *budget, uint64_t need_bytes, const char *what, const char *parts,
                      const char *remedy, struct shmt_error *e) {
    const uint64_t available = budget->available_bytes;
    const uint64_t usable = available - shmt_min_u64(available / RESERVE_PART, RESERVE_BYTES);
    if (available == UINT64_MAX || need_bytes <= usable) return 0;
    char need[32], left[32], limit[32];
    shmt_bytes_text(need_bytes, need, sizeof need);
    shmt_bytes_text(usable, left, sizeof left);
    shmt_bytes_text(budget->limit_bytes, limit, sizeof limit);
    if (strcmp(need, left) == 0) { /* a sentence that needs 2.0 GiB of 2.0 GiB would be none */
        snprintf(need, sizeof need, "%" PRIu64 " B", need_bytes);
        snprintf(left, sizeof left, "%" PRIu64 " B", usable);
    }
    const int detailed = parts && *parts;
    return shmt_fail(e, SHMTRAIN_E_MEMORY, "%s needs %s%s%s%s but the %s leaves %s of %s: %s", what, need, detailed ? " (" : "",
                     detailed ? parts : "", detailed ? ")" : "", budget->limit, left, limit, remedy);
}

void shmt_bytes_text(uint64_t bytes, char *out, uint64_t out_bytes) {
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, out_bytes, "%" PRIu64 " B", bytes);
        return;
    }
    uint32_t unit = 1;
    while (unit < 6 && bytes >> (10 * (unit + 1))) unit++;
    const uint64_t whole = bytes >> (10 * unit);
    const uint64_t rest = (bytes >> (10 * (unit - 1))) & 1023; /* in 1/1024 of the unit */
    const uint64_t tenths = whole * 10 + (rest * 10 + 512) / 1024;
    const uint64_t rounded = whole + (rest >= 512);
    if (tenths < 1000) {
        snprintf(out, out_bytes, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, UNITS[unit]);
    } else if (rounded < 1024) {
        snprintf(out, out_bytes, "%" PRIu64 " %s", rounded, UNITS[unit]);
    } else {
        snprintf(out, out_bytes, "1.0 %s", UNITS[unit + 1]);
    }
}
