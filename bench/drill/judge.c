/* Whether a run of a drill has ended as it must: see judge.h. */
#include "bench/drill/judge.h"

#include <shmtrain/store.h>

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sync/host.h"

#define LAST_LEAVE_NS 10000000000u /* so long processes may take to end behind their run's */
#define UNLEARNED     0.693147     /* the loss of two classes before anything is learned */
#define LEAST_SHARE   0.06
#define MODEL         "model"
#define SAVED         "saved"
#define PATH_ROOM     (sizeof((struct shmt_drill_place *)0)->folder + 8)
#define CLAIM         ".shmtrain-lock" /* on a folder of checkpoints; it stays when its run is killed */

void shmt_drill_find_fault(char *why, const char *format, ...) {
    va_list list;
    if (why[0] != '\0') return;
    va_start(list, format);
    vsnprintf(why, SHMT_DRILL_WHY, format, list);
    va_end(list);
}

void shmt_drill_expect(struct shmt_drill_expected *expected, const struct shmt_drill_shared *shared) {
    const bool first = expected->n_runs++ == 0;
    expected->low = first ? shared->loss : fmin(expected->low, shared->loss);
    expected->high = first ? shared->loss : fmax(expected->high, shared->loss);
    expected->train_seconds = fmax(expected->train_seconds, shared->train_seconds);
    expected->xxh64 = shared->xxh64;
    expected->n_epochs = shared->n_epochs;
    memcpy(expected->examples, shared->examples, sizeof expected->examples);
}

void shmt_drill_band(const struct shmt_drill_expected *expected, double *low_out, double *high_out) {
    const double spread = expected->high - expected->low, mean = (expected->high + expected->low) / 2;
    const double margin = fmax(spread, LEAST_SHARE * fabs(mean));
    *low_out = expected->low - margin;
    *high_out = expected->high + margin;
}

/* Each example once in each epoch. What was in hand in a death may be missing where nobody takes it up: no more, and as much
 * as the run reports. A guest has one thread, a worker has as many items in hand as threads. */
static void count_examples(struct shmt_drill_game *game, const struct shmt_drill_expected *expected) {
    const struct shmt_drill_trial *trial = &game->trial;
    const struct shmt_drill_shared *shared = game->ground->shared;
    const uint64_t losses = trial->losses + trial->guest_deaths, threads = game->mode->threads > 1 ? game->mode->threads : 1;
    uint64_t missing = 0;
    for (uint32_t i = 0; i < expected->n_epochs; i++) {
        const uint64_t n = shared->examples[i], should = expected->examples[i];
        if (n > should || (n < should && losses == 0))
            shmt_drill_find_fault(game->why, "epoch %u has %" PRIu64 " examples instead of %" PRIu64, i + 1, n, should);
        missing += should - n; /* only looked at where it cannot have wrapped */
    }
    if (missing > (trial->losses * threads + trial->guest_deaths) * shared->item)
        shmt_drill_find_fault(game->why, "%" PRIu64 " examples were skipped in %" PRIu64 " deaths, with items of %" PRIu64,
                              missing, losses, shared->item);
    if (missing != shared->skipped)
        shmt_drill_find_fault(game->why, "%" PRIu64 " examples are missing, but %" PRIu64 " are reported as skipped", missing,
                              shared->skipped);
}

/* A gradient, or the part of a merge, is missing when a guest has died: the run says so, and whose. */
static bool has_lost_guest(const struct shmt_drill_game *game) {
    const struct shmt_drill_shared *shared = game->ground->shared;
    return game->mode->has_guests && game->mode->same_bits && game->trial.guest_deaths > 0 && shared->rc == SHMTRAIN_E_DIED &&
           strstr(shared->message, "joined by name) died or gave up") != NULL;
}

void shmt_drill_judge(struct shmt_drill_game *game, const struct shmt_drill_expected *expected) {
    const struct shmt_drill_shared *shared = game->ground->shared;
    const double low = game->score->low_loss;
    if (has_lost_guest(game)) return;
    if (shared->rc < 0) shmt_drill_find_fault(game->why, "%s", shared->message);
    if (shared->n_epochs != expected->n_epochs)
        shmt_drill_find_fault(game->why, "it has done %u epochs of %u", shared->n_epochs, expected->n_epochs);
    count_examples(game, expected);
    if (game->mode->same_bits && shared->xxh64 != expected->xxh64)
        shmt_drill_find_fault(game->why, "parameters %016" PRIx64 " instead of %016" PRIx64, shared->xxh64, expected->xxh64);
    /* What came late has not been learned, or less of it: who is stopped, or dead for a while, is slow, as a quorum is for. */
    const double high = game->score->high_loss + shared->late_share * fmax(0, UNLEARNED - low);
    if (!game->mode->same_bits && !(shared->loss >= low && shared->loss <= high))
        shmt_drill_find_fault(game->why, "loss %.6f, which is not within %.6f .. %.6f", shared->loss, low, high);
}

/* ---- residue ---- */

/* All that a run has forked ends with it, though perhaps a moment later. */
static void look_for_processes(char *why) {
    const uint64_t began_ns = shmt_now_ns();
    uint32_t left;
    while ((left = shmt_drill_children()) > 0 && shmt_now_ns() - began_ns < LAST_LEAVE_NS) shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    if (left == 0) return;
    shmt_drill_find_fault(why, "%u of its processes are still there", left);
    shmt_drill_kill_children();
    while (shmt_drill_children() > 0) shmt_drill_nap(SHMT_DRILL_LOOK_NS);
}

/* The next name of a folder; NULL: there is none. */
static const char *next_name(DIR *dir) {
    const struct dirent *entry;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return entry->d_name;
    return NULL;
}

static void look_for_segments(const char *part, char *why) {
    DIR *dir = opendir("/dev/shm");
    const char *name;
    while (dir && (name = next_name(dir)))
        if (strstr(name, part)) shmt_drill_find_fault(why, "it left /dev/shm/%s", name);
    if (dir) closedir(dir);
}

/* That of the run, or of its second host. */
static bool is_of_checkpoints(const char *name) { return strcmp(name, SAVED) == 0 || strcmp(name, SAVED "1") == 0; }

static void look_for_files(const struct shmt_drill_place *place, char *why) {
    DIR *dir = opendir(place->folder);
    const char *name;
    while (dir && (name = next_name(dir)))
        if (strcmp(name, MODEL) != 0 && !(place->saves && is_of_checkpoints(name)))
            shmt_drill_find_fault(why, "it left %s/%s", place->folder, name);
    if (dir) closedir(dir);
}

/* Folders stay. */
static void empty(const char *folder) {
    char path[600];
    DIR *dir = opendir(folder);
    const char *name;
    while (dir && (name = next_name(dir))) {
        snprintf(path, sizeof path, "%s/%s", folder, name);
        (void)unlink(path);
    }
    if (dir) closedir(dir);
}

static bool is_checkpoint(const char *name) {
    static const char FIRST[] = "checkpoint-", LAST[] = ".safetensors";
    const size_t n = strlen(name);
    return strncmp(name, FIRST, sizeof FIRST - 1) == 0 && n > sizeof LAST && strcmp(name + n - (sizeof LAST - 1), LAST) == 0;
}

/* Of a run that was killed there may be a file that was being written, and the one by which it claimed the folder. */
static uint32_t look_at_folder(const char *folder, char *why) {
    const char *name;
    uint32_t n_whole = 0, n_others = 0;
    DIR *dir = opendir(folder);
    while (dir && (name = next_name(dir))) {
        const bool whole = is_checkpoint(name);
        n_whole += whole;
        n_others += !whole && strcmp(name, CLAIM) != 0;
        if (n_others > 1) shmt_drill_find_fault(why, "it left %s/%s", folder, name);
    }
    if (dir) closedir(dir);
    /* One more: killed when a file had taken its place, and the oldest one was still to be removed. */
    if (n_whole > SHMT_DRILL_KEEP + 1)
        shmt_drill_find_fault(why, "it left %u checkpoints instead of %u", n_whole, SHMT_DRILL_KEEP);
    return n_whole;
}

/* Those of the run, and of its second host. */
static void name_folders(const struct shmt_drill_place *place, char out[SHMT_DRILL_HOSTS][PATH_ROOM]) {
    for (uint32_t host = 0; host < SHMT_DRILL_HOSTS; host++)
        snprintf(out[host], PATH_ROOM, "%s/" SAVED "%s", place->folder, host > 0 ? "1" : "");
}

uint32_t shmt_drill_look_at_saved(const struct shmt_drill_place *place, char *why) {
    char folder[SHMT_DRILL_HOSTS][PATH_ROOM];
    uint32_t n = 0;
    name_folders(place, folder);
    for (uint32_t host = 0; host < SHMT_DRILL_HOSTS; host++) n += look_at_folder(folder[host], why);
    return n;
}

void shmt_drill_clear_saved(const struct shmt_drill_place *place) {
    char folder[SHMT_DRILL_HOSTS][PATH_ROOM];
    name_folders(place, folder);
    for (uint32_t host = 0; host < SHMT_DRILL_HOSTS; host++) {
        empty(folder[host]);
        (void)rmdir(folder[host]);
    }
}

void shmt_drill_look_for_residue(const struct shmt_drill_place *place, bool well, char *why) {
    char path[sizeof place->folder + 8], message[256] = "";
    look_for_processes(why);
    /* Nobody has it open any more: it is removed without force. A run that has not begun has none. */
    if (place->name[0] && shmtrain_named_remove(place->name, 0, message, sizeof message) < 0 && well)
        shmt_drill_find_fault(why, "%s", message);
    if (place->name[0]) look_for_segments(place->name, why);
    look_for_files(place, why);
    snprintf(path, sizeof path, "%s/" MODEL, place->folder);
    if (well && access(path, R_OK) != 0) shmt_drill_find_fault(why, "it left no model");
    empty(place->folder);
}
