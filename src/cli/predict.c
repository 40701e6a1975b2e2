/* shmtrain eval and predict: a saved model at work on data. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/display.h"
#include "cli/output.h"
#include "cli/pictures.h"
#include "cli/talk.h"

#define CLOSED_PIPE (128 + SIGPIPE) /* as if it had ended us, which it does where it is not ignored */

/* 0, or the exit status. A signal that comes while the model is read has nothing to stop yet. */
static int load(struct shmtrain_store *store, const struct arguments *a) {
    talk_listen(store);
    talk_catch_signals(store);
    const int rc = shmtrain_store_load(store, a->operand[0]);
    return rc < 0 ? talk_fail(store, rc) : talk_exit_status(0);
}

int eval_run(struct shmtrain_store *store, const struct arguments *a) {
    const struct shmtrain_evaluation *e;
    const int status = load(store, a);
    if (status != 0) return status;
    const int rc = shmtrain_store_evaluate(store, a->operand[1], &e);
    if (rc < 0) return talk_fail(store, rc);
    return talk_print(a->json ? shmtrain_evaluation_json(e) : shmtrain_evaluation_text(e));
}

/* Predictions on their way. */
struct lines {
    const struct shmtrain_store *store;
    struct output_wish wish;   /* without a path: stdout */
    struct output out;         /* its file is what is to be written to */
    int outputs;               /* to be written, too */
    struct pictures *pictures; /* of what is shown */
    int why;                   /* errno of the write that failed first; 0: none did */
    int status;                /* the exit status of a file that could not be opened, of which a line has told */
};

/* ---- lines ---- */

/* As short as it can be written without becoming another number; whole ones as labels are written, 1000000 and not 1e+06. */
static void write_number(FILE *out, float x) {
    char text[32];
    if (x == truncf(x) && fabsf(x) < 1e9f) {
        fprintf(out, "%ld", (long)x);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x) break;
    }
    fputs(text, out);
}

/* A FIFO or the like is opened when there is something to write. */
static int open_lines(struct lines *lines) {
    if (lines->out.file) return 0;
    if (lines->wish.path)
        lines->status = output_open(&lines->out, &lines->wish);
    else
        lines->out.file = stdout;
    return lines->status;
}

static int write_line(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    struct lines *lines = arg;
    (void)example;
    if (open_lines(lines) != 0) return 1;
    FILE *out = lines->out.file;
    const char *name = shmtrain_store_label_name(lines->store, label);
    if (name)
        fputs(name, out);
    else
        write_number(out, label);
    for (uint32_t i = 0; lines->outputs && i < n; i++) {
        putc(' ', out);
        write_number(out, output[i]);
    }
    putc('\n', out);
    if (ferror(out)) lines->why = errno; /* a full disk: no use going on */
    return lines->why != 0 ? 1 : 0;
}

/* ---- images ---- */

/* On a terminal that can do so in halves of characters, in greys if it has them. */
static struct pictures_wish choose_pictures(FILE *out) {
    const char *term = getenv("TERM");
    struct pictures_wish wish = {.out = out, .columns = 80, .ink = PICTURES_ASCII};
    if (!isatty(fileno(out))) return wish;
    wish.columns = display_columns(fileno(out));
    wish.colours = display_obeys_escapes(fileno(out)) && display_wants_colours();
    if (display_has_blocks()) wish.ink = wish.colours && term && strstr(term, "256color") ? PICTURES_GREYS : PICTURES_BLOCKS;
    return wish;
}

static const char *name_label(const struct lines *lines, float label, bool is_number, char out[32]) {
    const char *name = isnan(label) ? NULL : shmtrain_store_label_name(lines->store, label);
    if (name || isnan(label)) return name;
    snprintf(out, 32, "%.*g", is_number ? 4 : 9, (double)label);
    return out;
}

static int show_image(void *arg, const struct shmtrain_image *image) {
    struct lines *lines = arg;
    char predicted[32], label[32];
    if (open_lines(lines) != 0) return 1;
    if (!lines->pictures) {
        const struct pictures_wish wish = choose_pictures(lines->out.file);
        lines->pictures = pictures_open(&wish);
    }
    if (!lines->pictures ||
        pictures_add(lines->pictures, image, name_label(lines, image->predicted, image->is_number, predicted),
                     name_label(lines, image->label, image->is_number, label)) < 0)
        lines->why = ENOMEM;
    if (ferror(lines->out.file)) lines->why = errno;
    return lines->why != 0 ? 1 : 0;
}

/* ---- all of them ---- */

/* Nothing more comes for now: who reads what we write may be waiting for it. A file is whole at the end only. */
static int pass_on(void *arg) {
    struct lines *lines = arg;
    if (lines->wish.path || !lines->out.file || fflush(lines->out.file) == 0) return 0;
    lines->why = errno;
    return 1;
}

/* The exit status. Who has closed the pipe has what it wanted, and wants to hear no more. */
static int close_lines(struct lines *lines) {
    if (!lines->wish.path && lines->why == EPIPE) return CLOSED_PIPE;
    if (!lines->wish.path) return talk_close_output();
    if (lines->status == 0 && open_lines(lines) == 0) lines->status = output_close(&lines->out, lines->why);
    talk_will_save(NULL, NULL);
    return lines->status;
}

static int predict(struct shmtrain_store *store, const char *data, int probabilities, bool show, struct lines *lines) {
    const struct shmtrain_stream input = {
        .size = sizeof(struct shmtrain_stream), .fd = STDIN_FILENO, .name = "standard input", .pause = pass_on};
    if (show) return shmtrain_store_predict_images(store, data, show_image, lines);
    if (strcmp(data, "-") != 0) return shmtrain_store_predict(store, data, probabilities, write_line, lines);
    return shmtrain_store_predict_stream(store, &input, probabilities, write_line, lines);
}

int predict_run(struct shmtrain_store *store, const struct arguments *a) {
    struct lines lines = {
        .store = store, .wish = {"--output", a->output, "the predictions"}, .outputs = a->scores || a->probabilities};
    if (a->scores && a->probabilities) return talk_refuse("take --scores or --probabilities, not both");
    if (a->show && (a->scores || a->probabilities))
        return talk_refuse("--show has probabilities of its own: leave out --%s", a->scores ? "scores" : "probabilities");
    int status = output_check(store, &lines.wish, a->operand[0], a->operand[1]);
    talk_will_save(a->output, NULL);
    if (status == 0) status = load(store, a);
    if (status != 0) return status;
    const int rc = predict(store, a->operand[1], a->probabilities, a->show, &lines);
    if (rc == 0)
        pictures_close(lines.pictures);
    else
        pictures_discard(lines.pictures);
    if (rc >= 0) return talk_exit_status(close_lines(&lines));
    if (a->output)
        output_discard(&lines.out);
    else
        (void)fflush(stdout); /* what was predicted before a bad line is told before it */
    return talk_fail(store, rc);
}
