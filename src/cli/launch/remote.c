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

static void put_script(FILE *f, const struct launch *l, uint32_t rank, size_t key_bytes, size_t peers_bytes) {
    fputs("umask 077; d=$(mktemp -d) || exit 1; trap 'rm -rf \"$d\"' EXIT; exec 3<&0; ", f);
    fprintf(f, "head -c %zu <&3 > \"$d/key\"; head -c %zu <&3 > \"$d/peers\"; umask 022; cd", key_bytes, peers_bytes);
    put_word(f, l->folder);
    fputs(" || exit 1; ", f);
    put_program(f, l, rank);
    fputs(
        " < /dev/null 3<&- & p=$!; { cat > /dev/null; kill -TERM $p; } <&3 > /dev/null 2>&1 & w=$!; exec 3<&-; "
        "wait $p; s=$?; kill $w 2> /dev/null; exit $s",
        f);
}

static int make_script(const struct launch *l, uint32_t rank, size_t key_bytes, size_t peers_bytes, char **out) {
    size_t n;
    FILE *f = open_memstream(out, &n);
    if (!f) return cannot("make a script");
    put_script(f, l, rank, key_bytes, peers_bytes);
    return fclose(f) == 0 ? 0 : cannot("make a script");
}

int remote_words(const struct launch *l, uint32_t rank, char *word_out[LAUNCH_MOST_WORDS], char **script_out, char **input_out,
                 size_t *n_out) {
    char path[128];
    int n = 0;
    char *words = strdup(l->remote_shell), *input = malloc(2 * MOST_FILE), *rest = NULL;
    *script_out = NULL;
    *input_out = input;
    if (!words || !input) {
        free(words);
        return talk_refuse("not enough memory") - 1;
    }
    name_key(l, rank, "", path);
    const size_t key = read_file(path, input);
    name_file(l, "peers", path);
    const size_t peers = read_file(path, input + key);
    *n_out = key + peers;
    if (make_script(l, rank, key, peers, script_out) != 0) {
        free(words);
        return 1;
    }
    for (char *word = strtok_r(words, " ", &rest); word && n < 32; word = strtok_r(NULL, " ", &rest)) word_out[n++] = word;
    word_out[n++] = (char *)(uintptr_t)l->host[rank].name;
    word_out[n++] = *script_out;
    word_out[n] = NULL;
    return 0;
}
