/* The table of commands: see commands.h. */
#include "cli/commands.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/near.h"

/* Of one run: several would take turns at them. */
#define NOT_COMPARED                                         \
    "-mode -name -guests -metrics -trace -steps -log-every " \
    "-checkpoint -checkpoint-every -keep -resume "
#define TABLES  "input-format label categorical delimiter header " /* how text is read */
#define SCORING "workers threads seed backend spawn bind " TABLES  /* what scoring with a model goes by */

static const struct command COMMANDS[] = {
    {"train", "[DATA...]", "train a model (the default: \"train\" may be left out)",
     "DATA is LIBSVM text, an IDX file (MNIST's format), or generated data. Files may\n"
     "be packed (gz, bz2, xz, zst, lz4); - is standard input; a FIFO or <(command)\n"
     "will do. Several files of text are one: shmtrain part1.svm part2.svm.gz.\n"
     "Generated: builtin:sparse (the default; its best possible loss is known), as in\n"
     "builtin:sparse:examples=N,features=N,nonzeros=N, builtin:dense or builtin:line.\n"
     "A file that is called like a command is named with its folder: ./topo.\n",
     "* output format quiet json progress", 0, MOST_OPERANDS, train_run},
    {"eval", "MODEL DATA", "how good a saved model is on data",
     "Prints the loss (of a regression half the squared error), and what suits the\n"
     "model: accuracy, AUC, precision and recall, how far its probabilities can be\n"
     "believed, which classes are taken for which; the error of a regression. MODEL\n"
     "may be LIBLINEAR's. DATA - is standard input. Keys of --json: shmtrain help\n"
     "formats.\n",
     SCORING "skip-bad-lines cache json", 2, 2, eval_run},
    {"predict", "MODEL DATA", "predict the label of each example, one line for each",
     "DATA has a label in each line, which may be anything: it is not looked at. An\n"
     "IDX file needs none. - is standard input, packed or not: each line is answered\n"
     "as it comes, in memory that does not grow. A bad line ends it, in a file, too,\n"
     "when all before it have been answered; with --output nothing is written then.\n"
     "The lines are in the data's order: the predicted label, and with --scores or\n"
     "--probabilities one number for two classes or a regression (of the larger\n"
     "label), else one for each class, in ascending order of the labels.\n",
     SCORING "cache output scores probabilities", 2, 2, predict_run},
    {"topo", "[DATA...]", "what a run would do with this machine, without training",
     "Prints which worker goes to which core, where parameters and DATA go, in which\n"
     "pages, and whether the memory suffices. Options are those of the run. With\n"
     "HWLOC_SYNTHETIC=\"numa:4 core:16 pu:2\" in the environment it is the plan for\n"
     "such a machine.\n",
     "* json", 0, MOST_OPERANDS, topo_run},
    {"compare", "[DATA...]", "train in several modes, one after the other, and compare them",
     "All have the same data, seed and epochs. Prints a table, loss over epochs (what\n"
     "an epoch is worth: statistical efficiency) and loss over time (hardware\n"
     "efficiency). DATA and options are those of train. Who waits for a slow worker:\n"
     "shmtrain compare --modes async,sync,ssp:4,backup:6,local:16 --slow 3:5x a9a.\n",
     NOT_COMPARED "* modes target html json quiet progress", 0, MOST_OPERANDS, compare_run},
    {"data", "info|convert DATA...", "what data is like; keep it to load at once",
     "data info DATA: examples, features, labels, how often features occur, and what\n"
     "may be a mistake: duplicates, empty examples, rare or constant features.\n"
     "data convert DATA -o FILE: writes a cache, which every command reads like DATA.\n"
     "It is mapped, not parsed, and checked: shmtrain help cache.\n",
     SCORING "skip-bad-lines output json", 2, MOST_OPERANDS, data_run},
    {"model", "convert MODEL", "a saved model in another format",
     "model convert MODEL -o FILE --format liblinear, csv or safetensors. MODEL may be\n"
     "LIBLINEAR's; what a format has no room for is refused.\n",
     "output format", 2, 2, model_run},
    {"inspect", "FILE", "what a saved model or a checkpoint holds",
     "Model, classes and features; of a checkpoint where its run stood, and what it\n"
     "was; each tensor with its type, shape, least, most and mean element, and the\n"
     "share of elements that are not 0. All of the file is read and checked; one that\n"
     "is damaged is refused with exit status 1. FILE may be LIBLINEAR's, but no pipe,\n"
     "nor -, as it is read in more than one pass.\n",
     "json", 1, 1, inspect_run},
    {"ls", "", "list your stores that have a name",
     "A store gets a name by --name, and keeps it after its run until it is removed.\n", "json", 0, 0, ls_run},
    {"rm", "NAME", "remove a store with a name",
     "One that is in use is removed only with --force: who has it open keeps it, but\n"
     "nobody else can join it any more.\n",
     "force", 1, 1, rm_run},
    {"join", "NAME", "join a run as further workers",
     "The run must have a name (--name) and places for guests (--guests). Who joins\n"
     "begins with the next epoch, and leaves at the end of one on SIGINT. Ctrl-Z here\n"
     "makes the whole run wait until fg.\n",
     "workers threads spawn bind quiet json progress", 1, 1, join_run},
    {"watch", "NAME", "look on at a run until it is over",
     "The run must have a name (--name). It does not notice who watches.\n", "quiet json progress", 1, 1, watch_run},
    {"doctor", "", "what on this machine will slow or stop a run, with remedies",
     "Each finding is OK, slow (runs go, but with less than the machine has) or stops,\n"
     "with what was seen, and a command that helps. Exit status: 1 where something\n"
     "stops a run, or the kind of run that is named; else 0.\n",
     "json", 0, 0, doctor_run},
    {"bench", "", "what this machine can do, and what shmtrain makes of it",
     "Measures floors (memory, cache lines, barriers, sgemm) and operations of\n"
     "shmtrain in turns, and prints each operation as a share of its floor: medians\n"
     "with quartiles. Takes up to two minutes, on a machine with nothing else to do.\n",
     "quick json quiet", 0, 0, bench_run},
    {"drill", "", "kill and stop workers at random, and look how runs end",
     "Trains on generated data in all modes in turn, with 4 workers, and kills them\n"
     "(SIGKILL, SIGSEGV, exit) and stops them meanwhile, guests that have joined, too.\n"
     "Some runs are killed whole, and go on from a checkpoint. Each has to end, leave\n"
     "nothing behind, count each example, and come to the result of undisturbed runs:\n"
     "in sync the same bits, else a loss within their spread, which is measured first.\n"
     "A line for each mode. Exit status 1 if a run failed, with a line to repeat it.\n",
     "rounds seed json quiet", 0, 0, drill_run},
    {"help", "[COMMAND|TOPIC]", "this text, or more about a command or a topic", "", "", 0, 1, help_run},
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

const char *command_instead(const struct command *command, const char *option) {
    static const struct {
        const char *command, *option, *words;
    } INSTEAD[] = {
        {"compare", "mode", "name modes by --modes, as in --modes async,sync"},
        {"predict", "skip-bad-lines",
         "it answers each line, and one that is left out has no answer; correct them, or take them out"},
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
