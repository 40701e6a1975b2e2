/* Which code a test runs: part of the library and of the tests in the build that check_mutants traces, never of anything else.
 *
 * gcc calls __sanitizer_cov_trace_pc at the beginning of each basic block (-fsanitize-coverage=trace-pc). The block's address is
 * noted in a file that all processes of the test map, so that those that are killed count, too. MUTANTS_TRACE names the folder:
 * "lib" is for the library, a file of the program's name for the program; each has a byte for each byte of the code. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct noted {
    uintptr_t base, bytes;
    unsigned char *map;
} g_lib, g_program;

static void open_map(struct noted *noted, const char *name) {
    const char *folder = getenv("MUTANTS_TRACE");
    char path[4096];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return;
    if (ftruncate(fd, (off_t)noted->bytes) == 0) {
        void *map = mmap(NULL, noted->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED) noted->map = map;
    }
    close(fd);
}

static int find(struct dl_phdr_info *info, size_t size, void *arg) {
    const int is_program = info->dlpi_name[0] == '\0';
    struct noted *noted = is_program ? &g_program : &g_lib;
    (void)size;
    (void)arg;
    if (!is_program && !strstr(info->dlpi_name, "/libmut.so")) return 0;
    noted->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) noted->bytes = part->p_vaddr + part->p_memsz;
    }
    return 0;
}

__attribute__((constructor(101))) static void begin(void) {
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    dl_iterate_phdr(find, NULL);
    open_map(&g_lib, "lib");
    if (n <= 0) return;
    program[n] = '\0';
    open_map(&g_program, strrchr(program, '/') + 1);
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    const uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    if (g_lib.map && pc - g_lib.base < g_lib.bytes)
        g_lib.map[pc - g_lib.base] = 1;
    else if (g_program.map && pc - g_program.base < g_program.bytes)
        g_program.map[pc - g_program.base] = 1;
}
