/* Runs for event loops: the blocking call as it is, on one thread of the library's own, and a mailbox between it and the
 * application. See background.h.
 *
 * That thread never waits for the application: what happens is put into the mailbox, a descriptor becomes readable, and `step`
 * calls the listeners on the application's thread. Nobody has to step for the run to go on. Of begin, epochs, steps and notes
 * none is lost, and they come in their order; of progress the newest is kept. An epoch needs no room in the mailbox, as its
 * record stands in the store's array, so the mailbox grows by notes only, which are few, and by as many steps as are asked for.
 *
 * The thread has all signals blocked: they are the application's. In workers this looks as if the application answered those
 * that go to whole process groups, so they ignore them (runtime/settle.c); they end with their application, whatever ends
 * it. */
#include "api/background.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/measured.h"
#include "base/thread.h"
#include "running/running.h"
#include "watching/report.h"
#include "watching/snapshots.h"

struct note {
    struct note *next;
    uint64_t behind; /* what had been posted before it */
    enum { TEXT, STEPS, CHECKPOINT } kind;
    struct shmtrain_steps steps;
    struct shmtrain_checkpoint checkpoint; /* its path is `text`; its failure, too, behind that */
    char text[];
};

struct shmt_background {
    struct shmtrain_store *store;
    struct shmt_run *run; /* the store's */
    pthread_t thread;
    pid_t pid;               /* of the process that has the thread */
    int fd;                  /* an eventfd: there is something for step */
    shmtrain_worker *worker; /* what is to be done */
    void *worker_arg;
    char *data; /* not NULL: train on it instead */

    /* the mailbox */
    pthread_mutex_t lock;
    uint64_t posted; /* 0: nothing, 1: begin, 2: and the first epoch, ... */
    struct shmtrain_report so_far;
    uint32_t n_before; /* epochs that were done when it began, of a run that goes on; their examples and seconds */
    uint64_t examples_before;
    double seconds_before;
    struct note *first_note, **last_note;
    struct shmtrain_progress progress;
    struct shmtrain_worker_progress *progress_worker; /* (progress.n_workers) */
    bool has_progress;                                /* that nobody has been told */
    bool ended;
    int status;

    /* the application's thread alone */
    struct shmtrain_listener listener;
    bool stepping;
    uint64_t delivered; /* as `posted` */
    struct shmtrain_report seen;
    struct shmtrain_progress shown;
    struct shmtrain_worker_progress *shown_worker;
};

/* ---- on the library's thread: into the mailbox ---- */

static void wake_listener(const struct shmt_background *b) {
    const uint64_t one = 1;
    if (write(b->fd, &one, sizeof one) < 0) return; /* full: readable it is */
}

static void post(struct shmt_background *b, const struct shmtrain_report *so_far) {
    pthread_mutex_lock(&b->lock);
    b->so_far = *so_far;
    b->posted++;
    pthread_mutex_unlock(&b->lock);
    wake_listener(b);
}

/* What it goes on from is not told again. */
static void post_begin(void *arg, const struct shmtrain_report *so_far) {
    struct shmt_background *b = arg;
    pthread_mutex_lock(&b->lock);
    b->n_before = so_far->n_epochs;
    b->examples_before = so_far->examples;
    b->seconds_before = so_far->train_seconds;
    pthread_mutex_unlock(&b->lock);
    post(b, so_far);
}

static void post_epoch(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)epoch; /* the next one of so_far->epoch */
    post(arg, so_far);
}

/* Room for a word of two texts; NULL: no memory, and a word less. */
static struct note *make_note(const char *first, const char *second) {
    const size_t bytes = strlen(first) + 1, more = strlen(second) + 1;
    struct note *note = calloc(1, sizeof *note + bytes + more);
    if (!note) return NULL;
    memcpy(note->text, first, bytes);
    memcpy(note->text + bytes, second, more);
    note->checkpoint.path = note->text;
    note->checkpoint.failure = note->text + bytes;
    return note;
}

static void post_word(struct shmt_background *b, struct note *note) {
    if (!note) return;
    pthread_mutex_lock(&b->lock);
    note->behind = b->posted;
    *b->last_note = note;
    b->last_note = &note->next;
    pthread_mutex_unlock(&b->lock);
    wake_listener(b);
}

static void post_note(void *arg, const char *line) { post_word(arg, make_note(line, "")); }

static void post_steps(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_steps *steps) {
    struct note *note = make_note("", "");
    (void)so_far;
    if (note) note->kind = STEPS;
    if (note) note->steps = *steps;
    post_word(arg, note);
}

static void post_checkpoint(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_checkpoint *checkpoint) {
    struct note *note = make_note(checkpoint->path, checkpoint->failure);
    (void)so_far;
    if (note) {
        const struct shmtrain_checkpoint texts = note->checkpoint;
        note->kind = CHECKPOINT;
        note->checkpoint = *checkpoint;
        note->checkpoint.path = texts.path;
        note->checkpoint.failure = texts.failure;
    }
    post_word(arg, note);
}

/* *to becomes a copy of *from with workers of its own; false: no memory. */
static bool copy_progress(struct shmtrain_progress *to, struct shmtrain_worker_progress **worker,
                          const struct shmtrain_progress *from) {
    const size_t bytes = from->n_workers * sizeof **worker;
    struct shmtrain_worker_progress *room = bytes > 0 ? realloc(*worker, bytes) : *worker;
    if (bytes > 0 && !room) return false;
    *worker = room;
    if (bytes > 0) memcpy(room, from->worker, bytes);
    *to = *from;
    to->worker = room;
    return true;
}

static void post_progress(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    struct shmt_background *b = arg;
    (void)so_far;
    pthread_mutex_lock(&b->lock);
    b->has_progress |= copy_progress(&b->progress, &b->progress_worker, now);
    pthread_mutex_unlock(&b->lock);
    wake_listener(b);
}

static void *run(void *arg) {
    struct shmt_background *b = arg;
    const int status = b->data ? shmt_measured_train(b->store, b->data) : shmt_run_function(b->run, b->worker, b->worker_arg);
    shmt_snapshots_close(b->run->snapshots, status);
    pthread_mutex_lock(&b->lock);
    b->status = status;
    b->ended = true;
    pthread_mutex_unlock(&b->lock);
    wake_listener(b);
    return NULL;
}

/* ---- making and freeing ---- */

static void free_background(struct shmt_background *b) {
    for (struct note *note = b->first_note; note;) {
        struct note *next = note->next;
        free(note);
        note = next;
    }
    if (b->fd >= 0) close(b->fd);
    pthread_mutex_destroy(&b->lock);
    free(b->progress_worker);
    free(b->shown_worker);
    free(b->data);
    free(b);
}

static struct shmt_background *make(struct shmtrain_store *store, struct shmt_run *run) {
    struct shmt_background *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->store = store;
    b->run = run;
    b->pid = getpid();
    b->last_note = &b->first_note;
    b->listener = run->listener;
    b->progress = b->shown = (struct shmtrain_progress){
        .size = sizeof(struct shmtrain_progress), .hosts = 1, .loss = NAN, .seconds_left = NAN, .delay = NAN};
    b->seen = SHMT_NO_REPORT;
    pthread_mutex_init(&b->lock, NULL);
    b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return b;
}

static int start_thread(struct shmt_background *b) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it */
    const int code = shmt_thread_start(&b->thread, run, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0) (void)pthread_setname_np(b->thread, "shmtrain-run");
    return code;
}

/* The run's listener while the thread runs: the mailbox. */
static void listen_to(struct shmt_run *run, struct shmt_background *b) {
    run->listener = (struct shmtrain_listener){.size = sizeof(struct shmtrain_listener),
                                               .arg = b,
                                               .begin = post_begin,
                                               .epoch = post_epoch,
                                               .note = post_note,
                                               .progress = post_progress,
                                               .steps = post_steps,
                                               .checkpoint = post_checkpoint};
    run->call->log = (struct shmt_log){.line = post_note, .arg = b};
}

/* The application's listener again. */
static void listen_to_nobody(struct shmt_background *b) {
    b->run->listener = b->listener;
    b->run->call->log = (struct shmt_log){.line = b->listener.note, .arg = b->listener.arg};
}

/* A snapshot has been answered. */
static void ring(const void *b) { wake_listener(b); }

int shmt_background_start(struct shmtrain_store *store, struct shmt_run *run, shmtrain_worker *worker, void *arg,
                          const char *data, struct shmt_background **out) {
    struct shmt_error *e = &run->call->error;
    struct shmt_background *b = make(store, run);
    int rc;
    if (b && data) b->data = strdup(data);
    if (!b || (data && !b->data)) {
        rc = shmt_no_memory(e, "to start a run");
    } else if (b->fd < 0) {
        rc = shmt_fail_errno(e, "cannot create a descriptor for the run");
    } else {
        b->worker = worker;
        b->worker_arg = arg;
        listen_to(run, b);
        shmt_snapshots_open(run->snapshots, run->wants_snapshots, ring, b);
        const int code = start_thread(b);
        *out = b;
        if (code == 0) return 0;
        shmt_snapshots_close(run->snapshots, SHMTRAIN_E_SYSTEM);
        listen_to_nobody(b);
        rc = shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot start a thread for the run: %s", strerror(code));
    }
    if (b) free_background(b);
    *out = NULL;
    return rc;
}

/* ---- on the application's thread: out of the mailbox ---- */

enum event { NOTHING, BEGIN, EPOCH, NOTE, PROGRESS, ENDED };

/* The next thing to tell; a note is handed over in *out. */
static enum event take_event(struct shmt_background *b, struct note **out) {
    enum event event = NOTHING;
    pthread_mutex_lock(&b->lock);
    struct note *note = b->first_note;
    if (note && note->behind <= b->delivered) {
        b->first_note = note->next;
        if (!b->first_note) b->last_note = &b->first_note;
        *out = note;
        event = NOTE;
    } else if (b->delivered < b->posted) {
        event = b->delivered == 0 ? BEGIN : EPOCH;
        const uint64_t examples = event == BEGIN ? b->examples_before : b->seen.examples;
        const double seconds = event == BEGIN ? b->seconds_before : b->seen.train_seconds;
        b->seen = b->so_far; /* which may be further already */
        b->seen.n_epochs = b->n_before + (uint32_t)b->delivered++;
        b->seen.examples = examples;
        b->seen.train_seconds = seconds;
        if (event == EPOCH) {
            const struct shmtrain_epoch *epoch = &b->seen.epoch[b->seen.n_epochs - 1];
            b->seen.examples += epoch->examples;
            b->seen.train_seconds += epoch->seconds;
        }
    } else if (b->has_progress) {
        b->has_progress = false;
        if (copy_progress(&b->shown, &b->shown_worker, &b->progress)) event = PROGRESS;
    }
    if (event == NOTHING && b->ended) event = ENDED;
    pthread_mutex_unlock(&b->lock);
    return event;
}

static void tell(const struct shmt_background *b, enum event event, const struct note *note) {
    const struct shmtrain_listener *to = &b->listener;
    const struct shmtrain_report *seen = &b->seen;
    if (event == BEGIN && to->begin) to->begin(to->arg, seen);
    if (event == EPOCH && to->epoch) to->epoch(to->arg, seen, &seen->epoch[seen->n_epochs - 1]);
    if (event == NOTE && note->kind == STEPS && to->steps) to->steps(to->arg, seen, &note->steps);
    if (event == NOTE && note->kind == CHECKPOINT && to->checkpoint) to->checkpoint(to->arg, seen, &note->checkpoint);
    if (event == NOTE && note->kind == TEXT && to->note) to->note(to->arg, note->text);
    if (event == PROGRESS && to->progress) to->progress(to->arg, seen, &b->shown);
}

int shmt_background_fd(const struct shmt_background *b) { return b->fd; }

/* Its thread has nothing left to do. */
static int finish(struct shmt_background *b) {
    pthread_join(b->thread, NULL);
    const int status = b->status;
    listen_to_nobody(b);
    free_background(b);
    return status;
}

bool shmt_background_step(struct shmt_background *b, int *status_out) {
    enum event event;
    uint64_t count;
    *status_out = 1;
    if (b->stepping) return true; /* called by a listener of ours */
    b->stepping = true;
    if (read(b->fd, &count, sizeof count) < 0) count = 0; /* before we look, so that later news shows again */
    do {
        struct note *note = NULL;
        event = take_event(b, &note);
        tell(b, event, note);
        free(note);
    } while (event != NOTHING && event != PROGRESS && event != ENDED);
    b->stepping = false;
    if (event == PROGRESS) wake_listener(b); /* there may be more; but not for ever in one step */
    if (event == ENDED) *status_out = finish(b);
    return event != ENDED;
}

const struct shmtrain_report *shmt_background_report(const struct shmt_background *b) { return &b->seen; }

bool shmt_background_is_here(const struct shmt_background *b) { return b->pid == getpid(); }

const struct shmtrain_progress *shmt_background_look(struct shmt_background *b) {
    pthread_mutex_lock(&b->lock);
    (void)copy_progress(&b->shown, &b->shown_worker, &b->progress); /* no memory: what was shown last */
    pthread_mutex_unlock(&b->lock);
    return &b->shown;
}

void shmt_background_listen(struct shmt_background *b, const struct shmtrain_listener *listener) { b->listener = *listener; }

void shmt_background_end(struct shmt_background *b) { (void)finish(b); }
