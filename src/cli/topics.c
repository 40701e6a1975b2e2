/* The texts of shmtrain help TOPIC: see topics.h. Those about what is learned, and from what, stand here; those about runs in
 * topics_runs.c. Who changes what an option does looks here, too. */
#include "cli/topics.h"

#include <shmtrain/store.h>
#include <stdio.h>
#include <string.h>

#define MODES "@modes\n" /* in a text: the list of modes, as the library has it */

/* clang-format off */
static const struct topic LEARNING[] = {
{"modes", "async, sync, and the modes between them",
"How the updates of many workers are combined\n"
"\n"
MODES
"Without --mode, the options decide (--replicas worker: local), else the model:\n"
"sync if its gradients are dense (softmax), async if they are sparse. A mode\n"
"stands for a few options (shmtrain help axes). An option on the command line\n"
"overrides that of the mode: --mode ssp:4 --write locked.\n"},

{"axes", "the options that a mode stands for",
"The options that a mode stands for (shmtrain help modes)\n"
"\n"
"--write racy       plain stores; of two at the same moment one may be lost\n"
"        atomic     each number by compare-and-swap; nothing is lost\n"
"        locked     each row under a lock; dense tables 1,024 numbers at a time\n"
"        aggregate  gradients are added up, and one update takes their mean\n"
"The first three are live modes: weights change while other workers read them.\n"
"--staleness S      after each clock (item, batch), a worker that is more than S\n"
"                   clocks ahead of the slowest waits for it; inf: never\n"
"--quorum K         aggregate: an update waits for only K workers' gradients.\n"
"--late drop        Gradients that come later are dropped,\n"
"       fold        or added to a later update, without counting for its quorum\n"
"--replicas worker  each worker (node: each NUMA node) trains a copy of the\n"
"                   parameters. Every --merge-every H clocks, copies are merged:\n"
"--merge mean       averaged\n"
"        sum        all changes are added to the common copy\n"
"        elastic    each copy and the common copy take a step towards each other\n"
"        damped     changes are added, scaled to what one worker would have made\n"
"With --staleness 0 all workers meet to merge, else each merges on its own.\n"
"Threads of a worker share its copy: for sparse models use -w 8, not -w 2 -t 4.\n"
"\n"
"sync gives the same bits for every -w and -t (compare the line \"parameters\").\n"
"--chunks sets the parts of a batch; more workers than that are idle.\n"},

{"costs", "slow workers, delays, and who waits for whom",
"What a mode costs, and how to see it\n"
"\n"
"A run ends with a table of its workers: where their time went, which workers\n"
"they waited for within epochs, and their delay. The delay of an update is how\n"
"many updates other workers made between its reading of the parameters and its\n"
"writing; the table has the mean (--measure 0: none). The slow worker computes\n"
"long and waits little. At the end of an epoch all workers meet, in every mode.\n"
"\n"
"--slow makes workers slow on purpose; separate several with commas:\n"
"  3:5x             worker 3 takes five times as long for its work\n"
"  3:+2ms           worker 3 takes 2 ms longer for each work item (us, ms, s)\n"
"  random:0.1:10x   one item in ten, chosen by --seed; also random:0.1:+5ms\n"
"Factors multiply, times add up. The worker sleeps before it pushes gradients\n"
"(sparse models: at the end of the item), so it takes no processor from others. A\n"
"factor covers work and updates, not waits, merges and evaluation. In async the\n"
"others speed up while one sleeps: 5x can mean a tenth of their examples.\n"
"Workers count from 0; those that join by name are not slowed down.\n"
"\n"
"--count-lost 1     racy: count overwritten updates (counting changes how many)\n"
"--race-window P:TIME  racy: wait between reading and writing, a share P of times\n"
"--metrics FILE     figures while the run goes on, one JSON object per line\n"
"--trace FILE       what each worker did when (shmtrain help trace)\n"
"shmtrain compare   several modes, each at the best of three rates:\n"
"  shmtrain compare -w 8 --modes async,sync,backup:6 --slow 3:5x a9a\n"},

{"optimizers", "update rules, rates and their schedules",
"How a gradient changes a parameter\n"
"\n"
"--optimizer  state  its own options           --schedule auto\n"
"  sgd        -                                cosine (files, softmax) or inverse\n"
"  momentum   1      --momentum                cosine (files, softmax) or inverse\n"
"  adagrad    1      --epsilon                 cosine (files) or constant\n"
"  adam       2 (4)  --momentum --beta2        cosine\n"
"                    --epsilon\n"
"  ftrl       2      --beta                    constant (the only one)\n"
"State: numbers per parameter in shared memory (adam: 4 in the live modes).\n"
"--write atomic refuses adam and ftrl, because their numbers must fit together.\n"
"The objective, with --l1 and --l2: shmtrain help objective.\n"
"\n"
"--rate auto takes the rate from the data, the model and the optimizer; the run\n"
"prints it. --schedule changes it after e epochs:\n"
"  constant  rate\n"
"  inverse   rate / (1 + e / N)^X          --power X --decay-every N\n"
"  step      times X after every N epochs  --decay-by X --decay-every N\n"
"  cosine    half a cosine, down to 0 at the end of the run\n"
"X is 0.5 for --write aggregate, averaged copies (--merge mean or elastic),\n"
"softmax and own functions, else 2. N is a tenth of the run if X is above 1 (so\n"
"that long runs learn to the end), else 1; for step it is 3. So 10 epochs of\n"
"builtin:sparse have rate / (1 + e)^2 in async, rate / (1 + e)^0.5 in sync.\n"
"--warmup N raises the rate from 0 during the first N epochs.\n"},

{"ending", "how long a run goes on",
"How long a run goes on\n"
"\n"
"--epochs N        passes over the data; learning rates fall over all of them\n"
"--steps N         batches in sync, else work items\n"
"--target-loss X   until the loss of an epoch is X or lower\n"
"--patience N      until N epochs in a row bring no lower loss\n"
"--time-limit X    until X seconds after the start, also within an epoch. Loading\n"
"                  counts, but is not cut short\n"
"The first limit that is reached ends the run, and the summary names it. The loss\n"
"is that of the validation data (--valid), or the training loss if there is none.\n"
"In sync the losses, and so the end, are the same for every -w.\n"
"\n"
"The parameters are those of the last epoch; with --keep best those of the epoch\n"
"with the lowest validation loss, which is not measured anew. A run that ends\n"
"early has not brought its rate down. To get a lower loss, run again with\n"
"--epochs set to the number of epochs it took, or use --schedule constant and a\n"
"small --rate. Ctrl-C ends a run in the same way, and saves what --output asks\n"
"for.\n"},

{"objective", "what is minimised: losses, weights, L1, L2",
"What a run minimises\n"
"\n"
"  mean over the examples of weight * loss  +  l1 |w|  +  l2/2 |w|^2\n"
"\n"
"The losses: shmtrain help models. Each example has weight 1 unless --weights or\n"
"--class-weight say otherwise. L1 and L2 do not apply to the bias; --bias 0\n"
"removes it.\n"
"\n"
"L1 and L2 count the weight of each feature in full, however rare the feature is.\n"
"In sync each update shrinks all weights. In the live modes an example changes\n"
"only the weights of its own features; a feature that occurs in every k-th\n"
"example is then shrunk k times as much. The mean is the same, so all modes have\n"
"the same minimum. Weights of features that never occur stay 0.\n"
"\n"
"The same in other programs, with N examples (--C C sets X so):\n"
"  liblinear-train -s 0, 7 -c C        --bias 0 --l2 X          X = 1 / (C * N)\n"
"  liblinear-train -s 3 -c C           -M svm --bias 0 --l2 X   X = 1 / (C * N)\n"
"  liblinear-train -s 11 -p 0 -c C     -M linear --bias 0       X = 1 / (2 C * N)\n"
"  scikit-learn LogisticRegression(C)  --l2 X                   X = 1 / (C * N)\n"
"  ... SGDClassifier(alpha)            --l2 X                   X = alpha\n"
"ftrl minimises the sum over its updates, not the mean (McMahan et al. 2013). So\n"
"multiply l1 and l2 by the number of updates (sync: batches, async: examples).\n"},

{"optimum", "fits with a proof: --tolerance",
"Fits that prove how near the optimum they are\n"
"\n"
"  shmtrain --C 1 --tolerance 1e-3 train.svm\n"
"\n"
"The run goes on until its objective (shmtrain help objective) is proved to be\n"
"within 0.1 % of the optimum. It is for logistic, linear, softmax and svm with L2\n"
"(--C, --l2; where neither is typed it is chosen, but for svm: shmtrain help\n"
"learning), and, for logistic and linear, with --l1, which leaves most weights 0.\n"
"Each epoch is one step, which has no rate. Its line shows the objective and the\n"
"gap: how far, as a part of the optimum, the objective can be above it; \"-\":\n"
"nothing is proved yet. The proof is the duality gap: the errors of the\n"
"predictions give a lower bound of the objective that holds for all weights. It\n"
"is proved for the weights as they are saved, in 32 bits. If these have too few\n"
"digits for it, or --epochs (by default 1000) is too few, it says NOT proved, how\n"
"near it came and what to type. Ctrl-C ends it at once, within a step.\n"
"\n"
"Steps are Newton's; with --l1 they are coordinate descent. Those of svm are dual\n"
"coordinate ascent, by one worker, and, where that is slow and features are few,\n"
"interior points. All workers meet after each pass over the data; the weights\n"
"have the same bits for every -w, whoever dies. With --mode async or hogwild all\n"
"workers ascend the dual at once; what is proved is as true, but bits differ.\n"
"It takes some 10 bytes per nonzero, 32 per example (svm 96), 150 per feature;\n"
"softmax 16, 130 more per class. With --name others watch it, and cannot join.\n"
"For svm and these modes no --init-from.\n"},

{"learning", "what a run chooses by itself",
"What a run chooses by itself\n"
"\n"
"  shmtrain train.svm\n"
"fits logistic, linear and softmax exactly (shmtrain help optimum). L2 is one of\n"
"seven values, N * l2 = 1000 ... 0.001, of features as they are or divided by\n"
"their scales: the one whose fits do best on examples that were held out from\n"
"them. Then all examples are fitted with it. A line says what was chosen.\n"
"  --scale yes|no    decides half of it; --l2, --C, --l1 the other half\n"
"\n"
"A run takes steps of SGD if an option says how (--mode, --optimizer, --rate,\n"
"--epochs, --patience, ...), with what only SGD has (--init-from, --name,\n"
"--trace, --log-every, --on-death continue), for svm, on builtin:..., and where\n"
"memory is short. What is not typed then follows from the data:\n"
"  --scale auto      tables: each feature has mean 0, deviation 1; sparse data:\n"
"                    features far larger than others come down. Not where --rate,\n"
"                    --l1, --l2 or --C is typed, nor with --checkpoint, --name or\n"
"                    --init-from. Saved models are for features as they are\n"
"  --epochs auto     40 below 20,000 examples with L2, else 20 below 200,000 on\n"
"                    files, else 10\n"
"  --l2              chosen below 20,000 examples; not with --rate, --l1 or --C\n"
"  --batch auto      64, or as few as make 128 updates in an epoch, but 8\n"
"  --rate auto       by size and number of features, mode and optimizer\n"
"docs/learning.md has the reasons, and how good it is on twenty sets.\n"},

{"files", "text, images, generated data, validation, weights",
"DATA is one of\n"
"  a file of LIBSVM text   LABEL INDEX:VALUE ... in each line, indices ascending,\n"
"                          up to 64 bits. Indices far apart are renumbered, in\n"
"                          order; --hash-bits N hashes them to 2^N columns\n"
"  a table (CSV, TSV)      a name in .csv or .tsv (shmtrain help tables)\n"
"  an IDX file             MNIST's format, also packed. Labels come from the file\n"
"                          with \"labels\" for \"images\" in its name; or give both:\n"
"                          IMAGES,LABELS. predict needs no labels\n"
"  builtin:sparse          generated, with a known best loss; the default\n"
"  builtin:dense           generated, dense, several classes\n"
"  builtin:line            generated, points near a line\n"
"Sizes of generated data: builtin:sparse:examples=100000,features=1000,nonzeros=9\n"
"(dense: examples, valid, features, classes, noise; line: examples, valid,\n"
"noise). The same --seed gives the same data; seed=N in its name comes first.\n"
"\n"
"--valid FILE validates on another file after each epoch, --valid 0.1 on a tenth\n"
"of DATA that is not trained on. Generated data has its own validation data.\n"
"--weights FILE has one weight per line, for each example of DATA. --class-weight\n"
"1:3,-1:1 weighs labels; balanced gives all labels the same sum. Weights multiply\n"
"losses and training steps. --rate auto is divided by their mean, so a factor\n"
"common to all weights does not lengthen the steps. A bad line is refused with\n"
"file, line and column. Data must fit into memory; that is checked first.\n"},

{"tables", "CSV and TSV: labels, categories, missing values",
"DATA is a table if its name ends in .csv or .tsv, or with --input-format csv.\n"
"Its first lines decide how it is read, and a line says what was decided:\n"
"  delimiter   the most frequent one of comma, tab, semicolon and | in the first\n"
"              line, in .tsv a tab; or --delimiter C\n"
"  header      yes if a column of numbers begins with a word; or --header yes, no\n"
"  label       the column called label, target, y or class, if there is just one,\n"
"              else the first; or --label NAME, --label 3. Words as labels become\n"
"              0, 1, ... (in a pipe, all must occur near its beginning)\n"
"  numbers     columns of which most are numbers; a word in one is an error\n"
"  categories  columns of which most are words, or --categorical zip,3: each\n"
"              value is a feature of its own, by a hash of 64 bits\n"
"  left out    --ignore id,4; a first column without name; columns of words that\n"
"              are different in each line, if they are not in --categorical\n"
"A missing value (nothing, NA, NaN, null, none, \\N, ?) is no category; of numbers\n"
"it is the mean, and a feature says that it is missing. A label must not be\n"
"missing (words: nothing or ?). Values may be quoted, inner quotes doubled, but\n"
"without line breaks. Several files are one table; each may have its header.\n"
"\n"
"Features count from 1, in the order of the columns. A model remembers how its\n"
"table was read. --valid, eval and predict find columns by name if both tables\n"
"have a header, in any order and case. Unknown columns are left out; a missing\n"
"column is an error. Without headers (--header no) the position counts.\n"
"eval --label NAME names the label there.\n"},

{"input", "files, packed files, pipes, bad lines",
"Where data comes from\n"
"\n"
"shmtrain a.svm                       a file, also packed: gz, bz2, xz, zst, lz4,\n"
"                                     Z (the content tells)\n"
"shmtrain -                           standard input, also packed. A FIFO or\n"
"                                     <(command) is named like a file\n"
"shmtrain a.svm b.svm.gz c.svm        several files of text, read as one in this\n"
"                                     order\n"
"shmtrain a.svm --valid b --valid c   several files to validate on\n"
"\n"
"All workers read: while one unpacks, the others parse. Results have the same\n"
"bits however the data comes; for tables, if the first file has the first 256\n"
"rows. topo, compare and data take the same sources. compare reads its data once\n"
"for each mode, so it cannot read a pipe.\n"
"\n"
"A bad line ends the run before training. The message has FILE:LINE:COLUMN, what\n"
"was expected, and what was found. In packed files, lines are those of the\n"
"unpacked text. --skip-bad-lines leaves bad lines out, says how many there were\n"
"and what is wrong with the first, and counts them as skipped_lines in --json. A\n"
"damaged archive, or data with bad lines only, is still refused.\n"
"\n"
"A pipe can be read only once. Its rows are collected first, which needs twice\n"
"their memory for a moment; if there is not enough, a line says to save the data\n"
"to a file. --cache does not work with a pipe, but data convert does.\n"},

{"cache", "data that loads at once",
"Caches: files with the data as it is in memory\n"
"\n"
"shmtrain data convert DATA -o FILE   writes a cache of any DATA\n"
"shmtrain train FILE                  reads a cache like any data; so do --valid,\n"
"                                     eval, predict, topo, compare, data info\n"
"shmtrain train --cache DATA          keeps a cache of text as DATA.shmcache. If\n"
"                                     DATA has changed (size, date or samples), a\n"
"                                     line says so, and it is made again. Also\n"
"                                     for --valid, but not for a table that is\n"
"                                     read in another table's way\n"
"\n"
"A cache is not parsed but mapped: all workers read one copy, in the page cache.\n"
"Results have the same bits as from the text (sync, or one worker), except for\n"
"dense models: ids that mostly do not occur are renumbered in text only. All\n"
"workers check its checksums first. A damaged or truncated file, or one of\n"
"another version, is refused. A cache is recognised by content, not by name.\n"
"\n"
"Truncating a mapped file ends the run. So a cache is copied, not mapped, if\n"
"others may write it or it is on a network file system. It is also copied with\n"
"--name, on several NUMA nodes, with --columns given, for models that need the\n"
"order of columns (softmax), and as validation data. Do not write into a cache in\n"
"use; replace it (data convert and --cache do).\n"},

{"models", "what can be learned",
"--model NAME (-M)\n"
"  logistic  two labels, logistic loss; predicts probabilities\n"
"  svm       two labels, hinge loss: a linear support vector machine\n"
"  linear    any labels, squared loss: linear regression. The loss is half the\n"
"            squared error, (p-y)^2/2; the bias begins at the mean label\n"
"  softmax   2 to 1,024 labels, cross-entropy; with OpenBLAS where data is dense\n"
"\n"
"Labels may be any numbers (0 and 1, -1 and 1, 1 to 10). Of two labels, the\n"
"larger is the positive class. All models learn a bias, to which L1 and L2 do not\n"
"apply; --bias 0 leaves it out. LIBSVM text is made dense for softmax.\n"
"\n"
"softmax multiplies matrices with OpenBLAS, by -t threads in each worker (-w\n"
"times -t in all). The library is Debian's libopenblas0-serial, any other\n"
"installed OpenBLAS, or the file in SHMTRAIN_BLAS. In sync the bits depend on its\n"
"kernel, which the run names.\n"
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
