/* Parsing the command line: the library's option table and the program's own few options, both through getopt_long.
 *
 * Options may stand before the command's name, and what they may be depends on it; so all is read first, then the command is
 * found, and then the options are taken, in their order. */
#include "cli/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/near.h"
#include "cli/talk.h"

#define MAX_OPTIONS 192
#define FIRST_LONG  256 /* getopt's value of library option i is FIRST_LONG + i, of own option i OWN + i */
#define OWN         1024
#define OPERAND     1 /* getopt's value for what is no option */

#define PROGRAM "The program"
static const struct shmtrain_option OWN_OPTIONS[] = {
    {"output", 'o', "FILE", "", "", PROGRAM, "write the model, or predictions, to FILE"},
    {"format", 0, "NAME", "safetensors", "", PROGRAM, "format of the model: safetensors, liblinear or csv"},
    {"quiet", 'q', NULL, "", "", PROGRAM, "print only errors and notes"},
    {"json", 0, NULL, "", "", PROGRAM, "print one JSON object; other lines go to stderr"},
    {"progress", 0, "HOW", "auto", "SHMTRAIN_PROGRESS", PROGRAM, "bar, plain or none; auto: a bar on a terminal"},
    {"scores", 0, NULL, "", "", PROGRAM, "predict: also print the model's outputs"},
    {"probabilities", 0, NULL, "", "", PROGRAM, "predict: also print the labels' probabilities"},
    {"show", 0, NULL, "", "", PROGRAM, "predict: print images, and what they were taken for"},
    {"modes", 0, "LIST", "async,sync,ssp:4,backup,local", "", PROGRAM, "compare, scale: the modes, with commas between them"},
    {"target", 0, "X", "auto", "", PROGRAM, "compare: the loss to reach; auto: 1 % above the lowest"},
    {"tune", 0, "N", "3", "", PROGRAM, "compare: rates that each mode tries; 0: its default, and no verdict"},
    {"seeds", 0, "N", "1", "", PROGRAM, "compare, scale (3): runs of each mode, with N seeds"},
    {"nodes", 0, "LIST", "1,2,4", "", PROGRAM, "scale: numbers of NUMA nodes that workers are spread over"},
    {"html", 0, "FILE", "", "", PROGRAM, "compare: also write a page with table and plots to FILE"},
    {"quick", 0, NULL, "", "", PROGRAM, "bench: take a few seconds, with rough figures"},
    {"rounds", 0, "N", "1000", "", PROGRAM, "drill: number of runs to disturb"},
    {"force", 0, NULL, "", "", PROGRAM, "rm: also remove a store that is in use"},
    {"local", 0, "N", "", "", PROGRAM, "launch: N hosts on this machine"},
    {"remote-shell", 0, "CMD", "ssh -o BatchMode=yes ...", "", PROGRAM, "launch: starts a program on a host"},
    {"restarts", 0, "N", "0", "", PROGRAM, "launch: resume N times when a host is lost"},
    {"help", 'h', NULL, "", "", PROGRAM, "print help, for a command if one is named"},
    {"version", 0, NULL, "", "", PROGRAM, "print the version"},
};
enum {
    OWN_OUTPUT,
    OWN_FORMAT,
    OWN_QUIET,
    OWN_JSON,
    OWN_PROGRESS,
    OWN_SCORES,
    OWN_PROBABILITIES,
    OWN_SHOW,
    OWN_MODES,
    OWN_TARGET,
    OWN_TUNE,
    OWN_SEEDS,
    OWN_NODES,
    OWN_HTML,
    OWN_QUICK,
    OWN_ROUNDS,
    OWN_FORCE,
    OWN_LOCAL,
    OWN_REMOTE_SHELL,
    OWN_RESTARTS,
    OWN_HELP,
    OWN_VERSION,
    N_OWN
};

const struct shmtrain_option *arguments_option_at(size_t i) { return i < N_OWN ? &OWN_OPTIONS[i] : NULL; }

/* ---- reading ---- */

/* What getopt_long wants, made from the two tables. */
struct tables {
    struct option option[MAX_OPTIONS];
    char letters[2 * MAX_OPTIONS + 3];
    int n, n_letters;
};

/* What it has found. */
struct given {
    int value; /* FIRST_LONG + i or OWN + i */
    const char *argument;
};
struct found {
    struct given option[MOST_OPTIONS];
    int n;
    const char *operand[MOST_OPERANDS + 2]; /* the command's name, and one too many */
    int n_operands;
};

static void add_option(struct tables *t, const struct shmtrain_option *o, int value) {
    if (t->n + 1 >= MAX_OPTIONS) abort(); /* both tables are constant, and a test parses every option of them */
    t->option[t->n++] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, value};
    if (o->letter == 0) return;
    t->letters[t->n_letters++] = o->letter;
    if (o->argument) t->letters[t->n_letters++] = ':';
}

static void make_tables(struct tables *t) {
    const struct shmtrain_option *o;
    memset(t, 0, sizeof *t);
    t->letters[t->n_letters++] = '-'; /* operands come in their order, whatever POSIXLY_CORRECT says */
    t->letters[t->n_letters++] = ':'; /* a missing argument is told from an unknown option */
    for (int i = 0; (o = shmtrain_option_at((size_t)i)); i++) add_option(t, o, FIRST_LONG + i);
    for (int i = 0; i < N_OWN; i++) add_option(t, &OWN_OPTIONS[i], OWN + i);
}

static const struct shmtrain_option *option_of(int value) {
    return value >= OWN ? &OWN_OPTIONS[value - OWN] : shmtrain_option_at((size_t)(value - FIRST_LONG));
}

/* A letter's value is the letter: the same value as its long name's. */
static int value_of(int got) {
    const struct shmtrain_option *o;
    if (got >= FIRST_LONG) return got;
    for (int i = 0; (o = shmtrain_option_at((size_t)i)); i++)
        if (o->letter == got) return FIRST_LONG + i;
    for (int i = 0; i < N_OWN; i++)
        if (OWN_OPTIONS[i].letter == got) return OWN + i;
    return -1;
}

/* getopt_long takes the beginning of a name for the name; not when several begin so. Refuses then, and returns 2; else 0. */
static int refuse_ambiguous(const char *name, size_t n) {
    const struct option *o;
    struct tables tables;
    char list[256] = "";
    int n_begin = 0;
    make_tables(&tables);
    for (o = tables.option; o->name && n > 0; o++) {
        if (strncmp(o->name, name, n) != 0) continue;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s--%s", n_begin++ > 0 ? ", " : "", o->name);
    }
    return n_begin < 2 ? 0 : talk_refuse("--%.*s is the beginning of several options: %s", (int)n, name, list);
}

static int refuse_unknown(const char *what) {
    const struct shmtrain_option *o;
    const size_t dashes = strspn(what, "-");
    struct near near = near_to(what + dashes);
    if (dashes == 2 && refuse_ambiguous(what + 2, strcspn(what + 2, "=")) != 0) return 2;
    for (size_t i = 0; dashes == 2 && (o = shmtrain_option_at(i)); i++) near_offer(&near, o->name);
    for (size_t i = 0; dashes == 2 && i < N_OWN; i++) near_offer(&near, OWN_OPTIONS[i].name);
    if (near.best) return talk_refuse("there is no option %s: did you mean --%s?", what, near.best);
    return talk_refuse("there is no option %s; shmtrain help train lists those of a run, help COMMAND those of a command",
                       what);
}

/* "-X" for the letter that getopt has left in optopt. It goes by bytes: of a letter with several (UTF-8) it has met the first,
 * and its group, which is not at its end, is argv[optind] still. */
static void name_letter(char **argv, char out[8]) {
    const unsigned char byte = (unsigned char)optopt;
    const char *at = byte >= 0xc0 && argv[optind] ? strchr(argv[optind], optopt) : NULL;
    int n = 0;
    out[n++] = '-';
    if (byte >= ' ' && byte < 0x7f) out[n++] = (char)byte;
    while (at && n < 5 && (n == 1 || ((unsigned char)*at & 0xc0) == 0x80)) out[n++] = *at++;
    out[n] = '\0';
    if (n < 2 || (n == 2 && byte > 0x7f)) snprintf(out, 8, "-\\x%02x", byte); /* no letter at all */
}

/* getopt has left a short option's letter in optopt, as a char that may be negative; a long option's value when its argument is
 * missing or too much; and 0 for a name that it does not know. */
static int refuse_option(int got, char **argv) {
    char letter[8];
    const bool is_letter = optopt != 0 && optopt < FIRST_LONG;
    if (is_letter) name_letter(argv, letter);
    const char *what = is_letter ? letter : argv[optind - 1];
    if (got == ':') return talk_refuse("%s needs a value: shmtrain help train, or help COMMAND, says which", what);
    if (optopt >= FIRST_LONG) return talk_refuse("%s: this option takes no value", what);
    return refuse_unknown(what);
}

static void add_operand(struct found *found, const char *operand) {
    if (found->n_operands <= MOST_OPERANDS + 1) found->operand[found->n_operands++] = operand;
}

/* How TensorFlow's examples spell options of a cluster. */
static const struct {
    const char *theirs, *ours;
} SPELT[] = {{"job_name", "role"}, {"task_index", "task-index"}, {"ps_hosts", "ps-hosts"}, {"worker_hosts", "worker-hosts"}};

static int value_of_name(const char *name) {
    const struct shmtrain_option *o;
    int i = 0;
    while ((o = shmtrain_option_at((size_t)i)) && strcmp(o->name, name) != 0) i++;
    return FIRST_LONG + i;
}

/* Whole names only: the beginnings of our own stay what they are. What getopt does not know is the word before optind. */
static bool read_spelt(int argc, char **argv, struct given *out) {
    const char *word = argv[optind - 1];
    if (optopt != 0 || strncmp(word, "--", 2) != 0) return false;
    const size_t n = strcspn(word + 2, "=");
    for (size_t i = 0; i < sizeof SPELT / sizeof *SPELT; i++) {
        if (strlen(SPELT[i].theirs) != n || strncmp(word + 2, SPELT[i].theirs, n) != 0) continue;
        const char *next = optind < argc ? argv[optind] : ""; /* which no option takes */
        *out = (struct given){value_of_name(SPELT[i].ours), word[2 + n] == '=' ? word + 3 + n : next};
        optind += word[2 + n] != '=' && optind < argc;
        return true;
    }
    return false;
}

static int read_all(int argc, char **argv, struct found *out) {
    struct tables tables;
    int got;
    make_tables(&tables);
    opterr = 0;
    while ((got = getopt_long(argc, argv, tables.letters, tables.option, NULL)) != -1) {
        struct given given = {.argument = optarg};
        const bool is_spelt = got == '?' && read_spelt(argc, argv, &given);
        if (!is_spelt && (got == '?' || got == ':')) return refuse_option(got, argv);
        if (got == OPERAND) {
            add_operand(out, optarg);
            continue;
        }
        if (out->n == MOST_OPTIONS) return talk_refuse("more than %d options", MOST_OPTIONS);
        if (!is_spelt) given.value = value_of(got);
        out->option[out->n++] = given;
    }
    while (optind < argc) add_operand(out, argv[optind++]); /* behind -- */
    return 0;
}

/* ---- taking ---- */

static void take_own(int own, const char *argument, struct arguments *out) {
    switch (own) {
        case OWN_OUTPUT:
            out->output = argument;
            break;
        case OWN_FORMAT:
            out->format = argument;
            break;
        case OWN_QUIET:
            out->quiet = true;
            break;
        case OWN_JSON:
            out->json = true;
            break;
        case OWN_PROGRESS:
            out->progress = argument;
            break;
        case OWN_MODES:
            out->modes = argument;
            break;
        case OWN_TARGET:
            out->target = argument;
            break;
        case OWN_TUNE:
            out->tune = argument;
            break;
        case OWN_SEEDS:
            out->seeds = argument;
            break;
        case OWN_NODES:
            out->nodes = argument;
            break;
        case OWN_HTML:
            out->html = argument;
            break;
        case OWN_QUICK:
            out->quick = true;
            break;
        case OWN_ROUNDS:
            out->rounds = argument;
            break;
        case OWN_FORCE:
            out->force = true;
            break;
        case OWN_LOCAL:
            out->local = argument;
            break;
        case OWN_REMOTE_SHELL:
            out->remote_shell = argument;
            break;
        case OWN_RESTARTS:
            out->restarts = argument;
            break;
        case OWN_SCORES:
            out->scores = true;
            break;
        case OWN_PROBABILITIES:
            out->probabilities = true;
            break;
        case OWN_SHOW:
            out->show = true;
            break;
        case OWN_HELP:
            out->help = true;
            break;
        default:
            out->version = true;
            break;
    }
}

/* "$VARIABLE" that is not set: to the library "" is a text like any other, and sets an option back. */
static int check_argument(const struct shmtrain_option *o, const char *argument) {
    if (!o->argument || argument[0] != '\0') return 0;
    return talk_refuse("--%s \"\": expected %s, or leave the option out", o->name, o->argument);
}

static bool is_data(const char *name) { return strcmp(name, "-") == 0 || strchr(name, '\n') || access(name, F_OK) == 0; }

/* Of an option that is given more than once the last one counts; but files to validate on add up. */
static const char *all_of_valid(struct arguments *a, const char *value) {
    static char *all; /* of one command line */
    for (int i = a->n_options; i-- > 0;) {
        const char **before = &a->option[i].value;
        char *both;
        if (strcmp(a->option[i].name, "valid") != 0) continue;
        if (!is_data(*before) || !is_data(value) || asprintf(&both, "%s\n%s", *before, value) < 0) return value;
        free(all);
        *before = all = both;
        return all;
    }
    return value;
}

static int take_option(struct shmtrain_store *store, const struct given *given, struct arguments *out) {
    const struct shmtrain_option *o = option_of(given->value);
    const bool is_own = given->value >= OWN;
    if (given->value == OWN + OWN_HELP || given->value == OWN + OWN_VERSION) {
        take_own(given->value - OWN, NULL, out);
        return 0;
    }
    const char *instead = command_instead(out->command, o->name);
    const bool taken_by_it = command_takes(out->command, o->name, is_own);
    if (!taken_by_it && instead) return talk_refuse("%s does not use --%s: %s", out->command->name, o->name, instead);
    if (!taken_by_it)
        return talk_refuse("%s does not use --%s: shmtrain help %s lists what it does", out->command->name, o->name,
                           out->command->name);
    if (is_own) {
        take_own(given->value - OWN, given->argument, out);
        return check_argument(o, given->argument);
    }
    if (command_takes_list(out->command, o->name)) {
        const bool is_list = strchr(given->argument, ',') != NULL || strstr(given->argument, "..") != NULL;
        out->workers = is_list ? given->argument : NULL;
        if (is_list) return 0; /* each number of it is checked by the command */
    }
    if (command_takes_names(out->command, o->name)) {
        out->hosts = given->argument;
        return check_argument(o, given->argument);
    }
    struct library_option taken = {o->name, o->argument ? given->argument : "1"};
    if (strcmp(o->name, "valid") == 0) taken.value = all_of_valid(out, taken.value);
    out->option[out->n_options++] = taken; /* as many as were found */
    if (shmtrain_store_set(store, taken.name, taken.value) == 0) return check_argument(o, given->argument);
    return talk_refuse("--%s", shmtrain_store_message(store));
}

/* Where a command's first operand is one of its own words ("info|convert DATA..."): whether this is one of them. */
static bool is_own_word(const char *operands, const char *word) {
    const size_t all = strcspn(operands, " "), n = strlen(word);
    if (operands[0] < 'a' || operands[0] > 'z') return true; /* it names something else */
    for (const char *at = operands; at < operands + all; at += strcspn(at, "| ") + 1)
        if (strcspn(at, "| ") == n && memcmp(at, word, n) == 0) return true;
    return false;
}

static int take_operands(const struct found *found, int first, struct arguments *out) {
    const struct command *c = out->command;
    const int n = found->n_operands - first;
    const bool asks = out->help || out->version;
    if (n > c->most && c->most == MOST_OPERANDS)
        return talk_refuse("shmtrain %s %s: more than %d of them; put some together, as in cat part*", c->name, c->operands,
                           c->most);
    if (n > c->most)
        return talk_refuse("shmtrain %s%s%s: what is \"%s\"?", c->name, c->operands[0] != '\0' ? " " : "", c->operands,
                           found->operand[first + c->most]);
    if (n > 0 && n < c->least && !asks && !is_own_word(c->operands, found->operand[first]))
        return talk_refuse("shmtrain %s %s: what is \"%s\"?", c->name, c->operands, found->operand[first]);
    if (n < c->least && !asks)
        return talk_refuse("shmtrain %s %s: %s missing; shmtrain help %s says more", c->name, c->operands,
                           c->least - n > 1 ? "these are"
                           : n > 0          ? "the last one is"
                                            : "this is",
                           c->name);
    for (int i = 0; i < n; i++) out->operand[out->n_operands++] = found->operand[first + i];
    return 0;
}

/* A first word that is no file may be meant as a command. */
static int refuse_mistyped(const char *word) {
    const char *near = command_near(word);
    if (!near || access(word, F_OK) == 0) return 0;
    return talk_refuse("there is no command and no file \"%s\": did you mean shmtrain %s?", word, near);
}

int arguments_parse(int argc, char **argv, struct shmtrain_store *store, struct arguments *out) {
    struct found found = {.n = 0};
    *out = (struct arguments){.command = command_at(0), .argv = argv, .argc = argc};
    int status = read_all(argc, argv, &found);
    if (status != 0) return status;
    const struct command *named = found.n_operands > 0 ? command_named(found.operand[0]) : NULL;
    out->named = named != NULL;
    if (named) out->command = named;
    if (!named && found.n_operands > 0) status = refuse_mistyped(found.operand[0]);
    for (int i = 0; i < found.n && status == 0; i++) status = take_option(store, &found.option[i], out);
    return status != 0 ? status : take_operands(&found, named ? 1 : 0, out);
}

int arguments_configure(const struct arguments *a, struct shmtrain_store *store) {
    int rc = shmtrain_store_set_from_environment(store);
    for (int i = 0; i < a->n_options && rc == 0; i++) rc = shmtrain_store_set(store, a->option[i].name, a->option[i].value);
    return rc;
}

int arguments_configure_one(const struct arguments *a, struct shmtrain_store *store) {
    static const char *const OFF[][2] = {
        {"name", ""},     {"metrics", ""},      {"trace", ""}, {"record", ""},   {"replay", ""},   {"checkpoint", ""},
        {"resume", "0"},  {"keep", "all"},      {"hosts", ""}, {"rank", "none"}, {"role", ""},     {"task-index", "none"},
        {"ps-hosts", ""}, {"worker-hosts", ""}, {"key", ""},   {"peers", ""},    {"insecure", "0"}};
    int rc = arguments_configure(a, store);
    for (size_t i = 0; i < sizeof OFF / sizeof *OFF && rc == 0; i++) rc = shmtrain_store_set(store, OFF[i][0], OFF[i][1]);
    return rc;
}

int arguments_set_number(struct shmtrain_store *store, const char *option, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return shmtrain_store_set(store, option, text);
}

const char *arguments_value(const struct arguments *a, const char *name) {
    const struct shmtrain_option *o;
    const char *value = NULL;
    for (size_t i = 0; (o = shmtrain_option_at(i)); i++)
        if (strcmp(o->name, name) == 0) value = getenv(o->environment);
    for (int i = 0; i < a->n_options; i++)
        if (strcmp(a->option[i].name, name) == 0) value = a->option[i].value;
    return value && value[0] != '\0' ? value : NULL;
}
