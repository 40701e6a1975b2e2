/* The newest checkpoint of all hosts: see newest.h. Each host says what it has; then the first of those that have the newest one sends
 * it, a piece in each round of the agreement. Each host writes checkpoints when they are due there, and behind an epoch all hosts have
 * the same parameters: so any host's file will do, and a host that has lost its own needs none. (In the live modes a rule's state is each
 * host's own; who gets a copy has that of the sender.) Files of one step may yet be of two histories, as when a host was left out for some
 * time: then the first host's is taken. */
#include "hosts/newest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/show.h"
#include "hosts/hosts_priv.h"
#include "keeping/checkpoint_copy.h"
#include "segment/budget.h"
#include "workers/run.h"

#define NOBODY UINT32_MAX

/* What a host has. */
struct newest {
    bool is, damaged;                     /* damaged: there is none that is good, but some that are not */
    unsigned long long step, bytes, hash; /* of its run; of the file; of its parameters */
};

/* What all have. */
struct offers {
    uint32_t source;          /* the first host that has the newest one; NOBODY has any */
    struct newest best;       /* that one */
    uint32_t n_have;          /* hosts that have it */
    uint32_t damaged;         /* a host whose own are all damaged; NOBODY */
    struct shmt_facts *again; /* room to say again what one has said */
};

/* A file on its way. */
struct transfer {
    uint32_t source;
    int fd; /* of the source's file; -1: this host is none */
    uint64_t at, bytes;
    struct shmt_checkpoint_copy *copy; /* NULL: this host needs none */
    unsigned char piece[SHMT_MOST_AGREED];
};

/* ---- who has what ---- */

static int hash_parameters(struct shmt_run *run, unsigned long long *out) {
    const struct shmt_checkpoint *c = shmt_checkpoint_of(run->from);
    int rc = 0;
    *out = 0;
    for (uint32_t t = 0; t < c->n_tables && rc == 0; t++) {
        const uint64_t floats = shmt_table_floats(&c->table[t].table);
        float *value = malloc(floats * sizeof *value); /* no more than the file has */
        rc = value ? shmt_checkpoint_read(run->from, t, -1, value, &run->call->error)
                   : shmt_no_memory(&run->call->error, "to look at a checkpoint");
        if (rc == 0) *out = XXH3_64bits_withSeed(value, floats * sizeof *value, *out);
        free(value);
    }
    return rc;
}

static int look(struct shmt_run *run, const char *path, struct newest *out) {
    char other[PATH_MAX];
    struct stat st;
    *out = (struct newest){.is = run->from != NULL};
    if (!run->from) {
        const int rc = shmt_checkpoint_last(run->config->checkpoint, other, &run->call->error);
        out->damaged = rc == 1;
        return rc < 0 ? rc : 0;
    }
    if (stat(path, &st) < 0) return shmt_fail_errno(&run->call->error, "cannot read %.200s", path);
    out->step = shmt_checkpoint_step(shmt_checkpoint_of(run->from));
    out->bytes = (unsigned long long)st.st_size;
    return hash_parameters(run, &out->hash);
}

/* Begins with the first fact of who does not resume (agreement.c): so both sides find it. */
static void state(const struct newest *have, struct shmt_facts *out) {
    out->n = 0;
    out->full = false;
    shmt_facts_add(out, "resume", "yes");
    if (have->is)
        shmt_facts_add(out, "newest checkpoint", "step %llu, %llu bytes, parameters %016llx", have->step, have->bytes,
                       have->hash);
    else
        shmt_facts_add(out, "newest checkpoint", have->damaged ? "damaged" : "none");
}

/* What a host has, as it would be said: there is one way to say it. */
static bool parse(const struct shmt_desk_packet *said, struct shmt_facts *again, struct newest *out) {
    static const char FORMAT[] = "resume=yes\nnewest checkpoint=step %20llu, %20llu bytes, parameters %16llx";
    char text[160];
    const uint64_t n = shmt_min_u64(said->n, sizeof text - 1);
    memcpy(text, said->bytes, n);
    text[n] = '\0';
    *out = (struct newest){0};
    out->is = sscanf(text, FORMAT, &out->step, &out->bytes, &out->hash) == 3;
    out->damaged = !out->is && strstr(text, "=damaged") != NULL;
    if (out->is && (out->bytes == 0 || out->bytes > INT64_MAX || out->step > INT64_MAX)) return false;
    state(out, again);
    return again->n == said->n && memcmp(again->text, said->bytes, again->n) == 0;
}

static bool is_same(const struct newest *a, const struct newest *b) {
    return a->is && b->is && a->step == b->step && a->hash == b->hash;
}

static int take_offer(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg) {
    struct offers *o = arg;
    struct newest theirs;
    char name[SHMT_MOST_HOST_TEXT];
    if (!parse(said, o->again, &theirs)) {
        shmt_hosts_name(run, said->rank, name);
        return shmt_refuse(&run->call->error,
                           "host %u (%.80s) does not resume, and this one, %llu, does: give all hosts the same options",
                           said->rank, name, (unsigned long long)shmt_config_host(run->config));
    }
    if (theirs.damaged && o->damaged == NOBODY) o->damaged = said->rank;
    if (theirs.is && (o->source == NOBODY || theirs.step > o->best.step)) {
        o->source = said->rank;
        o->best = theirs;
        o->n_have = 0;
    }
    o->n_have += is_same(&theirs, &o->best);
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
        shmt_hosts_name(run, said->rank, name);
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
    char name[SHMT_MOST_HOST_TEXT], shown[SHMT_NAME_SHOWN], size[32];
    shmt_hosts_name(run, o->source, name);
    shmt_show_name(run->config->checkpoint, shown);
    shmt_bytes_text(o->best.bytes, size, sizeof size);
    shmt_log(&run->call->log, "host %u (%s) has %s checkpoint: copying it (%s) to %s", o->source, name,
             run->from && shmt_checkpoint_step(shmt_checkpoint_of(run->from)) == o->best.step ? "another" : "the newest", size,
             shown);
    int rc = shmt_checkpoint_copy_open(run->config->checkpoint, o->best.step, o->best.bytes, t->copy, &run->call->error);
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
        if (o->source == shmt_config_host(run->config)) rc = open_source(run, path, t);
    }
    if (rc == 0) rc = has_it ? pass_on(run, t) : receive(run, o, t, path);
    if (t && t->fd >= 0) close(t->fd);
    free(copy);
    free(t);
    return rc;
}

/* All hear the same. */
static int begin_anew(struct shmt_run *run, const struct offers *o) {
    char name[SHMT_MOST_HOST_TEXT], shown[SHMT_NAME_SHOWN];
    if (o->damaged != NOBODY) {
        shmt_hosts_name(run, o->damaged, name);
        return shmt_fail(
            &run->call->error, SHMTRAIN_E_DATA,
            "no host has a valid checkpoint, and host %u (%.80s) has some that are damaged: remove them to start a new run, "
            "or name another folder",
            o->damaged, name);
    }
    shmt_show_name(run->config->checkpoint, shown);
    shmt_log(&run->call->log, "there is no checkpoint in %s yet, nor on other hosts: the run starts from the beginning", shown);
    return 0;
}

int shmt_hosts_settle_newest(struct shmt_run *run, char *path) {
    struct shmt_facts *facts;
    struct offers offers = {.source = NOBODY, .damaged = NOBODY};
    struct newest mine;
    if (run->config->parsed.hosts.n <= 1 || !run->config->resume) return 0;
    int rc = look(run, path, &mine);
    if (rc < 0) return rc;
    facts = malloc(2 * sizeof *facts);
    if (!facts) return shmt_no_memory(&run->call->error, "to agree with other hosts");
    offers.again = &facts[1];
    state(&mine, facts);
    rc = shmt_hosts_gather(run, facts->text, facts->n, take_offer, &offers);
    free(facts);
    if (rc < 0 || offers.n_have == run->config->parsed.hosts.n) return rc;
    return offers.source == NOBODY ? begin_anew(run, &offers) : spread(run, &offers, is_same(&mine, &offers.best), path);
}
