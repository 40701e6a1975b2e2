/* Loading libzmq: see zmq_library.h. */
#include "carriers/zmq_library.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/library.h"

/* The name that the linker would have written down (configure). */
#ifndef SHMT_ZMQ_LIBRARY
#    define SHMT_ZMQ_LIBRARY "libzmq.so.5"
#endif

static const struct shmt_library_call CALLS[] = {
#define CALL(name) {"zmq_" #name, offsetof(struct shmt_zmq_calls, name)},
    SHMT_ZMQ_CALLS(CALL)
#undef CALL
};

/* Written once, under g_once. */
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static struct shmt_zmq_calls g_calls;
static bool g_loaded;
static struct shmt_error g_error;

static void load(void) {
    const char *why;
    g_loaded = shmt_library_calls(SHMT_ZMQ_LIBRARY, CALLS, sizeof CALLS / sizeof *CALLS, &g_calls, &why);
    if (!g_loaded)
        shmt_fail(
            &g_error, SHMTRAIN_E_SYSTEM,
            "runs over several hosts need ZeroMQ, which cannot be loaded (%.200s): install libzmq5 (Fedora, Arch: zeromq)",
            why);
}

const struct shmt_zmq_calls *shmt_zmq_load(struct shmt_error *e) {
    pthread_once(&g_once, load);
    if (g_loaded) return &g_calls;
    shmt_fail(e, g_error.status, "%s", g_error.text);
    return NULL;
}
