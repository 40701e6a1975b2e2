/* This host's place among the others: see role.h. */
#include "configuration/role.h"

#include <string.h>
#include <strings.h>

static bool is_task(const struct shmt_config *c) { return c->hosts[0] == '\0' && c->worker_hosts[0] != '\0'; }

void shmt_role_settle(struct shmt_config *c) { c->parsed.hosts = is_task(c) ? c->parsed.workers : c->parsed.listed; }

const char *shmt_role_text(const struct shmt_config *c) { return is_task(c) ? c->worker_hosts : c->hosts; }

const char *shmt_role_option(const struct shmt_config *c) { return is_task(c) ? "worker-hosts" : "hosts"; }

uint32_t shmt_config_host(const struct shmt_config *c) {
    const struct shmt_cluster *hosts = &c->parsed.hosts;
    const bool is_chief = c->role == SHMT_ROLE_CHIEF || c->role == SHMT_ROLE_MASTER;
    if (hosts->mpi) return hosts->self;
    if (hosts->n <= 1 || (is_task(c) && is_chief)) return 0;
    return (uint32_t)(is_task(c) ? c->task_index : c->rank);
}

bool shmt_role_has_part(const struct shmt_config *c) { return c->role != SHMT_ROLE_PS; }

static int check_rank(const struct shmt_config *c, struct shmt_error *e) {
    const uint32_t n = c->parsed.listed.n;
    if (c->parsed.listed.mpi) return 0; /* whose launcher knows */
    if (n == 0 && shmt_config_is_given(c, "rank"))
        return shmt_refuse(e, "--rank is for a run over several hosts: name them with --hosts");
    if (n <= 1) return 0;
    if (!shmt_config_is_given(c, "rank"))
        return shmt_refuse(e, "--hosts names %u hosts: say with --rank which of them this one is, from 0 to %u", n, n - 1);
    if (c->rank < n) return 0;
    return shmt_refuse(e, "--rank %llu: --hosts names %u hosts, whose ranks are 0 to %u", (unsigned long long)c->rank, n,
                       n - 1);
}

/* Of `list`, which option `option` names. */
static int check_index(const struct shmt_config *c, const struct shmt_cluster *list, const char *option, struct shmt_error *e) {
    if (c->task_index >= list->n)
        return shmt_refuse(e, "--task-index %llu: --%s names %u host%s, of %s%u", (unsigned long long)c->task_index, option,
                           list->n, list->n == 1 ? "" : "s", list->n == 1 ? "index " : "the indices 0 to ", list->n - 1);
    if (list->n > 1 && !shmt_config_is_given(c, "task-index"))
        return shmt_refuse(e, "--%s names %u hosts: say with --task-index which of them this one is, from 0 to %u", option,
                           list->n, list->n - 1);
    return 0;
}

/* Two processes cannot listen at one port. */
static int check_apart(const struct shmt_config *c, struct shmt_error *e) {
    char ps[SHMT_MOST_HOST_TEXT], worker[SHMT_MOST_HOST_TEXT];
    for (uint32_t i = 0; i < c->parsed.ps.n; i++)
        for (uint32_t k = 0; k < c->parsed.workers.n; k++) {
            shmt_cluster_name(&c->parsed.ps, c->ps_hosts, i, "", ps);
            shmt_cluster_name(&c->parsed.workers, c->worker_hosts, k, "", worker);
            if (strcasecmp(ps, worker) == 0)
                return shmt_refuse(e, "--ps-hosts and --worker-hosts both name \"%.60s\": give each task a port of its own",
                                   ps);
        }
    return 0;
}

static int check_task(const struct shmt_config *c, const char *given, struct shmt_error *e) {
    static const char *const WORDS[] = {
        [SHMT_ROLE_WORKER] = "worker", [SHMT_ROLE_PS] = "ps", [SHMT_ROLE_CHIEF] = "chief", [SHMT_ROLE_MASTER] = "master"};
    if (!shmt_config_is_given(c, "role"))
        return shmt_refuse(e, "--%s needs --role: say which task this one is, as in --role worker --task-index 0", given);
    const char *role = WORDS[c->role];
    if (c->parsed.workers.n == 0) return shmt_refuse(e, "--role %s needs --worker-hosts: the hosts that train", role);
    if (c->role == SHMT_ROLE_PS && c->parsed.ps.n == 0)
        return shmt_refuse(e, "--role ps needs --ps-hosts, which names its tasks; or start none: workers need no ps");
    const int rc = check_apart(c, e);
    if (rc < 0) return rc;
    if (c->role == SHMT_ROLE_PS) return check_index(c, &c->parsed.ps, "ps-hosts", e);
    if (c->role == SHMT_ROLE_WORKER) return check_index(c, &c->parsed.workers, "worker-hosts", e);
    if (c->task_index == 0) return 0;
    return shmt_refuse(e, "--role %s is the first of --worker-hosts: leave out --task-index, or say 0", role);
}

int shmt_role_check(const struct shmt_config *c, struct shmt_error *e) {
    static const char *const TASK[] = {"role", "task-index", "ps-hosts", "worker-hosts", NULL};
    static const char *const LISTED[] = {"hosts", "rank", NULL};
    const char *task = shmt_config_any_given(c, TASK), *listed = shmt_config_any_given(c, LISTED);
    if (task && listed)
        return shmt_refuse(e,
                           "--%s and --%s are two ways to say one thing: name hosts by --hosts and --rank, or by --role, "
                           "--task-index, --ps-hosts and --worker-hosts",
                           listed, task);
    return task ? check_task(c, task, e) : check_rank(c, e);
}
