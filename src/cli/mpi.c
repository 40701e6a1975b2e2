/* The program under a launcher of MPI: see mpi.h. */
#include "cli/mpi.h"

#include <sched.h>
#include <shmtrain/hosts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ranks.h"
#include "cli/talk.h"
#include "cli/task.h"

#define SAID_US 300000 /* until the launcher has passed on what was said */

static struct {
    uint32_t rank, n; /* n 0: no launcher has started this process */
    bool is_run;      /* this is a run over all of its processes; or perhaps is one, which is not known yet */
    char **words;     /* the command line with the rank in it, which the parser brings into another order */
    char **ranked;    /* (n_ranked) those of its words that other processes have with another rank */
    int n_ranked;
} mpi;

int mpi_rank(void) { return mpi.is_run && mpi.n > 0 ? (int)mpi.rank : -1; }

static bool differs_by_rank(const char *word) {
    char *first = rank_word(word, 0), *second = rank_word(word, 1);
    const bool differs = first && second && strcmp(first, second) != 0;
    free(first);
    free(second);
    return differs;
}

char **mpi_words(int argc, char **argv) {
    if (!shmtrain_mpi_launched(&mpi.rank, &mpi.n)) return argv;
    mpi.is_run = mpi.n > 1;
    mpi.words = calloc((size_t)argc + 1, sizeof *mpi.words);
    mpi.ranked = calloc((size_t)argc + 1, sizeof *mpi.ranked);
    if (!mpi.words || !mpi.ranked) return argv;
    for (int i = 0; i < argc; i++) {
        if (!(mpi.words[i] = rank_word(argv[i], mpi.rank))) mpi.words[i] = argv[i];
        if (differs_by_rank(argv[i])) mpi.ranked[mpi.n_ranked++] = mpi.words[i];
    }
    return mpi.words;
}

/* Whether a value of the command line has the rank in it: then each process has one of its own. It is the end of a word. */
static bool has_rank(const char *value) {
    for (int i = 0; i < mpi.n_ranked; i++)
        if (value >= mpi.ranked[i] && value <= mpi.ranked[i] + strlen(mpi.ranked[i])) return true;
    return false;
}

/* A number that the launcher has set; -1: it has not. */
static int number_of(const char *open_mpi, const char *mpich) {
    const char *text = getenv(open_mpi) ? getenv(open_mpi) : getenv(mpich);
    return text && text[0] >= '0' && text[0] <= '9' ? atoi(text) : -1;
}

/* `here` processes are on this machine, and this one may use n of its `there` processors. Open MPI binds each process to one core
 * where there are few of them. */
static void note_places(int here, long n, long there) {
    const bool may_be_bound = getenv("OMPI_COMM_WORLD_RANK") && n <= 2 && n * here < there;
    char line[160];
    if (here > 1 && (uint32_t)here == mpi.n) {
        snprintf(line, sizeof line, "all %d hosts are on this machine: one process with -w %d shares memory, and is faster",
                 here, here);
        talk_note(NULL, line);
    }
    if (!may_be_bound) return;
    snprintf(line, sizeof line,
             "this process may use %ld of %ld processors: if mpirun has bound it, mpirun --bind-to none gives it all", n,
             there);
    talk_note(NULL, line);
}

/* A run wants all cores of its host; hosts on one machine, which have all of it each, share them out. */
static void settle_processors(void) {
    const int here = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS");
    const int place = number_of("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID");
    const long there = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t mine;
    if (here < 1 || place < 0 || sched_getaffinity(0, sizeof mine, &mine) != 0) return;
    const long n = CPU_COUNT(&mine);
    if (here > 1 && n == there) rank_take_processors((uint32_t)place, (uint32_t)here);
    if (mpi.rank == 0) note_places(here, n, there);
}

/* The first process shows what all do. Open MPI makes it a terminal, which may end in a file. */
static void show_once(struct arguments *a) {
    if (mpi.rank > 0) {
        talk_as_host(mpi.rank);
        a->quiet = true;
        a->json = false;
    } else if (!a->progress && !getenv("SHMTRAIN_PROGRESS")) {
        a->progress = "plain";
    }
}

/* All are told the same names of files, which are those of the first one, but for names with a rank. */
static int write_once(struct shmtrain_store *store, const struct arguments *a) {
    static const char *const FILES[] = {"metrics", "trace"};
    for (size_t i = 0; mpi.rank > 0 && i < sizeof FILES / sizeof *FILES; i++) {
        const char *value = arguments_value(a, FILES[i]);
        if (value && !has_rank(value) && shmtrain_store_set(store, FILES[i], "") < 0) return talk_fail(store, SHMTRAIN_E_USAGE);
    }
    return 0;
}

static bool reads_standard_input(const struct arguments *a) {
    for (int i = 0; i < a->n_operands; i++)
        if (strcmp(a->operand[i], "-") == 0) return true;
    return a->n_operands == 0;
}

int mpi_settle(struct shmtrain_store *store, struct arguments *a) {
    const char *hosts = arguments_value(a, "hosts");
    const bool trains = strcmp(a->command->name, "train") == 0 && !a->help && !a->version;
    mpi.is_run = trains && mpi.n > 0 && (hosts ? strcmp(hosts, "mpi") == 0 : mpi.n > 1 && !task_is_named(a));
    if (!mpi.is_run) return 0;
    a->option[a->n_options++] = (struct library_option){"hosts", "mpi"};
    if (shmtrain_store_set(store, "hosts", "mpi") < 0) return talk_fail(store, SHMTRAIN_E_USAGE);
    show_once(a);
    settle_processors();
    if (mpi.n > 1 && reads_standard_input(a))
        return talk_refuse("over MPI data cannot come from standard input, which launchers give to rank 0 alone: name a file");
    return write_once(store, a);
}

/* MPICH's launcher does not mind a process that ends before MPI has begun in it, and the others wait for it there for ever. What it
 * takes from processes is lines (PMI 1, as in "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale Systems", 2010). */
void mpi_end(int status) {
    char line[48];
    const char *fd = getenv("PMI_FD");
    if (status == 0 || !mpi.is_run || shmtrain_mpi_has_begun() || !fd || getenv("OMPI_COMM_WORLD_RANK")) return;
    fflush(NULL);
    (void)usleep(SAID_US);
    const int n = snprintf(line, sizeof line, "cmd=abort exitcode=%d\n", status);
    if (write(atoi(fd), line, (size_t)n) < 0) return; /* it has ended itself */
}
