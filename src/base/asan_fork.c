/* Part of builds with AddressSanitizer alone (--enable-asan). The allocator that it puts in the place of the C library's does not
 * keep its locks across a fork, before LLVM 17: a child that is forked while another thread allocates has them locked for ever,
 * and hangs as soon as it allocates. Here they are taken around each fork, as the C library and later versions do.
 *
 * The functions are the runtime's own, of namespaces __lsan and __sanitizer. Where it is a shared library (gcc) they cannot be
 * reached, and are left alone. Nor can, in any version, the lock of what was freed and is kept from reuse; a thread takes it for a
 * moment whenever it has freed thread_local_quarantine_size_kb. The default, 1 MiB, makes that rare: it must not be made small.
 *
 * Who has no other thread takes none of them. The depot's are a million, one in each word of 4 MiB: each fork would copy them all, and
 * tests that fork for each of their cases would take ten times as long. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#define RUNTIME __attribute__((weak)) extern

RUNTIME void _ZN6__lsan18LockThreadRegistryEv(void);
RUNTIME void _ZN6__lsan20UnlockThreadRegistryEv(void);
RUNTIME void _ZN6__lsan13LockAllocatorEv(void);
RUNTIME void _ZN6__lsan15UnlockAllocatorEv(void);
RUNTIME void _ZN11__sanitizer17StackDepotLockAllEv(void);
RUNTIME void _ZN11__sanitizer19StackDepotUnlockAllEv(void);

static bool is_there(void) {
    return _ZN6__lsan18LockThreadRegistryEv && _ZN6__lsan20UnlockThreadRegistryEv && _ZN6__lsan13LockAllocatorEv &&
           _ZN6__lsan15UnlockAllocatorEv && _ZN11__sanitizer17StackDepotLockAllEv && _ZN11__sanitizer19StackDepotUnlockAllEv;
}

/* The folder has a link for each thread, beside its own two. (The C library's __libc_single_threaded stays false behind the last
 * thread's end.) */
static bool has_threads(void) {
    struct stat s;
    return stat("/proc/self/task", &s) < 0 || s.st_nlink != 3;
}

static bool g_locked; /* of the thread that forks, and of its child */

static void lock_all(void) {
    g_locked = has_threads();
    if (!g_locked) return;
    _ZN6__lsan18LockThreadRegistryEv();
    _ZN6__lsan13LockAllocatorEv();
    _ZN11__sanitizer17StackDepotLockAllEv();
}

static void unlock_all(void) {
    if (!g_locked) return;
    _ZN11__sanitizer19StackDepotUnlockAllEv();
    _ZN6__lsan15UnlockAllocatorEv();
    _ZN6__lsan20UnlockThreadRegistryEv();
}

/* The linker is told to want it (Makefile.am): nothing calls it by name. */
void shmt_asan_fork(void);
__attribute__((constructor)) void shmt_asan_fork(void) {
    if (is_there()) (void)pthread_atfork(lock_all, unlock_all, unlock_all);
}
