/* Lists of hosts, as in option `hosts`, in the order of their ranks. Texts to places in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ps/spec.h"

/* Where each host stands in the option's text, which belongs to whoever has this. */
struct shmt_cluster {
    uint32_t n;      /* 0: one host, and no network */
    const char *mpi; /* whose launcher knows the hosts, in place of the text (mpi_launch.h); NULL: nobody's */
    uint32_t self;   /* this one's rank, as the launcher has it */
    struct {
        uint16_t at, name_bytes; /* "b", or "[::1]" */
        uint16_t port;
    } host[SHMT_MAX_HOSTS];
};

#define SHMT_MOST_HOST_TEXT 320 /* room for "NAME:PORT", or "tcp://NAME:PORT" */

/* "a:5000,b:5000,[2001:db8::7]:5000" into *out; "", "none": none; "mpi": the processes that MPI's launcher has started, as this
 * process's environment has them. `given_as` is how the user wrote the option. Errors: _USAGE. */
int shmt_cluster_parse(const char *given_as, const char *text, struct shmt_cluster *out, struct shmt_error *e);

/* The same, where there is nothing but lists. */
int shmt_cluster_parse_list(const char *given_as, const char *text, struct shmt_cluster *out, struct shmt_error *e);

/* "NAME:PORT" of a host, behind `prefix`; not of those of MPI. */
void shmt_cluster_name(const struct shmt_cluster *cluster, const char *text, uint32_t rank, const char *prefix,
                       char out[SHMT_MOST_HOST_TEXT]);

/* Whether all of them are names of this machine that no other one can reach: localhost, 127.*, [::1]. */
bool shmt_cluster_is_loopback(const struct shmt_cluster *cluster, const char *text);

/* What host `rank` listens at, for a socket: its own address where that is a number, else all that this machine has. */
void shmt_cluster_listen(const struct shmt_cluster *cluster, const char *text, uint32_t rank, char out[SHMT_MOST_HOST_TEXT]);
