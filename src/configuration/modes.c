/* The modes as applications see them: consistency/mode.h in words. See <shmtrain/store.h>. */
#include <pthread.h>
#include <shmtrain/store.h>
#include <stdio.h>
#include <string.h>

#include "configuration/options.h"
#include "consistency/mode.h"

#define MOST 64 /* modes */

/* Filled once, constant from then on. */
static struct {
    struct shmtrain_mode mode;
    char form[32], axes[128], standard[24];
} g_mode[MOST];
static size_t g_n;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static const struct {
    const char *option, *letter;
} NUMBERS[] = {[SHMT_NUMBER_NONE] = {"", ""},
               [SHMT_NUMBER_STALENESS] = {"staleness", "S"},
               [SHMT_NUMBER_QUORUM] = {"quorum", "K"},
               [SHMT_NUMBER_MERGE_EVERY] = {"merge-every", "H"}};

/* "inf", "4"; the letter, where it is the number that the mode takes. */
static void write_number(const struct shmt_mode *mode, enum shmt_mode_number which, char out[24]) {
    const uint64_t value = shmt_mode_number_of(&mode->policy, which);
    if (mode->number == which)
        snprintf(out, 24, "%s", NUMBERS[which].letter);
    else if (value == SHMT_STALENESS_INF)
        snprintf(out, 24, "inf");
    else
        snprintf(out, 24, "%llu", (unsigned long long)value);
}

static void write_axes(const struct shmt_mode *mode, char *out, size_t bytes) {
    const struct shmt_policy *p = &mode->policy;
    char staleness[24], quorum[24], every[24];
    write_number(mode, SHMT_NUMBER_STALENESS, staleness);
    write_number(mode, SHMT_NUMBER_QUORUM, quorum);
    write_number(mode, SHMT_NUMBER_MERGE_EVERY, every);
    snprintf(out, bytes, "--write %s --staleness %s", shmt_write_name(p->write), staleness);
    if (p->quorum != SHMT_QUORUM_ALL)
        snprintf(out + strlen(out), bytes - strlen(out), " --quorum %s --late %s", quorum, shmt_late_name(p->late));
    if (shmt_policy_has_equal_copies(p))
        snprintf(out + strlen(out), bytes - strlen(out), " --replicas %s", shmt_replicas_name(p->replicas));
    if (shmt_policy_merges_replicas(p))
        snprintf(out + strlen(out), bytes - strlen(out), " --replicas %s --merge-every %s --merge %s",
                 shmt_replicas_name(p->replicas), every, shmt_merge_name(p->merge));
}

static void write_standard(const struct shmt_mode *mode, char *out, size_t bytes) {
    const uint64_t number = shmt_mode_number_of(&mode->policy, mode->number);
    out[0] = '\0';
    if (mode->number == SHMT_NUMBER_QUORUM && number == SHMT_QUORUM_MOST)
        snprintf(out, bytes, "all but one in eight");
    else if (mode->number != SHMT_NUMBER_NONE)
        snprintf(out, bytes, "%llu", (unsigned long long)number);
}

static void fill(void) {
    const struct shmt_mode *mode;
    for (size_t i = 0; i < MOST && (mode = shmt_mode_at(i)); i++, g_n++) {
        const char *letter = NUMBERS[mode->number].letter;
        snprintf(g_mode[i].form, sizeof g_mode[i].form, "%s%s%s", mode->name, letter[0] ? ":" : "", letter);
        write_axes(mode, g_mode[i].axes, sizeof g_mode[i].axes);
        write_standard(mode, g_mode[i].standard, sizeof g_mode[i].standard);
        g_mode[i].mode = (struct shmtrain_mode){.name = mode->name,
                                                .form = g_mode[i].form,
                                                .about = mode->about,
                                                .known_as = mode->known_as,
                                                .axes = g_mode[i].axes,
                                                .number = NUMBERS[mode->number].option,
                                                .standard = g_mode[i].standard};
    }
}

const struct shmtrain_mode *shmtrain_mode_at(size_t i) {
    pthread_once(&g_once, fill);
    return i < g_n ? &g_mode[i].mode : NULL;
}

const char *shmt_config_mode_of_axes(const struct shmt_config *c) {
    if (c->axes.merge == SHMT_MERGE_DAMPED) return "async";
    if (c->axes.replicas == SHMT_REPLICAS_WORKER) return "local";
    if (c->axes.replicas == SHMT_REPLICAS_NODE) return "node";
    if (c->axes.replicas == SHMT_REPLICAS_EQUAL) return "allreduce";
    if (c->axes.quorum || c->axes.write == SHMT_WRITE_AGGREGATE) return "sync";
    return c->axes.write != SHMT_UNSAID || c->parsed.staleness > 0 || c->cache_pulls > 0 ? "async" : NULL;
}
