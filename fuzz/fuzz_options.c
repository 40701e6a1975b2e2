/* Options: lines "NAME=VALUE", set one after the other as the command line and the environment set them; texts that are parsed
 * behind them (modes, --slow, shares); names of stores. */
#include <math.h>
#include <string.h>

#include "configuration/role.h"
#include "configuration/slow.h"
#include "consistency/mode.h"
#include "fuzz.h"
#include "segment/named.h"

/* Users may break the line themselves, by what they pass. */
static void check_refusal(int status, const struct shmt_error *e) {
    FUZZ_CHECK(status < 0 && e->status == status && e->text[0] != '\0');
    FUZZ_CHECK(memchr(e->text, '\0', sizeof e->text) != NULL);
}

static void check_mode(const char *value) {
    struct shmt_policy policy;
    struct shmt_error e = {0};
    char name[64];
    const int status = shmt_mode_parse("mode", value, &policy, &e);
    if (status < 0) {
        check_refusal(status, &e);
        return;
    }
    struct shmt_policy again;
    char name_again[64];
    shmt_mode_name(&policy, value, name, sizeof name);
    FUZZ_CHECK(shmt_mode_find(value) && name[0] != '\0');
    if (shmt_mode_parse("mode", name, &again, NULL) < 0) return; /* a point without a name has its axes */
    shmt_mode_name(&again, value, name_again, sizeof name_again);
    FUZZ_CHECK(strcmp(name, name_again) == 0); /* numbers are not part of it */
}

static void check_slow(const char *value) {
    struct shmt_slow_plan plan;
    struct shmt_error e = {0};
    const int status = shmt_slow_parse("--slow", value, &plan, &e);
    if (status < 0) {
        check_refusal(status, &e);
        return;
    }
    FUZZ_CHECK(plan.n <= SHMT_SLOW_MOST);
    for (uint32_t i = 0; i < plan.n; i++) {
        const struct shmt_slow_entry *entry = &plan.entry[i];
        FUZZ_CHECK(entry->factor >= 1 && entry->factor <= 1e6 && entry->more_ns <= UINT64_C(3600000000000));
        FUZZ_CHECK(entry->share >= 0 && entry->share <= 1);
    }
    (void)shmt_slow_check(&plan, value, 4, NULL);
}

static void check_texts(const char *value) {
    double share;
    uint64_t clocks;
    struct shmt_error e = {0};
    check_mode(value);
    check_slow(value);
    (void)shmt_valid_share(value, &share);
    if (shmt_config_staleness(value, &clocks)) FUZZ_CHECK(clocks <= SHMT_STALENESS_INF);
    if (shmt_named_check(value, &e) == 0)
        FUZZ_CHECK(strlen(value) < SHMT_NAME_BYTES && !strchr(value, '/'));
    else
        check_refusal(e.status, &e);
}

/* Whichever way hosts were named: what is not refused has a place among them. */
static void check_role(const struct shmt_config *c) {
    struct shmt_error e = {0};
    const int status = shmt_role_check(c, &e);
    const uint32_t n = c->parsed.hosts.n;
    if (status < 0) check_refusal(status, &e);
    if (status == 0) FUZZ_CHECK(n <= 1 || shmt_config_host(c) < n || !shmt_role_has_part(c));
}

static void check_config(const struct shmt_config *c) {
    check_role(c);
    FUZZ_CHECK(c->workers <= 4096 && c->threads >= 1 && c->threads <= 256 && c->epochs <= 1000000);
    FUZZ_CHECK(c->batch <= 1u << 30 && c->group >= 1 && c->group <= 64 && c->guests <= 4095);
    FUZZ_CHECK((isnan(c->rate) || (c->rate >= 1e-12 && c->rate <= 1e12)) && c->l1 >= 0 && c->l2 >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct fuzz_input in = {bytes, n};
    struct shmt_config config;
    size_t line_bytes;
    char *line;
    FUZZ_CHECK(shmt_config_init(&config, NULL) == 0);
    while ((line = fuzz_line(&in, &line_bytes))) {
        struct shmt_error e = {0};
        line[line_bytes - 1] = '\0';
        char *value = strchr(line, '=');
        if (value) *value++ = '\0';
        const int status = shmt_config_set(&config, line, line, value ? value : "", &e);
        if (status != 0) check_refusal(status, &e);
        check_texts(value ? value : line);
    }
    check_config(&config);
    shmt_config_fini(&config);
    return 0;
}
