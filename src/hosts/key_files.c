/* Files of keys: see key_files.h. */
#include "hosts/key_files.h"

#include <shmtrain/hosts.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/show.h"
#include "carriers/zmq_library.h"

_Static_assert(SHMTRAIN_KEY_BYTES == SHMT_ZMQ_KEY, "keys of a run are those of its carrier");

#define KEY_LETTERS  (SHMT_ZMQ_KEY - 1)
#define SECRET_TITLE "# The secret key of a host of shmtrain: it stays on this host.\n"

static const char Z85[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/* ---- making ---- */

/* All of it, to the disk. */
static int write_new(const char *path, mode_t mode, const char *text, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(path, shown);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0 && errno == EEXIST) return shmt_refuse(e, "%s is there already: name another file, or remove it", shown);
    if (fd < 0) return shmt_fail_errno(e, "cannot make %s", shown);
    const size_t n = strlen(text);
    const bool written = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
    const int code = errno;
    if (close(fd) == 0 && written) return 0;
    unlink(path);
    errno = code;
    return shmt_fail_errno(e, "cannot write %s", shown);
}

static int write_pair(const char *file, const char *beside, const char *secret, const char *public, struct shmt_error *e) {
    char text[256];
    snprintf(text, sizeof text, SECRET_TITLE "%s\n", secret);
    int rc = write_new(file, S_IRUSR | S_IWUSR, text, e);
    explicit_bzero(text, sizeof text);
    if (rc < 0) return rc;
    snprintf(text, sizeof text, "%s\n", public);
    rc = write_new(beside, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, text, e);
    if (rc < 0) unlink(file);
    return rc;
}

int shmt_key_files_make(const char *file, char public_out[SHMT_ZMQ_KEY], struct shmt_error *e) {
    const struct shmt_zmq_calls *zmq = shmt_zmq_load(e);
    char secret[SHMT_ZMQ_KEY], public[SHMT_ZMQ_KEY], *beside;
    if (!zmq) return SHMTRAIN_E_SYSTEM;
    if (asprintf(&beside, "%s.pub", file) < 0) return shmt_no_memory(e, "for the name of a key");
    int rc = zmq->curve_keypair(public, secret) < 0 ? shmt_fail(e, SHMTRAIN_E_SYSTEM, "this libzmq cannot make keys") : 0;
    if (rc == 0) rc = write_pair(file, beside, secret, public, e);
    if (rc == 0) memcpy(public_out, public, sizeof public);
    explicit_bzero(secret, sizeof secret);
    free(beside);
    return rc;
}

int shmtrain_keygen(const char *file, char public_out[SHMTRAIN_KEY_BYTES], char *message, uint64_t bytes) {
    struct shmt_error e = {0};
    const int rc = file && file[0] && public_out ? shmt_key_files_make(file, public_out, &e)
                                                 : shmt_refuse(&e, "a key needs the name of a file");
    if (rc < 0 && message && bytes > 0) snprintf(message, bytes, "%s", e.text);
    return rc;
}

/* ---- reading ---- */

struct reader {
    FILE *file;
    char shown[SHMT_NAME_SHOWN];
    unsigned line;
    char *text;
    size_t room;
};

static bool is_empty(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

/* The next key: 1; 0: there is none; _DATA. */
static int next_key(struct reader *r, char out[SHMT_ZMQ_KEY], struct shmt_error *e) {
    while (getline(&r->text, &r->room, r->file) > 0) {
        r->line++;
        if (is_empty(r->text) || strncmp(r->text, "# ", 2) == 0) continue;
        const size_t n = strcspn(r->text, " \t\r\n");
        if (n != KEY_LETTERS || strspn(r->text, Z85) < n)
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s:%u:1: expected a key, which has %d letters: shmtrain keygen makes one",
                             r->shown, r->line, KEY_LETTERS);
        memcpy(out, r->text, n);
        out[n] = '\0';
        return 1;
    }
    return 0;
}

static int open_reader(struct reader *r, const char *path, struct shmt_error *e) {
    *r = (struct reader){0};
    shmt_show_name(path, r->shown);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for whoever writes into a FIFO */
    r->file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!r->file && fd >= 0) close(fd);
    return r->file ? 0 : shmt_fail_errno(e, "cannot open %s", r->shown);
}

static void close_reader(struct reader *r) {
    if (r->text) explicit_bzero(r->text, r->room);
    free(r->text);
    if (r->file) fclose(r->file);
}

/* Nobody else may read it, or the key is none. */
static int check_mode(const struct reader *r, struct shmt_error *e) {
    struct stat s;
    if (fstat(fileno(r->file), &s) < 0) return shmt_fail_errno(e, "cannot look at %s", r->shown);
    if (!S_ISREG(s.st_mode))
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s is no file with a key: shmtrain keygen makes one", r->shown);
    if (!(s.st_mode & (S_IRWXG | S_IRWXO))) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s can be read or changed by others (mode %03o): chmod 600 it, or make another key",
                     r->shown, (unsigned)s.st_mode & 0777);
}

static int read_own(const struct shmt_zmq_calls *zmq, const char *path, struct shmt_zmq_keys *out, struct shmt_error *e) {
    struct reader r;
    int rc = open_reader(&r, path, e);
    if (rc == 0) setvbuf(r.file, NULL, _IONBF, 0); /* no copy stays in a buffer */
    if (rc == 0) rc = check_mode(&r, e);
    if (rc == 0) rc = next_key(&r, out->own_secret, e);
    if (rc == 0 && !e->status) rc = shmt_fail(e, SHMTRAIN_E_DATA, "%s has no key: shmtrain keygen makes one", r.shown);
    if (rc == 1)
        rc = zmq->curve_public(out->own_public, out->own_secret) < 0
                 ? shmt_fail(e, SHMTRAIN_E_DATA, "%s:%u:1: this is no secret key", r.shown, r.line)
                 : 0;
    close_reader(&r);
    return rc;
}

static int read_peers(const char *path, uint32_t n_hosts, struct shmt_zmq_keys *out, struct shmt_error *e) {
    struct reader r;
    char more[SHMT_ZMQ_KEY];
    uint32_t n = 0;
    int rc = open_reader(&r, path, e);
    while (rc == 0 && n < n_hosts) {
        rc = next_key(&r, out->peer[n], e);
        if (rc == 0)
            rc = shmt_fail(e, SHMTRAIN_E_DATA, "%s has %u keys for %u hosts: each has a line with its public key", r.shown, n,
                           n_hosts);
        if (rc < 0) break;
        rc = 0;
        for (uint32_t other = 0; other < n && rc == 0; other++)
            if (strcmp(out->peer[other], out->peer[n]) == 0)
                rc = shmt_fail(e, SHMTRAIN_E_DATA, "%s:%u:1: two hosts have this key: make one for each", r.shown, r.line);
        n++;
    }
    if (rc == 0) rc = next_key(&r, more, e);
    if (rc == 1)
        rc = shmt_fail(e, SHMTRAIN_E_DATA, "%s:%u:1: there are more keys than hosts, which are %u", r.shown, r.line, n_hosts);
    close_reader(&r);
    return rc;
}

int shmt_key_files_read(const char *key_file, const char *peers_file, uint32_t self, uint32_t n_hosts,
                        struct shmt_zmq_keys *out, struct shmt_error *e) {
    const struct shmt_zmq_calls *zmq = shmt_zmq_load(e);
    char shown[2][SHMT_NAME_SHOWN];
    memset(out, 0, sizeof *out);
    if (!zmq) return SHMTRAIN_E_SYSTEM;
    if (zmq->has("curve") == 0)
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "this libzmq knows no keys: install Debian's, or use --insecure");
    int rc = read_own(zmq, key_file, out, e);
    if (rc == 0) rc = read_peers(peers_file, n_hosts, out, e);
    if (rc < 0 || strcmp(out->own_public, out->peer[self]) == 0) return rc;
    shmt_show_name(key_file, shown[0]);
    shmt_show_name(peers_file, shown[1]);
    return shmt_fail(e, SHMTRAIN_E_DATA, "the key in %s is not that of host %u in %s: its line is to be that of %s.pub",
                     shown[0], self, shown[1], shown[0]);
}
