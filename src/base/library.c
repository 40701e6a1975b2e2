/* Loading libraries late: see library.h. */
#include "base/library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static bool is_alone(void) {
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    if (!tasks) return false;
    for (const struct dirent *d; (d = readdir(tasks));) n += d->d_name[0] != '.';
    closedir(tasks);
    return n == 1;
}

void *shmt_library_load(const char *file, const struct shmt_library_setting *setting) {
    const char *set = getenv(setting->variable);
    char *before = set ? strdup(set) : NULL;
    const bool change = set ? setting->always && before && is_alone() : is_alone();
    if (change) (void)setenv(setting->variable, setting->value, 1);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (change && before) (void)setenv(setting->variable, before, 1);
    if (change && !before) (void)unsetenv(setting->variable);
    free(before);
    return library;
}

bool shmt_library_is_loaded(const char *file) {
    void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return false;
    dlclose(library);
    return true;
}

/* POSIX lets dlsym's pointer be one to a function, ISO C has no word for it. */
void shmt_library_find(void *library, const char *name, void *function_out) {
    void *const found = dlsym(library, name);
    memcpy(function_out, &found, sizeof found);
}

bool shmt_library_calls(const char *file, const struct shmt_library_call *call, size_t n, void *out, const char **why_out) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    bool found = library != NULL;
    for (size_t i = 0; found && i < n; i++) {
        void (**const to)(void) = (void (**)(void))(void *)((char *)out + call[i].at);
        shmt_library_find(library, call[i].name, to);
        found = *to != NULL;
    }
    const char *why = found ? NULL : dlerror();
    *why_out = why ? why : file;
    return found;
}
