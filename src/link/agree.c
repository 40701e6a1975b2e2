/* Agreement: see agree.h. A message is its kind, its round, and the text. */
#include "link/agree.h"

#include <stdlib.h>
#include <string.h>

#include "link/little_endian.h"
#include "sync/host.h"

enum kind { TEXT = 1, READY = 2 };
enum place { AT_KIND = 0, AT_ROUND = 4, HEAD_BYTES = 8 };

#define LOOK_NS UINT64_C(5000000) /* between two questions whether to go on */

/* What a host has said. It may be a round ahead of us, but no further, because that round needs our text. */
struct said {
    uint32_t round; /* 0: nothing */
    uint32_t n;
    unsigned char *text;
};

struct peer {
    uint64_t life;       /* as it was first heard of; 0: it has not come */
    struct said said[2]; /* [round % 2] */
    bool ready;
};

struct shmt_agreement {
    struct shmt_lanes *lanes;
    uint32_t self, n_hosts;
    uint32_t round; /* in hand, or over */
    bool (*goes_on)(void *arg);
    void *arg;
    struct peer peer[SHMT_MOST_HOSTS];
};

int shmt_agreement_make(struct shmt_lanes *lanes, uint32_t self, uint32_t n_hosts, bool (*goes_on)(void *arg), void *arg,
                        struct shmt_agreement **out, struct shmt_error *e) {
    struct shmt_agreement *a = calloc(1, sizeof *a);
    if (!a) return shmt_no_memory(e, "for the agreement with other hosts");
    a->lanes = lanes;
    a->self = self;
    a->n_hosts = n_hosts;
    a->goes_on = goes_on;
    a->arg = arg;
    *out = a;
    return 0;
}

void shmt_agreement_free(struct shmt_agreement *a) {
    if (!a) return;
    for (uint32_t host = 0; host < a->n_hosts; host++)
        for (int i = 0; i < 2; i++) free(a->peer[host].said[i].text);
    free(a);
}

/* ---- what comes ---- */

static int fail(const struct shmt_agreement *a, int status, const char *what, uint32_t host, struct shmt_error *e) {
    return shmt_fail(e, status, "%s %s", shmt_lanes_name(a->lanes, host), what);
}

static int note(struct said *said, uint32_t round, const unsigned char *text, uint32_t n, struct shmt_error *e) {
    unsigned char *copy = malloc(n > 0 ? n : 1);
    if (!copy) return shmt_no_memory(e, "for what another host says");
    if (n > 0) memcpy(copy, text, n);
    free(said->text);
    *said = (struct said){round, n, copy};
    return 0;
}

static int take_text(struct shmt_agreement *a, const struct shmt_message *m, struct shmt_error *e) {
    const uint32_t round = (uint32_t)shmt_get_little(m->bytes + AT_ROUND, 4);
    struct said *said = &a->peer[m->from].said[round % 2];
    /* the one in hand, or the next one; and the last one may be over for us alone */
    const bool may_be = round >= a->round && round <= a->round + 1 && round > 0 && said->round != round;
    if (!may_be || m->n > HEAD_BYTES + SHMT_MOST_AGREED)
        return fail(a, SHMTRAIN_E_USAGE, "is at another point of the agreement", m->from, e);
    return note(said, round, m->bytes + HEAD_BYTES, (uint32_t)m->n - HEAD_BYTES, e);
}

static int take(struct shmt_agreement *a, const struct shmt_message *m, struct shmt_error *e) {
    struct peer *peer = &a->peer[m->from];
    if (peer->life == 0) peer->life = m->life;
    if (peer->life != m->life) return fail(a, SHMTRAIN_E_DIED, "has restarted", m->from, e);
    if (m->n < HEAD_BYTES) return fail(a, SHMTRAIN_E_USAGE, "has sent a message that makes no sense", m->from, e);
    if (m->bytes[AT_KIND] == TEXT) return take_text(a, m, e);
    if (m->bytes[AT_KIND] != READY || peer->ready)
        return fail(a, SHMTRAIN_E_USAGE, "has sent a message that makes no sense", m->from, e);
    peer->ready = true;
    return 0;
}

int shmt_agreement_take(struct shmt_agreement *a, struct shmt_message *message, struct shmt_error *e) {
    const int rc = take(a, message, e);
    shmt_lanes_release(a->lanes, message);
    return rc;
}

static bool is_any_absent(const struct shmt_agreement *a) {
    for (uint32_t host = 0; host < a->n_hosts; host++)
        if (host != a->self && shmt_lanes_peer(a->lanes, host, NULL) == SHMT_PEER_UNKNOWN) return true;
    return false;
}

int shmt_agreement_check_peers(struct shmt_agreement *a, struct shmt_error *e) {
    for (uint32_t host = 0; host < a->n_hosts; host++) {
        struct peer *peer = &a->peer[host];
        uint64_t life = 0;
        const bool has_said = a->round > 0 && peer->said[a->round % 2].round == a->round;
        /* Who has said in this round what it has to say may find that others differ, and leave. But who falls silent while another one
         * has not come yet is waited for in vain. */
        if (host == a->self || (has_said && !(shmt_lanes_is_silent(a->lanes, host) && is_any_absent(a)))) continue;
        (void)shmt_lanes_peer(a->lanes, host, &life);
        if (shmt_lanes_check(a->lanes, host, e) < 0) return SHMTRAIN_E_DIED;
        if (peer->life == 0) peer->life = life;
        if (life != peer->life) return fail(a, SHMTRAIN_E_DIED, "has restarted", host, e);
    }
    return 0;
}

int shmt_agreement_idle(struct shmt_agreement *a, struct shmt_error *e) {
    struct shmt_message m;
    const int rc = shmt_lanes_receive(a->lanes, shmt_now_ns() + LOOK_NS, &m, NULL, e);
    if (a->goes_on && !a->goes_on(a->arg)) {
        if (rc == 1) shmt_lanes_release(a->lanes, &m);
        return shmt_fail(e, SHMTRAIN_E_STOPPED, "the run of this host was given up");
    }
    if (rc < 0) return rc;
    if (rc == 0) return shmt_agreement_check_peers(a, e);
    if (m.channel == SHMT_CHANNEL_AGREE) return shmt_agreement_take(a, &m, e);
    shmt_lanes_release(a->lanes, &m);
    return fail(a, SHMTRAIN_E_USAGE, "works already, while others have not agreed", m.from, e);
}

/* ---- what goes ---- */

/* Receives while there is no room. */
static int send_to(struct shmt_agreement *a, uint32_t host, struct shmt_payload *payload, struct shmt_error *e) {
    int rc;
    while ((rc = shmt_lanes_send(a->lanes, host, SHMT_CHANNEL_AGREE, payload, e)) == 0)
        if ((rc = shmt_agreement_idle(a, e)) < 0) return rc;
    return rc;
}

static int send_to_all(struct shmt_agreement *a, enum kind kind, const void *text, uint32_t n, struct shmt_error *e) {
    unsigned char *bytes;
    struct shmt_payload *payload = shmt_payload_make(HEAD_BYTES + n, &bytes);
    int rc = 0;
    if (!payload) return shmt_no_memory(e, "for a message to other hosts");
    memset(bytes, 0, HEAD_BYTES);
    shmt_put_little(bytes + AT_KIND, kind, 1);
    shmt_put_little(bytes + AT_ROUND, a->round, 4);
    if (n > 0) memcpy(bytes + HEAD_BYTES, text, n);
    for (uint32_t host = 0; host < a->n_hosts && rc >= 0; host++)
        if (host != a->self) rc = send_to(a, host, payload, e);
    shmt_payload_drop(payload);
    return rc < 0 ? rc : 0;
}

/* ---- a round ---- */

static bool have_all_said(const struct shmt_agreement *a) {
    for (uint32_t host = 0; host < a->n_hosts; host++)
        if (a->peer[host].said[a->round % 2].round != a->round) return false;
    return true;
}

static int check_start(const struct shmt_agreement *a, uint64_t until_ns, struct shmt_error *e) {
    if (shmt_now_ns() < until_ns) return 0;
    for (uint32_t host = 0; host < a->n_hosts; host++)
        if (host != a->self && a->peer[host].life == 0 && shmt_lanes_peer(a->lanes, host, NULL) == SHMT_PEER_UNKNOWN)
            return shmt_lanes_fail_absent(a->lanes, host, e);
    return 0;
}

int shmt_agreement_gather(struct shmt_agreement *a, const void *text, uint32_t n, uint64_t start_ns, struct shmt_error *e) {
    const uint64_t until_ns = shmt_now_ns() + start_ns;
    if (n > SHMT_MOST_AGREED) return shmt_fail(e, SHMTRAIN_E_USAGE, "too much to agree on with other hosts");
    a->round++;
    int rc = note(&a->peer[a->self].said[a->round % 2], a->round, text, n, e);
    if (rc == 0) rc = send_to_all(a, TEXT, text, n, e);
    while (rc == 0 && !have_all_said(a)) {
        rc = shmt_agreement_idle(a, e);
        if (rc == 0) rc = check_start(a, until_ns, e);
    }
    return rc;
}

const unsigned char *shmt_agreement_text(const struct shmt_agreement *a, uint32_t rank, uint32_t *n_out) {
    const struct said *said = &a->peer[rank].said[a->round % 2];
    *n_out = said->n;
    return said->text;
}

int shmt_agreement_ready(struct shmt_agreement *a, struct shmt_error *e) { return send_to_all(a, READY, NULL, 0, e); }

bool shmt_agreement_all_ready(const struct shmt_agreement *a) {
    for (uint32_t host = 0; host < a->n_hosts; host++)
        if (host != a->self && !a->peer[host].ready) return false;
    return true;
}
