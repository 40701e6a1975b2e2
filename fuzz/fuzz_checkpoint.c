/* keeping/checkpoint.h: checkpoints, and all that is in them; and what shmtrain inspect says of the same files.
 *
 * An input's first byte says how: as the bytes of a file (bit 0); or as a header, up to the first 0 byte, and data: the target
 * puts the header's length before it, and makes the seal right, so that what lies behind it is reached (bit 1: or not). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmtrain/shmtrain.h>

#include "fuzz.h"
#include "../tests/seal_help.h"
#include "models.h"
#include "keeping/checkpoint_priv.h"
#include "files/model_read.h"

static const char *make_file(const uint8_t *bytes, size_t n) {
    static struct fuzz_file file;
    struct fuzz_input in = {bytes, n};
    const uint8_t how = fuzz_u8(&in);
    if (how & 1) {
        fuzz_file_write(&file, in.at, in.left);
        return file.path;
    }
    const uint8_t *end = in.left > 0 ? memchr(in.at, '\0', in.left) : NULL;
    const uint64_t header = end ? (uint64_t)(end - in.at) : in.left, data = in.left - header - (end != NULL);
    uint8_t *whole = malloc(8 + header + data);
    FUZZ_CHECK(whole);
    memcpy(whole, &header, 8); /* little-endian, as the format is */
    if (header > 0) memcpy(whole + 8, in.at, header);
    if (data > 0) memcpy(whole + 8 + header, end + 1, data);
    if (!(how & 2)) make_seal(whole, 8 + header + data);
    fuzz_file_write(&file, whole, 8 + header + data);
    free(whole);
    return file.path;
}

/* ---- a checkpoint ---- */

static void check_fit(const struct shmt_checkpoint *c) {
    const struct shmt_checkpoint_fit *fit = &c->fit;
    if (!fit->is) return;
    FUZZ_CHECK(fit->live <= SHMT_LIVE_ATOMIC && fit->rows > 0 && fit->width > 0 && fit->kept.best <= fit->kept.primal);
    FUZZ_CHECK(fit->n_dual == 0 || fit->n_dual == c->spec.n_examples);
    FUZZ_CHECK(fit->n_inner == (fit->kept.interior ? c->spec.n_examples : 0));
    FUZZ_CHECK(shmt_checkpoint_are_finite(fit->point, fit->rows * fit->width) &&
               shmt_checkpoint_are_finite(fit->dual, fit->n_dual));
    FUZZ_CHECK(fit->n_inner == 0 || shmt_checkpoint_are_finite(&fit->stands[0].dual, 2 * fit->n_inner));
    struct shmt_checkpoint_fit again = {.is = false};
    char *text = shmt_checkpoint_make_fit_note(fit), *same;
    FUZZ_CHECK(text && shmt_checkpoint_take_fit_note("it", text, &again, NULL) == 0);
    same = shmt_checkpoint_make_fit_note(&again);
    FUZZ_CHECK(same && strcmp(text, same) == 0);
    free(same);
    free(text);
}

static void check_moment(const struct shmt_checkpoint *c) {
    const struct shmt_moment *at = &c->at;
    uint64_t n_done = 0;
    FUZZ_CHECK(at->epoch <= c->spec.epochs && at->step <= shmt_spec_steps(&c->spec));
    FUZZ_CHECK(at->n_pieces == 0 || (at->n_pieces == shmt_spec_pieces(&c->spec) && at->done && at->loss));
    FUZZ_CHECK(at->n_records == at->epoch && at->n_clocks <= SHMT_MAX_SEATS);
    for (uint64_t i = 0; i < at->n_pieces; i++) {
        FUZZ_CHECK(at->done[i] <= shmt_spec_largest_piece(&c->spec));
        n_done += at->done[i] > 0;
    }
    check_fit(c);
    FUZZ_CHECK(at->n_pieces > 0 || at->step == 0);
    FUZZ_CHECK(shmt_policy_is_batched(&c->spec.policy) || n_done == at->step);
    for (uint32_t i = 0; i < at->n_records; i++) FUZZ_CHECK(at->record[i].epoch == i + 1 && at->record[i].partial <= 1);
}

/* No more than the file is long. */
static void read_tables(const struct shmt_checkpoint_in *in) {
    const struct shmt_checkpoint *c = shmt_checkpoint_of(in);
    FUZZ_CHECK(c->n_tables <= SHMT_MAX_TABLES && c->n_planes <= SHMT_MAX_PLANES);
    for (uint32_t t = 0; t < c->n_tables; t++) {
        const uint64_t floats = shmt_table_floats(&c->table[t].table);
        float *out = malloc(floats > 0 ? floats * sizeof *out : 1);
        FUZZ_CHECK(out);
        for (int plane = -1; plane < (int)c->n_planes; plane++) {
            struct shmt_error e = {0};
            FUZZ_CHECK(shmt_checkpoint_read(in, t, plane, out, &e) == 0);
        }
        free(out);
    }
}

/* What the note says is written again as it was read. */
static void write_again(const struct shmt_checkpoint *c) {
    struct shmt_checkpoint *again = calloc(1, sizeof *again);
    char *text = shmt_checkpoint_make_note(c), *same;
    FUZZ_CHECK(again && text);
    FUZZ_CHECK(shmt_checkpoint_take_note("it", text, again, NULL) == 0);
    again->fit.is = c->fit.is; /* which stands elsewhere */
    same = shmt_checkpoint_make_note(again);
    FUZZ_CHECK(same && strcmp(text, same) == 0);
    free(same);
    free(text);
    free(again);
}

/* ---- what people see of it ---- */

static void inspect(const char *path) {
    static struct shmtrain_file_info info; /* large */
    struct shmtrain_store *store = NULL;
    FUZZ_CHECK(shmtrain_store_create(&store) == 0);
    if (shmtrain_store_inspect(store, path, &info) == 0) {
        char *text = shmtrain_file_info_text("it", &info), *json = shmtrain_file_info_json("it", &info);
        FUZZ_CHECK(text && json);
        for (const char *at = text; *at; at++) FUZZ_CHECK(*at == '\n' || (*at >= ' ' && *at <= '~'));
        json_t *parsed = json_loads(json, 0, NULL);
        FUZZ_CHECK(json_is_object(parsed));
        json_decref(parsed);
        free(text);
        free(json);
    } else {
        fuzz_check_sentence(shmtrain_store_message(store));
    }
    shmtrain_store_destroy(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct shmt_checkpoint_in *in = NULL;
    struct shmt_error e = {0};
    const char *path = make_file(bytes, n);
    const int status = shmt_checkpoint_open(path, &in, &e);
    if (status == 0) {
        check_moment(shmt_checkpoint_of(in));
        read_tables(in);
        write_again(shmt_checkpoint_of(in));
        shmt_checkpoint_close(in);
    } else {
        fuzz_check_error(status, &e);
    }
    inspect(path);
    return 0;
}
