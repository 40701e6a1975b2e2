/* Structs that cross the library's border, between programs and libraries of different ages: see <shmtrain/status.h>.
 *
 * All of them begin with `uint32_t size`. Called by the public functions that take or fill one; what is behind them knows the
 * struct of this library only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The bytes that the first version of a struct had: up to the member that was its last one. It never changes. */
#define SHMT_FIRST_SIZE(type, last) (offsetof(type, last) + sizeof((type){0}.last))

/* What the application has filled, as this library knows it: `bytes` of it into `to`, zero where the application knows less.
 * `name` is the struct's, without "shmtrain_". Errors: _USAGE (less than `first` bytes; a member that this library does not
 * know). */
int shmt_sized_take(void *to, size_t bytes, const void *from, size_t first, const char *name, struct shmt_error *e);

/* What the application knows of `from`, (bytes), into its own struct of `to_bytes`; the size of it says how much. `from` has
 * the size member, whose value does not matter. */
void shmt_sized_give(void *to, uint64_t to_bytes, const void *from, size_t bytes);

/* A struct that was filled by shmt_sized_give comes back: itself, or where it is shorter than `bytes`, it and zeros in `room`,
 * (bytes). */
const void *shmt_sized_whole(const void *given, void *room, size_t bytes);
