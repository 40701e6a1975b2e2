/* What a remote shell is told: see launch.h. Its script gets the host's keys by its standard input, because command lines can be seen by
 * others; and stops the run when that is closed, because a remote shell that is ended does not end what it has started. */
#include <errno.h>
#include <fcntl.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch/launch.h"
#include "cli/talk.h"

#define MOST_FILE 16384 /* bytes of a file of keys */

/* ---- keys ---- */

static void name_file(const struct launch *l, const char *file, char out[128]) { snprintf(out, 128, "%s/%s", l->keys, file); }

static void name_key(const struct launch *l, uint32_t rank, const char *end, char out[128]) {
    char file[32];
    snprintf(file, sizeof file, "%u%s", rank, end);
    name_file(l, file, out);
}

static int cannot(const char *what) { return talk_refuse("cannot %s: %s", what, strerror(errno)) - 1; }

int remote_make_keys(struct launch *l) {
    char path[128], public[SHMTRAIN_KEY_BYTES], message[512];
    snprintf(l->keys, sizeof l->keys, "/tmp/shmtrain-launch.XXXXXX");
    if (!mkdtemp(l->keys)) {
        l->keys[0] = '\0';
        return cannot("make a folder for keys in /tmp");
    }
    name_file(l, "peers", path);
    FILE *peers = fopen(path, "w");
    if (!peers) return cannot("make a file for keys");
    for (uint32_t rank = 0; rank < l->n; rank++) {
        name_key(l, rank, "", path);
        if (shmtrain_keygen(path, public, message, sizeof message) < 0) {
            fclose(peers);
            return talk_refuse("%s", message) - 1;
        }
        fprintf(peers, "%s\n", public);
    }
    return fclose(peers) == 0 ? 0 : cannot("write a file of keys");
}

void remote_remove_keys(struct launch *l) {
    char path[128];
    if (l->keys[0] == '\0') return;
    for (uint32_t rank = 0; rank < l->n; rank++) {
        name_key(l, rank, "", path);
        unlink(path);
        name_key(l, rank, ".pub", path);
        unlink(path);
    }
    name_file(l, "peers", path);
    unlink(path);
    rmdir(l->keys);
    l->keys[0] = '\0';
}

static size_t read_file(const char *path, char out[MOST_FILE]) {
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(out, 1, MOST_FILE, f) : 0;
    if (f) fclose(f);
    return n;
}

/* ---- the script ---- */

/* As a word of a shell: in single quotes. */
static void put_word(FILE *f, const char *word) {
    fputs(" '", f);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", f);
        else
            fputc(*word, f);
    }
    fputc('\'', f);
}

static void put_program(FILE *f, const struct launch *l, uint32_t rank) {
    char number[16];
    snprintf(number, sizeof number, "%u", rank);
    put_word(f, l->program);
    fputs(" --hosts", f);
    put_word(f, l->list);
    fputs(" --rank", f);
    put_word(f, number);
    fputs(" --key \"$d/key\" --peers \"$d/peers\"", f);
    for (int i = 0; i < l->n_words; i++) put_word(f, l->word[i]);
}

/* The first line that comes is the secret key, then come those of the peers. */
static void put_script(FILE *f, const struct launch *l, uint32_t rank) {
    fprintf(f,
            "u=$(umask); umask 077; d=$(mktemp -d) || exit 1; trap 'rm -rf \"$d\"' EXIT; exec 3<&0; "
            "read -r k <&3; printf '%%s\\n' \"$k\" > \"$d/key\"; i=0; "
            "while [ $i -lt %u ]; do read -r k <&3; printf '%%s\\n' \"$k\"; i=$((i+1)); done > \"$d/peers\"; umask \"$u\"; cd",
            l->n);
    put_word(f, l->folder);
    fputs(" || exit 1;", f);
    put_program(f, l, rank);
    fputs(
        " < /dev/null 3<&- & p=$!; { cat > /dev/null; kill -TERM $p; } <&3 > /dev/null 2>&1 & w=$!; exec 3<&-; "
        "wait $p; s=$?; kill $w 2> /dev/null; exit $s",
        f);
}

/* For sh, whatever shell the user has there. */
static int make_script(const struct launch *l, uint32_t rank, char **out) {
    size_t n;
    char *script = NULL;
    FILE *f = open_memstream(&script, &n);
    if (!f) return cannot("make a script");
    put_script(f, l, rank);
    if (fclose(f) != 0) return cannot("make a script");
    f = open_memstream(out, &n);
    if (f) fputs("exec sh -c", f);
    if (f) put_word(f, script);
    free(script);
    return f && fclose(f) == 0 ? 0 : cannot("make a script");
}

/* The last line of a host's own file is its key; those before are for people. */
static size_t read_keys(const struct launch *l, uint32_t rank, char out[2 * MOST_FILE]) {
    char path[128], text[MOST_FILE];
    name_key(l, rank, "", path);
    const size_t n = read_file(path, text);
    size_t from = n > 0 ? n - 1 : 0;
    while (from > 0 && text[from - 1] != '\n') from--;
    memcpy(out, text + from, n - from);
    explicit_bzero(text, sizeof text);
    name_file(l, "peers", path);
    const size_t peers = read_file(path, text);
    memcpy(out + (n - from), text, peers);
    return n - from + peers;
}

int remote_words(const struct launch *l, uint32_t rank, struct remote *out) {
    char *rest = NULL;
    int n = 0;
    *out = (struct remote){.words = strdup(l->remote_shell), .input = malloc(2 * MOST_FILE)};
    if (!out->words || !out->input) return talk_refuse("not enough memory") - 1;
    out->n = read_keys(l, rank, out->input);
    if (make_script(l, rank, &out->script) != 0) return 1;
    for (char *word = strtok_r(out->words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (n == REMOTE_MOST_WORDS) return talk_refuse("--remote-shell: more than %d words", REMOTE_MOST_WORDS);
        out->word[n++] = word;
    }
    if (n == 0) return talk_refuse("--remote-shell: expected a command, as in ssh -o BatchMode=yes");
    out->word[n++] = (char *)(uintptr_t)l->host[rank].name;
    out->word[n++] = out->script;
    return 0;
}

void remote_free(struct remote *remote) {
    if (remote->input) explicit_bzero(remote->input, 2 * MOST_FILE);
    free(remote->words);
    free(remote->script);
    free(remote->input);
}
