/* A recommender inside of an application that has an event loop and a thread of its own.
 *
 * Users u and items i have vectors whose product predicts a rating: r(u, i) ~ U_u . V_i, learned by stochastic gradient descent
 * in worker processes (matrix factorisation, Koren et al. 2009). Meanwhile the loop serves a timer: it copies the vectors while
 * they are trained, and hands them to the application's own thread, which measures them on ratings that nobody trains on.
 * Ctrl-C ends the run at a consistent point.
 *
 *     event_loop [EPOCHS [NAME]]          with a NAME other programs may look on: see watch.c */
#include <math.h>
#include <pthread.h>
#include <shmtrain/shmtrain.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { USERS = 2000, ITEMS = 1000, RANK = 8, RATINGS = 200000, HELD_OUT = 20000 };
enum { USER_TABLE, ITEM_TABLE };

struct rating {
    uint32_t user, item;
    float value;
};
struct vectors {
    float user[USERS * RANK], item[ITEMS * RANK]; /* row-major, as in the tables */
};

static float product(const float *u, const float *v) {
    float sum = 0;
    for (int k = 0; k < RANK; k++) sum += u[k] * v[k];
    return sum;
}

/* ---- the worker function: the same in every process ---- */

static int learn_one(shmtrain_session *s, const struct rating *r, double *loss) {
    float u[RANK], v[RANK], grad_u[RANK], grad_v[RANK];
    int rc;
    if ((rc = shmtrain_rows(s, USER_TABLE, &r->user, 1, u)) < 0) return rc;
    if ((rc = shmtrain_rows(s, ITEM_TABLE, &r->item, 1, v)) < 0) return rc;
    const float error = product(u, v) - r->value;
    for (int k = 0; k < RANK; k++) {
        grad_u[k] = error * v[k];
        grad_v[k] = error * u[k];
    }
    *loss += (double)(error * error) / 2;
    rc = shmtrain_push_rows(s, USER_TABLE, &r->user, 1, grad_u);
    return rc < 0 ? rc : shmtrain_push_rows(s, ITEM_TABLE, &r->item, 1, grad_v);
}

static int learn(shmtrain_session *s, void *arg) {
    const struct rating *rating = arg;
    struct shmtrain_work w;
    uint32_t *example = malloc(shmtrain_item_max(s) * sizeof *example);
    int rc;
    if (!example) return shmtrain_fail(s, SHMTRAIN_E_MEMORY, "not enough memory for the order of an item");
    while ((rc = shmtrain_next(s, &w)) == 1) {
        double loss = 0;
        rc = shmtrain_order(s, &w, example);
        for (uint64_t k = 0; k < w.n && rc == 0; k++) rc = learn_one(s, &rating[example[k]], &loss);
        if (rc == 0) rc = shmtrain_report(s, loss);
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    free(example);
    return rc;
}

/* ---- the application's own thread: measures copies of the vectors ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct vectors vectors; /* what to measure */
    int waiting, over;      /* there is something to measure; there will be nothing more */
    double error;           /* the last result */
    int result_fd;          /* an eventfd: there is a new one */
    const struct rating *held_out;
} g_meter = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static double measure(const struct vectors *x, const struct rating *held_out) {
    double sum = 0;
    for (int i = 0; i < HELD_OUT; i++) {
        const struct rating *r = &held_out[i];
        const float error = product(x->user + r->user * RANK, x->item + r->item * RANK) - r->value;
        sum += (double)(error * error);
    }
    return sqrt(sum / HELD_OUT);
}

static void *measure_all_the_time(void *arg) {
    struct vectors *mine = arg;
    pthread_mutex_lock(&g_meter.lock);
    for (;;) {
        while (!g_meter.waiting && !g_meter.over) pthread_cond_wait(&g_meter.changed, &g_meter.lock);
        if (!g_meter.waiting) break;
        *mine = g_meter.vectors;
        g_meter.waiting = 0;
        pthread_mutex_unlock(&g_meter.lock);
        const double error = measure(mine, g_meter.held_out);
        pthread_mutex_lock(&g_meter.lock);
        g_meter.error = error;
        eventfd_write(g_meter.result_fd, 1);
    }
    pthread_mutex_unlock(&g_meter.lock);
    return NULL;
}

/* In the loop: parameters may be read while workers change them. */
static int ask_for_measure(struct shmtrain_store *store) {
    pthread_mutex_lock(&g_meter.lock);
    int rc = shmtrain_store_read(store, USER_TABLE, 0, USERS, g_meter.vectors.user);
    if (rc == 0) rc = shmtrain_store_read(store, ITEM_TABLE, 0, ITEMS, g_meter.vectors.item);
    g_meter.waiting = rc == 0;
    pthread_cond_signal(&g_meter.changed);
    pthread_mutex_unlock(&g_meter.lock);
    return rc;
}

/* ---- data and store ---- */

static float noise(void) { return (float)rand() / (float)RAND_MAX - 0.5f; } /* uniform: that will do */

static void make_ratings(struct vectors *truth, struct rating *rating, int n) {
    for (int i = 0; i < USERS * RANK; i++) truth->user[i] = 2 * noise();
    for (int i = 0; i < ITEMS * RANK; i++) truth->item[i] = 2 * noise();
    for (int i = 0; i < n; i++) {
        struct rating *r = &rating[i];
        r->user = (uint32_t)rand() % USERS;
        r->item = (uint32_t)rand() % ITEMS;
        r->value = product(truth->user + r->user * RANK, truth->item + r->item * RANK) + 0.1f * noise();
    }
}

static int make_store(struct shmtrain_store *store, const char *epochs, const char *name, struct vectors *start) {
    for (int i = 0; i < USERS * RANK; i++) start->user[i] = noise();
    for (int i = 0; i < ITEMS * RANK; i++) start->item[i] = noise();
    const struct {
        const char *name, *value;
    } options[] = {{"workers", "2"}, {"rate", "0.05"}, {"epochs", epochs}, {"name", name}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (shmtrain_store_set(store, options[i].name, options[i].value) < 0) return -1;
    if (shmtrain_store_table(store, "user", USERS, RANK) < 0 || shmtrain_store_table(store, "item", ITEMS, RANK) < 0 ||
        shmtrain_store_examples(store, RATINGS) < 0 || shmtrain_store_write(store, USER_TABLE, 0, USERS, start->user) < 0)
        return -1;
    return shmtrain_store_write(store, ITEM_TABLE, 0, ITEMS, start->item);
}

/* ---- the loop ---- */

static struct shmtrain_store *g_store;

static void on_interrupt(int number) {
    (void)number;
    shmtrain_store_stop(g_store); /* which may be called in signal handlers */
}

static void watch_fd(int epoll, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void say_error(struct shmtrain_store *store, const char *when) {
    pthread_mutex_lock(&g_meter.lock);
    printf("%s: after %u epochs the error is %.4f\n", when, shmtrain_store_report(store)->n_epochs, g_meter.error);
    pthread_mutex_unlock(&g_meter.lock);
    fflush(stdout);
}

/* Until the run has ended; its status. */
static int loop(struct shmtrain_store *store) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const int run = shmtrain_store_fd(store); /* step closes it at the end */
    const struct itimerspec each = {.it_interval = {.tv_nsec = 100000000}, .it_value = {.tv_nsec = 20000000}};
    int rc = 1;
    timerfd_settime(timer, 0, &each, NULL);
    watch_fd(epoll, timer);
    watch_fd(epoll, run);
    watch_fd(epoll, g_meter.result_fd);
    while (rc == 1) {
        struct epoll_event event;
        uint64_t times;
        if (epoll_wait(epoll, &event, 1, -1) != 1) continue; /* a signal */
        if (event.data.fd == run) {
            rc = shmtrain_store_step(store);
        } else if (read(event.data.fd, &times, sizeof times) == sizeof times) {
            if (event.data.fd == timer)
                ask_for_measure(store);
            else
                say_error(store, "training");
        }
    }
    close(timer);
    close(epoll);
    return rc;
}

int main(int argc, char **argv) {
    static struct vectors truth, start, mine;
    static struct rating rating[RATINGS + HELD_OUT];
    const struct sigaction action = {.sa_handler = on_interrupt};
    pthread_t thread;
    if (shmtrain_store_create(&g_store) < 0) return EXIT_FAILURE;
    make_ratings(&truth, rating, RATINGS + HELD_OUT);
    g_meter.held_out = rating + RATINGS;
    g_meter.result_fd = eventfd(0, EFD_CLOEXEC);
    if (g_meter.result_fd < 0 || pthread_create(&thread, NULL, measure_all_the_time, &mine) != 0) return EXIT_FAILURE;
    sigaction(SIGINT, &action, NULL);
    int rc = make_store(g_store, argc > 1 ? argv[1] : "30", argc > 2 ? argv[2] : "", &start);
    if (rc == 0) rc = shmtrain_store_start(g_store, learn, rating);
    if (rc == 0) rc = loop(g_store);
    if (rc == 0) rc = ask_for_measure(g_store); /* the final parameters */
    pthread_mutex_lock(&g_meter.lock);
    g_meter.over = 1;
    pthread_cond_signal(&g_meter.changed);
    pthread_mutex_unlock(&g_meter.lock);
    pthread_join(thread, NULL);
    if (rc == 0) say_error(g_store, shmtrain_store_report(g_store)->stopped ? "stopped" : "done");
    if (rc < 0) printf("%s\n", shmtrain_store_message(g_store));
    shmtrain_store_destroy(g_store);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
