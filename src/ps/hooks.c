/* The application's hooks: see hooks.h. */
#include "ps/hooks.h"

#include "ps/session.h"

/* A session call that has failed within the hook has left its sentence, which says more than ours. */
static int judge(shmtrain_session *s, const char *name, int rc) {
    s->inside = NULL;
    if (rc == 0) return s->error.status; /* of a call whose failure it has not passed on, or of shmtrain_fail */
    if (rc > 0 || rc == SHMTRAIN_E_STOPPED) {
        s->hooks->ask_stop(s->hooks->stop_arg);
        return s->error.status; /* others failed while it waited: 0, if not */
    }
    if (shmt_session_judge(s, "a hook", rc) != rc) return s->error.status; /* _AGAIN */
    shmt_fail(&s->error, rc, "the hook %s returned %s in epoch %u", name, shmtrain_status_name(rc), s->epoch + 1);
    return s->error.status;
}

int shmt_hooks_before_step(shmtrain_session *s) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    if (!h->before_step) return 0;
    s->inside = "the hook before_step";
    const int rc = judge(s, "before_step", h->before_step(h->arg, s, &s->work));
    for (uint32_t t = 0; t < s->spec->n_tables; t++) s->table[t].hooked = s->table[t].pushed;
    return rc;
}

int shmt_hooks_after_step(shmtrain_session *s, const struct shmtrain_fate *fate) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    if (!h->after_step) return 0;
    s->inside = "the hook after_step";
    return judge(s, "after_step", h->after_step(h->arg, s, &s->work, fate));
}

int shmt_hooks_before_epoch(shmtrain_session *s) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    if (s->begun == s->epoch + 1) return 0;
    s->begun = s->epoch + 1;
    if (!h->before_epoch) return 0;
    s->inside = "the hook before_epoch";
    return judge(s, "before_epoch", h->before_epoch(h->arg, s, s->epoch));
}

int shmt_hooks_after_epoch(shmtrain_session *s) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    if (!h->after_epoch) return 0;
    s->inside = "the hook after_epoch";
    return judge(s, "after_epoch", h->after_epoch(h->arg, s, s->epoch));
}
