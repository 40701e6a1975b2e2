/* The table of commands: see commands.h. */
#include "cli/commands.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/near.h"

/* Of one run: several would take turns at them. */
#define NOT_COMPARED                                                    \
    "-mode -name -guests -metrics -trace -steps -tolerance -log-every " \
    "-checkpoint -checkpoint-every -keep -resume "
#define TABLES  "input-format label categorical ignore delimiter header " /* how text is read */
#define SCORING "workers threads seed backend spawn bind " TABLES         /* what scoring with a model goes by */

static const struct command COMMANDS[] = {
    {"train", "[DATA...]", "train a model (the default)",
     "The word \"train\" may be left out. DATA is LIBSVM text, a table (CSV, TSV), an\n"
     "IDX file (MNIST's format), or generated data. Files may be packed (gz, bz2, xz,\n"
     "zst, lz4). - is standard input; a FIFO or <(command) works, too. Several files\n"
     "of text are read as one: shmtrain part1.svm part2.svm.gz. Generated:\n"
     "builtin:sparse (the default; its best possible loss is known), builtin:dense and\n"
     "builtin:line, with sizes as in builtin:sparse:examples=N,features=N,nonzeros=N.\n"
     "A file with the name of a command needs its folder: ./topo. More: shmtrain help\n"
     "files.\n",
     "* output format quiet json progress", 0, MOST_OPERANDS, train_run},
    {"eval", "MODEL DATA", "measure a model on data",
     "Prints the loss (for regression, half the squared error) and the metrics of the\n"
     "model's task: accuracy, AUC, precision, recall, calibration of the probabilities\n"
     "and the confusion matrix, or the errors of a regression. MODEL may be a\n"
     "LIBLINEAR model. DATA may be - for standard input. Keys of --json: shmtrain help\n"
     "formats.\n",
     SCORING "skip-bad-lines cache json", 2, 2, eval_run},
    {"predict", "MODEL DATA", "predict labels",
     "Prints one line per example, in the order of the data: the predicted label.\n"
     "With --scores or --probabilities, numbers follow: one for two classes (of\n"
     "the larger label) or a regression, else one per class, in ascending order\n"
     "of the labels. DATA has a label in each line, which may be anything and is\n"
     "not used. An IDX file needs none. DATA may be - for standard input, packed\n"
     "or not: each line is answered as it comes, and memory does not grow. At a bad\n"
     "line it answers all lines before it and ends. With --output it then writes\n"
     "nothing.\n",
     SCORING "cache output scores probabilities", 2, 2, predict_run},
    {"topo", "[DATA...]", "show a run's plan",
     "Prints which worker goes to which core, where parameters and DATA go, in which\n"
     "pages, and whether the memory suffices, without training. Options are those of\n"
     "the run. With HWLOC_SYNTHETIC=\"numa:4 core:16 pu:2\" in the environment it is the\n"
     "plan for such a machine.\n",
     "* json", 0, MOST_OPERANDS, topo_run},
    {"compare", "[DATA...]", "train in several modes",
     "One run after the other, with the same data and epochs. Prints a table, loss\n"
     "over epochs (what an epoch is worth: statistical efficiency) and loss over time\n"
     "(hardware efficiency). DATA and options are those of train. To see which modes\n"
     "wait for a slow worker:\n"
     "shmtrain compare --modes async,sync,ssp:4,backup:6,local:16 --slow 3:5x a9a.\n"
     "--seeds N measures each mode with N seeds and shows the least and the most; only\n"
     "what is outside of that is a win. -w 1,2,4,8 measures each mode with each\n"
     "number of workers, and plots the speed-up:\n"
     "shmtrain compare -w 1,2,4 --seeds 5 --modes async,sync a9a.\n",
     NOT_COMPARED "* modes target tune seeds html json quiet progress", 0, MOST_OPERANDS, compare_run},
    {"data", "info|convert DATA...", "describe or cache data",
     "data info DATA: examples, features, labels, how often features occur, and what\n"
     "may be a mistake: duplicates, empty examples, rare or constant features.\n"
     "data convert DATA -o FILE: writes a cache, which every command reads like DATA.\n"
     "It is mapped, not parsed, and checked: shmtrain help cache.\n",
     SCORING "skip-bad-lines output json", 2, MOST_OPERANDS, data_run},
    {"model", "convert MODEL", "convert a saved model",
     "model convert MODEL -o FILE --format liblinear, csv or safetensors. MODEL may be\n"
     "LIBLINEAR's. A model that the format cannot hold is refused.\n",
     "output format", 2, 2, model_run},
    {"inspect", "FILE", "show what a model holds",
     "FILE is a saved model or a checkpoint. Prints its model, classes and features;\n"
     "of a checkpoint also its run and the position in it; and each tensor with its\n"
     "type, shape, least, most and mean element, and the share of elements that are\n"
     "not 0. The whole file is read and checked; a damaged one is refused with exit\n"
     "status 1. FILE may be a LIBLINEAR model. It is read more than once, so it\n"
     "cannot be a pipe or -.\n",
     "json", 1, 1, inspect_run},
    {"ls", "", "list runs with a name",
     "A run gets a name by --name. Its store stays after the run, until it is removed.\n"
     "Only your own stores are listed.\n",
     "json", 0, 0, ls_run},
    {"rm", "NAME", "remove a named store",
     "A store that is in use is removed only with --force. Programs that have it open\n"
     "keep it, but no other program can join it.\n",
     "force", 1, 1, rm_run},
    {"join", "NAME", "add workers to a run",
     "The run must have a name (--name) and places for guests (--guests). The workers\n"
     "begin with the next epoch, and leave at the end of one on SIGINT. Ctrl-Z here\n"
     "makes the whole run wait until fg.\n",
     "workers threads spawn bind quiet json progress", 1, 1, join_run},
    {"watch", "NAME", "follow a run",
     "Shows a run until it is over. The run must have a name (--name). Watching does\n"
     "not affect it.\n",
     "quiet json progress", 1, 1, watch_run},
    {"doctor", "", "check this machine",
     "Looks for what will slow or stop a run. Each finding is OK, slow (runs work, but\n"
     "do not use all of the machine) or stops, with what was seen and a command that\n"
     "helps. The exit status is 1 if something stops runs, or one kind of run that the\n"
     "finding names, else 0.\n",
     "json", 0, 0, doctor_run},
    {"bench", "", "measure this machine",
     "Measures floors (memory, cache lines, barriers, sgemm) and operations of\n"
     "shmtrain, in turns. Prints each operation as a share of its floor: medians with\n"
     "quartiles. Takes up to two minutes; the machine should be otherwise idle.\n",
     "quick json quiet", 0, 0, bench_run},
    {"drill", "", "kill workers, check results",
     "Trains on generated data in all modes in turn, with 4 workers. Meanwhile it\n"
     "kills workers (SIGKILL, SIGSEGV, exit) and stops them, also those of guests.\n"
     "Some runs are killed as a whole and resume from a checkpoint. Each run has to\n"
     "end, leave nothing behind, count each example, and come to the result of\n"
     "undisturbed runs: in sync the same bits, else a loss within their spread, which\n"
     "is measured first. Prints a line for each mode. Exit status 1 if a run failed,\n"
     "with a line to repeat it.\n",
     "rounds seed json quiet", 0, 0, drill_run},
    {"help", "[COMMAND|TOPIC]", "show this, or a page",
     "Without a word: one screen with the commands and the most used options. With\n"
     "one: the page of a command, with its options, or of a topic.\n",
     "", 0, 1, help_run},
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
    return strcmp(command->name, "compare") == 0 && strcmp(option, "workers") == 0;
}

const char *command_instead(const struct command *command, const char *option) {
    static const struct {
        const char *command, *option, *words;
    } INSTEAD[] = {
        {"compare", "mode", "name modes by --modes, as in --modes async,sync"},
        {"predict", "skip-bad-lines",
         "it answers each line, and one that is left out has no answer; correct them, or take them out"},
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
