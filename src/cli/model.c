/* shmtrain model: a saved model in another format. */
#include <string.h>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/talk.h"

int model_run(struct shmtrain_store *store, const struct arguments *a) {
    const char *model = a->operand[1];
    if (strcmp(a->operand[0], "convert") != 0)
        return talk_refuse("model %s: expected model convert MODEL -o FILE --format NAME", a->operand[0]);
    if (!a->output) return talk_refuse("model convert: name the file to write, as in -o FILE");
    const struct output_wish wish = {"--output", a->output, "the model"};
    const int status = output_check(store, &wish, model, NULL);
    if (status != 0) return status;
    talk_listen(store);
    talk_catch_signals(store);
    talk_will_save(a->output, NULL);
    int rc = shmtrain_store_load(store, model);
    if (rc == 0 && !talk_caught()) rc = shmtrain_store_save_as(store, a->output, a->format ? a->format : "safetensors");
    talk_will_save(NULL, NULL);
    return rc < 0 ? talk_fail(store, rc) : talk_exit_status(0);
}
