/* The program under a launcher of MPI: see mpi.h. Which variables launchers set: src/configuration/mpi_launch.c. */
#include "cli/mpi.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ranks.h"
#include "cli/talk.h"
#include "cli/task.h"

/* The first of these variables that is a number; -1: none is. */
static int number_of(const char *const *variable) {
    for (; *variable; variable++) {
        const char *text = getenv(*variable);
        if (text && text[0] >= '0' && text[0] <= '9') return atoi(text);
    }
    return -1;
}

int mpi_rank(void) {
    static const char *const RANK[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", NULL};
    return number_of(RANK);
}

static int processes(void) {
    static const char *const SIZE[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    const int n = number_of(SIZE);
    return n < 0 && getenv("PMIX_RANK") ? number_of((const char *const[]){"SLURM_STEP_NUM_TASKS", NULL}) : n;
}

char **mpi_words(int argc, char **argv) {
    const int rank = mpi_rank();
    static char **words; /* for as long as the program runs */
    words = processes() > 1 && rank >= 0 ? calloc((size_t)argc + 1, sizeof *words) : NULL;
    for (int i = 0; words && i < argc; i++)
        if (!(words[i] = rank_word(argv[i], (uint32_t)rank))) words[i] = argv[i];
    return words ? words : argv;
}

/* A run wants all cores of its host; hosts on one machine, which the launcher has not bound, share them out. Open MPI binds each process to
 * one core where there are few of them. */
static void settle_processors(void) {
    static const char *const HERE[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL}, *const PLACE[] = {
                                                                                                   "OMPI_COMM_WORLD_LOCAL_RANK",
                                                                                                   "MPI_LOCALRANKID", NULL};
    const int here = number_of(HERE), place = number_of(PLACE);
    const long there = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t mine;
    char line[160];
    if (here < 1 || place < 0 || sched_getaffinity(0, sizeof mine, &mine) != 0) return;
    const int n = CPU_COUNT(&mine);
    if (here > 1 && (long)n * here > there) rank_take_processors((uint32_t)place, (uint32_t)here);
    if (mpi_rank() > 0 || (long)n * here >= there) return;
    snprintf(line, sizeof line,
             "mpirun has bound this process to %d of %ld processors: mpirun --bind-to none gives it all of them", n, there);
    talk_note(NULL, line);
}

/* The first process shows what all do. Open MPI makes it a terminal, which may end in a file. */
static void show_once(struct arguments *a) {
    if (mpi_rank() > 0) {
        talk_as_host((uint32_t)mpi_rank());
        a->quiet = true;
        a->json = false;
    } else if (!a->progress && !getenv("SHMTRAIN_PROGRESS")) {
        a->progress = "plain";
    }
}

int mpi_settle(struct shmtrain_store *store, struct arguments *a) {
    const char *hosts = arguments_value(a, "hosts");
    if (strcmp(a->command->name, "train") != 0 || a->help || a->version) return 0;
    if (!task_is_named(a) && processes() > 1 && mpi_rank() >= 0) {
        a->option[a->n_options++] = (struct library_option){"hosts", "mpi"};
        if (shmtrain_store_set(store, "hosts", "mpi") < 0) return talk_fail(store, SHMTRAIN_E_USAGE);
        hosts = "mpi";
    }
    if (!hosts || strcmp(hosts, "mpi") != 0) return 0;
    show_once(a);
    settle_processors();
    return 0;
}
