/* Lines about hosts that have not come: see waiting.h. */
#include "hosts/waiting.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "sync/host.h"

#define QUIET_NS  UINT64_C(2000000000)
#define REMIND_NS UINT64_C(60000000000)

void shmt_waiting_begin(struct shmt_waiting *w, const struct shmt_lanes *lanes, uint32_t self, uint32_t n_hosts) {
    *w = (struct shmt_waiting){
        .lanes = lanes, .self = self, .n_hosts = n_hosts, .change_ns = shmt_now_ns() + QUIET_NS, .pause_ns = QUIET_NS};
}

static bool is_missing(const struct shmt_waiting *w, uint32_t host) {
    return host != w->self &&
           (shmt_lanes_peer(w->lanes, host, NULL) == SHMT_PEER_UNKNOWN || shmt_lanes_is_silent(w->lanes, host));
}

/* It was there, and has ended. */
static bool has_any_left(const struct shmt_waiting *w) {
    for (uint32_t host = 0; host < w->n_hosts; host++)
        if (host != w->self && shmt_lanes_peer(w->lanes, host, NULL) == SHMT_PEER_LOST) return true;
    return false;
}

static bool is_any_missing(const struct shmt_waiting *w) {
    for (uint32_t host = 0; host < w->n_hosts; host++)
        if (is_missing(w, host)) return true;
    return false;
}

__attribute__((format(printf, 2, 3))) static void add(char out[SHMT_WAITING_LINE], const char *format, ...) {
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, SHMT_WAITING_LINE - used, format, args);
    va_end(args);
}

/* "waiting for host 1 (b:5000), host 2 (c:5000): nothing listens there yet; host 3 (d:5000)": those of one reason stand together. */
static void name_missing(const struct shmt_waiting *w, char out[SHMT_WAITING_LINE]) {
    char why[SHMT_MOST_HOSTS][SHMT_WHY] = {""};
    bool is_named[SHMT_MOST_HOSTS] = {false};
    for (uint32_t host = 0; host < w->n_hosts; host++)
        if (is_missing(w, host)) shmt_lanes_why(w->lanes, host, why[host]);
    memset(out, 0, SHMT_WAITING_LINE);
    for (uint32_t first = 0; first < w->n_hosts; first++) {
        if (!is_missing(w, first) || is_named[first]) continue;
        add(out, "%s%s", out[0] ? "; " : "waiting for ", shmt_lanes_name(w->lanes, first));
        for (uint32_t host = first + 1; host < w->n_hosts; host++) {
            if (!is_missing(w, host) || strcmp(why[host], why[first]) != 0) continue;
            add(out, ", %s", shmt_lanes_name(w->lanes, host));
            is_named[host] = true;
        }
        if (why[first][0]) add(out, ": %s", why[first]);
    }
}

static bool look_for_reasons(struct shmt_waiting *w, char out[SHMT_WAITING_LINE]) {
    const uint64_t now_ns = shmt_now_ns();
    if (now_ns < w->change_ns) return false;
    name_missing(w, out);
    const bool is_new = strcmp(out, w->said) != 0;
    if (!is_new && now_ns < w->remind_ns) return false;
    memcpy(w->said, out, SHMT_WAITING_LINE);
    w->is_told = true;
    w->remind_ns = now_ns + REMIND_NS;
    w->change_ns = now_ns + w->pause_ns;
    w->pause_ns = shmt_min_u64(REMIND_NS, 2 * w->pause_ns);
    return true;
}

bool shmt_waiting_look(struct shmt_waiting *w, bool thorough, char out[SHMT_WAITING_LINE]) {
    if (!thorough && !w->is_told) return false;
    if (is_any_missing(w)) return thorough && look_for_reasons(w, out);
    if (!w->is_told || has_any_left(w)) return false;
    snprintf(out, SHMT_WAITING_LINE, "all %u hosts are there", w->n_hosts);
    w->is_told = false;
    return true;
}
