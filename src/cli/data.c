/* shmtrain data: what data is like, and keeping it as a cache. */
#include <string.h>

#include "cli/arguments.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/talk.h"

static int convert(struct shmtrain_store *store, const struct arguments *a, const char *data) {
    if (!a->output) return talk_refuse("data convert: name the file to write, as in -o data.shmcache");
    if (a->json) return talk_refuse("data convert has no --json; use shmtrain data info");
    (void)shmtrain_store_set(store, "cache", "0"); /* of the environment: what --cache would keep may be written here */
    const struct output_wish wish = {"--output", a->output, "the cache"};
    const int status = output_check(store, &wish, NULL, data);
    if (status != 0) return status;
    talk_listen(store);
    talk_catch_signals(store);
    talk_will_save(a->output, NULL);
    const int rc = shmtrain_store_convert(store, data, a->output);
    talk_will_save(NULL, NULL);
    return rc < 0 ? talk_fail(store, rc) : talk_exit_status(0);
}

static int info(struct shmtrain_store *store, const struct arguments *a, const char *data) {
    struct shmtrain_data_info found;
    char title[8192];
    if (a->output) return talk_refuse("data info writes no file: remove --output");
    talk_listen(store);
    talk_catch_signals(store);
    const int rc = shmtrain_store_data_info(store, data, &found);
    if (rc < 0) return talk_fail(store, rc);
    files_title(a, 1, NULL, title, sizeof title);
    return talk_print(a->json ? shmtrain_data_info_json(title, &found) : shmtrain_data_info_text(title, &found));
}

int data_run(struct shmtrain_store *store, const struct arguments *a) {
    const char *data = files_named(a, 1, NULL);
    if (!data) return 2;
    if (strcmp(a->operand[0], "convert") == 0) return convert(store, a, data);
    if (strcmp(a->operand[0], "info") == 0) return info(store, a, data);
    return talk_refuse("data %s: expected data info DATA, or data convert DATA -o FILE", a->operand[0]);
}
