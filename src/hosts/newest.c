/* The newest checkpoint of all hosts: see newest.h. Each host says what it has; then the first of those that have the newest one sends
 * it, a piece in each round of the agreement. Each host writes checkpoints when they are due there, and behind an epoch all hosts have
 * the same parameters: so any host's file is as good as another's, and a host that has lost its own needs none. */
#include "hosts/newest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/show.h"
#include "hosts/hosts_priv.h"
#include "keeping/checkpoint_copy.h"
#include "workers/run.h"

#define NOBODY UINT32_MAX

/* What a host has. */
struct newest {
    bool is;
    unsigned long long step, bytes; /* of its run; of the file */
};

/* What all have. */
struct offers {
    uint32_t source;    /* the first host that has the newest one; NOBODY has any */
    struct newest best; /* that one */
    uint32_t n_have;    /* hosts that have it */
    char text[80];      /* one that is read */
};

/* A file on its way. */
struct transfer {
    uint32_t source;
    int fd; /* of the source's file; -1: this host is none */
    uint64_t at, bytes;
    struct shmt_checkpoint_copy *copy; /* NULL: this host needs none */
    unsigned char piece[SHMT_MOST_AGREED];
};

static void name_host(const struct shmt_run *run, uint32_t rank, char out[SHMT_MOST_HOST_TEXT]) {
    shmt_cluster_name(&run->config->parsed.hosts, run->config->hosts, rank, "", out);
}

/* ---- who has what ---- */

static uint64_t step_of(const struct shmt_checkpoint *c) { return c->at.epoch * shmt_spec_steps(&c->spec) + c->at.step; }

static int look(struct shmt_run *run, const char *path, struct newest *out) {
    struct stat st;
    *out = (struct newest){.is = run->from != NULL};
    if (!run->from) return 0;
    if (stat(path, &st) < 0) return shmt_fail_errno(&run->call->error, "cannot read %.200s", path);
    out->step = step_of(shmt_checkpoint_of(run->from));
    out->bytes = (unsigned long long)st.st_size;
    return 0;
}

/* Also the first fact of who does not resume (agreement.c): so both sides find it. */
static void state(const struct newest *have, struct shmt_facts *out) {
    out->n = 0;
    out->full = false;
    shmt_facts_add(out, "resume", "yes");
    if (have->is)
        shmt_facts_add(out, "newest checkpoint", "step %llu, %llu bytes", have->step, have->bytes);
    else
        shmt_facts_add(out, "newest checkpoint", "none");
}

static bool parse(const char *text, struct newest *out) {
    int n = 0;
    *out = (struct newest){0};
    if (strcmp(text, "resume=yes\nnewest checkpoint=none\n") == 0) return true;
    const int got = sscanf(text, "resume=yes\nnewest checkpoint=step %llu, %llu bytes%n", &out->step, &out->bytes, &n);
    out->is = true;
    return got == 2 && n > 0 && strcmp(text + n, "\n") == 0 && out->bytes > 0 && out->bytes <= INT64_MAX;
}

static int take_offer(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg) {
    struct offers *o = arg;
    struct newest theirs;
    char name[SHMT_MOST_HOST_TEXT];
    const uint64_t n = shmt_min_u64(said->n, sizeof o->text - 1);
    memcpy(o->text, said->bytes, n);
    o->text[n] = '\0';
    if (!parse(o->text, &theirs)) {
        name_host(run, said->rank, name);
        return shmt_refuse(&run->call->error,
                           "host %u (%.80s) does not resume, and this one, %llu, does: give all hosts the same options",
                           said->rank, name, (unsigned long long)run->config->rank);
    }
    if (!theirs.is || (o->source != NOBODY && theirs.step < o->best.step)) return 0;
    if (o->source == NOBODY || theirs.step > o->best.step) {
        o->source = said->rank;
        o->best = theirs;
        o->n_have = 0;
    }
    o->n_have++;
    return 0;
}

/* ---- the file ---- */

static int open_source(struct shmt_run *run, const char *path, struct transfer *t) {
    t->fd = open(path, O_RDONLY | O_CLOEXEC);
    return t->fd < 0 ? shmt_fail_errno(&run->call->error, "cannot read %.200s", path) : 0;
}

/* What the source says in a round; the others say nothing. */
static int read_piece(struct shmt_run *run, struct transfer *t, uint32_t *n_out) {
    *n_out = 0;
    if (t->fd < 0) return 0;
    const uint64_t n = shmt_min_u64(sizeof t->piece, t->bytes - t->at);
    const int64_t got = shmt_io_read(t->fd, t->piece, n, t->at);
    if (got < 0) return shmt_fail_errno(&run->call->error, "cannot read a checkpoint for other hosts");
    if ((uint64_t)got != n)
        return shmt_fail(&run->call->error, SHMTRAIN_E_DATA,
                         "a checkpoint has become shorter while it was sent to other hosts");
    *n_out = (uint32_t)n;
    return 0;
}

static int take_piece(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg) {
    struct transfer *t = arg;
    char name[SHMT_MOST_HOST_TEXT];
    const uint64_t n = said->rank == t->source ? shmt_min_u64(sizeof t->piece, t->bytes - t->at) : 0;
    if (said->n != n) {
        name_host(run, said->rank, name);
        return shmt_fail(&run->call->error, SHMTRAIN_E_DATA,
                         "host %u (%.80s) has sent another piece of a checkpoint than it was to", said->rank, name);
    }
    return n > 0 && t->copy ? shmt_checkpoint_copy_add(t->copy, said->bytes, n, &run->call->error) : 0;
}

static int pass_on(struct shmt_run *run, struct transfer *t) {
    int rc = 0;
    while (rc == 0 && t->at < t->bytes) {
        uint32_t n;
        rc = read_piece(run, t, &n);
        if (rc == 0) rc = shmt_hosts_gather(run, t->piece, n, take_piece, t);
        t->at += sizeof t->piece;
    }
    return rc;
}

/* ---- all of it ---- */

static int receive(struct shmt_run *run, const struct offers *o, struct transfer *t, char *path) {
    struct shmt_checkpoint_in *in = NULL;
    char name[SHMT_MOST_HOST_TEXT], shown[SHMT_NAME_SHOWN];
    name_host(run, o->source, name);
    shmt_show_name(run->config->checkpoint, shown);
    shmt_log(&run->call->log, "host %u (%s) has a newer checkpoint: copying its %.1f MB to %s", o->source, name,
             (double)o->best.bytes * 1e-6, shown);
    int rc = shmt_checkpoint_copy_open(run->config->checkpoint, o->best.step, t->copy, &run->call->error);
    if (rc < 0) return rc;
    rc = pass_on(run, t);
    if (rc < 0) {
        shmt_checkpoint_copy_discard(t->copy);
        return rc;
    }
    rc = shmt_checkpoint_copy_end(t->copy, o->best.step, &in, &run->call->error);
    if (rc < 0) return rc;
    shmt_checkpoint_close(run->from);
    run->from = in;
    snprintf(path, PATH_MAX, "%s", t->copy->path);
    return 0;
}

static int spread(struct shmt_run *run, const struct offers *o, bool has_it, char *path) {
    struct transfer *t = calloc(1, sizeof *t);
    struct shmt_checkpoint_copy *copy = calloc(1, sizeof *copy);
    int rc = t && copy ? 0 : shmt_no_memory(&run->call->error, "for a checkpoint of another host");
    if (rc == 0) {
        *t = (struct transfer){.source = o->source, .fd = -1, .bytes = o->best.bytes, .copy = has_it ? NULL : copy};
        if (o->source == run->config->rank) rc = open_source(run, path, t);
    }
    if (rc == 0) rc = has_it ? pass_on(run, t) : receive(run, o, t, path);
    if (t && t->fd >= 0) close(t->fd);
    free(copy);
    free(t);
    return rc;
}

int shmt_hosts_settle_newest(struct shmt_run *run, char *path) {
    struct shmt_facts *facts;
    struct offers offers = {.source = NOBODY};
    struct newest mine;
    char shown[SHMT_NAME_SHOWN];
    if (run->config->parsed.hosts.n <= 1 || !run->config->resume) return 0;
    int rc = look(run, path, &mine);
    if (rc < 0) return rc;
    facts = malloc(sizeof *facts);
    if (!facts) return shmt_no_memory(&run->call->error, "to agree with other hosts");
    state(&mine, facts);
    rc = shmt_hosts_gather(run, facts->text, facts->n, take_offer, &offers);
    free(facts);
    if (rc < 0 || offers.n_have == run->config->parsed.hosts.n) return rc;
    if (offers.source != NOBODY) return spread(run, &offers, mine.is && mine.step == offers.best.step, path);
    shmt_show_name(run->config->checkpoint, shown);
    shmt_log(&run->call->log, "there is no checkpoint in %s yet, nor on other hosts: the run starts from the beginning", shown);
    return 0;
}
