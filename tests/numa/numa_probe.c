/* Runs training on a machine with several NUMA nodes and compares where everything lies with what the plan says. Meant for
 * the emulator of check_numa, which is the one that reads its lines "ok ..." and "not ok ...".
 *
 *     numa_probe TITLE [KEY=VALUE ...] [OPTION=VALUE ...]
 *
 * Options are those of shmtrain. Keys: data=NAME; fill=NODE:MIB (before, memory of a node is taken until so many MiB are
 * free); refuse=1 (binding is refused, as in containers); note=WORDS (this is to be logged; may be repeated); pages=2M or
 * pages=4K (what the memory is to have); join=1 (a process joins the workers by name); unused=NODE (the plan knows that the
 * node may not be used); transparent=1 (transparent huge pages are to be in use). Without a note, nothing at all is to be
 * logged. Exit status: the number of failed checks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/store_priv.h"
#include "probe.h"
#include "refuse.h"

#define MOST_NOTES 4
#define DATA       "builtin:sparse:examples=16384,features=65536,nonzeros=5"

const char *check_name;
unsigned n_failed;

void check(int good, const char *format, ...) {
    va_list args;
    printf("%sok %s: ", good ? "" : "not ", check_name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    n_failed += !good;
}

struct request {
    const char *data, *fill, *pages, *unused;
    const char *note[MOST_NOTES];
    unsigned n_notes;
    int refuse, transparent, join;
};

/* A key of this program: 1; an option of the store's: 0. */
static int take_key(struct request *r, const char *key, const char *value) {
    const struct {
        const char *name;
        const char **text;
        int *flag;
    } keys[] = {{"data", &r->data, NULL},     {"fill", &r->fill, NULL},     {"pages", &r->pages, NULL},
                {"unused", &r->unused, NULL}, {"refuse", NULL, &r->refuse}, {"transparent", NULL, &r->transparent},
                {"join", NULL, &r->join}};
    if (strcmp(key, "note") == 0 && r->n_notes < MOST_NOTES) {
        r->note[r->n_notes++] = value;
        return 1;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(key, keys[i].name) != 0) continue;
        if (keys[i].text) *keys[i].text = value;
        if (keys[i].flag) *keys[i].flag = atoi(value);
        return 1;
    }
    return 0;
}

/* Twice: the store that trains and the one that plans get the same options. */
static struct shmtrain_store *make_store(struct request *r, int argc, char **argv) {
    struct shmtrain_store *store;
    if (shmtrain_store_create(&store) != 0) exit(2);
    (void)shmtrain_store_set(store, "epochs", "1");
    (void)shmtrain_store_set(store, "valid", "none");
    r->n_notes = 0;
    for (int i = 2; i < argc; i++) {
        char key[32];
        const char *equals = strchr(argv[i], '=');
        if (!equals || (size_t)(equals - argv[i]) >= sizeof key) exit(2);
        snprintf(key, sizeof key, "%.*s", (int)(equals - argv[i]), argv[i]);
        if (take_key(r, key, equals + 1)) continue;
        if (shmtrain_store_set(store, key, equals + 1) == 0) continue;
        fprintf(stderr, "%s\n", shmtrain_store_message(store));
        exit(2);
    }
    return store;
}

static void check_notes(const struct request *r, const struct notes *notes) {
    for (unsigned i = 0; i < r->n_notes; i++) check(strstr(notes->text, r->note[i]) != NULL, "it says: %s", r->note[i]);
    if (r->n_notes == 0) check(notes->text[0] == '\0', "nothing had to be said");
}

static void check_unused(const struct look *look, const char *unused) {
    const uint32_t node = (uint32_t)atoi(unused);
    for (uint32_t i = 0; i < look->plan->n_nodes; i++) {
        if (look->plan->node[i].node != node) continue;
        check(!look->plan->node[i].usable && look->plan->node[i].need_bytes == 0, "the plan leaves node %u out", node);
    }
    for (uint32_t k = 0; k < look->store->run.spec.placement.n_nodes; k++)
        check(look->store->run.spec.placement.node[k] != node, "the run leaves node %u out", node);
}

/* Parameters are looked at in workers of their own: in a process that was forked before anything was placed. */
static void in_child(struct look *look, void (*run)(struct look *look)) {
    fflush(stdout);
    const pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        n_failed = 0;
        run(look);
        _exit((int)(n_failed < 100 ? n_failed : 100));
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        check(0, "a child ended by signal %d", WTERMSIG(status));
    else
        n_failed += (unsigned)WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    struct request r = {.data = DATA};
    struct look look = {0};
    struct shmt_error e = {0};
    if (argc < 2) return 2;
    check_name = argv[1];
    struct shmtrain_store *planner = make_store(&r, argc, argv);
    unsigned node, mib;
    if (r.fill && sscanf(r.fill, "%u:%u", &node, &mib) == 2) {
        fill_node(node, mib);
        look.overflows = 1;
    }
    if (r.refuse && !refuse_binding()) return 2;
    if (shmt_topo_open(&look.topo, &e) != 0 || shmtrain_store_plan(planner, r.data, &look.plan) != 0) {
        check(0, "a plan is made: %s%s", e.text, shmtrain_store_message(planner));
        return 1;
    }
    look.refused = r.refuse;
    if (r.pages) look.page_bytes = strcmp(r.pages, "2M") == 0 ? SHMT_HUGE_BYTES : 4096;
    look.store = make_store(&r, argc, argv);
    if (!r.fill && !r.refuse) in_child(&look, r.join ? look_at_guest : look_at_workers);
    look_at_training(&look, r.data);
    check_notes(&r, &look.notes);
    if (r.unused) check_unused(&look, r.unused);
    if (r.transparent)
        check(meminfo_kib("ShmemHugePages") >= 2048, "%llu KiB of transparent huge pages are in use",
              (unsigned long long)meminfo_kib("ShmemHugePages"));
    shmtrain_store_destroy(look.store);
    shmtrain_store_destroy(planner);
    shmt_topo_close(look.topo);
    return (int)(n_failed < 100 ? n_failed : 100);
}
