/* TF_CONFIG: see tf_config.h. {"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}, "task": {"type": "worker",
 * "index": 0}}; master is an older word for chief. Here chief and workers are the hosts of a run, in this order. */
#include "cli/tf_config.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VARIABLE "TF_CONFIG"

/* One at most of the first two. */
enum { CHIEF, MASTER, WORKER, PS, N_TYPES };
static const char *const TYPE[N_TYPES] = {"chief", "master", "worker", "ps"};

struct parse {
    const char *type[N_TYPES][TF_CONFIG_MOST_TASKS]; /* addresses, in the JSON's memory */
    unsigned n[N_TYPES];
    char *message;
    size_t bytes;
};

static __attribute__((format(printf, 2, 3))) int refuse(struct parse *p, const char *format, ...) {
    va_list args;
    const int used = snprintf(p->message, p->bytes, VARIABLE);
    va_start(args, format);
    if (used >= 0 && (size_t)used < p->bytes) vsnprintf(p->message + used, p->bytes - (size_t)used, format, args);
    va_end(args);
    return -1;
}

static int type_of(const char *word) {
    for (int t = 0; t < N_TYPES; t++)
        if (strcmp(TYPE[t], word) == 0) return t;
    return -1;
}

static int refuse_type(struct parse *p, const char *where, const char *word) {
    if (strcmp(word, "evaluator") == 0)
        return refuse(p, ": %s: shmtrain has no evaluator, hosts measure validation data themselves (--valid): start none",
                      where);
    return refuse(p, ": %s: there is no type of task \"%.40s\": expected chief (or master), worker or ps", where, word);
}

/* ---- cluster ---- */

/* Of all types; two tasks of one address would wait for each other's port. */
static bool is_known(const struct parse *p, const char *address) {
    for (int t = 0; t < N_TYPES; t++)
        for (unsigned i = 0; i < p->n[t]; i++)
            if (strcasecmp(p->type[t][i], address) == 0) return true;
    return false;
}

static int take_list(struct parse *p, int type, const json_t *list) {
    size_t i;
    const json_t *entry;
    if (!json_is_array(list)) return refuse(p, ": cluster.%s: expected a list, as in [\"a:2222\", \"b:2222\"]", TYPE[type]);
    json_array_foreach(list, i, entry) {
        const char *address = json_string_value(entry);
        if (!address || address[0] == '\0' || strchr(address, ','))
            return refuse(p, ": cluster.%s[%zu]: expected one host, as in \"a:2222\"", TYPE[type], i);
        if (is_known(p, address)) return refuse(p, ": cluster.%s[%zu]: \"%.60s\" stands there twice", TYPE[type], i, address);
        if (p->n[type] == TF_CONFIG_MOST_TASKS)
            return refuse(p, ": cluster.%s: more than %d hosts", TYPE[type], TF_CONFIG_MOST_TASKS);
        p->type[type][p->n[type]++] = address;
    }
    return 0;
}

static int take_cluster(struct parse *p, json_t *cluster) {
    const char *key;
    json_t *list;
    if (!json_is_object(cluster))
        return refuse(p, ": cluster: expected an object, as in {\"worker\": [\"a:2222\", \"b:2222\"]}");
    json_object_foreach(cluster, key, list) {
        const int type = type_of(key);
        const int rc = type < 0 ? refuse_type(p, "cluster", key) : take_list(p, type, list);
        if (rc < 0) return rc;
    }
    if (p->n[CHIEF] + p->n[MASTER] > 1) return refuse(p, ": cluster: there is one chief, or one master, and not more");
    if (p->n[CHIEF] + p->n[MASTER] + p->n[WORKER] > TF_CONFIG_MOST_TASKS)
        return refuse(p, ": cluster: more than %d hosts that train", TF_CONFIG_MOST_TASKS);
    if (p->n[CHIEF] + p->n[MASTER] + p->n[WORKER] == 0) return refuse(p, ": cluster names neither a chief nor a worker");
    return 0;
}

/* ---- task ---- */

/* A number, or one in quotes, as shell scripts make them; -1: neither. */
static long long index_of(const json_t *value) {
    const char *text = json_string_value(value);
    if (!text) return json_is_integer(value) ? json_integer_value(value) : -1;
    const size_t n = strlen(text);
    return n > 0 && n < 10 && strspn(text, "0123456789") == n ? atoll(text) : -1;
}

/* Before the cluster is looked at: an evaluator's may name nobody else. */
static int take_type(struct parse *p, const json_t *task, int *type_out) {
    const char *word = json_string_value(json_object_get(task, "type"));
    if (!json_is_object(task))
        return refuse(p, ": task: expected which one this is, as in {\"type\": \"worker\", \"index\": 0}");
    if (!word) return refuse(p, ": task.type: expected chief (or master), worker or ps, in quotes");
    *type_out = type_of(word);
    return *type_out < 0 ? refuse_type(p, "task.type", word) : 0;
}

static int take_index(struct parse *p, const json_t *task, int type, unsigned *out) {
    const json_t *value = json_object_get(task, "index");
    const unsigned n = p->n[type];
    const long long index = value ? index_of(value) : 0;
    if (n == 0)
        return refuse(p, ": task.type is %s, and cluster names no host for it: expected cluster.%s", TYPE[type], TYPE[type]);
    if (!value && n > 1) return refuse(p, ": task.index: expected which of %u hosts this one is, from 0 to %u", n, n - 1);
    if (index < 0) return refuse(p, ": task.index: expected a whole number, from 0 to %u", n - 1);
    if (index >= n)
        return refuse(p, ": task.index %lld: cluster.%s has %u host%s, of %s%u", index, TYPE[type], n, n == 1 ? "" : "s",
                      n == 1 ? "index " : "the indices 0 to ", n - 1);
    *out = (unsigned)index;
    return 0;
}

/* ---- the whole ---- */

/* The addresses of these types, with commas between; NULL: no memory. */
static char *join(const struct parse *p, int from, int to) {
    char *out = NULL;
    size_t bytes;
    FILE *f = open_memstream(&out, &bytes);
    const char *comma = "";
    if (!f) return NULL;
    for (int t = from; t <= to; t++)
        for (unsigned i = 0; i < p->n[t]; i++, comma = ",") fprintf(f, "%s%s", comma, p->type[t][i]);
    if (fclose(f) == 0) return out;
    free(out);
    return NULL;
}

static int settle(struct parse *p, int type, unsigned index, struct tf_config *out) {
    const unsigned before = type == WORKER ? p->n[CHIEF] + p->n[MASTER] : 0;
    *out = (struct tf_config){.is_ps = type == PS,
                              .type = TYPE[type],
                              .index = index,
                              .rank = before + index,
                              .n_workers = p->n[CHIEF] + p->n[MASTER] + p->n[WORKER],
                              .workers = join(p, CHIEF, WORKER),
                              .ps = join(p, PS, PS)};
    if (out->workers && out->ps) return 0;
    tf_config_free(out);
    return refuse(p, ": not enough memory");
}

static bool is_empty(const json_t *value) { return !value || (json_is_object(value) && json_object_size(value) == 0); }

static int parse(struct parse *p, const json_t *root, struct tf_config *out) {
    json_t *cluster = json_object_get(root, "cluster"), *task = json_object_get(root, "task");
    int type = 0;
    unsigned index = 0;
    if (!json_is_object(root)) return refuse(p, ": expected an object, as in {\"cluster\": {...}, \"task\": {...}}");
    *out = (struct tf_config){.alone = true};
    if (is_empty(cluster) && is_empty(task)) return 0;
    int rc = take_type(p, task, &type);
    if (rc == 0 && is_empty(cluster))
        return refuse(p, ": cluster: expected the hosts of all tasks, as in {\"worker\": [\"a:2222\"]}");
    if (rc == 0) rc = take_cluster(p, cluster);
    if (rc == 0) rc = take_index(p, task, type, &index);
    return rc == 0 ? settle(p, type, index, out) : rc;
}

int tf_config_parse(const char *text, struct tf_config *out, char *message, size_t bytes) {
    struct parse p = {.message = message, .bytes = bytes};
    json_error_t e;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    const int rc = root ? parse(&p, root, out) : refuse(&p, ":%d:%d: %s", e.line, e.column, e.text);
    json_decref(root);
    return rc;
}

void tf_config_free(struct tf_config *config) {
    free(config->workers);
    free(config->ps);
    *config = (struct tf_config){.alone = true};
}
