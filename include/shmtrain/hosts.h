/* Runs over several hosts (options hosts, rank, key, peers, insecure, host-timeout): each host runs the same program with the same
 * options but for its rank and its number of workers. All read the same data; each trains a part of every batch, and all have the same
 * parameters, bit by bit. What goes over the network, and what each failure looks like: docs/cluster.md. */
#ifndef SHMTRAIN_HOSTS_H
#define SHMTRAIN_HOSTS_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMTRAIN_KEY_BYTES 41 /* a public key as text, its final 0 included */

/* Makes a pair of keys (CurveZMQ: Curve25519) for a host: the secret one goes into `file`, of mode 0600, which is for option key on this
 * host; the public one into `file`.pub, whose line is for the file of option peers on all hosts, and into public_out. Neither file may be
 * there already. `message` (`bytes` large, NULL allowed) gets the sentence of an error. Any thread. Errors: _USAGE (NULL, or there is such
 * a file), _SYSTEM (it cannot be written; there is no libzmq), _MEMORY; then neither file is left. */
SHMTRAIN_API int shmtrain_keygen(const char *file, char public_out[SHMTRAIN_KEY_BYTES], char *message, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
