/* link/lanes.h: frames from a peer that sends whatever it likes, over a carrier that loses what it is given. The input is a list of
 * steps: a frame with its fields, or 64 bytes as they are; a message to the peer; time that passes. Whatever comes, messages are
 * delivered in the order of their numbers within a life, and no more is kept than the window holds. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "link/head.h"
#include "link/lanes.h"
#include "sync/host.h"

#define LIFE   77
#define WINDOW 4096 /* filled by a few messages */

/* The carrier's next frame, if there is one. */
struct peer {
    struct shmt_carrier carrier;
    unsigned char head[SHMT_HEAD_BYTES], body[256];
    uint64_t body_bytes;
    bool has_frame, is_full;
    uint64_t holds; /* frames that were received and not released */
};

static uint64_t g_now_ns;

static uint64_t now_ns(void) { return g_now_ns += 10; }

static int carry(struct shmt_carrier *carrier, uint32_t to, const unsigned char *head, struct shmt_payload *body,
                 struct shmt_error *e) {
    struct shmt_head out;
    const char *why;
    (void)e;
    FUZZ_CHECK(to == 1 && shmt_head_read(head, body ? body->n : 0, &out, &why));
    FUZZ_CHECK(out.from == 0 && out.to == 1 && out.run == 1 && out.life == LIFE);
    return !((struct peer *)carrier)->is_full;
}

static int bring(struct shmt_carrier *carrier, uint64_t until_ns, struct shmt_frame *out, struct shmt_error *e) {
    struct peer *p = (struct peer *)carrier;
    (void)e;
    if (!p->has_frame) {
        if (g_now_ns < until_ns) g_now_ns = until_ns;
        return 0;
    }
    p->has_frame = false;
    p->holds++;
    *out = (struct shmt_frame){.from = 1, .head = p->head, .body = p->body, .body_bytes = p->body_bytes};
    return 1;
}

static void release(struct shmt_carrier *carrier, struct shmt_frame *frame) {
    (void)frame;
    ((struct peer *)carrier)->holds--;
}

/* Fields as the input has them, mostly in range. */
static void write_frame(struct peer *p, const uint8_t *in) {
    const struct shmt_head head = {.kind = in[0] % 5,
                                   .channel = in[1] % 9,
                                   .from = in[2] < 250 ? 1 : in[2] % 3,
                                   .to = in[2] % 128 ? 0 : 1,
                                   .run = in[3] < 250 ? 1 : 2,
                                   .life = in[4] % 4,
                                   .to_life = in[5] % 8 ? LIFE : in[5] % 16,
                                   .sequence = in[0] % 5 == SHMT_FRAME_DATA ? in[6] : 0,
                                   .taken = in[7] % 64};
    p->body_bytes = head.kind == SHMT_FRAME_DATA ? in[6] : 0;
    memset(p->body, in[6], p->body_bytes);
    shmt_head_write(&head, p->body_bytes, p->head);
}

/* What was taken: in each channel of each life one more than before. */
static void check(const struct shmt_message *m, uint64_t *life, uint64_t *taken) {
    FUZZ_CHECK(m->from == 1 && m->channel < SHMT_CHANNELS && m->life > 0);
    if (m->life != *life) memset(taken, 0, SHMT_CHANNELS * sizeof *taken);
    *life = m->life;
    taken[m->channel]++;
    for (uint64_t at = 0; at < m->n; at++) FUZZ_CHECK(m->bytes[at] == (taken[m->channel] & 0xff));
}

static uint64_t g_kept; /* bytes that the lanes have references to */

static void is_dropped(struct shmt_payload *payload, void *arg) {
    (void)arg;
    g_kept -= SHMT_HEAD_BYTES + payload->n;
    free(payload);
}

static void send_one(struct shmt_lanes *lanes, uint32_t channel, uint64_t bytes) {
    static const unsigned char ONES[WINDOW] = {1};
    struct shmt_error e = {0};
    struct shmt_payload *payload = malloc(sizeof *payload);
    shmt_payload_borrow(payload, ONES, bytes, is_dropped, NULL);
    g_kept += SHMT_HEAD_BYTES + bytes;
    const bool has_room = g_kept <= WINDOW;
    const int rc = shmt_lanes_send(lanes, 1, channel, payload, &e);
    FUZZ_CHECK(rc == SHMTRAIN_E_DIED || rc == has_room);
    shmt_payload_drop(payload);
    FUZZ_CHECK(g_kept <= WINDOW);
}

static void receive(struct shmt_lanes *lanes, uint64_t for_ns, uint64_t *life, uint64_t *taken) {
    struct shmt_error e = {0};
    struct shmt_message m;
    const int rc = shmt_lanes_receive(lanes, g_now_ns + for_ns, &m, NULL, &e);
    FUZZ_CHECK(rc >= 0);
    if (rc == 0) return;
    check(&m, life, taken);
    shmt_lanes_release(lanes, &m);
}

static const struct shmt_carrier_ops OPS = {.name = "fuzz", .send = carry, .receive = bring, .release = release};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    const struct shmt_host_ops host = {.now_ns = now_ns};
    struct peer peer = {.carrier = {&OPS}};
    const struct shmt_lanes_spec spec = {.carrier = &peer.carrier,
                                         .n_hosts = 2,
                                         .run = 1,
                                         .life = LIFE,
                                         .window_bytes = WINDOW,
                                         .beat_ns = SHMT_LANES_BEAT,
                                         .suspect_ns = SHMT_LANES_SUSPECT,
                                         .lost_ns = SHMT_LANES_LOST};
    struct shmt_error e = {0};
    struct shmt_lanes *lanes;
    uint64_t life = 0, taken[SHMT_CHANNELS] = {0};
    g_now_ns = 1000000000;
    shmt_host_use(&host);
    FUZZ_CHECK(shmt_lanes_make(&spec, &lanes, &e) == 0);
    for (const uint8_t *at = bytes; bytes + n - at >= 10; at += 10) {
        peer.is_full = at[9] % 16 == 0;
        switch (at[0] % 8) {
            case 0:
                send_one(lanes, at[2] % SHMT_CHANNELS, 4 * at[3]);
                break;
            case 1:
                receive(lanes, (uint64_t)at[2] * 50000000, &life, taken);
                break;
            case 2:
                if (bytes + n - at < 10 + SHMT_HEAD_BYTES) break;
                memcpy(peer.head, at + 10, SHMT_HEAD_BYTES);
                peer.body_bytes = at[1];
                peer.has_frame = true;
                at += SHMT_HEAD_BYTES;
                receive(lanes, 0, &life, taken);
                break;
            default:
                write_frame(&peer, at + 1);
                peer.has_frame = true;
                receive(lanes, (uint64_t)(at[9] % 4) * 1000000, &life, taken);
        }
        FUZZ_CHECK(peer.holds == 0);
    }
    shmt_lanes_free(lanes);
    FUZZ_CHECK(g_kept == 0);
    shmt_host_use(&SHMT_HOST_MACHINE);
    return 0;
}
