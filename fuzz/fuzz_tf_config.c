/* TF_CONFIG: a text, as the program finds it in its environment. What is taken is set as the program does, and has to be a run's hosts, or is
 * refused because of an address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tf_config.h"
#include "configuration/role.h"
#include "fuzz.h"

#define MOST_MESSAGE 256

static unsigned count(const char *list) {
    unsigned n = list[0] != '\0';
    for (; *list; list++) n += *list == ',';
    return n;
}

static int set(struct shmt_config *c, const char *option, const char *value, struct shmt_error *e) {
    return value[0] == '\0' ? 0 : shmt_config_set(c, option, option, value, e);
}

static void check_run(const struct tf_config *t) {
    struct shmt_config c;
    struct shmt_error e = {0};
    char index[16];
    FUZZ_CHECK(shmt_config_init(&c, NULL) == 0);
    snprintf(index, sizeof index, "%u", t->is_ps ? t->index : t->rank);
    FUZZ_CHECK(set(&c, "role", t->is_ps ? "ps" : "worker", &e) == 0 && set(&c, "task-index", index, &e) == 0);
    if (set(&c, "worker-hosts", t->workers, &e) == 0 && set(&c, "ps-hosts", t->ps, &e) == 0) {
        FUZZ_CHECK(shmt_role_check(&c, &e) == 0);
        FUZZ_CHECK(c.parsed.hosts.n == t->n_workers && shmt_role_has_part(&c) == !t->is_ps);
        FUZZ_CHECK(t->is_ps || shmt_config_host(&c) == t->rank);
    } else {
        FUZZ_CHECK(e.status < 0 && e.text[0] != '\0');
    }
    shmt_config_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct tf_config t;
    char message[MOST_MESSAGE];
    char *text = malloc(n + 1);
    if (!text) exit(99);
    if (n > 0) memcpy(text, bytes, n);
    text[n] = '\0';
    if (tf_config_parse(text, &t, message, sizeof message) < 0) {
        FUZZ_CHECK(memchr(message, '\0', sizeof message) && strncmp(message, "TF_CONFIG:", 10) == 0 && strlen(message) > 12);
    } else if (!t.alone) {
        FUZZ_CHECK(count(t.workers) == t.n_workers && t.n_workers <= TF_CONFIG_MOST_TASKS);
        FUZZ_CHECK(t.is_ps ? t.index < count(t.ps) : t.rank < t.n_workers);
        check_run(&t);
        tf_config_free(&t);
    }
    free(text);
    return 0;
}
