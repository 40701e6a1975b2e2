/* Options whose texts say more than a word or a number: they are parsed once, when they are set (struct shmt_config_parsed). */
#include "configuration/options.h"

#include <string.h>

#include "configuration/options_priv.h"
#include "configuration/race.h"
#include "configuration/slow.h"
#include "base/duration.h"
#include "base/plain.h"

bool shmt_config_staleness(const char *value, uint64_t *out) {
    *out = SHMT_STALENESS_INF;
    return strcmp(value, "inf") == 0 || (shmt_plain_count(value, out) && *out < SHMT_STALENESS_INF);
}

static int parse_mode(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return strcmp(value, "auto") == 0 ? 0 : shmt_mode_parse(given_as, value, &out->mode, e);
}

static int parse_staleness(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    uint64_t clocks = 0;
    if (value[0] != '\0' && !shmt_config_staleness(value, &clocks))
        return shmt_refuse(e, "%s %.60s: expected a whole number of clocks, or inf", given_as, value);
    out->staleness = clocks;
    return 0;
}

static int parse_slow(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_slow_parse(given_as, value, &out->slow, e);
}

static int parse_race(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_race_parse(given_as, value, &out->race_ns, &out->race_share, e);
}

static int parse_cpu(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_cpu_parse(given_as, value, &out->cpu, e);
}

static int parse_stall_timeout(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    uint64_t ns = 0;
    if (strcmp(value, "none") != 0 && !shmt_duration_parse(value, &ns))
        return shmt_refuse(e, "%s %.60s: expected a time, as in 30s, 500ms or 2m (a number alone: seconds), or none", given_as,
                           value[0] ? value : "\"\"");
    out->stall_timeout_ns = ns;
    return 0;
}

static int parse_every(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_every_parse(given_as, value, &out->checkpoint_every, e);
}

static int parse_spawn(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_spawn_parse(given_as, value, &out->spawn, e);
}

static int parse_sim(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_sim_parse(given_as, value, &out->sim, e);
}

static int parse_hosts(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_cluster_parse(given_as, value, &out->listed, e);
}

static int parse_ps_hosts(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_cluster_parse_list(given_as, value, &out->ps, e);
}

static int parse_worker_hosts(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    return shmt_cluster_parse_list(given_as, value, &out->workers, e);
}

static int parse_host_timeout(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e) {
    const uint64_t least_ns = 2000000000, most_ns = UINT64_C(86400) * 1000000000;
    if (!shmt_duration_parse(value, &out->host_timeout_ns) || out->host_timeout_ns < least_ns || out->host_timeout_ns > most_ns)
        return shmt_refuse(e, "%s %.60s: expected a time from 2s to 24h, as in 30s or 2m (a number alone: seconds)", given_as,
                           value[0] ? value : "\"\"");
    return 0;
}

static const struct {
    const char *option;
    int (*parse)(const char *given_as, const char *value, struct shmt_config_parsed *out, struct shmt_error *e);
} PARSED[] = {{"mode", parse_mode},
              {"staleness", parse_staleness},
              {"slow", parse_slow},
              {"race-window", parse_race},
              {"cpu", parse_cpu},
              {"stall-timeout", parse_stall_timeout},
              {"checkpoint-every", parse_every},
              {"spawn", parse_spawn},
              {"sim", parse_sim},
              {"hosts", parse_hosts},
              {"ps-hosts", parse_ps_hosts},
              {"worker-hosts", parse_worker_hosts},
              {"host-timeout", parse_host_timeout}};

int shmt_option_parse_text(const char *option, const char *given_as, const char *value, struct shmt_config_parsed *out,
                           struct shmt_error *e) {
    for (size_t i = 0; i < sizeof PARSED / sizeof *PARSED; i++)
        if (strcmp(PARSED[i].option, option) == 0) return PARSED[i].parse(given_as, value, out, e);
    return 0;
}
