/* Running the program from outside: see run_program.h. */
#include "run_program.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sanitizer.h"

#define DEADLINE_SECONDS 300 /* for anything: sanitizers on a busy machine take their time */
#define MAX_PROGRAMS     64  /* of one test */

extern char **environ;

static struct program *all[MAX_PROGRAMS];
static int n_all;
static char folder[4096]; /* absolute; "": none was made */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); }

/* ---- starting ---- */

void program_forget_options(void) {
    for (char **at = environ; *at;) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (strncmp(name, "SHMTRAIN_", 9) == 0 || strcmp(name, "TF_CONFIG") == 0)
            unsetenv(name); /* moves the others down */
        else
            at++;
    }
}

/* A shell's job in the background ignores some, and `make check` may be one. */
static void hear_signals(void) {
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
}

/* AddressSanitizer's look for leaks takes as long as a short run does. So the first program of each case has it, for all. */
static void look_for_leaks_once(void) {
    const char *options = getenv("ASAN_OPTIONS");
    char more[1024];
    if (!SHMT_UNDER_ASAN || n_all == 0) return;
    snprintf(more, sizeof more, "%s:detect_leaks=0", options ? options : "");
    setenv("ASAN_OPTIONS", more, 1);
}

static _Noreturn void become(program_prepare *prepare, const char *const *argv, const int out[2]) {
    char path[4200];
    snprintf(path, sizeof path, "%s/shmtrain", getenv("TEST_BUILDDIR"));
    setpgid(0, 0);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    if (null > STDERR_FILENO) close(null);
    dup2(out[OUT], STDOUT_FILENO);
    dup2(out[ERR], STDERR_FILENO);
    program_forget_options();
    look_for_leaks_once();
    hear_signals();
    if (prepare && prepare() != 0) _exit(PREPARE_FAILED);
    execvp(strcmp(argv[0], "shmtrain") == 0 ? path : argv[0], (char *const *)argv);
    _exit(127);
}

struct program *program_start(program_prepare *prepare, const char *const *argv) {
    int pipes[2][2];
    assert_true(n_all < MAX_PROGRAMS);
    assert_int_equal(pipe2(pipes[OUT], O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipes[ERR], O_CLOEXEC), 0);
    struct program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->name = argv[0];
    fflush(stdout);
    p->pid = fork();
    if (p->pid == 0) become(prepare, argv, (const int[2]){pipes[OUT][1], pipes[ERR][1]});
    assert_true(p->pid > 0);
    setpgid(p->pid, p->pid); /* the child does it, too: whoever comes first */
    for (int s = OUT; s <= ERR; s++) {
        close(pipes[s][1]);
        p->fd[s] = pipes[s][0];
        p->text[s] = calloc(1, 1);
    }
    all[n_all++] = p;
    return p;
}

/* ---- listening and waiting ---- */

static void kill_group(const struct program *p) { kill(-p->pid, SIGKILL); }

static void give_up(struct program *p, const char *what) {
    kill_group(p);
    fail_msg("%s %s\n--- stdout ends with:\n%s\n--- stderr:\n%s", p->name, what,
             p->text[OUT] + (p->bytes[OUT] > 2000 ? p->bytes[OUT] - 2000 : 0), p->text[ERR]);
}

static void take_text(struct program *p, int stream) {
    char piece[65536];
    const ssize_t n = read(p->fd[stream], piece, sizeof piece);
    if (n <= 0) {
        close(p->fd[stream]);
        p->fd[stream] = -1;
        return;
    }
    p->text[stream] = realloc(p->text[stream], p->bytes[stream] + (size_t)n + 1);
    assert_non_null(p->text[stream]);
    memcpy(p->text[stream] + p->bytes[stream], piece, (size_t)n);
    p->bytes[stream] += (size_t)n;
    p->text[stream][p->bytes[stream]] = '\0';
}

/* Reads what there is, waiting at most `ms` for it. False when both streams have ended. */
static bool listen_once(struct program *p, int ms) {
    struct pollfd polled[2] = {{.fd = p->fd[OUT], .events = POLLIN}, {.fd = p->fd[ERR], .events = POLLIN}};
    if (p->fd[OUT] < 0 && p->fd[ERR] < 0) return false;
    if (poll(polled, 2, ms) <= 0) return true;
    for (int s = OUT; s <= ERR; s++)
        if (polled[s].revents) take_text(p, s);
    return true;
}

bool program_says(struct program *p, int stream, const char *text) {
    const double until = now() + DEADLINE_SECONDS;
    while (!strstr(p->text[stream], text)) {
        if (!listen_once(p, 100)) return false;
        if (now() > until) give_up(p, "did not say in time what the test waits for");
    }
    return true;
}

void program_wait_for(struct program *p, int stream, const char *text) {
    if (!program_says(p, stream, text)) give_up(p, "ended before it said what the test waits for");
}

void program_wait_for_epoch(struct program *p) { program_wait_for(p, OUT, "\n    1 "); }

static void take_status(struct program *p, int status) {
    p->ended = true;
    p->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Collects everybody of the group who has ended. True when nobody is left. */
static bool group_is_gone(struct program *p) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-p->pid, &status, WNOHANG)) > 0)
        if (pid == p->pid) take_status(p, status);
    return kill(-p->pid, 0) < 0 && errno == ESRCH;
}

void program_assert_gone_within(struct program *p, int seconds) {
    const double until = now() + seconds;
    while (!group_is_gone(p)) {
        if (now() > until) give_up(p, "has left a process behind");
        if (!listen_once(p, 5)) pause_briefly();
    }
    while (listen_once(p, 0)) continue; /* nobody is left to write: this ends */
}

void program_finish(struct program *p) {
    const double until = now() + DEADLINE_SECONDS;
    while (!p->ended) {
        int status;
        if (!listen_once(p, 5)) pause_briefly();
        if (waitpid(p->pid, &status, WNOHANG) == p->pid) take_status(p, status);
        if (now() > until) give_up(p, "did not end in time");
    }
    program_assert_gone_within(p, 10);
}

struct program *program_run(program_prepare *prepare, const char *const *argv) {
    struct program *p = program_start(prepare, argv);
    program_finish(p);
    return p;
}

/* ---- its processes ---- */

/* State, parent and name of a process; false when there is none. */
static bool look_up(pid_t pid, char *state_out, pid_t *parent_out, char name_out[32]) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool has_read = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    char *name = strchr(line, '('), *end = strrchr(line, ')'); /* the name between them may hold anything */
    if (!has_read || !name || !end) return false;
    snprintf(name_out, 32, "%.*s", (int)(end - name - 1), name + 1);
    return sscanf(end + 1, " %c %d", state_out, parent_out) == 2;
}

static pid_t find_child(pid_t parent, const char *wanted) {
    DIR *proc = opendir("/proc");
    pid_t found = 0;
    assert_non_null(proc);
    for (struct dirent *entry; !found && (entry = readdir(proc));) {
        char state, name[32];
        pid_t its_parent;
        const pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (pid && look_up(pid, &state, &its_parent, name) && its_parent == parent && strcmp(name, wanted) == 0) found = pid;
    }
    closedir(proc);
    return found;
}

pid_t program_supervisor(struct program *p) { return find_child(p->pid, "shmtrain-sup"); }

pid_t program_link(struct program *p) { return find_child(p->pid, "shmtrain-link"); }

pid_t program_worker_unless_over(struct program *p, unsigned rank) {
    char name[32];
    const double until = now() + DEADLINE_SECONDS;
    snprintf(name, sizeof name, "shmtrain-w%u", rank);
    for (;;) {
        const pid_t supervisor = program_supervisor(p), worker = supervisor ? find_child(supervisor, name) : 0;
        if (worker) return worker;
        if (now() > until) give_up(p, "did not begin the worker that the test waits for");
        if (!listen_once(p, 1)) return 0;
    }
}

pid_t program_worker(struct program *p, unsigned rank) {
    const pid_t worker = program_worker_unless_over(p, rank);
    if (worker == 0) give_up(p, "ended before its worker was seen");
    return worker;
}

pid_t program_worker_if_any(struct program *p, unsigned rank) {
    char name[32];
    snprintf(name, sizeof name, "shmtrain-w%u", rank);
    (void)listen_once(p, 1);
    const pid_t supervisor = program_supervisor(p);
    return supervisor ? find_child(supervisor, name) : 0;
}

static int count_threads(pid_t pid) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *d; tasks && (d = readdir(tasks));) n += d->d_name[0] != '.';
    if (tasks) closedir(tasks);
    return n;
}

void program_wait_for_readers(struct program *p) {
    const double until = now() + DEADLINE_SECONDS;
    while (count_threads(p->pid) < 2) {
        if (now() > until) give_up(p, "did not begin to read");
        usleep(100);
    }
}

char program_state(pid_t pid) {
    char state = 0, name[32];
    pid_t parent;
    return look_up(pid, &state, &parent, name) ? state : '-';
}

/* ---- what it said ---- */

void program_assert_all_refused(const struct refusal *refusal, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *argv[8] = {"shmtrain"};
        memcpy(argv + 1, refusal[i].argument, sizeof refusal[i].argument);
        program_assert_refused(program_run(NULL, argv), refusal[i].status, refusal[i].words);
    }
}

void program_assert_status(struct program *p, int status) {
    if (p->status == status) return;
    char what[64];
    snprintf(what, sizeof what, "ended with %d, not with %d", p->status, status);
    give_up(p, what);
}

void program_assert_refused(struct program *p, int status, const char *words) {
    program_assert_status(p, status);
    assert_string_equal(p->text[OUT], "");
    const char *end = strchr(p->text[ERR], '\n');
    if (!end || end[1] != '\0') give_up(p, "did not refuse in one line");
    if (strncmp(p->text[ERR], "shmtrain: ", 10) != 0) give_up(p, "does not say who refuses");
    if (!strstr(p->text[ERR], words)) {
        print_error("expected: %s\n", words);
        give_up(p, "refused in other words");
    }
}

json_t *program_json(struct program *p) {
    json_error_t error;
    /* anything behind the object is an error, and so is a name that comes twice */
    json_t *o = json_loads(p->text[OUT], JSON_REJECT_DUPLICATES, &error);
    if (!o) give_up(p, error.text);
    if (!json_is_object(o)) give_up(p, "has printed JSON that is no object");
    return o;
}

json_t *program_report(const char *const *argv) {
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    return program_json(p);
}

double program_number(const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    if (!json_is_number(value)) fail_msg("%s is no number", key);
    return json_number_value(value);
}

void program_hash(char out[17], const char *const *argv) {
    json_t *o = program_report(argv);
    const char *hash = json_string_value(json_object_get(o, "parameters_xxh64"));
    assert_non_null(hash);
    assert_int_equal(strlen(hash), 16);
    memcpy(out, hash, 17);
    json_decref(o);
}

/* ---- fixtures ---- */

int program_end_all(void **state) {
    (void)state;
    for (; n_all > 0; n_all--) {
        struct program *p = all[n_all - 1];
        kill_group(p);
        while (!group_is_gone(p)) pause_briefly();
        for (int s = OUT; s <= ERR; s++) {
            if (p->fd[s] >= 0) close(p->fd[s]);
            free(p->text[s]);
        }
        free(p);
    }
    return 0;
}

int program_make_folder(void **state) {
    (void)state;
    char name[sizeof folder];
    const char *base = getenv("TMPDIR");
    if (!getenv("TEST_BUILDDIR")) {
        print_error("TEST_BUILDDIR must name the folder that has ./shmtrain; make check sets it\n");
        return -1;
    }
    snprintf(name, sizeof name, "%s/shmtrain-program-XXXXXX", base && base[0] == '/' ? base : "/tmp");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || !mkdtemp(name)) return -1;
    memcpy(folder, name, sizeof folder);
    return chdir(folder);
}

static int remove_with_files(const char *name) {
    DIR *dir = opendir(name);
    if (!dir) return -1;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) != 0) unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
    return rmdir(name);
}

/* Also called when program_make_folder has failed: removes only what lies in a folder that it has made, by that folder's
 * name. */
int program_remove_folder(void **state) {
    (void)state;
    return folder[0] == '\0' ? 0 : remove_with_files(folder);
}

void program_drop_folder(const char *name) {
    if (access(name, F_OK) == 0) assert_int_equal(remove_with_files(name), 0);
}

void program_write_file(const char *name, const char *contents) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(contents, f) >= 0);
    assert_int_equal(fclose(f), 0);
}
