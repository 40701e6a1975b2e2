/* Finding and reading control groups: see cgroup.h.
 *
 * A line of /proc/self/cgroup, "ID:CONTROLLERS:PATH", gives the group's path within its hierarchy; a line of
 * /proc/self/mountinfo tells which part of that hierarchy (its `root`) is mounted where. Inside a container the two need not
 * fit: without a cgroup namespace the path may begin with the mounted root (then the rest counts) or be invisible (then the
 * mount point is the best that can be known, and it is the container's group). */
#include "topo/cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

static FILE *open_below(const char *root, const char *path) {
    char full[SHMT_CGROUP_PATH];
    int n = snprintf(full, sizeof full, "%s%s", root, path);
    if (n < 0 || (size_t)n >= sizeof full) return NULL;
    return fopen(full, "re");
}

/* Is `word` one of the comma-separated words of `list`? */
static int list_has(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *p = list; p && *p; p = strchr(p, ',')) {
        if (*p == ',') p++;
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0')) return 1;
    }
    return 0;
}

/* The group's path within its hierarchy, from /proc/self/cgroup; the path itself may hold colons. */
static int own_path(const char *root, uint32_t version, const char *controller, char *out, size_t out_bytes) {
    FILE *f = open_below(root, "/proc/self/cgroup");
    if (!f) return 0;
    char *line = NULL;
    size_t room = 0;
    int found = 0;
    while (!found && getline(&line, &room, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        controllers++;
        if (version == 2 ? *controllers != '\0' || strtol(line, NULL, 10) != 0 : !list_has(controllers, controller)) continue;
        found = *path == '/' && strlen(path) < out_bytes;
        if (found) memcpy(out, path, strlen(path) + 1);
    }
    free(line);
    fclose(f);
    return found;
}

/* mountinfo writes blanks and the like as \ooo. In place. */
static void unescape(char *text) {
    char *to = text;
    for (const char *p = text; *p; p++) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' && p[3] >= '0' && p[3] <= '7') {
            *to++ = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
            p += 3;
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
}

struct mount {
    char *root, *point, *type, *options;
};

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG ...] - TYPE SOURCE SUPER-OPTIONS", cut up in place. */
static int parse_mount(char *line, struct mount *out) {
    line[strcspn(line, "\n")] = '\0';
    char *tail = strstr(line, " - ");
    if (!tail) return 0;
    *tail = '\0';
    char *save = NULL;
    out->root = out->point = NULL;
    char *word = strtok_r(line, " ", &save);
    for (int i = 0; word && i < 5; i++, word = strtok_r(NULL, " ", &save)) {
        if (i == 3) out->root = word;
        if (i == 4) out->point = word;
    }
    out->type = strtok_r(tail + 3, " ", &save);
    if (!strtok_r(NULL, " ", &save)) return 0;
    out->options = strtok_r(NULL, " ", &save);
    if (!out->point || !out->type || !out->options) return 0;
    unescape(out->root);
    unescape(out->point);
    return 1;
}

/* What of `path` lies below the mounted part of the hierarchy: "" for the mount point itself; NULL where it lies elsewhere. */
static const char *below_mount(const char *path, const char *mounted) {
    size_t n = strlen(mounted);
    if (n == 1) n = 0; /* "/": everything */
    if (strncmp(path, mounted, n) != 0 || (path[n] != '/' && path[n] != '\0')) return NULL;
    const char *rest = path + n;
    if (strstr(rest, "/..")) return NULL; /* outside of our namespace */
    return strcmp(rest, "/") == 0 ? "" : rest;
}

/* The group's folder seen through one mount, or the nearest folder above it that exists. Returns 0 when there is none. */
static int through_mount(const char *root, const struct mount *mount, const char *rest, struct shmt_cgroup *out) {
    const char *point = strcmp(mount->point, "/") == 0 ? "" : mount->point;
    int n = snprintf(out->dir, sizeof out->dir, "%s%s%s", root, point, rest);
    if (n < 0 || (size_t)n >= sizeof out->dir) return 0;
    out->root_bytes = (uint32_t)strlen(root);
    out->top_bytes = (uint32_t)(strlen(root) + strlen(point));
    while (access(out->dir, F_OK) != 0) {
        if (!shmt_cgroup_to_parent(out)) return 0;
    }
    return 1;
}

int shmt_cgroup_find(const char *root, uint32_t version, const char *controller, struct shmt_cgroup *out) {
    char path[SHMT_CGROUP_PATH];
    if (!own_path(root, version, controller, path, sizeof path)) return 0;
    FILE *f = open_below(root, "/proc/self/mountinfo");
    if (!f) return 0;
    char *line = NULL;
    size_t room = 0, best = SIZE_MAX; /* of several mounts of one hierarchy, the one that shows the most levels above us */
    while (getline(&line, &room, f) > 0) {
        struct mount mount;
        struct shmt_cgroup seen = {.version = version};
        if (!parse_mount(line, &mount) || strcmp(mount.type, version == 2 ? "cgroup2" : "cgroup") != 0) continue;
        if (version == 1 && !list_has(mount.options, controller)) continue;
        const char *rest = below_mount(path, mount.root);
        const size_t rank = rest ? strlen(mount.root) : SIZE_MAX - 1; /* the mount point alone is the last resort */
        if (rank < best && through_mount(root, &mount, rest ? rest : "", &seen)) {
            best = rank;
            *out = seen;
        }
    }
    free(line);
    fclose(f);
    return best != SIZE_MAX;
}

int shmt_cgroup_to_parent(struct shmt_cgroup *group) {
    if (strlen(group->dir) <= group->top_bytes) return 0;
    char *slash = strrchr(group->dir, '/');
    if (!slash || (size_t)(slash - group->dir) < group->top_bytes) return 0;
    *slash = '\0';
    return 1;
}

const char *shmt_cgroup_name(const struct shmt_cgroup *group) { return group->dir + group->root_bytes; }

int shmt_cgroup_line(const struct shmt_cgroup *group, const char *file, char *out, uint64_t out_bytes) {
    char path[SHMT_CGROUP_PATH + 64];
    int n = snprintf(path, sizeof path, "%s/%s", group->dir, file);
    if (n < 0 || (size_t)n >= sizeof path) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    const int got = fgets(out, (int)shmt_min_u64(out_bytes, INT32_MAX), f) != NULL && strchr(out, '\n') != NULL;
    fclose(f);
    if (got) out[strcspn(out, "\n")] = '\0';
    return got;
}

int shmt_cgroup_number(const struct shmt_cgroup *group, const char *file, uint64_t *out) {
    char line[64], end;
    uint64_t value;
    if (!shmt_cgroup_line(group, file, line, sizeof line)) return 0;
    if (line[0] < '0' || line[0] > '9' || sscanf(line, "%" SCNu64 "%c", &value, &end) != 1) return 0;
    *out = value;
    return 1;
}

int shmt_keyed_number(const char *path, const char *key, uint64_t *out) {
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    char line[256], name[128];
    int found = 0;
    while (!found && fgets(line, sizeof line, f)) {
        uint64_t value;
        found = sscanf(line, "%127s %" SCNu64, name, &value) == 2 && strcmp(name, key) == 0;
        if (found) *out = value;
    }
    fclose(f);
    return found;
}

int shmt_cgroup_stat(const struct shmt_cgroup *group, const char *file, const char *key, uint64_t *out) {
    char path[SHMT_CGROUP_PATH + 64];
    int n = snprintf(path, sizeof path, "%s/%s", group->dir, file);
    return n >= 0 && (size_t)n < sizeof path && shmt_keyed_number(path, key, out);
}

/* Microseconds of processor time per period of one group; 0 when it has no quota. */
static int read_quota(const struct shmt_cgroup *group, uint64_t *quota_out, uint64_t *period_out) {
    if (group->version == 1) {
        return shmt_cgroup_number(group, "cpu.cfs_quota_us", quota_out) &&
               shmt_cgroup_number(group, "cpu.cfs_period_us", period_out) && *period_out > 0;
    }
    char line[64];
    return shmt_cgroup_line(group, "cpu.max", line, sizeof line) &&
           sscanf(line, "%" SCNu64 " %" SCNu64, quota_out, period_out) == 2 && *period_out > 0;
}

uint64_t shmt_cgroup_cpu_millis(const char *root) {
    uint64_t least = 0;
    for (uint32_t version = 1; version <= 2; version++) {
        struct shmt_cgroup group;
        if (!shmt_cgroup_find(root, version, "cpu", &group)) continue;
        do {
            uint64_t quota, period, scaled;
            if (!read_quota(&group, &quota, &period) || !shmt_mul_u64(quota, 1000, &scaled)) continue;
            const uint64_t millis = shmt_max_u64(1, shmt_ceil_div(scaled, period));
            least = least == 0 ? millis : shmt_min_u64(least, millis);
        } while (shmt_cgroup_to_parent(&group));
    }
    return least;
}
