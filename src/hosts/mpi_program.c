/* The program that calls MPI: see mpi_program.h. Installed files may be moved together, so it is looked for beside what is running. */
#include "hosts/mpi_program.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folders, from that of what is running: as built, for examples and tests, too; installed in bin or lib; and in lib/MULTIARCH. */
static const char *const PLACES[] = {"", "../", "../libexec/shmtrain/", "../../libexec/shmtrain/"};

/* Nobody else can have put it there: it, and its folder, are ours or root's, and not for all to write. */
static bool is_trusted(const char *path) {
    struct stat at;
    return stat(path, &at) == 0 && (at.st_uid == 0 || at.st_uid == geteuid()) && (at.st_mode & S_IWOTH) == 0;
}

static bool is_program(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return access(path, X_OK) == 0 && is_trusted(path) && is_trusted(folder);
}

static bool is_near(const char *path, const char *mpi, char out[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    if (!slash) return false;
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        const int n = snprintf(out, PATH_MAX, "%.*s/%sshmtrain-link-%s", (int)(slash - path), path, PLACES[i], mpi);
        if (n < PATH_MAX && is_program(out)) return true;
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
    const bool is_mpich = strcmp(mpi, "mpich") == 0;
    return shmt_fail(
        e, SHMTRAIN_E_SYSTEM,
        "beside this shmtrain there is no shmtrain-link-%s, which calls %s: install its headers (%s) and build again, or "
        "name the hosts, as in --hosts a:5000,b:5000",
        mpi, is_mpich ? "MPICH" : "Open MPI", is_mpich ? "libmpich-dev" : "libopenmpi-dev");
}

/* Whether MPI has begun in this library, which is loaded. */
static bool has_begun(const char *library) {
    int (*initialized)(int *flag);
    int flag = 0;
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return false;
    *(void **)&initialized = dlsym(handle, "MPI_Initialized");
    const bool is_in_use = initialized && initialized(&flag) == 0 && flag != 0;
    dlclose(handle);
    return is_in_use;
}

static int look_at(struct dl_phdr_info *library, size_t bytes, void *arg) {
    const char *slash = strrchr(library->dlpi_name, '/'), *name = slash ? slash + 1 : library->dlpi_name;
    (void)bytes;
    *(bool *)arg = (strncmp(name, "libmpi", 6) == 0 || strncmp(name, "libpmpi", 7) == 0) && has_begun(library->dlpi_name);
    return *(bool *)arg;
}

bool shmt_mpi_is_in_use(void) {
    int (*initialized)(int *flag);
    int flag = 0;
    bool is_in_use = false;
    *(void **)&initialized = dlsym(RTLD_DEFAULT, "MPI_Initialized"); /* also where it is linked into the program itself */
    if (initialized && initialized(&flag) == 0 && flag != 0) return true;
    (void)dl_iterate_phdr(look_at, &is_in_use);
    return is_in_use;
}
