/* Files of keys. A host has a pair of them (CurveZMQ: Curve25519, in Z85): the secret one in a file that its owner alone can read, the
 * public one in a file beside it, whose line is given to the other hosts. A file of peers has the public keys of all hosts, a line each, in
 * the order of their ranks. Behind a key a line may have a comment; empty lines and those that begin with "# " do not count. */
#pragma once

#include "base/error.h"
#include "carriers/zmq_carrier.h"

/* Makes a pair: `file`, of mode 0600, and `file`.pub. Neither may be there. Errors: _USAGE (there is one already), _SYSTEM (no library, the
 * file system); then neither is left. */
int shmt_key_files_make(const char *file, char public_out[SHMT_ZMQ_KEY], struct shmt_error *e);

/* This host's pair, and the keys of n_hosts peers, of which that of `self` must be the pair's. Errors: _DATA, with file and line;
 * _SYSTEM. To be wiped by the caller. */
int shmt_key_files_read(const char *key_file, const char *peers_file, uint32_t self, uint32_t n_hosts,
                        struct shmt_zmq_keys *out, struct shmt_error *e);
