/* The head of a frame: see head.h. */
#include "link/head.h"

#include <string.h>

#include "base/random.h"
#include "link/lanes.h"
#include "link/little_endian.h"

static const unsigned char MAGIC[4] = {'s', 'h', 'm', 't'};

enum place {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_KIND = 5,
    AT_CHANNEL = 6,
    AT_RESERVED = 7,
    AT_FROM = 8,
    AT_TO = 10,
    AT_BODY_BYTES = 12,
    AT_RUN = 16,
    AT_LIFE = 24,
    AT_TO_LIFE = 32,
    AT_SEQUENCE = 40,
    AT_TAKEN = 48,
    AT_CHECK = 56
};

/* Of all that stands before it. Against mistakes, not against malice: strangers are kept out by the carrier. */
static uint64_t check_of(const unsigned char *head) {
    uint64_t check = SHMT_WIRE_VERSION;
    for (int at = 0; at < AT_CHECK; at += 8) check = shmt_mix64(check ^ shmt_get_little(head + at, 8));
    return check;
}

void shmt_head_write(const struct shmt_head *head, uint64_t body_bytes, unsigned char out[SHMT_HEAD_BYTES]) {
    memcpy(out + AT_MAGIC, MAGIC, sizeof MAGIC);
    shmt_put_little(out + AT_VERSION, SHMT_WIRE_VERSION, 1);
    shmt_put_little(out + AT_KIND, head->kind, 1);
    shmt_put_little(out + AT_CHANNEL, head->channel, 1);
    shmt_put_little(out + AT_RESERVED, 0, 1);
    shmt_put_little(out + AT_FROM, head->from, 2);
    shmt_put_little(out + AT_TO, head->to, 2);
    shmt_put_little(out + AT_BODY_BYTES, body_bytes, 4);
    shmt_put_little(out + AT_RUN, head->run, 8);
    shmt_put_little(out + AT_LIFE, head->life, 8);
    shmt_put_little(out + AT_TO_LIFE, head->to_life, 8);
    shmt_put_little(out + AT_SEQUENCE, head->sequence, 8);
    shmt_put_little(out + AT_TAKEN, head->taken, 8);
    shmt_put_little(out + AT_CHECK, check_of(out), 8);
}

uint32_t shmt_head_version(const unsigned char in[SHMT_HEAD_BYTES]) {
    return memcmp(in + AT_MAGIC, MAGIC, sizeof MAGIC) == 0 ? in[AT_VERSION] : 0;
}

static const char *wrong_with(const struct shmt_head *head, uint64_t body_bytes) {
    const bool is_data = head->kind == SHMT_FRAME_DATA;
    if (head->kind < SHMT_FRAME_BEAT || head->kind > SHMT_FRAME_LOST) return "no such kind of frame";
    if (head->channel >= SHMT_CHANNELS) return "no such channel";
    if (head->from >= SHMT_MOST_HOSTS || head->to >= SHMT_MOST_HOSTS || head->from == head->to) return "no such pair of hosts";
    if (head->life == 0) return "no life";
    if (is_data && head->to_life == 0) return "a message to nobody";
    if (is_data != (head->sequence > 0)) return "a number where none belongs, or none";
    if (!is_data && body_bytes > 0) return "a body where none belongs";
    return body_bytes > SHMT_MOST_BODY ? "too long a body" : NULL;
}

bool shmt_head_read(const unsigned char in[SHMT_HEAD_BYTES], uint64_t body_bytes, struct shmt_head *out, const char **why_out) {
    *why_out = NULL;
    if (memcmp(in + AT_MAGIC, MAGIC, sizeof MAGIC) != 0)
        *why_out = "not a frame of shmtrain";
    else if (in[AT_VERSION] != SHMT_WIRE_VERSION)
        *why_out = "a frame of another version of shmtrain";
    else if (shmt_get_little(in + AT_CHECK, 8) != check_of(in) || in[AT_RESERVED] != 0)
        *why_out = "a damaged head";
    else if (shmt_get_little(in + AT_BODY_BYTES, 4) != body_bytes)
        *why_out = "a body of another length";
    if (*why_out) return false;
    const struct shmt_head head = {.kind = in[AT_KIND],
                                   .channel = in[AT_CHANNEL],
                                   .from = (uint32_t)shmt_get_little(in + AT_FROM, 2),
                                   .to = (uint32_t)shmt_get_little(in + AT_TO, 2),
                                   .run = shmt_get_little(in + AT_RUN, 8),
                                   .life = shmt_get_little(in + AT_LIFE, 8),
                                   .to_life = shmt_get_little(in + AT_TO_LIFE, 8),
                                   .sequence = shmt_get_little(in + AT_SEQUENCE, 8),
                                   .taken = shmt_get_little(in + AT_TAKEN, 8)};
    *why_out = wrong_with(&head, body_bytes);
    if (*why_out) return false;
    *out = head;
    return true;
}
