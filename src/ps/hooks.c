/* The application's hooks: see hooks.h. */
#include "ps/hooks.h"

#include "ps/session.h"

/* A session call that has failed within the hook has left its sentence, which says more than ours. */
static int judge(shmtrain_session *s, const char *name, int rc) {
    if (rc == 0) return 0;
    if (rc > 0 || rc == SHMTRAIN_E_STOPPED) {
        s->hooks->ask_stop(s->hooks->stop_arg);
        return s->error.status; /* others failed while it waited: 0, if not */
    }
    shmt_fail(&s->error, rc, "the hook %s returned %s in epoch %u", name, shmtrain_status_name(rc), s->epoch + 1);
    return s->error.status;
}

int shmt_hooks_before_step(shmtrain_session *s) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    return h->before_step ? judge(s, "before_step", h->before_step(h->arg, s, &s->work)) : 0;
}

int shmt_hooks_after_step(shmtrain_session *s, const struct shmtrain_fate *fate) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    return h->after_step ? judge(s, "after_step", h->after_step(h->arg, s, &s->work, fate)) : 0;
}

int shmt_hooks_before_epoch(shmtrain_session *s) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    if (s->begun == s->epoch + 1) return 0;
    s->begun = s->epoch + 1;
    return h->before_epoch ? judge(s, "before_epoch", h->before_epoch(h->arg, s, s->epoch)) : 0;
}

int shmt_hooks_after_epoch(shmtrain_session *s) {
    const struct shmtrain_hooks *h = &s->hooks->of;
    return h->after_epoch ? judge(s, "after_epoch", h->after_epoch(h->arg, s, s->epoch)) : 0;
}
