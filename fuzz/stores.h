/* For targets of named stores: runs of several kinds, copied while they went on, under a name of the target's own, to be damaged
 * by what an input says. */
#pragma once

#include <shmtrain/store.h>

#include "fuzz.h"

#define FUZZ_N_RUNS 7

/* The name of the copy. */
extern char fuzz_store_name[64];

/* Puts run `run` (taken modulo FUZZ_N_RUNS) under the name, damaged by the rest of the input, which is all read: patches, each a
 * byte that says where, an offset, a length and bytes. `seals`: the sum over the manifest is made right; `runs`: somebody seems to
 * run it. */
void fuzz_store_put(uint32_t run, bool seals, bool runs, struct fuzz_input *in);

/* As if its maker had died. */
void fuzz_store_die(void);

/* Reads all patches of an input, and makes them. `in_use`: somebody has the files mapped, so none is cut, and the data, which
 * were checked when they were mapped, stay as they are. */
void fuzz_store_damage(struct fuzz_input *in, bool in_use);

/* The copy's file. */
int fuzz_store_fd(void);
