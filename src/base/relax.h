/* For loops that wait: tells the processor that this one does, so that it gives the other thread of its core more room. */
#pragma once

static inline void shmt_relax_processor(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}
