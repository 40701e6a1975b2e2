/* The texts of shmtrain help TOPIC: see topics.h. Those about what is learned, and from what, stand here; those about runs in
 * topics_runs.c. Who changes what an option does looks here, too. */
#include "cli/topics.h"

#include <shmtrain/store.h>
#include <stdio.h>
#include <string.h>

#define MODES "@modes\n" /* in a text: the list of modes, as the library has it */

/* clang-format off */
static const struct topic LEARNING[] = {
{"modes", "async, sync, and what lies between them",
"What becomes of updates that many workers make at once\n"
"\n"
MODES
"Where no mode is named, its axes decide (--replicas worker: local), or else the\n"
"model: sync if its gradients are dense (softmax), async if they are sparse.\n"
"An axis that is named counts more than the mode: --mode ssp:4 --write locked.\n"
"Each axis: shmtrain help axes.\n"},

{"axes", "the choices that modes are names for",
"The axes of the consistency space. Modes are points in it: shmtrain help modes\n"
"\n"
"--write racy       plain stores; of two at the same moment one may be lost\n"
"        atomic     each number by compare-and-swap: nothing is lost\n"
"        locked     each row under a lock, dense tables 1,024 numbers at a time\n"
"        aggregate  gradients are added up, and one update takes their mean\n"
"In the first three, weights change while others read them.\n"
"--staleness S      after each clock (item, batch) a worker waits for those who\n"
"                   are more than S clocks behind; inf: for nobody\n"
"--quorum K         aggregate: an update waits for K workers' gradients only;\n"
"                   what comes late is dropped, or folded into a later update\n"
"                   without counting for its quorum (--late drop, fold)\n"
"--replicas worker  each worker trains a copy of the parameters, or each NUMA\n"
"                   node (node), and every --merge-every H clocks they are\n"
"--merge mean       averaged,\n"
"        sum        all changes are added to the common copy,\n"
"        elastic    copies and common copy go a step towards one another, or\n"
"        damped     changes count as far as one worker would have come.\n"
"With --staleness 0 all meet to merge, else each merges by itself.\n"
"Threads of a worker share its copy: sparse models want -w 8, not -w 2 -t 4.\n"
"\n"
"sync gives the same parameters, bit by bit, for every -w and -t: compare the\n"
"line \"parameters\" of two runs. It cuts a batch into parts (--chunks); workers\n"
"beyond that number do nothing. One worker in async with --group 1 is plain SGD.\n"},

{"costs", "slow workers, delays, and who waits for whom",
"What a mode costs, and how to see it\n"
"\n"
"A run ends with a table of its workers: what their time went to, whom they have\n"
"waited for within epochs (at the ends of epochs all meet, in every mode), and\n"
"their delay: how many updates of others, on average, came between reading\n"
"parameters and changing them. Whoever computes for long and waits little is the\n"
"slow one. --measure 0 leaves out delays and for whom.\n"
"\n"
"--slow makes workers slow on purpose, several with commas between them:\n"
"  3:5x             the work of worker 3 takes five times as long\n"
"  3:+2ms           or each work item so much longer (us, ms, s)\n"
"  random:0.1:10x   an item in ten, which by --seed; also random:0.1:+5ms\n"
"Factors multiply, times add up. The time is slept, before gradients are pushed\n"
"(sparse models: before the item ends), so no processor is taken from others.\n"
"Slow is all work, with updates; not waits, merges and evaluations. The factor is\n"
"of the time that work takes beside the others: in async a worker left alone with\n"
"the parameters gets faster, so that 5x can be 10 times fewer examples.\n"
"Workers are numbered from 0; those that join by name are not slowed down.\n"
"\n"
"--count-lost 1     racy: how many updates were overwritten\n"
"--metrics FILE     the figures while the run goes on, a JSON object in each line\n"
"--trace FILE       what each worker did when (shmtrain help trace)\n"
"shmtrain compare   several modes, one after the other\n"
"  shmtrain compare -w 8 --modes async,sync,backup:6 --slow 3:5x a9a\n"},

{"optimizers", "update rules, rates and their schedules",
"How a gradient changes a parameter\n"
"\n"
"--optimizer  state  its own options           --schedule auto\n"
"  sgd        -                                inverse (l1, l2, softmax: cosine)\n"
"  momentum   1      --momentum                inverse (l1, l2, softmax: cosine)\n"
"  adagrad    1      --epsilon                 constant\n"
"  adam       2 (4)  --momentum --beta2        constant\n"
"                    --epsilon\n"
"  ftrl       2      --beta                    constant (no other is possible)\n"
"State: numbers for each parameter, in shared memory (adam: 4 in the live modes).\n"
"--write atomic refuses adam and ftrl, whose numbers must fit one another.\n"
"What they minimise, and what --l1 and --l2 do: shmtrain help objective.\n"
"\n"
"--rate auto takes the rate from the data, the model and the optimizer; the run\n"
"says which one it took. --schedule changes it, with e the epochs done so far:\n"
"  constant  rate\n"
"  inverse   rate / (1 + e / N)^X          --power X --decay-every N\n"
"  step      times X after every N epochs  --decay-by X --decay-every N\n"
"  cosine    half a cosine, down to 0 at the end of the run\n"
"X is 0.5 with --write aggregate and for softmax, else 2. N is a tenth of the run\n"
"for an X above 1, so that long runs learn to the end, 1 at least; for step 3.\n"
"--warmup N lets the rate grow from 0 during the first N epochs.\n"},

{"ending", "how long a run goes on",
"How long a run goes on\n"
"\n"
"--epochs N        passes over the data. Rates fall over all of them.\n"
"--steps N         batches in sync, else work items\n"
"--target-loss X   until the loss of an epoch is X or below\n"
"--patience N      until N epochs in a row bring no loss below the lowest one\n"
"--time-limit X    until X seconds after the start, in the middle of an epoch.\n"
"                  Loading counts, and is not cut short\n"
"What comes first ends it; the summary says what it was. Losses are those of the\n"
"validation data, where there is any (--valid), else of training. In sync they,\n"
"and so the end, are the same for every -w.\n"
"\n"
"The parameters are those of the last epoch, not of the best one. A run that ends\n"
"early has not brought its rate down: a second run with --epochs as many as it\n"
"took ends lower, and so does --schedule constant with a small --rate.\n"
"Ctrl-C ends a run in the same way, and saves what --output asks for.\n"},

{"objective", "what is minimised: losses, weights, L1, L2",
"What a run makes as small as it can\n"
"\n"
"  mean over the examples of weight * loss  +  l1 |w|  +  l2/2 |w|^2\n"
"\n"
"Losses: shmtrain help models. Weights of examples are 1 without --weights and\n"
"--class-weight. L1 and L2 leave the bias alone; with --bias 0 there is none.\n"
"\n"
"Every weight of a feature counts in full in the objective, also where an example\n"
"lacks the feature. In sync each update draws all of them to zero. In the live\n"
"modes an example changes no weights but those of its own features, and one that\n"
"occurs in every k-th example is drawn to zero k times as much then: the same in\n"
"the mean, so that all modes come to the same minimum. What never occurs stays 0.\n"
"With --l1 or --l2 the rate falls as a cosine by default, which comes near to it.\n"
"\n"
"The same objective elsewhere, with N examples:\n"
"  liblinear-train -s 0 -c C           --bias 0 --l2 X          X = 1 / (C * N)\n"
"  liblinear-train -s 3 -c C           -M svm --bias 0 --l2 X   X = 1 / (C * N)\n"
"  scikit-learn LogisticRegression(C)  --l2 X                   X = 1 / (C * N)\n"
"  ... SGDClassifier(alpha)            --l2 X                   X = alpha\n"
"ftrl takes the sum over its updates for the mean (McMahan et al. 2013): l1 and\n"
"l2 are to be multiplied by the run's updates (sync: batches, async: examples).\n"},

{"files", "text, images, generated data, validation, weights",
"DATA is one of\n"
"  a file of LIBSVM text   LABEL INDEX:VALUE ... in each line, indices ascending,\n"
"                          of up to 64 bits (far apart: those that occur are\n"
"                          numbered; --hash-bits N: hashed to 2^N). \"#\": comment\n"
"  a table (CSV, TSV)      of a name in .csv or .tsv: shmtrain help tables\n"
"  an IDX file             MNIST's format, also packed. Labels come from the file\n"
"                          with \"labels\" instead of \"images\" in its name, or\n"
"                          name both: IMAGES,LABELS; predict needs none\n"
"  builtin:sparse          generated, with a known best loss; the default\n"
"  builtin:dense           generated, dense, some classes\n"
"  builtin:line            generated, points near a line\n"
"Sizes of generated data: builtin:sparse:examples=100000,features=1000,nonzeros=9\n"
"(dense: examples, valid, features, classes, noise; line: examples, valid,\n"
"noise). The same --seed gives the same data.\n"
"\n"
"--valid FILE validates on another file after each epoch, --valid 0.1 on a tenth\n"
"of DATA that is not trained on. Generated data brings validation data with it.\n"
"--weights FILE has a weight for each example of DATA, one in each line.\n"
"--class-weight 1:3,-1:1 weighs labels; balanced gives all labels the same sum.\n"
"Weights multiply losses and steps of training; --rate auto is divided by their\n"
"mean, so that a factor which all of them share makes no longer steps.\n"
"\n"
"A bad line is refused with file, line and column. Data is read by all workers,\n"
"and must fit into memory: what is needed is held against what there is first.\n"},

{"tables", "CSV and TSV: labels, categories, missing values",
"DATA is a table if its name ends in .csv or .tsv, or with --input-format csv.\n"
"How it is read is found out from its beginning, and said in a line:\n"
"  delimiter   the most frequent one of comma, tab, semicolon and | in the first\n"
"              line, in .tsv a tab; or --delimiter C\n"
"  header      where a column of numbers begins with a word; --header yes, no\n"
"  label       the column label, target, y or class, if just one is called so,\n"
"              else the first; --label NAME, --label 3. If most are words, they\n"
"              count as 0, 1, ... (a pipe must begin with all of them)\n"
"  numbers     columns of which most are numbers; a word there is an error\n"
"  categories  columns of which most are words, or --categorical zip,3: each\n"
"              value is a feature of its own, by a hash of 64 bits\n"
"  left out    a first column without a name: the index of pandas, R's row names\n"
"What is missing (nothing, NA, NaN, null, none, \\N, ?) counts as 0: a number is\n"
"0 then, and no category is 1. Labels may not be missing (of words: nothing, ?).\n"
"Values may stand in quotes, with quotes inside doubled, without line breaks.\n"
"Several files are one table: each may have the header, but no other one.\n"
"\n"
"Features are numbered from 1 in the order of the columns. A model keeps how its\n"
"table was read, and --valid, eval and predict read theirs alike: by the names\n"
"where both have a header, in whatever order and case (unknown columns are left\n"
"out, one that is missing is an error), else by position (--header no: always).\n"
"eval --label NAME: its label. predict needs none. Numbers are taken as they are:\n"
"bring large and small columns to values near 1 before.\n"},

{"input", "where data comes from",
"Where data comes from\n"
"\n"
"shmtrain a.svm                       a file; packed ones, too: gz, bz2, xz, zst,\n"
"                                     lz4, Z, told by their content\n"
"shmtrain -                           standard input, packed or not; a FIFO or\n"
"                                     <(command) is named like a file\n"
"shmtrain a.svm b.svm.gz c.svm        several files of text, as one: their rows\n"
"                                     come in this order\n"
"shmtrain a.svm --valid b --valid c   several to validate on\n"
"\n"
"All workers read: while one unpacks, the others parse. Results have the same\n"
"bits however the data comes. topo, compare and data take the same; compare\n"
"reads its data once for each mode, so it takes nothing from a pipe.\n"
"\n"
"A line that cannot be read ends the run before training: FILE:LINE:COLUMN, what\n"
"was expected, what was found; of packed text the line of the text.\n"
"--skip-bad-lines leaves such lines out, says how many and what is wrong with the\n"
"first, and counts them as skipped_lines in --json. A damaged or cut off archive\n"
"is refused all the same, and so is data with bad lines only.\n"
"\n"
"What comes through a pipe does not come again: its rows are kept until all have\n"
"come, and need as much memory once more then. Where that is missing, a line says\n"
"to save the data to a file. It has no --cache; data convert makes one of it.\n"},

{"cache", "data that loads at once",
"Caches: data kept as it lies in memory\n"
"\n"
"shmtrain data convert DATA -o FILE   writes one, of whatever DATA names\n"
"shmtrain train FILE                  takes it as any data; so do --valid FILE,\n"
"                                     eval, predict, topo, compare, data info\n"
"shmtrain train --cache DATA          keeps one of text as DATA.shmcache, and\n"
"                                     makes it again when DATA has changed (size,\n"
"                                     date or samples of it), with a word; the\n"
"                                     same for the file of --valid; a table that\n"
"                                     is read as another one was is not kept\n"
"\n"
"It is not parsed but mapped, so all workers read one copy, which is the page\n"
"cache's. What comes out of a run is the same as from the text, to the last bit\n"
"(sync, or one worker); but dense models list ids that mostly do not occur where\n"
"they read text alone. All checksums are checked first, by all workers; a file\n"
"that is damaged, cut short or of another version is refused. It begins with a\n"
"mark of its own, so its name may be any.\n"
"\n"
"A copy is made instead for a run with a --name, on several NUMA nodes, with\n"
"--columns given or a model that minds the order of columns (softmax), of\n"
"validation data, and of a file that others may write or that lies on a network\n"
"file system: a mapped file that somebody cuts off ends the run. Replace a\n"
"cache in use (data convert and --cache do), and do not write into it.\n"},

{"models", "what can be learned",
"--model NAME (-M)\n"
"  logistic  two labels, logistic loss; predicts probabilities\n"
"  svm       two labels, hinge loss: a linear support vector machine\n"
"  linear    any labels, squared loss: linear regression. The loss is half the\n"
"            squared error, (p-y)^2/2; the bias begins at the mean label\n"
"  softmax   2 to 1,024 labels, cross-entropy; on dense rows, with OpenBLAS\n"
"\n"
"Labels may be any numbers (0 and 1, -1 and 1, 1 to 10); of two, the larger one\n"
"is the positive class. All models learn a bias, which L1 and L2 leave alone;\n"
"--bias 0 leaves it out. LIBSVM text is made dense for softmax.\n"
"\n"
"softmax multiplies matrices by OpenBLAS; with -t, each worker has that many\n"
"threads for it (-w times -t in all). The library is Debian's\n"
"libopenblas0-serial, any other OpenBLAS that is there, or the file that\n"
"SHMTRAIN_BLAS names. In sync the bits depend on its kernel, which the run names.\n"
"\n"
"  shmtrain -M softmax -o digits train-images-idx3-ubyte.gz\n"
"  shmtrain eval digits t10k-images-idx3-ubyte.gz\n"
"  shmtrain predict digits t10k-images-idx3-ubyte.gz --probabilities\n"},

};
/* clang-format on */

#define N_LEARNING (sizeof LEARNING / sizeof *LEARNING)

const struct topic *topic_at(size_t i) { return i < N_LEARNING ? &LEARNING[i] : topic_of_runs_at(i - N_LEARNING); }

const struct topic *topic_named(const char *name) {
    const struct topic *t;
    for (size_t i = 0; (t = topic_at(i)); i++)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

void topics_print_list(void) {
    const struct topic *t;
    for (size_t i = 0; (t = topic_at(i)); i++) printf("  %-22s %s\n", t->name, t->about);
}

/* Words, in lines from column INDENT on. */
static void put_words(FILE *out, const char *words) {
    enum { WIDTH = 80, INDENT = 12 };
    size_t column = INDENT;
    for (size_t n; *words; words += n + strspn(words + n, " ")) {
        n = strcspn(words, " ");
        if (column > INDENT && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", INDENT, "");
            column = INDENT;
        }
        column += (size_t)fprintf(out, "%s%.*s", column > INDENT ? " " : "", (int)n, words);
    }
    fprintf(out, "\n");
}

static void put_modes(FILE *out) {
    const struct shmtrain_mode *m;
    for (size_t i = 0; (m = shmtrain_mode_at(i)); i++) {
        char words[256];
        fprintf(out, "  %-9s ", m->form);
        snprintf(words, sizeof words, "%s; %s", m->about, m->known_as);
        put_words(out, words);
        fprintf(out, "%12s", "");
        put_words(out, m->axes);
    }
}

void topic_print(const struct topic *topic, FILE *out) {
    const char *modes = strstr(topic->text, MODES);
    fprintf(out, "%.*s", modes ? (int)(modes - topic->text) : 0, topic->text);
    if (modes) put_modes(out);
    fputs(modes ? modes + strlen(MODES) : topic->text, out);
}
