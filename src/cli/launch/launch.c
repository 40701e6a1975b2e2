/* shmtrain launch: what is asked for. See launch.h. */
#include "cli/launch/launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/ranks.h"
#include "cli/talk.h"

#define FIRST_PORT    5000
#define MOST_RESTARTS 1000
#define UNREACHABLE   255 /* ssh: there is no connection, or it is lost */

/* Who does not answer for 15 s is lost, and so is who cannot be reached within 10 s. */
#define SSH "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5"

/* ---- hosts ---- */

/* Ports that are free now, all at a time so that they differ. */
static int find_ports(struct launch *l) {
    int fd[LAUNCH_MOST_HOSTS], status = 0;
    uint32_t n = 0;
    for (; n < l->n && status == 0; n++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t bytes = sizeof at;
        fd[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd[n] < 0 || bind(fd[n], (struct sockaddr *)&at, bytes) < 0 ||
            getsockname(fd[n], (struct sockaddr *)&at, &bytes) < 0)
            status = talk_refuse("cannot find a free port: %s", strerror(errno));
        snprintf(l->host[n].name, sizeof l->host[n].name, "127.0.0.1");
        snprintf(l->host[n].address, sizeof l->host[n].address, "127.0.0.1:%u", ntohs(at.sin_port));
    }
    while (n-- > 0)
        if (fd[n] >= 0) close(fd[n]);
    return status;
}

static int take_local(struct launch *l, const char *text) {
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || n < 1 || n > LAUNCH_MOST_HOSTS)
        return talk_refuse("--local %s: expected a number of hosts, from 1 to %d", text, LAUNCH_MOST_HOSTS);
    l->n = (uint32_t)n;
    l->local = true;
    return find_ports(l);
}

/* A host that stands there several times has as many ports. */
static unsigned port_for(const struct launch *l, const char *address) {
    const size_t n = strlen(address);
    unsigned port = FIRST_PORT;
    for (uint32_t other = 0; other < l->n; other++)
        port += strncmp(l->host[other].address, address, n) == 0 && l->host[other].address[n] == ':';
    return port;
}

static int take_host(struct launch *l, const char *at, size_t n) {
    if (l->n == LAUNCH_MOST_HOSTS) return talk_refuse("--hosts: at most %d hosts", LAUNCH_MOST_HOSTS);
    struct launch_host *h = &l->host[l->n];
    const char *login = memchr(at, '@', n), *colon = memrchr(at, ':', n);
    const size_t name = colon ? (size_t)(colon - at) : n;
    if (name == 0 || name >= sizeof h->name || at[0] == '-')
        return talk_refuse("--hosts: expected names of hosts, with commas between them, as in a,b or a:5000,b:5000");
    memcpy(h->name, at, name);
    h->name[name] = '\0';
    const char *address = login ? h->name + (login - at) + 1 : h->name; /* the remote shell takes user@host */
    if (colon)
        snprintf(h->address, sizeof h->address, "%s%.*s", address, (int)(n - name), colon);
    else
        snprintf(h->address, sizeof h->address, "%.255s:%u", address, port_for(l, address));
    l->n++;
    return 0;
}

static int take_hosts(struct launch *l, const char *text) {
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        if (take_host(l, at, n) != 0) return 2;
        at += n;
        if (*at == '\0') return 0;
    }
}

static void list_hosts(struct launch *l) {
    size_t used = 0;
    for (uint32_t rank = 0; rank < l->n; rank++)
        used += (size_t)snprintf(l->list + used, sizeof l->list - used, "%s%s", rank ? "," : "", l->host[rank].address);
}

/* ---- starting ---- */

static int find_places(struct launch *l) {
    const ssize_t n = readlink("/proc/self/exe", l->program, sizeof l->program - 1);
    if (n < 0 || !getcwd(l->folder, sizeof l->folder))
        return talk_refuse("cannot find this program and folder: %s", strerror(errno));
    l->program[n] = '\0';
    return 0;
}

static int start_local(struct launch *l, uint32_t rank) {
    char number[16], *word[LAUNCH_MOST_WORDS] = {l->program, "--hosts", l->list, "--rank", number};
    int n = 5;
    snprintf(number, sizeof number, "%u", rank);
    for (int i = 0; i < l->n_words; i++) word[n++] = l->word[i];
    return launch_start(l, rank, word, NULL, 0);
}

static int start_remote(struct launch *l, uint32_t rank) {
    struct remote remote;
    int status = remote_words(l, rank, &remote);
    if (status == 0) status = launch_start(l, rank, remote.word, remote.input, remote.n);
    remote_free(&remote);
    return status;
}

static int start(struct launch *l, uint32_t rank) {
    char *own[LAUNCH_MOST_WORDS], **all = l->word;
    int status = 0;
    for (int i = 0; i < l->n_words; i++)
        if (!(own[i] = rank_word(all[i], rank))) status = talk_refuse("not enough memory");
    l->word = own;
    if (status == 0) status = l->local ? start_local(l, rank) : start_remote(l, rank);
    l->word = all;
    for (int i = 0; i < l->n_words; i++) free(own[i]);
    return status;
}

/* As the option of a run, which says what is wrong. */
static int check_hosts(struct shmtrain_store *store, struct launch *l) {
    list_hosts(l);
    if (shmtrain_store_set(store, "hosts", l->list) == 0) return 0;
    return talk_refuse("--%s", shmtrain_store_message(store));
}

/* A run, to its end. */
static int run_once(struct launch *l) {
    int status = l->local ? 0 : remote_make_keys(l);
    for (uint32_t rank = 0; rank < l->n; rank++) {
        struct launch_host *h = &l->host[rank];
        h->input = h->lines = -1;
        h->status = 0;
    }
    for (uint32_t rank = 0; rank < l->n && status == 0; rank++) status = start(l, rank);
    remote_remove_keys(l); /* all are on their way */
    if (status != 0)
        for (uint32_t rank = 0; rank < l->n; rank++)
            if (l->host[rank].pid > 0) kill(l->host[rank].pid, SIGTERM);
    const int ended = launch_wait(l); /* those that were started */
    return status != 0 ? status : ended;
}

/* ---- again ---- */

static uint32_t count_reachable(const struct launch *l) {
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < l->n; rank++) n += l->local || l->host[rank].status != UNREACHABLE;
    return n;
}

/* Nobody resumes what was stopped, or was refused: that would end as before. Nor what no host has begun: the remote shell does not work. */
static bool may_go_on(const struct launch *l, int status) {
    if (status == 0 || talk_caught() || count_reachable(l) == 0) return false;
    for (uint32_t rank = 0; rank < l->n; rank++)
        if (l->host[rank].status == 2) return false;
    return true;
}

/* Those that are left share the work. */
static void drop_unreachable(struct launch *l) {
    uint32_t to = 0;
    for (uint32_t rank = 0; rank < l->n; rank++) {
        if (!l->local && l->host[rank].status == UNREACHABLE)
            fprintf(stderr, "shmtrain: host %u (%s) cannot be reached: the run goes on without it\n", rank,
                    l->host[rank].address);
        else if (to++ != rank)
            l->host[to - 1] = l->host[rank];
    }
    l->n = to;
}

/* The same words, with --resume before them. */
static void resume_from_now_on(struct launch *l) {
    static char *word[LAUNCH_MOST_WORDS];
    static char resume[] = "--resume";
    if (l->word == word) return;
    word[0] = resume;
    for (int i = 0; i < l->n_words; i++) word[i + 1] = l->word[i];
    l->word = word;
    l->n_words++;
}

static int run(struct launch *l) {
    int status = find_places(l);
    if (status != 0) return status;
    for (uint32_t done = 0;; done++) {
        status = run_once(l);
        if (done == l->restarts || !may_go_on(l, status)) return status;
        drop_unreachable(l);
        if (l->local && find_ports(l) != 0) return status;
        list_hosts(l);
        resume_from_now_on(l);
        fprintf(stderr, "shmtrain: the run has failed: it is resumed from its newest checkpoint (restart %u of %u)\n", done + 1,
                l->restarts);
    }
}

static int take_restarts(struct launch *l, const char *text) {
    static const char OPTION[] = "--checkpoint";
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    bool keeps = false;
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || n > MOST_RESTARTS)
        return talk_refuse("--restarts %s: expected a number, up to %d", text, MOST_RESTARTS);
    l->restarts = (uint32_t)n;
    for (int i = 0; i < l->n_words; i++) {
        const size_t word = strcspn(l->word[i], "=");
        keeps = keeps || (word == sizeof OPTION - 1 && strncmp(l->word[i], OPTION, word) == 0);
    }
    return keeps || n == 0 ? 0 : talk_refuse("--restarts resumes from checkpoints: add --checkpoint DIR behind --");
}

int launch_run(struct shmtrain_store *store, const struct arguments *a) {
    static struct launch l; /* 100 KB */
    if (!a->hosts == !a->local)
        return talk_refuse("shmtrain launch needs --hosts a,b or --local N; shmtrain help launch says more");
    if (a->n_operands > LAUNCH_MOST_WORDS - 64) return talk_refuse("more than %d words behind --", LAUNCH_MOST_WORDS - 64);
    l.remote_shell = a->remote_shell ? a->remote_shell : SSH;
    l.word = (char **)(uintptr_t)a->operand;
    l.n_words = a->n_operands;
    int status = a->local ? take_local(&l, a->local) : take_hosts(&l, a->hosts);
    if (status == 0) status = check_hosts(store, &l);
    if (status == 0 && a->restarts) status = take_restarts(&l, a->restarts);
    if (status != 0) return status;
    talk_catch_signals(NULL);
    signal(SIGCHLD, SIG_DFL); /* whoever has started us may not want to hear of his children; we do */
    signal(SIGPIPE, SIG_IGN);
    return run(&l);
}
