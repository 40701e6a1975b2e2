/* The table of commands: see commands.h. */
#include "cli/commands.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/near.h"
#include "cli/topics.h"

/* Of one run: several would take turns at them. */
#define NOT_COMPARED                                                                                                  \
    "-mode -name -guests -metrics -trace -record -replay -steps -tolerance -log-every "                               \
    "-checkpoint -checkpoint-every -keep -resume -hosts -rank -role -task-index -ps-hosts -worker-hosts -key -peers " \
    "-insecure -host-timeout -wire -top-k "
#define TABLES  "input-format label categorical ignore delimiter header " /* how text is read */
#define SCORING "workers threads seed backend spawn bind " TABLES         /* what scoring with a model goes by */

static const struct command COMMANDS[] = {
    {"train", "[DATA...]", "train a model (the default)", "* output format quiet json progress", 0, MOST_OPERANDS, train_run},
    {"eval", "MODEL DATA", "measure a model on data", SCORING "skip-bad-lines cache json", 2, 2, eval_run},
    {"predict", "MODEL DATA", "predict labels", SCORING "cache output scores probabilities show", 2, 2, predict_run},
    {"topo", "[DATA...]", "show a run's plan", "* json", 0, MOST_OPERANDS, topo_run},
    {"compare", "[DATA...]", "train in several modes", NOT_COMPARED "* modes target tune seeds html json quiet progress", 0,
     MOST_OPERANDS, compare_run},
    {"scale", "[DATA...]", "predict with more cores", NOT_COMPARED "* modes nodes seeds json quiet progress", 0, MOST_OPERANDS,
     scale_run},
    {"data", "info|convert DATA...", "describe or cache data", SCORING "skip-bad-lines output json", 2, MOST_OPERANDS,
     data_run},
    {"model", "convert MODEL", "convert a saved model", "output format", 2, 2, model_run},
    {"inspect", "FILE", "show what a model holds", "json", 1, 1, inspect_run},
    {"ls", "", "list runs with a name", "json", 0, 0, ls_run},
    {"rm", "NAME", "remove a named store", "force", 1, 1, rm_run},
    {"join", "NAME", "add workers to a run", "workers threads spawn bind quiet json progress", 1, 1, join_run},
    {"watch", "NAME", "follow a run", "quiet json progress", 1, 1, watch_run},
    {"launch", "-- WORDS...", "run on several hosts", "local hosts remote-shell restarts", 0, MOST_OPERANDS, launch_run},
    {"keygen", "FILE", "make keys for a host", "", 1, 1, keygen_run},
    {"doctor", "", "check this machine", "json", 0, 0, doctor_run},
    {"bench", "", "measure this machine", "quick json quiet", 0, 0, bench_run},
    {"drill", "", "kill workers, check results", "rounds seed json quiet", 0, 0, drill_run},
    {"help", "[COMMAND|TOPIC]", "show this, or a page", "", 0, 1, help_run},
};
#define N_COMMANDS (sizeof COMMANDS / sizeof *COMMANDS)

const struct command *command_at(size_t i) { return i < N_COMMANDS ? &COMMANDS[i] : NULL; }

const struct command *command_named(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(COMMANDS[i].name, name) == 0) return &COMMANDS[i];
    return NULL;
}

int command_takes(const struct command *command, const char *option, int is_own) {
    const size_t n = strlen(option);
    for (const char *at = command->options; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == n + 1 && *at == '-' && strncmp(at + 1, option, n) == 0) return 0;
        if ((word == n && strncmp(at, option, n) == 0) || (!is_own && word == 1 && *at == '*')) return 1;
        at += word;
    }
    return 0;
}

int command_takes_list(const struct command *command, const char *option) {
    const int takes_several = strcmp(command->name, "compare") == 0 || strcmp(command->name, "scale") == 0;
    return takes_several && strcmp(option, "workers") == 0;
}

int command_takes_names(const struct command *command, const char *option) {
    return strcmp(command->name, "launch") == 0 && strcmp(option, "hosts") == 0;
}

const char *command_words(const struct command *command) {
    const struct topic *page = COMMAND_PAGES;
    while (strcmp(page->name, command->name) != 0) page++;
    return page->text;
}

const char *command_instead(const struct command *command, const char *option) {
    static const struct {
        const char *command, *option, *words;
    } INSTEAD[] = {
        {"compare", "mode", "name modes by --modes, as in --modes async,sync"},
        {"predict", "skip-bad-lines",
         "it answers each line, and one that is left out has no answer; correct them, or take them out"},
        {"scale", "mode", "name modes by --modes, as in --modes async,sync"},
        {"compare", "tolerance", "its modes take steps of SGD, and --tolerance takes others"},
        {"compare", "steps", "a step is a work item in one mode and a batch in another; give all the same --epochs"},
    };
    for (size_t i = 0; i < sizeof INSTEAD / sizeof *INSTEAD; i++)
        if (strcmp(INSTEAD[i].command, command->name) == 0 && strcmp(INSTEAD[i].option, option) == 0) return INSTEAD[i].words;
    return NULL;
}

const char *command_near(const char *word) {
    struct near near = near_to(word);
    for (size_t i = 0; i < N_COMMANDS; i++) near_offer(&near, COMMANDS[i].name);
    return near.best;
}
