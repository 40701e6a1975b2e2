/* shmtrain ls and rm: stores with a name. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/arguments.h"
#include "cli/talk.h"

/* "12.3 MiB", in three digits. */
static const char *bytes_text(uint64_t bytes, char out[16]) {
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)bytes;
    int unit = 0;
    for (; x >= 1000 && unit < 4; unit++) x /= 1024;
    snprintf(out, 16, "%.*f %s", unit == 0 || x >= 99.95 ? 0 : x < 9.995 ? 2 : 1, x, UNITS[unit]);
    return out;
}

/* "3 min": the largest unit that fits. */
static const char *age_text(int64_t seconds, char out[24]) {
    static const struct {
        int64_t seconds;
        const char *name;
    } UNITS[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;
    if (seconds < 0) seconds = 0; /* the clock was set back */
    while (i < 3 && seconds < UNITS[i].seconds) i++;
    snprintf(out, 24, "%" PRId64 " %s", seconds / UNITS[i].seconds, UNITS[i].name);
    return out;
}

static const char *state_of(const struct shmtrain_named *s) {
    if (s->in_use && s->intact && s->made_at == 0) return "in use, loading"; /* it says nothing of itself yet */
    if (s->died) return s->in_use ? "in use, died" : "died";
    if (!s->intact) return s->in_use ? "in use, damaged" : "damaged";
    return s->in_use ? "in use" : "over";
}

static void print_lines(const struct shmtrain_named *store, int n) {
    const int64_t now = (int64_t)time(NULL);
    char bytes[16], age[24];
    if (n > 0) printf("%-20s %-10s %7s %6s %10s %7s  %s\n", "NAME", "MODEL", "WORKERS", "GUESTS", "SIZE", "AGE", "STATE");
    for (int i = 0; i < n; i++) {
        const struct shmtrain_named *s = &store[i];
        printf("%-20s %-10s %7" PRIu32 " %6" PRIu32 " %10s %7s  %s\n", s->name, s->model[0] ? s->model : "-", s->workers,
               s->guests, bytes_text(s->bytes, bytes), s->made_at ? age_text(now - s->made_at, age) : "-", state_of(s));
    }
}

static json_t *json_of(const struct shmtrain_named *s) {
    json_t *model = json_string(s->model); /* NULL: its name is not UTF-8 */
    return json_pack("{s:s,s:o,s:I,s:I,s:i,s:b,s:b,s:b,s:i,s:i}", "name", s->name, "model", model ? model : json_string("?"),
                     "bytes", (json_int_t)s->bytes, "made_at", (json_int_t)s->made_at, "pid", s->pid, "in_use", s->in_use,
                     "intact", s->intact, "died", s->died, "workers", s->workers, "guests", s->guests);
}

static void print_json(const struct shmtrain_named *store, int n) {
    json_t *list = json_array(), *o = json_object();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_of(&store[i]));
    json_object_set_new(o, "stores", list);
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
}

int ls_run(struct shmtrain_store *store, const struct arguments *a) {
    struct shmtrain_named *list = NULL;
    (void)store;
    const int n = shmtrain_named_list(&list);
    if (n < 0) {
        talk_refuse(n == SHMTRAIN_E_MEMORY ? "not enough memory for the list of stores" : "cannot read /dev/shm");
        return 1;
    }
    if (a->json)
        print_json(list, n);
    else
        print_lines(list, n);
    free(list);
    return talk_close_output();
}

int rm_run(struct shmtrain_store *store, const struct arguments *a) {
    char message[512] = "";
    (void)store;
    const int rc = shmtrain_named_remove(a->operand[0], a->force, message, sizeof message);
    if (rc == 0) return 0;
    talk_refuse("%s%s", message, !a->force && strstr(message, " in use") ? "; use --force to remove it anyway" : "");
    return rc == SHMTRAIN_E_USAGE ? 2 : 1;
}
