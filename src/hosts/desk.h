/* What the process that drives a run and its link's process say to one another: packets on a pair of sockets. Both are forks of one
 * program, so packets are plain structs; but each is checked for its length, because the other one may be dying. */
#pragma once

#include <stdint.h>

#include "link/agree.h"

enum shmt_desk_kind {
    SHMT_DESK_OPEN = 1, /* link: it can be reached */
    SHMT_DESK_NOTE,     /* link: a line for whoever looks at the run */
    SHMT_DESK_AGREE,    /* run: a text for the other hosts */
    SHMT_DESK_SAID,     /* link: that of host `rank`; one packet for each host, in order of ranks */
    SHMT_DESK_WORK,     /* run: the store is made; a struct shmt_desk_work, and the store's descriptor */
    SHMT_DESK_OVER      /* link: its last word: a status, and a struct shmt_desk_over */
};

#define SHMT_NO_ENDER UINT32_MAX

struct shmt_desk_over {
    uint64_t sent_bytes, received_bytes;
    uint32_t ender;             /* the host that has ended the run; SHMT_NO_ENDER: none */
    char text[SHMT_ERROR_TEXT]; /* the sentence of the status */
};

struct shmt_desk_packet {
    uint32_t kind; /* enum shmt_desk_kind */
    uint32_t rank;
    int32_t status;
    uint32_t n; /* bytes */
    unsigned char bytes[SHMT_MOST_AGREED];
};

/* The kind's own bytes; 0: it was sent; -1 with errno: the other one is gone. Waits while the sockets are full. `pass`: a descriptor, of
 * which the other one gets its own; -1: none. */
int shmt_desk_send(int desk, const struct shmt_desk_packet *packet, int pass);

/* Waits for at most wait_ms. 1 and *out (and *passed_out, -1: none; may be NULL); 0: there is nothing; -1: the other one is gone,
 * or has sent what is no packet. */
int shmt_desk_receive(int desk, int wait_ms, struct shmt_desk_packet *out, int *passed_out);

/* Text and its length, cut where it is too long. */
void shmt_desk_write(struct shmt_desk_packet *packet, const char *text);

/* The packet's text, ended by 0. */
const char *shmt_desk_text(struct shmt_desk_packet *packet);
