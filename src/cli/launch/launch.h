/* shmtrain launch: one run on several hosts, each of which is a child of this program: the program itself (--local), or a remote shell that
 * starts it. What is asked for: launch.c; what a remote shell is told: remote.c; children and their lines: children.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LAUNCH_MOST_HOSTS 64
#define LAUNCH_MOST_WORDS 1200

struct launch_host {
    char name[256];    /* as a remote shell takes it; local: "127.0.0.1" */
    char address[272]; /* "NAME:PORT" */
    pid_t pid;         /* 0: it has not begun, or has ended */
    int status;        /* its exit status, when it has */
    int input;         /* what it reads: closed, a remote run stops. -1: there is none */
    int lines;         /* what it says on stderr, to be shown with its number. -1: none, or it has said all */
    char line[1024];   /* one that has no end yet */
    uint32_t n_line;
};

struct launch {
    uint32_t n;
    bool local;
    const char *remote_shell; /* words, with blanks between */
    uint32_t restarts;        /* how often a run that has lost a host is resumed */
    char program[4096], folder[4096];
    char list[LAUNCH_MOST_HOSTS * 280]; /* for --hosts */
    char **word;                        /* (n_words) those behind -- */
    int n_words;
    char keys[64]; /* remote: a folder with the hosts' keys, "0" to "N-1", and "peers"; "": none */
    struct launch_host host[LAUNCH_MOST_HOSTS];
};

/* ---- children.c ---- */

/* Starts `word` (up to NULL) as host `rank`, and feeds it `input` (n bytes; NULL: it has none). What it prints is shown for host 0
 * alone. 0, or 2 after a line. */
int launch_start(struct launch *l, uint32_t rank, char *const *word, const char *input, size_t n);

/* Until all have ended: shows what they say, and passes on signals. The exit status. */
int launch_wait(struct launch *l);

/* ---- remote.c ---- */

/* Keys for all hosts, of this run alone. 0, or 1 after a line. */
int remote_make_keys(struct launch *l);
void remote_remove_keys(struct launch *l);

#define REMOTE_MOST_WORDS 32

/* How a remote shell is called. */
struct remote {
    char *word[REMOTE_MOST_WORDS + 3]; /* ended by NULL */
    char *input;                       /* (n) what it is to read: keys */
    size_t n;
    char *words, *script; /* what `word` points into */
};

/* For host `rank`; to be freed, whatever it returns. 0, or a status after a line. */
int remote_words(const struct launch *l, uint32_t rank, struct remote *out);
void remote_free(struct remote *remote);
