/* shmtrain train: trains a model, shows how it goes, saves it, and says what came out. */
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/show.h"
#include "cli/talk.h"

#define DEFAULT_DATA "builtin:sparse"

int train_run(struct shmtrain_store *store, const struct arguments *a) {
    const char *data = a->n_operands > 0 ? a->operand[0] : DEFAULT_DATA;
    struct show show;
    int status = output_check(store, "--output", a->output, NULL, data);
    if (status == 0) status = show_open(&show, store, a);
    if (status != 0) return status;
    show_listen(&show);
    talk_will_save(a->output, arguments_value(a, "trace"));
    talk_catch_signals(store);
    int rc = shmtrain_store_train(store, data);
    talk_will_save(rc == 0 ? a->output : NULL, NULL); /* a trace has been written by then */
    show_close(&show);
    if (rc == 0 && a->output) rc = shmtrain_store_save(store, a->output);
    talk_will_save(NULL, NULL);
    if (rc < 0) return talk_fail(store, rc);
    return talk_exit_status(show_result(&show, shmtrain_store_report(store), a->output));
}
