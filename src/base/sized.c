/* Structs of other versions: see sized.h. */
#include "base/sized.h"

#include <string.h>

#define MOST 4096 /* bytes: no struct will ever have more, so what says so was not filled */

static uint32_t size_of(const void *at) {
    uint32_t size;
    memcpy(&size, at, sizeof size);
    return size;
}

static void set_size(void *at, uint32_t size) { memcpy(at, &size, sizeof size); }

int shmt_sized_take(void *to, size_t bytes, const void *from, size_t first, const char *name, struct shmt_error *e) {
    const uint32_t size = size_of(from);
    if (size < first || size > MOST)
        return shmt_refuse(
            e,
            "size is %u in a struct shmtrain_%s: set .size = sizeof(struct shmtrain_%s), and all else that you do not set to 0",
            size, name, name);
    for (size_t i = bytes; i < size; i++)
        if (((const char *)from)[i] != 0)
            return shmt_refuse(e,
                               "a struct shmtrain_%s has a member set at byte %zu that this libshmtrain does not know (it "
                               "knows %zu bytes): install a later one",
                               name, i, bytes);
    memset(to, 0, bytes);
    memcpy(to, from, size < bytes ? size : bytes);
    set_size(to, (uint32_t)bytes);
    return 0;
}

void shmt_sized_give(void *to, uint64_t to_bytes, const void *from, size_t bytes) {
    const size_t n = to_bytes < bytes ? (size_t)to_bytes : bytes;
    if (n < sizeof(uint32_t)) return;
    memcpy(to, from, n);
    set_size(to, (uint32_t)n);
}

const void *shmt_sized_whole(const void *given, void *room, size_t bytes) {
    const uint32_t size = size_of(given);
    if (size >= bytes) return given;
    memset(room, 0, bytes);
    memcpy(room, given, size);
    return room;
}
