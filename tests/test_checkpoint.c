/* Checkpoints as files: what is written comes back, and what is damaged, foreign or hostile is a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_files_help.h"
#include "folder_help.h"
#include "files/model_read.h"

static void assert_bad(const char *path, const char *words) {
    struct shmt_checkpoint_in *in = NULL;
    struct shmt_error e = {0};
    assert_int_equal(shmt_checkpoint_open(path, &in, &e), SHMTRAIN_E_DATA);
    assert_null(in);
    if (!strstr(e.text, words)) fail_msg("expected \"%s\" in: %s", words, e.text);
    for (const char *at = e.text; *at; at++) assert_in_range((unsigned char)*at, ' ', '~');
}

static void what_is_written_comes_back(void **state) {
    (void)state;
    const struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    float got[6];
    struct shmt_error e = {0};
    write_sample(&c, 3, path);
    assert_string_equal(path, "./checkpoint-000000000015.safetensors"); /* epochs of 6 items, and 3 */
    struct shmt_checkpoint_in *in = open_good(path);
    const struct shmt_checkpoint *b = shmt_checkpoint_of(in);
    assert_int_equal(b->at.epoch, 2);
    assert_int_equal(b->at.step, 3);
    assert_int_equal(b->at.steps_before, 7);
    assert_true(b->at.epoch_seconds == 0.125 && b->at.seconds == 2.5);
    assert_int_equal(b->at.n_pieces, N_PIECES);
    assert_memory_equal(b->at.done, DONE, sizeof DONE);
    assert_memory_equal(b->at.loss, LOSS, sizeof LOSS);
    assert_int_equal(b->at.n_clocks, 2);
    assert_memory_equal(b->at.clock, CLOCKS, sizeof CLOCKS);
    assert_int_equal(b->at.n_records, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(b->at.record[i].epoch, i + 1);
        assert_int_equal(b->at.record[i].examples, 90);
        assert_true(b->at.record[i].seconds == EPOCHS[i].seconds && b->at.record[i].train_loss == EPOCHS[i].train_loss);
    }
    assert_true(isnan(b->at.record[0].valid_loss) && b->at.record[1].valid_auc == 0.95);
    assert_int_equal(b->spec.order.seed, 9000000000000000001);
    assert_true(b->spec.order.shuffle);
    assert_true(shmt_policy_equal(&b->spec.policy, &c.spec.policy));
    assert_memory_equal(&b->spec.rule, &c.spec.rule, sizeof c.spec.rule);
    assert_true(b->spec.rate.base == 0.1f && b->spec.rate.kind == SHMT_RATE_COSINE && b->spec.rate.factor == 0.3);
    assert_int_equal(b->spec.n_examples, 90);
    assert_int_equal(b->spec.item, 16);
    assert_string_equal(b->mode, "async");
    assert_string_equal(b->model, "logistic");
    assert_int_equal(b->group, 4);
    assert_int_equal(b->ended_by, SHMT_END_STEPS);
    assert_memory_equal(&b->data, &c.data, sizeof c.data);
    assert_int_equal(b->n_ids, 4);
    assert_memory_equal(b->id, IDS, sizeof IDS);
    assert_int_equal(b->n_tables, 2);
    assert_int_equal(b->n_planes, 2);
    assert_string_equal(b->table[1].table.name, "more");
    assert_int_equal(b->table[1].table.width, 3);
    assert_int_equal(shmt_checkpoint_read(in, 0, -1, got, &e), 0);
    assert_memory_equal(got, VALUE, sizeof VALUE);
    assert_int_equal(shmt_checkpoint_read(in, 0, 1, got, &e), 0);
    assert_memory_equal(got, STATE1, sizeof STATE1);
    assert_int_equal(shmt_checkpoint_read(in, 1, -1, got, &e), 0);
    assert_memory_equal(got, WIDE, sizeof WIDE);
    assert_int_equal(shmt_checkpoint_read(in, 1, 0, got, &e), 0);
    assert_memory_equal(got, WIDE0, sizeof WIDE0);
    shmt_checkpoint_close(in);
}

static void a_checkpoint_is_a_model_too(void **state) {
    (void)state;
    const struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    struct shmt_model_in *in;
    struct shmt_error e = {0};
    uint64_t n_ids, id[4];
    uint32_t i;
    write_sample(&c, 3, path);
    assert_int_equal(shmt_model_open(path, &in, &e), 0);
    assert_int_equal(shmt_model_n_tensors(in), 2);
    assert_string_equal(shmt_model_tensor(in, 0)->name, "weight");
    assert_string_equal(shmt_model_tensor(in, 1)->name, "more");
    assert_string_equal(shmt_model_note(in, "shmtrain.model"), "logistic");
    assert_true(shmt_model_has_ids(in, &n_ids));
    assert_int_equal(shmt_model_read_ids(in, id, &e), 0);
    assert_memory_equal(id, IDS, sizeof IDS);
    assert_int_equal(shmt_model_n_all(in), 11); /* two tables, two planes of each, ids, clocks, epochs, done, loss */
    assert_true(shmt_model_find(in, "weight/state.1", &i));
    assert_int_equal(shmt_model_tensor(in, i)->rows, ROWS);
    assert_false(shmt_model_find(in, "weight/state.2", &i));
    shmt_model_close(in);
}

static void rows_may_stand_in_another_order_in_memory(void **state) {
    (void)state;
    static const uint32_t PLACE[ROWS] = {4, 2, 0, 1, 3};
    uint32_t broken[ROWS] = {0, 1, 2, 3, ROWS};
    struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    float got[ROWS];
    struct shmt_error e = {0};
    c.table[0].place = PLACE;
    write_sample(&c, 3, path);
    struct shmt_checkpoint_in *in = open_good(path);
    assert_int_equal(shmt_checkpoint_read(in, 0, -1, got, &e), 0);
    for (int i = 0; i < ROWS; i++) assert_true(got[i] == VALUE[PLACE[i]]);
    assert_int_equal(shmt_checkpoint_read(in, 0, 0, got, &e), 0);
    for (int i = 0; i < ROWS; i++) assert_true(got[i] == STATE0[PLACE[i]]);
    shmt_checkpoint_close(in);
    c.table[0].place = broken; /* of a store that somebody has damaged: nothing beyond the table is read */
    assert_int_equal(shmt_checkpoint_write(".", &c, 3, path, &e), SHMTRAIN_E_SYSTEM);
    shmt_checkpoint_close(open_good(path)); /* the one before */
}

static void the_beginning_of_an_epoch_has_no_ledger(void **state) {
    (void)state;
    struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    uint32_t i;
    c.at.step = 0;
    c.at.n_pieces = 0;
    write_sample(&c, 3, path);
    struct shmt_checkpoint_in *in = open_good(path);
    assert_int_equal(shmt_checkpoint_of(in)->at.n_pieces, 0);
    assert_null(shmt_checkpoint_of(in)->at.done);
    shmt_checkpoint_close(in);
    struct shmt_model_in *file;
    assert_int_equal(shmt_model_open(path, &file, NULL), 0);
    assert_false(shmt_model_find(file, "ledger/done", &i));
    shmt_model_close(file);
}

/* ---- damage ---- */

static void any_bit_that_turns_is_seen(void **state) {
    (void)state;
    const struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    size_t n;
    struct shmt_checkpoint_in *in;
    write_sample(&c, 3, path);
    unsigned char *bytes = read_file(path, &n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= (unsigned char)(1 << i % 8);
        write_bytes("turned", bytes, n);
        struct shmt_error e = {0};
        in = NULL;
        if (shmt_checkpoint_open("turned", &in, &e) != SHMTRAIN_E_DATA) fail_msg("bit %zu of byte %zu", i % 8, i);
        assert_non_null(strstr(e.text, "turned"));
        bytes[i] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t i = 0; i < n; i += 37) {
        write_bytes("short", bytes, i);
        assert_bad("short", "short");
    }
    free(bytes);
}

static void models_and_other_files_are_told(void **state) {
    (void)state;
    static const float W[2] = {1, 2};
    static const char BARE[] = "\x2d\0\0\0\0\0\0\0{\"__metadata__\":{\"shmtrain.checkpoint\":\"{}\"}}";
    const struct shmt_tensor tensor = {.name = "weight", .rows = 2, .width = 1, .data = W};
    struct shmt_error e = {0};
    assert_int_equal(shmt_model_file_write("model", &tensor, 1, NOTES, 2, &e), 0);
    assert_bad("model", "model is a model, not a checkpoint of a run");
    write_text("text", "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n0.5\n");
    assert_bad("text", "text is a model, not a checkpoint of a run");
    write_text("text", "hello\n");
    assert_bad("text", "text has 6 bytes: not a model file");
    const struct shmt_note bare = {SHMT_MODEL_CHECKPOINT, "{}"};
    write_bytes("bare", BARE, sizeof BARE - 1);
    assert_bad("bare", "key \"shmtrain.xxh64\": is missing");
    assert_int_equal(shmt_model_file_write_own("bare", "the model", &tensor, 1, &bare, 1, &e), 0);
    assert_bad("bare", "\"format\": expected a number");
}

/* ---- files whose seal is right ---- */

/* The sample with the note's `key` set to `value` (JSON; NULL: taken away). */
static void write_with(const char *key, const char *value) {
    const struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    struct shmt_model_in *in;
    struct shmt_error e = {0};
    write_sample(&c, 3, path);
    assert_int_equal(shmt_model_open(path, &in, &e), 0);
    json_t *note = json_loads(shmt_model_note(in, SHMT_MODEL_CHECKPOINT), 0, NULL);
    assert_non_null(note);
    if (value)
        assert_int_equal(json_object_set_new(note, key, json_loads(value, JSON_DECODE_ANY, NULL)), 0);
    else
        assert_int_equal(json_object_del(note, key), 0);
    char *text = json_dumps(note, 0);
    json_decref(note);
    struct shmt_tensor tensor[16];
    void *data[16];
    const uint32_t n = shmt_model_n_all(in);
    for (uint32_t i = 0; i < n; i++) {
        tensor[i] = *shmt_model_tensor(in, i);
        tensor[i].data = data[i] = calloc(tensor[i].rows * tensor[i].width + 1, 8);
        assert_int_equal(shmt_model_read_tensor(in, i, data[i], &e), 0);
    }
    assert_int_equal(
        shmt_model_file_write_own("made", "it", tensor, n, &(struct shmt_note){SHMT_MODEL_CHECKPOINT, text}, 1, &e), 0);
    for (uint32_t i = 0; i < n; i++) free(data[i]);
    free(text);
    shmt_model_close(in);
}

static void each_number_of_the_note_is_checked(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *words;
    } CASES[] = {
        {"format", "3", "\"format\": a later version of shmtrain wrote it"},
        {"format", "2", "key \"shmtrain.fit\": is missing"},
        {"format", "0", "\"format\": expected a number of at least 1"},
        {"seed", NULL, "\"seed\": is missing"},
        {"seed", "-1", "\"seed\": this value is not possible"},
        {"seed", "\"1\"", "\"seed\": this value is not possible"},
        {"seed", "1.5", "\"seed\": this value is not possible"},
        {"epochs", "0", "\"epochs\""},
        {"examples", "0", "\"examples\""},
        {"examples", "4294967296", "\"examples\""},
        {"batch", "0", "\"batch\""},
        {"chunks", "1025", "\"chunks\""},
        {"item", "0", "\"item\""},
        {"item", "9223372036854775807", "\"item\""},
        {"write", "\"never\"", "\"write\""},
        {"optimizer", "7", "\"optimizer\""},
        {"schedule", "\"\"", "\"schedule\""},
        {"shuffle", "1", "\"shuffle\""},
        {"rate", "1e200", "\"rate\""},
        {"l2", "-1", "\"l2\""},
        {"data_xxh64", "\"123\"", "\"data_xxh64\""},
        {"data_xxh64", "\"000000000000000g\"", "\"data_xxh64\""},
        {"mode", "\"0123456789012345678901234567890123456789012345678901234567890123\"", "\"mode\""},
        {"mode", "null", "\"mode\""},
        {"epoch", "5", "it does not have a row for each finished epoch"},
        {"epoch", "1", "key \"run/epochs\": its number of rows"},
        {"step", "4", "key \"ledger/done\": it does not match the step"},
        {"step", "7", "its epoch and step are beyond the end of its run"},
        {"item", "10", "it does not have a number for each piece of an epoch"},
        {"item", "1000", "key \"ledger/done\": its number of rows"},
        {"optimizer", "\"adam\"", "key \"weight/state.2\": this tensor is missing"},
        {"seats", "0", "\"seats\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        write_with(CASES[i].key, CASES[i].value);
        assert_bad("made", CASES[i].words);
    }
    write_with("unknown", "[1]"); /* of a later version that says more: no harm */
    shmt_checkpoint_close(open_good("made"));
    write_with("optimizer", "\"momentum\""); /* a plane more than it has */
    shmt_checkpoint_close(open_good("made"));
}

static void a_ledger_of_batches_is_done_from_its_beginning(void **state) {
    (void)state;
    struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    uint32_t done[8] = {16, 16, 16, 16};
    static const double NO_LOSS[8] = {0};
    c.spec.policy = (struct shmt_policy){.write = SHMT_WRITE_AGGREGATE};
    c.at.step = 1;
    c.at.n_pieces = 8; /* two batches of four chunks */
    c.at.done = done;
    c.at.loss = NO_LOSS;
    write_sample(&c, 3, path);
    shmt_checkpoint_close(open_good(path));
    done[1] = 0; /* a chunk of a short batch */
    write_sample(&c, 3, path);
    shmt_checkpoint_close(open_good(path));
    done[4] = 16;
    write_sample(&c, 3, path);
    assert_bad(path, "it does not match the step");
    done[1] = 17; /* more than a chunk has */
    done[4] = 0;
    write_sample(&c, 3, path);
    assert_bad(path, "it does not match the step");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_comes_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_checkpoint_is_a_model_too, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(rows_may_stand_in_another_order_in_memory, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_beginning_of_an_epoch_has_no_ledger, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(any_bit_that_turns_is_seen, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(models_and_other_files_are_told, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(each_number_of_the_note_is_checked, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_ledger_of_batches_is_done_from_its_beginning, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
