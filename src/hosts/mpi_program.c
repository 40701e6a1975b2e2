/* The program that calls MPI: see mpi_program.h. Installed files may be moved together, so it is looked for beside what is running. */
#include "hosts/mpi_program.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Folders, from that of what is running: as built, for examples and tests, too; installed in bin or lib; and in lib/MULTIARCH. */
static const char *const PLACES[] = {"", "../", "../libexec/shmtrain/", "../../libexec/shmtrain/"};

static bool is_near(const char *path, const char *mpi, char out[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    if (!slash) return false;
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        const int n = snprintf(out, PATH_MAX, "%.*s/%sshmtrain-link-%s", (int)(slash - path), path, PLACES[i], mpi);
        if (n < PATH_MAX && access(out, X_OK) == 0) return true;
    }
    return false;
}

int shmt_mpi_program_find(const char *mpi, char out[PATH_MAX], struct shmt_error *e) {
    char exe[PATH_MAX];
    Dl_info library;
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    if (is_near(exe, mpi, out)) return 0;
    if (dladdr((const void *)PLACES, &library) != 0 && library.dli_fname && is_near(library.dli_fname, mpi, out)) return 0;
    return shmt_fail(
        e, SHMTRAIN_E_SYSTEM,
        "this shmtrain was built without %s: install its headers (%s) and build it again, or name the hosts, as in "
        "--hosts a:5000,b:5000",
        strcmp(mpi, "mpich") == 0 ? "MPICH" : "Open MPI", strcmp(mpi, "mpich") == 0 ? "libmpich-dev" : "libopenmpi-dev");
}
