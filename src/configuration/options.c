/* The option table: see options.h. Each row says all there is to say about an option; the command line, its help, the
 * environment and shmtrain_store_set are made from it. */
#include "configuration/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configuration/options_priv.h"
#include "configuration/role.h"
#include "base/plain.h"
#include "consistency/chunks.h"
#include "data/columns.h"
#include "ps/spec.h"

/* Short words for the table. */
#define COUNT  SHMT_OPTION_COUNT
#define REAL   SHMT_OPTION_REAL
#define SWITCH SHMT_OPTION_SWITCH
#define CHOICE SHMT_OPTION_CHOICE
#define WORD   SHMT_OPTION_WORD
#define TEXT   SHMT_OPTION_TEXT

#define AT(field) offsetof(struct shmt_config, field)
#define ENV(name) "SHMTRAIN_" name

#define WORK  "Work and workers"
#define FAIL  "Workers that die or stall"
#define KEEP  "Checkpoints"
#define HOW   "Consistency"
#define SEE   "What it costs"
#define WHAT  "Model and data"
#define LEARN "Optimizer"
#define WHERE "Memory and processors"
#define HOSTS "Many hosts"

/* An option is two lines here: what users see, and how it is parsed. */
/* clang-format off */
static const struct shmt_option_row ROWS[] = {
    {{"workers", 'w', "N", "cores", ENV("WORKERS"), WORK, "worker processes"},
     COUNT, AT(workers), 1, 4096, "cores"},
    {{"threads", 't', "N", "1", ENV("THREADS"), WORK, "threads of each worker"},
     COUNT, AT(threads), 1, 256, NULL},
    {{"epochs", 'e', "N", "auto", ENV("EPOCHS"), WORK, "passes over the data; auto: 10 to 40"},
     COUNT, AT(epochs), 1, SHMT_MAX_EPOCHS, "auto"},
    {{"steps", 0, "N", "all", ENV("STEPS"), WORK, "end after N steps (sync: batches; others: items)"},
     COUNT, AT(steps), 1, 1e18, "all"},
    {{"time-limit", 0, "X", "none", ENV("TIME_LIMIT"), WORK, "end training X seconds after loading began"},
     REAL, AT(time_limit), 1e-3, 1e9, "none"},
    {{"target-loss", 0, "X", "none", ENV("TARGET_LOSS"), WORK, "end when the loss (validation, if any) is X or lower"},
     REAL, AT(target_loss), 0, 1e300, "none"},
    {{"patience", 0, "N", "none", ENV("PATIENCE"), WORK, "end after N epochs in a row without a lower loss"},
     COUNT, AT(patience), 1, 1000000, "none"},
    {{"on-death", 0, "HOW", "respawn", ENV("ON_DEATH"), FAIL, "respawn the worker, continue without it, or abort"},
     CHOICE, AT(on_death), 0, 0, "respawn|continue|abort"},
    {{"max-respawns", 0, "N", "3", ENV("MAX_RESPAWNS"), FAIL, "restarts of one worker; one more death ends the run"},
     COUNT, AT(max_respawns), 0, 1000000, NULL},
    {{"in-flight", 0, "HOW", "redo", ENV("IN_FLIGHT"), FAIL, "live modes: redo or skip a dead worker's item"},
     CHOICE, AT(in_flight), 0, 0, "redo|skip"},
    {{"stall-timeout", 0, "TIME", "30s", ENV("STALL_TIMEOUT"), FAIL, "report a worker that stalls this long; 500ms, 2m, or none"},
     TEXT, AT(stall_timeout), 0, 0, NULL},
    {{"on-stall", 0, "HOW", "report", ENV("ON_STALL"), FAIL, "only report it, kill the worker, or abort the run"},
     CHOICE, AT(on_stall), 0, 0, "report|kill|abort"},
    {{"checkpoint", 0, "DIR", "", ENV("CHECKPOINT"), KEEP, "write checkpoints, to resume from, to DIR"},
     TEXT, AT(checkpoint), 0, 0, NULL},
    {{"checkpoint-every", 0, "N", "60s", ENV("CHECKPOINT_EVERY"), KEEP, "a time (60s), steps (1000), or \"1 epoch\""},
     TEXT, AT(checkpoint_every), 0, 0, NULL},
    {{"keep", 0, "N", "3", ENV("KEEP"), KEEP, "newest checkpoints to keep, or all; best: the best epoch's model"},
     COUNT, AT(keep), 1, 1000000, "all"},
    {{"resume", 0, NULL, "0", ENV("RESUME"), KEEP, "resume from the newest good checkpoint in DIR, if any"},
     SWITCH, AT(resume), 0, 1, NULL},
    {{"init-from", 0, "FILE", "", ENV("INIT_FROM"), KEEP, "begin with the parameters of a model or checkpoint"},
     TEXT, AT(init_from), 0, 0, NULL},
    {{"mode", 0, "NAME", "auto", ENV("MODE"), HOW, "async, hogwild, sync, ssp:S, backup:K, local:H"},
     TEXT, AT(mode), 0, 0, NULL},
    {{"write", 0, "HOW", "", ENV("WRITE"), HOW, "racy, atomic, locked or aggregate; default: by mode"},
     CHOICE, AT(axes.write), 0, 0, "racy|atomic|locked|aggregate"},
    {{"staleness", 0, "S", "", ENV("STALENESS"), HOW, "most clocks ahead of the slowest, or inf; default: by mode"},
     TEXT, AT(staleness), 0, 0, NULL},
    {{"quorum", 0, "K", "auto", ENV("QUORUM"), HOW, "aggregate: gradients that an update waits for"},
     COUNT, AT(axes.quorum), 1, 4096, "auto"},
    {{"late", 0, "HOW", "", ENV("LATE"), HOW, "aggregate: drop later gradients, or fold them in"},
     CHOICE, AT(axes.late), 0, 0, "drop|fold"},
    {{"replicas", 0, "HOW", "", ENV("REPLICAS"), HOW, "copies of parameters: one, node, worker or equal"},
     CHOICE, AT(axes.replicas), 0, 0, "one|node|worker|equal"},
    {{"merge-every", 0, "H", "auto", ENV("MERGE_EVERY"), HOW, "replicas: clocks between two merges"},
     COUNT, AT(axes.merge_every), 1, 1 << 30, "auto"},
    {{"merge", 0, "HOW", "", ENV("MERGE"), HOW, "replicas: mean, sum (of changes), elastic or damped"},
     CHOICE, AT(axes.merge), 0, 0, "mean|sum|elastic|damped"},
    {{"cache-pulls", 0, "N", "0", ENV("CACHE_PULLS"), HOW, "live modes: read a copy, at most N clocks old"},
     COUNT, AT(cache_pulls), 0, SHMT_MAX_CACHE_PULLS, NULL},
    {{"batch", 'b', "N", "auto", ENV("BATCH"), HOW, "sync, backup: examples per update, all workers"},
     COUNT, AT(batch), 1, 1 << 30, "auto"},
    {{"chunks", 0, "N", "auto", ENV("CHUNKS"), HOW, "sync: parts of a batch, which limit the busy workers"},
     COUNT, AT(chunks), 1, SHMT_MAX_CHUNKS, "auto"},
    {{"item", 0, "N", "auto", ENV("ITEM"), HOW, "live modes: examples of an item; auto: 1024; softmax 8 to 64, networks, own 64"},
     COUNT, AT(item), 1, 1 << 24, "auto"},
    {{"group", 0, "N", "4", ENV("GROUP"), HOW, "live modes: examples in flight; 1 is plain SGD"},
     COUNT, AT(group), 1, 64, NULL},
    {{"slow", 0, "WHO:HOW", "", ENV("SLOW"), SEE, "slow workers down: 3:5x, 3:+2ms, random:0.1:10x"},
     TEXT, AT(slow), 0, 0, NULL},
    {{"count-lost", 0, "0|1", "0", ENV("COUNT_LOST"), SEE, "racy: count how many updates are overwritten"},
     SWITCH, AT(count_lost), 0, 1, NULL},
    {{"race-window", 0, "[P:]TIME", "", ENV("RACE_WINDOW"), SEE, "racy: wait before writing, a share P of the times"},
     TEXT, AT(race_window), 0, 0, NULL},
    {{"measure", 0, "0|1", "1", ENV("MEASURE"), SEE, "measure delays, and whom workers wait for"},
     SWITCH, AT(measure), 0, 1, NULL},
    {{"log-every", 0, "N", "none", ENV("LOG_EVERY"), SEE, "print a line every N steps (sync: batches; others: items)"},
     COUNT, AT(log_every), 1, 1e18, "none"},
    {{"metrics", 0, "FILE", "", ENV("METRICS"), SEE, "write JSON lines about the run while it goes on"},
     TEXT, AT(metrics), 0, 0, NULL},
    {{"trace", 0, "FILE", "", ENV("TRACE"), SEE, "write what each worker did when, for Perfetto"},
     TEXT, AT(trace), 0, 0, NULL},
    {{"record", 0, "FILE", "", ENV("RECORD"), SEE, "modes that aggregate: keep what decides the bits, to replay it"},
     TEXT, AT(record), 0, 0, NULL},
    {{"replay", 0, "FILE", "", ENV("REPLAY"), SEE, "fibers: repeat a recorded run, to the same bits"},
     TEXT, AT(replay), 0, 0, NULL},
    {{"model", 'M', "NAME", "logistic", ENV("MODEL"), WHAT, "logistic svm linear softmax mlp cnn net"},
     TEXT, AT(model), 0, 0, NULL},
    {{"optimizer", 0, "NAME", "auto", ENV("OPTIMIZER"), LEARN, "sgd, momentum, adagrad, adam, ...; auto: by model (help optimizers)"},
     CHOICE, AT(optimizer), 0, 0, "auto|sgd|momentum|adagrad|adam|ftrl|nesterov|rmsprop|adadelta|adamw|lamb"},
    {{"rate", 'r', "X", "auto", ENV("RATE"), LEARN, "learning rate; auto: by data, mode and optimizer"},
     REAL, AT(rate), 1e-12, 1e12, "auto"},
    {{"schedule", 0, "NAME", "auto", ENV("SCHEDULE"), LEARN, "constant, inverse, step, cosine or one-cycle; auto: by model and optimizer"},
     CHOICE, AT(schedule), 0, 0, "auto|constant|inverse|step|cosine|one-cycle"},
    {{"power", 0, "X", "auto", ENV("POWER"), LEARN, "inverse: rate / (1 + epochs / N)^X; auto: 0.5 or 2 (shmtrain help optimizers)"},
     REAL, AT(power), 0, 8, "auto"},
    {{"decay-every", 0, "X", "auto", ENV("DECAY_EVERY"), LEARN, "step, inverse: the N of their formulas, in epochs"},
     REAL, AT(decay_every), 1e-6, 1e9, "auto"},
    {{"decay-by", 0, "X", "0.3", ENV("DECAY_BY"), LEARN, "step: multiply the rate by X every N epochs"},
     REAL, AT(decay_by), 1e-6, 1, NULL},
    {{"warmup", 0, "X", "auto", ENV("WARMUP"), LEARN, "epochs in which the rate grows from 0"},
     REAL, AT(warmup), 0, 1e9, "auto"},
    {{"momentum", 0, "X", "auto", ENV("MOMENTUM"), LEARN, "momentum's, nesterov's; adam's beta1; auto: 0.9"},
     REAL, AT(momentum), 0, 0.999999, "auto"},
    {{"beta2", 0, "X", "0.999", ENV("BETA2"), LEARN, "adam's, adamw's and lamb's"},
     REAL, AT(beta2), 0, 0.999999, NULL},
    {{"rho", 0, "X", "auto", ENV("RHO"), LEARN, "how squares are forgotten: rmsprop 0.99, adadelta 0.9"},
     REAL, AT(rho), 0, 0.999999, "auto"},
    {{"epsilon", 0, "X", "auto", ENV("EPSILON"), LEARN, "of rules that divide by a root: 1e-8; adadelta 1e-6"},
     REAL, AT(epsilon), 1e-30, 1e6, "auto"},
    {{"weight-decay", 0, "X", "auto", ENV("WEIGHT_DECAY"), LEARN,
     "adamw, lamb: each update takes rate * X of a weight; auto: 0.01 or 0.0001"},
     REAL, AT(weight_decay), 0, 1e6, "auto"},
    {{"clip-value", 0, "X", "none", ENV("CLIP_VALUE"), LEARN, "limit each element of a gradient to -X .. X"},
     REAL, AT(clip_value), 0, 1e30, "none"},
    {{"clip-norm", 0, "X", "auto", ENV("CLIP_NORM"), LEARN, "scale gradients down to a norm of X; 0: never"},
     REAL, AT(clip_norm), 0, 1e30, "auto"},
    {{"staleness-aware", 0, "0|1", "0", ENV("STALENESS_AWARE"), LEARN, "divide the rate of a gradient by its delay"},
     SWITCH, AT(staleness_aware), 0, 1, NULL},
    {{"beta", 0, "X", "1", ENV("BETA"), LEARN, "ftrl's"},
     REAL, AT(beta), 0, 1e6, NULL},
    {{"l1", 0, "X", "0", ENV("L1"), LEARN, "L1: mean loss + l1 |w| (ftrl: sum of losses)"},
     REAL, AT(l1), 0, 1e6, NULL},
    {{"l2", 0, "X", "0", ENV("L2"), LEARN, "L2: mean loss + l2/2 |w|^2; of files: often chosen"},
     REAL, AT(l2), 0, 1e6, NULL},
    {{"C", 0, "X", "none", ENV("C"), LEARN, "L2 as in LIBLINEAR: --l2 1/(C N), N examples"},
     REAL, AT(c), 1e-12, 1e12, "none"},
    {{"scale", 0, "HOW", "auto", ENV("SCALE"), LEARN, "yes: features on one scale; no; auto: as fits choose, SGD: yes"},
     CHOICE, AT(scale), 0, 0, "auto|yes|no"},
    {{"tolerance", 0, "X", "none", ENV("TOLERANCE"), LEARN, "fit until the objective is proved to be within X of the optimum"},
     REAL, AT(tolerance), 1e-12, 1, "none"},
    {{"bias", 0, "0|1", "1", ENV("BIAS"), WHAT, "learn a bias"},
     SWITCH, AT(bias), 0, 1, NULL},
    {{"valid", 0, "PATH|X", "", ENV("VALID"), WHAT, "validation data: a file, or a share (0.1) of DATA"},
     TEXT, AT(valid), 0, 0, NULL},
    {{"input-format", 0, "NAME", "auto", ENV("INPUT_FORMAT"), WHAT, "format of text: libsvm, csv or tsv; auto: by file name"},
     WORD, AT(input_format), 0, 0, "auto|libsvm|csv|tsv"},
    {{"label", 0, "COLUMN", "", ENV("LABEL"), WHAT, "CSV: the label's column, by name or number"},
     TEXT, AT(label), 0, 0, NULL},
    {{"categorical", 0, "A,B,...", "", ENV("CATEGORICAL"), WHAT, "CSV: columns of categories that look like numbers"},
     TEXT, AT(categorical), 0, 0, NULL},
    {{"ignore", 0, "A,B,...", "", ENV("IGNORE"), WHAT, "CSV: columns that are left out"},
     TEXT, AT(ignore), 0, 0, NULL},
    {{"delimiter", 0, "C", "auto", ENV("DELIMITER"), WHAT, "CSV: the character between fields, or tab"},
     TEXT, AT(delimiter), 0, 0, NULL},
    {{"header", 0, "HOW", "auto", ENV("HEADER"), WHAT, "CSV: whether the first line has the columns' names"},
     WORD, AT(header), 0, 0, "auto|yes|no"},
    {{"hash-bits", 0, "N", "none", ENV("HASH_BITS"), WHAT, "hash the ids of features to 2^N columns"},
     COUNT, AT(hash_bits), 1, SHMT_HASH_BITS_MAX, "none"},
    {{"cache", 0, NULL, "0", ENV("CACHE"), WHAT, "keep a cache of text beside it, as FILE.shmcache"},
     SWITCH, AT(cache), 0, 1, NULL},
    {{"skip-bad-lines", 0, NULL, "0", ENV("SKIP_BAD_LINES"), WHAT, "leave out lines that cannot be read, and count them"},
     SWITCH, AT(skip_bad_lines), 0, 1, NULL},
    {{"weights", 0, "FILE", "", ENV("WEIGHTS"), WHAT, "weights of the examples of DATA, one per line"},
     TEXT, AT(weights), 0, 0, NULL},
    {{"class-weight", 0, "L:W,...", "", ENV("CLASS_WEIGHT"), WHAT, "weights of labels (1:3,-1:1), or balanced"},
     TEXT, AT(class_weight), 0, 0, NULL},
    {{"seed", 0, "N", "1", ENV("SEED"), WHAT, "seed of all random choices"},
     COUNT, AT(seed), 0, 9.2e18, NULL},
    {{"shuffle", 0, "0|1", "1", ENV("SHUFFLE"), WHAT, "shuffle the examples in each epoch"},
     SWITCH, AT(shuffle), 0, 1, NULL},
    {{"backend", 0, "NAME", "shm", ENV("BACKEND"), WHERE, "shm; plain and copy: references with one worker"},
     CHOICE, AT(backend), 0, 0, "shm|plain|copy"},
    {{"spawn", 0, "HOW", "processes", ENV("SPAWN"), WHERE, "workers: processes, threads, or fibers[:SEED] (help fibers)"},
     TEXT, AT(spawn), 0, 0, NULL},
    {{"sim", 0, "COSTS", "", ENV("SIM"), SEE, "fibers: what work takes, as compute=10ms,death=2@5s"},
     TEXT, AT(sim), 0, 0, NULL},
    {{"fiber-stack", 0, "N", "256", ENV("FIBER_STACK"), SEE, "fibers: KiB of each one's stack"},
     COUNT, AT(fiber_stack), 64, 1 << 20, NULL},
    {{"bind", 0, "HOW", "core", ENV("BIND"), WHERE, "workers to cores, if there are enough; to nodes; or none"},
     CHOICE, AT(bind), 0, 0, "core|node|none"},
    {{"numa", 0, "HOW", "auto", ENV("NUMA"), WHERE, "memory on NUMA nodes: auto, interleave, bind or off"},
     CHOICE, AT(numa), 0, 0, "auto|interleave|bind|off"},
    {{"hugepages", 0, "HOW", "auto", ENV("HUGEPAGES"), WHERE, "auto, off, or 2M (reserved pages of 2 MiB)"},
     WORD, AT(hugepages), 0, 0, "auto|off|2M"},
    {{"cpu", 0, "NAME", "auto", ENV("CPU"), WHERE, "loops for portable, avx2, avx512 or neon; auto: fastest"},
     TEXT, AT(cpu), 0, 0, NULL},
    {{"shards", 0, "N", "auto", ENV("SHARDS"), WHERE, "parts of each table; auto: one per node"},
     COUNT, AT(shards), 1, 4096, "auto"},
    {{"columns", 0, "HOW", "auto", ENV("COLUMNS"), WHERE, "auto: frequent features side by side; given: by id"},
     CHOICE, AT(columns), 0, 0, "auto|given"},
    {{"placement", 0, "HOW", "round-robin", ENV("PLACEMENT"), WHERE, "shards to nodes: round-robin, or greedy by size"},
     CHOICE, AT(placement), 0, 0, "round-robin|greedy"},
    {{"name", 0, "NAME", "", ENV("NAME"), WHERE, "name of the store in /dev/shm, so that others can join"},
     TEXT, AT(name), 0, 0, NULL},
    {{"guests", 0, "N", "4", ENV("GUESTS"), WHERE, "with --name: places for workers that join"},
     COUNT, AT(guests), 0, 4095, NULL},
    {{"hosts", 0, "LIST", "", ENV("HOSTS"), HOSTS, "NAME:PORT of each host, as a:5000,b:5000; or mpi (help hosts)"},
     TEXT, AT(hosts), 0, 0, NULL},
    {{"rank", 0, "I", "none", ENV("RANK"), HOSTS, "which of them this one is, from 0"},
     COUNT, AT(rank), 0, SHMT_MAX_HOSTS - 1, "none"},
    {{"role", 0, "NAME", "", ENV("ROLE"), HOSTS, "as TensorFlow has it: worker, ps, chief or master (help systems)"},
     CHOICE, AT(role), 0, 0, "worker|ps|chief|master"},
    {{"task-index", 0, "I", "none", ENV("TASK_INDEX"), HOSTS, "which of its role's hosts this one is, from 0"},
     COUNT, AT(task_index), 0, SHMT_MAX_HOSTS - 1, "none"},
    {{"ps-hosts", 0, "LIST", "", ENV("PS_HOSTS"), HOSTS, "parameter servers: such a task ends at once, with success"},
     TEXT, AT(ps_hosts), 0, 0, NULL},
    {{"worker-hosts", 0, "LIST", "", ENV("WORKER_HOSTS"), HOSTS, "NAME:PORT of each worker's host, the chief's first"},
     TEXT, AT(worker_hosts), 0, 0, NULL},
    {{"key", 0, "FILE", "", ENV("KEY"), HOSTS, "this host's secret key, made by shmtrain keygen"},
     TEXT, AT(key), 0, 0, NULL},
    {{"peers", 0, "FILE", "", ENV("PEERS"), HOSTS, "public keys of all hosts, a line each, by rank"},
     TEXT, AT(peers), 0, 0, NULL},
    {{"insecure", 0, NULL, "0", ENV("INSECURE"), HOSTS, "without keys: whoever reaches the ports can take part"},
     SWITCH, AT(insecure), 0, 1, NULL},
    {{"host-timeout", 0, "T", "10s", ENV("HOST_TIMEOUT"), HOSTS, "a host that is silent for so long is lost"},
     TEXT, AT(host_timeout), 0, 0, NULL},
    {{"wire", 0, "HOW", "f32", ENV("WIRE"), HOSTS, "floats between hosts: f32, or bf16, which is half as long"},
     CHOICE, AT(wire), 0, 0, "f32|bf16"},
    {{"top-k", 0, "X", "1", ENV("TOP_K"), HOSTS, "live modes: send this share of what has changed, the largest first"},
     REAL, AT(top_k), 1e-6, 1, NULL},
};
/* clang-format on */

#define N_ROWS (sizeof ROWS / sizeof *ROWS)

const struct shmt_option_row *shmt_option_row_at(size_t i) { return i < N_ROWS ? &ROWS[i] : NULL; }

static void *field(struct shmt_config *config, const struct shmt_option_row *row) {
    return (unsigned char *)config + row->offset;
}

/* "a whole number from 1 to 4096, or cores", "a number from 0 to 1000000". A limit that nobody means to come near is told to
 * those only who have passed it: "from 1 on". */
static void expect_number(const struct shmt_option_row *row, const char *value, char *out, size_t bytes) {
    const bool is_count = row->kind == COUNT, is_far = is_count && row->most >= 1e15;
    const bool is_over = value[0] != '\0' && value[strspn(value, "0123456789")] == '\0' && strtod(value, NULL) > row->most;
    char most[48] = "on";
    if (!is_far || is_over) snprintf(most, sizeof most, is_count ? "to %.0f" : "to %.10g", row->most);
    snprintf(out, bytes, "a %s from %.10g %s%s%s", is_count ? "whole number" : "number", row->least, most,
             row->choices ? ", or " : "", row->choices ? row->choices : "");
}

static int refuse(const struct shmt_option_row *row, const char *given_as, const char *value, struct shmt_error *e) {
    char expected[192];
    if (row->kind == CHOICE || row->kind == WORD)
        snprintf(expected, sizeof expected, "one of %s", row->choices);
    else if (row->kind == SWITCH)
        snprintf(expected, sizeof expected, "1 or 0");
    else
        expect_number(row, value, expected, sizeof expected);
    return shmt_refuse(e, "%s %.60s: expected %s", given_as, value[0] ? value : "\"\"", expected);
}

static bool parse_real(const char *value, double *out) {
    char *end;
    /* strtod also takes signs, blanks, 0x, and words. */
    if (value[0] == '+' || value[strspn(value, "0123456789.eE+-")] != '\0') return false;
    errno = 0;
    *out = strtod(value, &end);
    return errno == 0 && end != value && *end == '\0' && isfinite(*out);
}

/* Its place in the list; "" where an option has no default of its own; false: neither. */
static bool find_choice(const struct shmt_option_row *row, const char *value, uint64_t *out) {
    const size_t n = strcspn(value, "|"); /* "a|b" is no choice, though it stands in the list */
    *out = SHMT_UNSAID;
    if (value[n] != '\0') return false;
    if (n == 0) return row->option.standard[0] == '\0';
    *out = 0;
    for (const char *at = row->choices; at; at = strchr(at, '|'), at = at ? at + 1 : NULL, ++*out)
        if (strncmp(at, value, n) == 0 && (at[n] == '\0' || at[n] == '|')) return true;
    return false;
}

static int set_text(struct shmt_config *config, const struct shmt_option_row *row, const char *value, struct shmt_error *e) {
    char **at = field(config, row), *copy = strdup(value);
    if (!copy) return shmt_no_memory(e, "for option %s", row->option.name);
    free(*at);
    *at = copy;
    return 0;
}

static int set_row(struct shmt_config *config, const struct shmt_option_row *row, const char *given_as, const char *value,
                   struct shmt_error *e) {
    uint64_t count;
    double real;
    SHMT_PLAIN_NUMBERS;
    const bool is_word = row->choices && row->kind < CHOICE && strcmp(value, row->choices) == 0;
    switch (row->kind) {
        case COUNT:
            if (is_word)
                count = 0;
            else if (!shmt_plain_count(value, &count) || (double)count < row->least || (double)count > row->most)
                return refuse(row, given_as, value, e);
            *(uint64_t *)field(config, row) = count;
            return 0;
        case REAL:
            if (is_word)
                real = NAN;
            else if (!parse_real(value, &real) || real < row->least || real > row->most)
                return refuse(row, given_as, value, e);
            *(double *)field(config, row) = real;
            return 0;
        case SWITCH:
            if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return refuse(row, given_as, value, e);
            *(uint64_t *)field(config, row) = value[0] == '1';
            return 0;
        case CHOICE:
            if (!find_choice(row, value, &count)) return refuse(row, given_as, value, e);
            *(uint64_t *)field(config, row) = count;
            return 0;
        case WORD:
            return find_choice(row, value, &count) ? set_text(config, row, value, e) : refuse(row, given_as, value, e);
        case TEXT: {
            const int rc = shmt_option_parse_text(row->option.name, given_as, value, &config->parsed, e);
            return rc == 0 ? set_text(config, row, value, e) : rc;
        }
    }
    return refuse(row, given_as, value, e);
}

_Static_assert(N_ROWS <= SHMT_MOST_OPTIONS, "shmt_config.given has a place for each");

/* Back to "automatic", or off, is as if it had not been set. */
static void mark_given(struct shmt_config *config, size_t i, const char *value) {
    const struct shmt_option_row *row = &ROWS[i];
    const bool is_word = (row->choices && row->kind < CHOICE && strcmp(value, row->choices) == 0) || strcmp(value, "auto") == 0;
    const bool is_off = row->kind == SWITCH && strcmp(value, "0") == 0 && strcmp(row->option.standard, "0") == 0;
    config->given[i] = !is_word && !is_off && value[0] != '\0';
}

static int give_row(struct shmt_config *config, size_t i, const char *given_as, const char *value, struct shmt_error *e) {
    const bool is_keep = strcmp(ROWS[i].option.name, "keep") == 0, best = is_keep && strcmp(value, "best") == 0;
    const int rc = best ? 0 : set_row(config, &ROWS[i], given_as, value, e);
    if (rc == 0) mark_given(config, i, value);
    if (rc == 0) shmt_role_settle(config);
    if (best) config->keep = SHMT_KEEP_BEST;
    return rc;
}

bool shmt_config_has(const char *name) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(ROWS[i].option.name, name) == 0) return true;
    return false;
}

bool shmt_config_is_given(const struct shmt_config *config, const char *name) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(ROWS[i].option.name, name) == 0) return config->given[i];
    return false;
}

const char *shmt_config_any_given(const struct shmt_config *config, const char *const *options) {
    while (*options && !shmt_config_is_given(config, *options)) options++;
    return *options;
}

bool shmt_config_names_size(const struct shmt_config *config) {
    static const char *const SIZES[] = {"rate", "l1", "l2", "C", NULL};
    return shmt_config_any_given(config, SIZES) != NULL;
}

int shmt_config_set(struct shmt_config *config, const char *name, const char *given_as, const char *value,
                    struct shmt_error *e) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(ROWS[i].option.name, name) == 0) return give_row(config, i, given_as, value, e);
    return shmt_refuse(e, "there is no option \"%.60s\"; shmtrain help train lists them", name);
}

bool shmt_valid_share(const char *valid, double *share_out) {
    char *end;
    SHMT_PLAIN_NUMBERS;
    const double share = strtod(valid, &end);
    if (end == valid || *end != '\0') return false;
    *share_out = share;
    return true;
}

int shmt_config_set_from_environment(struct shmt_config *config, struct shmt_error *e) {
    for (size_t i = 0; i < N_ROWS; i++) {
        const char *name = ROWS[i].option.environment, *value = getenv(name);
        if (!value || value[0] == '\0') continue;
        const int rc = give_row(config, i, name, value, e);
        if (rc < 0) return rc;
    }
    return 0;
}

int shmt_config_init(struct shmt_config *config, struct shmt_error *e) {
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < N_ROWS; i++) {
        const int rc = set_row(config, &ROWS[i], ROWS[i].option.name, ROWS[i].option.standard, e);
        if (rc == 0) continue;
        shmt_config_fini(config);
        return rc;
    }
    return 0;
}

void shmt_config_fini(struct shmt_config *config) {
    for (size_t i = 0; i < N_ROWS; i++) {
        if (ROWS[i].kind != WORD && ROWS[i].kind != TEXT) continue;
        free(*(char **)field(config, &ROWS[i]));
        *(char **)field(config, &ROWS[i]) = NULL;
    }
    for (uint32_t i = 0; i < config->n_own; i++) {
        free(config->own[i].name);
        free(config->own[i].text);
    }
    config->n_own = 0;
}
