/* What `shmtrain scale` is asked for: modes, numbers of workers and nodes, seeds. See scale.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/scale/scale.h"
#include "cli/talk.h"

#define DEFAULT_MODES   "hogwild,async,sync"
#define DEFAULT_WORKERS "1..256"
#define DEFAULT_NODES   "1,2,4"
#define DEFAULT_SEEDS   3
#define MOST_WORKERS    1000 /* fibers, and none of them waits for a core */
#define MOST_NODES      64
#define COSTS           "measured"

static int add_mode(struct scaling *s, struct shmtrain_store *store, const char *list, const char *name, size_t n) {
    struct scale_mode *mode = &s->mode[s->n_modes];
    if (s->n_modes == SCALE_MODES) return talk_refuse("--modes %.60s: at most %d modes", list, SCALE_MODES);
    if (n >= sizeof mode->name) return talk_refuse("--modes %.60s...: a mode's name is shorter", list);
    snprintf(mode->name, sizeof mode->name, "%.*s", (int)n, name);
    if (shmtrain_store_set(store, "mode", mode->name) < 0)
        return talk_refuse("--modes %.60s: %s", list, shmtrain_store_message(store));
    for (unsigned m = 0; m < s->n_modes; m++)
        if (strcmp(s->mode[m].name, mode->name) == 0) return talk_refuse("--modes %.60s: %s is there twice", list, mode->name);
    s->n_modes++;
    return 0;
}

static int take_modes(struct scaling *s, struct shmtrain_store *store, const char *list) {
    int status = 0;
    for (const char *at = list; at && status == 0; at = *at == ',' ? at + 1 : NULL) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, ",");
        status = add_mode(s, store, list, at, n);
        at += n;
    }
    return status;
}

/* ---- lists of numbers: "1,2,8", "1..256" (doubling), or "64", which is 1..64 ---- */

struct list {
    const char *option, *text;
    uint32_t *number; /* (room) ascending */
    unsigned n, room;
    uint32_t most;
};

static int refuse_list(const struct list *l) {
    return talk_refuse("%s %.60s: expected ascending numbers from 1 to %u, as in 1,2,8 or 1..%u (at most %u of them)",
                       l->option, l->text, l->most, l->most < 256 ? l->most : 256, l->room);
}

static bool read_number(const char **at, uint32_t most, uint32_t *out) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    const unsigned long n = strtoul(*at, &end, 10);
    *at = end;
    *out = (uint32_t)n;
    return n >= 1 && n <= most;
}

static bool add_number(struct list *l, uint32_t number) {
    if (l->n == l->room || (l->n > 0 && l->number[l->n - 1] >= number)) return false;
    l->number[l->n++] = number;
    return true;
}

/* Each twice the one before, and the last one. */
static bool add_range(struct list *l, uint32_t from, uint32_t to) {
    uint32_t number = from;
    bool fits = from < to;
    for (; fits && number < to; number *= 2) fits = add_number(l, number);
    return fits && add_number(l, to);
}

static int take_list(struct list *l) {
    const char *at = l->text;
    uint32_t from, to;
    if (!read_number(&at, l->most, &from)) return refuse_list(l);
    if (strncmp(at, "..", 2) == 0) {
        at += 2;
        if (!read_number(&at, l->most, &to) || *at != '\0' || !add_range(l, from, to)) return refuse_list(l);
        return 0;
    }
    for (; add_number(l, from) && *at == ',';) {
        at++;
        if (!read_number(&at, l->most, &from)) return refuse_list(l);
    }
    if (*at != '\0' || l->number[l->n - 1] != from) return refuse_list(l);
    return 0;
}

static int take_workers(struct scaling *s, const struct arguments *a) {
    const char *one = a->workers ? NULL : arguments_value(a, "workers");
    char range[32];
    snprintf(range, sizeof range, "1..%.20s", one ? one : "");
    struct list list = {.option = "--workers",
                        .text = a->workers                         ? a->workers
                                : one && strcmp(one, "1") == 0     ? "1"
                                : one && strcmp(one, "cores") != 0 ? range
                                                                   : DEFAULT_WORKERS,
                        .number = s->workers,
                        .room = SCALE_WORKERS,
                        .most = MOST_WORKERS};
    const int status = take_list(&list);
    s->n_workers = list.n;
    return status;
}

/* Each node needs a worker: of the default those are left out that have none. */
static int take_nodes(struct scaling *s, const struct arguments *a) {
    const uint32_t least = s->workers[0], most = s->workers[s->n_workers - 1];
    struct list list = {.option = "--nodes",
                        .text = a->nodes ? a->nodes : DEFAULT_NODES,
                        .number = s->nodes,
                        .room = SCALE_NODES,
                        .most = MOST_NODES};
    const int status = take_list(&list);
    s->n_nodes = list.n;
    while (status == 0 && !a->nodes && s->nodes[s->n_nodes - 1] > most) s->n_nodes--;
    if (status == 0 && s->nodes[s->n_nodes - 1] > most)
        return talk_refuse("--nodes %u: each node needs a worker, and there are %u at most", s->nodes[s->n_nodes - 1], most);
    if (status == 0 && s->nodes[0] > least)
        return talk_refuse(
            "--nodes %u: speed-ups are over the fewest workers, which are %u: begin --nodes or --workers with others",
            s->nodes[0], least);
    return status;
}

static int take_seeds(struct scaling *s, const struct arguments *a) {
    char *end;
    const char *seed = arguments_value(a, "seed");
    const unsigned long n = a->seeds ? strtoul(a->seeds, &end, 10) : DEFAULT_SEEDS;
    if (a->seeds && (a->seeds[0] < '0' || a->seeds[0] > '9' || *end != '\0' || n < 1 || n > SCALE_SEEDS))
        return talk_refuse("--seeds %.60s: expected a number of seeds from 1 to %d", a->seeds, SCALE_SEEDS);
    s->seeds = (unsigned)n;
    s->first_seed = seed ? strtoull(seed, NULL, 10) : 1;
    return 0;
}

/* Workers are fibers, and their nodes are --nodes. */
static int take_costs(struct scaling *s, const struct arguments *a) {
    const char *spawn = arguments_value(a, "spawn"), *sim = arguments_value(a, "sim");
    if (spawn) return talk_refuse("--spawn %.60s: scale runs workers as fibers, with its seeds: leave it out", spawn);
    if (sim && (strncmp(sim, "nodes=", 6) == 0 || strstr(sim, ",nodes=")))
        return talk_refuse("--sim nodes=: scale tries several numbers of nodes: use --nodes");
    s->sim = sim ? sim : COSTS;
    return 0;
}

static void count_runs(struct scaling *s) {
    unsigned cells = 0;
    for (unsigned node = 0; node < s->n_nodes; node++)
        for (unsigned w = 0; w < s->n_workers; w++) cells += scale_has_cell(s, node, w);
    s->n_runs = s->n_modes * s->seeds * cells;
}

int scale_ask(struct scaling *s, struct shmtrain_store *store, const struct arguments *a) {
    s->arguments = a;
    s->data = files_named(a, 0, files_standard(a));
    if (!s->data) return 2;
    files_title(a, 0, files_standard(a), s->title, sizeof s->title);
    int status = files_refuse_pipes(a, 0, "scale");
    if (status == 0) status = take_seeds(s, a);
    if (status == 0) status = take_costs(s, a);
    if (status == 0) status = take_workers(s, a);
    if (status == 0) status = take_nodes(s, a);
    if (status == 0) status = take_modes(s, store, a->modes ? a->modes : DEFAULT_MODES);
    if (status == 0) count_runs(s);
    return status;
}
