/* Contexts: see context.h. */
#include "fibers/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sanitizer.h"

#if SHMT_UNDER_ASAN
#    include <sanitizer/asan_interface.h>
#    include <sanitizer/common_interface_defs.h>
#endif
#if SHMT_UNDER_TSAN
#    include <sanitizer/tsan_interface.h>
#endif

/* ---- the switch ---- */

#if defined(__x86_64__) && !defined(__ILP32__)
#    define SAVED_WORDS 8 /* control words, r15 .. r12, rbx, rbp, where it goes on */

void shmt_context_jump(void **save, void *to);
/* rdi: where the stack pointer is kept; rsi: the one to go on with. */
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl shmt_context_jump\n"
    ".hidden shmt_context_jump\n"
    ".type shmt_context_jump, @function\n"
    "shmt_context_jump:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    subq $8, %rsp\n"
    "    stmxcsr (%rsp)\n"
    "    fnstcw 4(%rsp)\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    ldmxcsr (%rsp)\n"
    "    fldcw 4(%rsp)\n"
    "    addq $8, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size shmt_context_jump, . - shmt_context_jump\n");

/* As if it had been left in its first instruction: as behind a call, the stack pointer is 8 below a multiple of 16 there. */
static void *first_frame(char *bottom, char *top, void (*entry)(void)) {
    (void)bottom;
    uint64_t *frame = (uint64_t *)(void *)top - 3 - SAVED_WORDS;
    memset(frame, 0, SAVED_WORDS * sizeof *frame);
    uint32_t mxcsr;
    uint16_t control;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(control));
    memcpy(frame, &mxcsr, sizeof mxcsr);
    memcpy((char *)frame + sizeof mxcsr, &control, sizeof control);
    memcpy(&frame[SAVED_WORDS - 1], &entry, sizeof entry);
    return frame;
}

#elif defined(__aarch64__)
#    define SAVED_WORDS 20 /* x19 .. x30, d8 .. d15 */

void shmt_context_jump(void **save, void *to);
/* x0: where the stack pointer is kept; x1: the one to go on with. */
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl shmt_context_jump\n"
    ".hidden shmt_context_jump\n"
    ".type shmt_context_jump, %function\n"
    "shmt_context_jump:\n"
    "    sub sp, sp, #160\n"
    "    stp x19, x20, [sp, #0]\n"
    "    stp x21, x22, [sp, #16]\n"
    "    stp x23, x24, [sp, #32]\n"
    "    stp x25, x26, [sp, #48]\n"
    "    stp x27, x28, [sp, #64]\n"
    "    stp x29, x30, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n"
    "    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    mov x2, sp\n"
    "    str x2, [x0]\n"
    "    mov sp, x1\n"
    "    ldp x19, x20, [sp, #0]\n"
    "    ldp x21, x22, [sp, #16]\n"
    "    ldp x23, x24, [sp, #32]\n"
    "    ldp x25, x26, [sp, #48]\n"
    "    ldp x27, x28, [sp, #64]\n"
    "    ldp x29, x30, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    add sp, sp, #160\n"
    "    ret\n"
    ".size shmt_context_jump, . - shmt_context_jump\n");

static void *first_frame(char *bottom, char *top, void (*entry)(void)) {
    (void)bottom;
    uint64_t *frame = (uint64_t *)(void *)top - SAVED_WORDS;
    memset(frame, 0, SAVED_WORDS * sizeof *frame);
    memcpy(&frame[11], &entry, sizeof entry); /* x30: where `ret` goes */
    return frame;
}

#else
#    include <ucontext.h>

/* At the top of each stack, and of the thread's own one on the heap, lies its ucontext. */
static void shmt_context_jump(void **save, void *to) { swapcontext(*save, to); }

static void *first_frame(char *bottom, char *top, void (*entry)(void)) {
    ucontext_t *u = (ucontext_t *)(void *)(top - (sizeof *u + 63) / 64 * 64);
    getcontext(u);
    u->uc_link = NULL;
    u->uc_stack.ss_sp = bottom;
    u->uc_stack.ss_size = (size_t)((char *)u - bottom);
    makecontext(u, entry, 0);
    return u;
}
#    define WITH_UCONTEXT 1
#endif

/* ---- what sanitizers are told ---- */

static void tell_leaving(struct shmt_context *from, const struct shmt_context *to, int from_ends) {
#if SHMT_UNDER_ASAN
    __sanitizer_start_switch_fiber(from_ends ? NULL : &from->fake, to->bottom, to->size);
#endif
#if SHMT_UNDER_TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    (void)from, (void)to, (void)from_ends;
}

/* In whoever goes on; what it learns of the stack that was left is needed for the thread's, which nobody else knows. */
static void tell_arrived(void *fake, struct shmt_context *left) {
#if SHMT_UNDER_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (left && !left->stack) {
        left->bottom = bottom;
        left->size = size;
    }
#endif
    (void)fake, (void)left;
}

/* What the functions stood on that have never returned may be written to again. */
static void tell_empty(const struct shmt_context *c) {
#if SHMT_UNDER_ASAN
    ASAN_UNPOISON_MEMORY_REGION(c->bottom, c->size);
#endif
    (void)c;
}

/* ---- contexts ---- */

void shmt_context_of_thread(struct shmt_context *c) {
    *c = (struct shmt_context){0};
#if SHMT_UNDER_TSAN
    c->tsan = __tsan_get_current_fiber();
#endif
#ifdef WITH_UCONTEXT
    static _Thread_local ucontext_t own; /* one thread has one context of its own */
    c->at = &own;
#endif
}

int shmt_context_make(struct shmt_context *c, size_t stack_bytes, void (*entry)(void), struct shmt_error *e) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (stack_bytes + page - 1) / page * page;
    *c = (struct shmt_context){.bytes = size + page};
    c->stack = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (c->stack == MAP_FAILED || mprotect(c->stack, page, PROT_NONE) != 0) {
        const int code = errno;
        if (c->stack != MAP_FAILED) munmap(c->stack, c->bytes);
        c->stack = NULL;
        return shmt_no_memory(e, "for a stack of %zu bytes (%s; each takes two mappings of those that vm.max_map_count allows)",
                              size, strerror(code));
    }
    c->bottom = (char *)c->stack + page;
    c->size = size;
    shmt_context_restart(c, entry);
    return 0;
}

void shmt_context_restart(struct shmt_context *c, void (*entry)(void)) {
    char *bottom = (char *)c->stack + (c->bytes - c->size);
    tell_empty(c);
    c->at = first_frame(bottom, bottom + c->size, entry);
    c->fake = NULL;
#if SHMT_UNDER_TSAN
    if (c->tsan) __tsan_destroy_fiber(c->tsan);
    c->tsan = __tsan_create_fiber(0);
#endif
}

void shmt_context_switch(struct shmt_context *from, struct shmt_context *to, int from_ends) {
    tell_leaving(from, to, from_ends);
    shmt_context_jump(&from->at, to->at);
    tell_arrived(from->fake, NULL);
}

void shmt_context_entered(struct shmt_context *from) { tell_arrived(NULL, from); }

void shmt_context_free(struct shmt_context *c) {
#if SHMT_UNDER_TSAN
    if (c->stack) __tsan_destroy_fiber(c->tsan);
#endif
    if (c->stack) tell_empty(c);
    if (c->stack) munmap(c->stack, c->bytes);
    c->stack = NULL;
}
