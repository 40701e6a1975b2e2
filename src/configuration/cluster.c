/* The hosts of a run: see cluster.h. */
#include "configuration/cluster.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "configuration/mpi_launch.h"

#define MOST_NAME 255 /* RFC 1035 */
#define MOST_TEXT 20000

#define EXPECTED "expected NAME:PORT of each host, with commas between them, as in a:5000,b:5000"

static bool is_name(const char *at, size_t n) {
    const bool in_brackets = n > 2 && at[0] == '[' && at[n - 1] == ']';
    if (n == 0 || n > MOST_NAME || at[0] == '-') return false;
    for (size_t i = in_brackets; i < n - in_brackets; i++) {
        const char c = at[i];
        if (!isalnum((unsigned char)c) && c != '-' && c != '.' && c != '_' && (!in_brackets || (c != ':' && c != '%')))
            return false;
    }
    return true;
}

/* Up to `end`: 1 to 65535; 0: it is none. */
static uint16_t port_of(const char *at, const char *end) {
    uint32_t port = 0;
    if (end - at < 1 || end - at > 5 || at[0] == '0') return 0;
    for (; at < end; at++) {
        if (!isdigit((unsigned char)*at)) return 0;
        port = 10 * port + (uint32_t)(*at - '0');
    }
    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

static bool is_same(const struct shmt_cluster *c, const char *text, uint32_t a, uint32_t b) {
    return c->host[a].port == c->host[b].port && c->host[a].name_bytes == c->host[b].name_bytes &&
           strncasecmp(text + c->host[a].at, text + c->host[b].at, c->host[a].name_bytes) == 0;
}

static int parse_host(const char *given_as, const char *text, const char *at, size_t n, struct shmt_cluster *out,
                      struct shmt_error *e) {
    const char *end = at + n, *colon = memrchr(at, ':', n);
    const uint16_t port = colon ? port_of(colon + 1, end) : 0;
    if (out->n == SHMT_MAX_HOSTS) return shmt_refuse(e, "%s: at most %d hosts", given_as, SHMT_MAX_HOSTS);
    if (!colon || !is_name(at, (size_t)(colon - at)))
        return shmt_refuse(e, "%s: \"%.*s\" is no host: " EXPECTED, given_as, (int)shmt_min_u64(n, 60), at);
    if (port == 0)
        return shmt_refuse(e, "%s: \"%.*s\" has no port from 1 to 65535: " EXPECTED, given_as, (int)shmt_min_u64(n, 60), at);
    out->host[out->n].at = (uint16_t)(at - text);
    out->host[out->n].name_bytes = (uint16_t)(colon - at);
    out->host[out->n].port = port;
    for (uint32_t other = 0; other < out->n; other++)
        if (is_same(out, text, other, out->n))
            return shmt_refuse(e, "%s: \"%.*s\" stands there twice", given_as, (int)shmt_min_u64(n, 60), at);
    out->n++;
    return 0;
}

static int ask_launcher(const char *given_as, struct shmt_cluster *out, struct shmt_error *e) {
    struct shmt_mpi_launch launch;
    if (!shmt_mpi_launched(&launch))
        return shmt_refuse(
            e, "%s mpi is for what mpirun or mpiexec has started, and the environment names no rank: is it missing?", given_as);
    if (launch.n > SHMT_MAX_HOSTS)
        return shmt_refuse(e, "%s mpi: %u processes, and at most %d hosts: start one on each host", given_as, launch.n,
                           SHMT_MAX_HOSTS);
    out->n = launch.n;
    out->mpi = launch.mpi;
    out->self = launch.rank;
    return 0;
}

int shmt_cluster_parse(const char *given_as, const char *text, struct shmt_cluster *out, struct shmt_error *e) {
    *out = (struct shmt_cluster){0};
    if (strcmp(text, "none") == 0) text = "";
    return strcmp(text, "mpi") == 0 ? ask_launcher(given_as, out, e) : shmt_cluster_parse_list(given_as, text, out, e);
}

int shmt_cluster_parse_list(const char *given_as, const char *text, struct shmt_cluster *out, struct shmt_error *e) {
    *out = (struct shmt_cluster){0};
    if (text[0] == '\0') return 0;
    if (strlen(text) > MOST_TEXT) return shmt_refuse(e, "%s: more than %d characters", given_as, MOST_TEXT);
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        const int rc = parse_host(given_as, text, at, n, out, e);
        if (rc < 0) return rc;
        at += n;
        if (*at == '\0') return 0;
    }
}

void shmt_cluster_name(const struct shmt_cluster *c, const char *text, uint32_t rank, const char *prefix,
                       char out[SHMT_MOST_HOST_TEXT]) {
    snprintf(out, SHMT_MOST_HOST_TEXT, "%s%.*s:%u", prefix, c->host[rank].name_bytes, text + c->host[rank].at,
             c->host[rank].port);
}

static bool is_loopback(const char *name, size_t n) {
    static const char *const NAMES[] = {"localhost", "[::1]"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (n == strlen(NAMES[i]) && strncasecmp(name, NAMES[i], n) == 0) return true;
    return n > 4 && strncmp(name, "127.", 4) == 0 && strspn(name, "0123456789.") >= n;
}

bool shmt_cluster_is_loopback(const struct shmt_cluster *c, const char *text) {
    for (uint32_t rank = 0; rank < c->n; rank++)
        if (!is_loopback(text + c->host[rank].at, c->host[rank].name_bytes)) return false;
    return true;
}

void shmt_cluster_listen(const struct shmt_cluster *c, const char *text, uint32_t rank, char out[SHMT_MOST_HOST_TEXT]) {
    const char *name = text + c->host[rank].at;
    const size_t n = c->host[rank].name_bytes;
    const bool is_number = name[0] == '[' || strspn(name, "0123456789.") >= n;
    if (is_number)
        shmt_cluster_name(c, text, rank, "tcp://", out);
    else
        snprintf(out, SHMT_MOST_HOST_TEXT, "tcp://%s:%u", is_loopback(name, n) ? "127.0.0.1" : "*", c->host[rank].port);
}
