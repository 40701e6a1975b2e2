/* Runs over several hosts (options hosts, rank, key, peers, insecure, host-timeout, wire, top-k): each host runs the same program with
 * the same options but for its rank and its number of workers. All read the same data; each trains a part of every batch, and all have
 * the same parameters, bit by bit. What goes over the network, and what each failure looks like: docs/cluster.md. In the place of hosts
 * and rank there may be role, task-index, ps-hosts and worker-hosts, as TensorFlow has them: docs/from-other-systems.md. */
#ifndef SHMTRAIN_HOSTS_H
#define SHMTRAIN_HOSTS_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmtrain_store;

/* Whether this host has a part in runs, by the options that are set: 1, or 0 where option role is ps. Worker hosts hold the parameters
 * themselves, so a ps task has nothing to do; a program that is started as one ends with success, before it touches data, and nobody
 * waits for it. A run refuses it. Errors: _USAGE (these options do not fit together). */
SHMTRAIN_API int shmtrain_store_takes_part(struct shmtrain_store *store);

/* What a launcher of MPI (mpirun, mpiexec, srun) says of this process in its environment: 1, and its rank and how many there are; 0: none
 * has started it, and nothing is set. Option hosts, as "mpi", makes these the hosts of a run. Not while another thread changes the
 * environment. */
SHMTRAIN_API int shmtrain_mpi_launched(uint32_t *rank_out, uint32_t *n_out);

/* 1: a run of this process has begun MPI, and so have those of all other hosts; 0: none has. A process that fails before leaves the others
 * waiting for it, where its launcher does not end them (MPICH's does not). Any thread. */
SHMTRAIN_API int shmtrain_mpi_has_begun(void);

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
