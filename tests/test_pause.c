/* Runs that pause: in every mode a snapshot holds exactly what the ledger says is done, nothing is lost or done twice, and
 * another run goes on from it.
 *
 * The arithmetic: each example has a row of its own in each epoch and a gradient of -1 there, which is all that it changes. So
 * the parameters tell which examples are in them. */
#include "pause_help.h"

#include <signal.h>
#include <unistd.h>

#include "base/random.h"

enum { EPOCHS = 3 };

/* In the board, so that processes share it. */
struct seen {
    struct shmt_tally tally[EPOCHS];
    uint32_t epochs_done;
    uint64_t snapshots;    /* that seat 0 has looked at */
    uint64_t told;         /* that it was told of */
    _Atomic uint32_t gone; /* the last worker is about to die */
    uint8_t times[];       /* [epoch * n_examples + example]: how often it was handed out */
};

struct game {
    struct run run; /* first: what workers get */
    struct kept_list list;
    bool keeps;        /* workers are threads, and keep what they see */
    bool dies;         /* now and then a worker does, before it has pushed anything of its item */
    bool leaves;       /* the last one does, at its first item, and does not come again */
    bool at_ends;      /* snapshots are taken at the ends of epochs only, of which nothing is left then */
    bool holds;        /* seat 0 does not look at all */
    uint64_t ask_from; /* seat 0 asks for a snapshot at each of its items from this number on */
    uint32_t stop_in;  /* who gets an item of this epoch stops the run; 0: nobody does */
};

static struct seen *seen_of(const struct run *run) { return run->board; }

static struct shmt_spec spec_that_pauses(const struct kase *k, uint64_t n, uint64_t every) {
    struct shmt_spec spec = spec_of(k, n, EPOCHS * n, 1);
    spec.rate.base = 1;
    spec.pauses = (struct shmt_pauses){.steps = every, .allowed = 1};
    spec.board_bytes = sizeof(struct seen) + EPOCHS * n;
    return spec;
}

/* ---- looking at snapshots ---- */

static int refuse(shmtrain_session *s, const char *what, const struct shmt_snapshot *snap, uint64_t where) {
    return shmt_fail(&s->error, SHMTRAIN_E_DATA, "a snapshot at epoch %u, step %llu: %s (%llu)", snap->at.epoch,
                     (unsigned long long)snap->at.step, what, (unsigned long long)where);
}

/* The examples of a piece: first and number. */
static uint64_t first_of(const struct shmt_spec *spec, uint64_t piece) { return piece * spec->item; }

/* Rows have moved where their examples are done, and nowhere else: what is dropped by a quorum has not. */
static int check_rows(struct run *run, shmtrain_session *s, const struct shmt_snapshot *snap, uint64_t piece, bool done) {
    const struct shmt_spec *spec = &run->spec;
    const bool drops = spec->policy.quorum != SHMT_QUORUM_ALL && spec->policy.late == SHMT_LATE_DROP;
    const uint64_t n = shmt_spec_examples_of_step(spec, piece);
    uint32_t order[64];
    if (shmtrain_order(s, &(struct shmtrain_work){.first = first_of(spec, piece), .n = n, .epoch = snap->at.epoch}, order) < 0)
        return s->error.status;
    for (uint64_t i = 0; i < n; i++) {
        const float row = snap->weight[snap->at.epoch * spec->n_examples + order[i]];
        const float word = snap->planes ? snap->state[snap->at.epoch * spec->n_examples + order[i]] : row;
        if (!done && (row != 0 || word != 0)) return refuse(s, "an example is in it that is not done", snap, piece);
        if (done && row != 0 && word == 0) return refuse(s, "the state of an example is not in it", snap, piece);
        if (done && row == 0 && !drops) return refuse(s, "an example is done that is not in it", snap, piece);
    }
    return 0;
}

/* Pieces of batches are chunks, of which the first steps are done. */
static int check_batches(struct run *run, shmtrain_session *s, const struct shmt_snapshot *snap) {
    const struct shmt_spec *spec = &run->spec;
    for (uint32_t seat = 0; seat < snap->n_clocks; seat++)
        if (snap->clock[seat] != snap->at.epoch * shmt_spec_steps(spec) + snap->at.step)
            return refuse(s, "a clock is not that of its batch", snap, snap->clock[seat]);
    for (uint64_t i = 0; i < snap->n_pieces; i++)
        if (i / spec->n_chunks >= snap->at.step && snap->done[i] > 0) return refuse(s, "a chunk is done too early", snap, i);
    for (uint64_t i = 0; i < spec->n_examples; i++) {
        uint32_t example;
        const struct shmtrain_work one = {.first = i, .n = 1, .epoch = snap->at.epoch};
        if (shmtrain_order(s, &one, &example) < 0) return s->error.status;
        const bool moved = snap->weight[snap->at.epoch * spec->n_examples + example] != 0;
        if (moved != (i / spec->batch < snap->at.step)) return refuse(s, "an example is in the wrong batch", snap, i);
    }
    return 0;
}

static int check_snapshot(struct run *run, shmtrain_session *s, const struct shmt_snapshot *snap) {
    uint64_t steps = 0, examples = 0;
    int rc = 0;
    if (snap->n_clocks != run->spec.n_seats) return refuse(s, "other clocks", snap, snap->n_clocks);
    if (snap->n_pieces != shmt_spec_pieces(&run->spec)) return refuse(s, "other pieces", snap, snap->n_pieces);
    for (uint64_t i = 0; i < snap->n_pieces; i++) {
        steps += snap->done[i] > 0;
        examples += snap->done[i];
        if (snap->loss[i] != (double)snap->done[i] * 0.5) return refuse(s, "another loss than was reported", snap, i);
    }
    if (shmt_policy_is_batched(&run->spec.policy)) {
        if (examples != shmt_min_u64(snap->at.step * run->spec.batch, run->spec.n_examples))
            return refuse(s, "examples are missing", snap, examples);
        return check_batches(run, s, snap);
    }
    if (steps != snap->at.step) return refuse(s, "another number of steps", snap, steps);
    for (uint64_t i = 0; i < snap->n_pieces && rc == 0; i++) rc = check_rows(run, s, snap, i, snap->done[i] > 0);
    return rc;
}

/* By seat 0, in the place of the application, between two items: so the next pause always finds the snapshot free. */
static int look(struct game *game, shmtrain_session *s) {
    struct run *run = &game->run;
    struct shmt_snapshot snap;
    if (game->holds || run->k->backend->store->snapshot(run->store, &snap) != 1) return 0;
    int rc = check_snapshot(run, s, &snap);
    if (rc == 0 && game->at_ends && snap.at.step > 0) rc = refuse(s, "an epoch is said not to be over", &snap, snap.at.step);
    seen_of(run)->snapshots++;
    if (game->keeps) keep(&game->list, &snap);
    run->k->backend->store->release_snapshot(run->store);
    return rc;
}

/* ---- workers ---- */

static int push_ones(const struct run *run, shmtrain_session *s, const struct shmtrain_work *w, const uint32_t *order) {
    uint32_t id[64];
    uint64_t start[65];
    float slope[64];
    for (uint32_t i = 0; i < w->n; i++) {
        start[i] = i;
        id[i] = (uint32_t)(w->epoch * run->spec.n_examples) + order[i];
        slope[i] = -1;
    }
    start[w->n] = w->n;
    return shmtrain_push_sparse(
        s, 0, &(struct shmtrain_csr){.size = sizeof(struct shmtrain_csr), .n = (uint32_t)w->n, .start = start, .id = id},
        slope);
}

static void die(void) { (void)raise(SIGKILL); }

/* By the item and the life, so that the next life gets past it. */
static void die_now_and_then(const struct game *game, const shmtrain_session *s, const struct shmtrain_work *w) {
    if (game->dies && shmt_hash64(17, w->step, w->chunk, s->seat->life) % 6 == 0) die();
    if (!game->leaves) return;
    if (s->seat->rank + 1 == game->run.spec.n_seats) {
        store_release(&seen_of(&game->run)->gone, 1);
        die();
    }
    while (!load_acquire(&seen_of(&game->run)->gone)) usleep(100); /* so that there is an item for it */
}

static void note_kept(void *arg) { seen_of(arg)->told++; }

static int work(struct run *run, shmtrain_session *s) {
    struct game *game = (struct game *)run;
    s->kept = note_kept;
    s->kept_arg = run;
    uint64_t items = 0;
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == 0 && (rc = look(game, s)) < 0) return rc;
        if (s->seat->rank == 0 && game->ask_from && ++items >= game->ask_from)
            run->k->backend->store->request_snapshot(run->store);
        die_now_and_then(game, s, &w);
        if (game->stop_in && w.epoch == game->stop_in) store_relaxed(run->k->backend->store->stop_word(run->store), 1);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(run, s, &w, order)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) seen_of(run)->times[w.epoch * run->spec.n_examples + order[i]]++;
        if ((rc = shmtrain_report(s, (double)w.n * 0.5)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static int note_tally(shmtrain_session *s, void *arg, uint32_t epoch) {
    const struct run *run = arg;
    struct seen *seen = seen_of(run);
    if (s->seat->rank > 0 || seen->epochs_done > epoch) return 0; /* by an earlier life: the others may be further */
    if (s->backend->seat->tally(s->seat, &seen->tally[epoch]) != 0) return SHMTRAIN_E_MEMORY;
    seen->epochs_done = epoch + 1;
    return 0;
}

static void begin_game(struct game *game, const struct kase *k, struct shmt_spec spec) {
    begin(&game->run, k, spec);
    game->run.epoch_end = note_tally;
}

/* ---- every mode ---- */

static void check_all_done(const struct run *run) {
    for (uint32_t epoch = run->spec.first_epoch; epoch < EPOCHS; epoch++) {
        assert_int_equal(seen_of(run)->tally[epoch].examples, run->spec.n_examples);
        assert_int_equal(seen_of(run)->tally[epoch].lost, 0);
        assert_true(seen_of(run)->tally[epoch].loss == (double)run->spec.n_examples * 0.5);
    }
}

static void pauses_and_goes_on(const struct kase *k) {
    static const uint64_t EVERY[] = {1, 3, 8};
    if (!(k->backend->caps & SHMT_CAP_PAUSE)) return;
    for (int i = 0; i < 3; i++) {
        struct game game = {0};
        struct shmt_snapshot last;
        const uint64_t n = 500;
        begin_game(&game, k, spec_that_pauses(k, n, EVERY[i]));
        go_well(&game.run, work);
        check_all_done(&game.run);
        for (uint64_t at = 0; at < EPOCHS * n; at++) assert_int_equal(seen_of(&game.run)->times[at], 1);
        const uint64_t steps = EPOCHS * shmt_spec_steps(&game.run.spec);
        const uint64_t snapshots = seen_of(&game.run)->snapshots + (uint64_t)k->backend->store->snapshot(game.run.store, &last);
        assert_int_equal(seen_of(&game.run)->told, snapshots);
        if (shmt_policy_is_batched(&k->policy))
            assert_int_equal(snapshots, (steps - 1) / EVERY[i]); /* behind the last one nothing follows */
        else if (k->n_seats == 1)
            assert_in_range(snapshots, steps / EVERY[i] - 2, steps / EVERY[i]); /* short items count as parts */
        else
            assert_in_range(snapshots, 1, steps / EVERY[i] + EPOCHS); /* the chief may have had little to do */
        end(&game.run);
    }
}

static void every_mode_pauses_with_all_that_is_done_and_nothing_else(void **state) {
    (void)state;
    each_case(pauses_and_goes_on);
}

/* Each rule that a write mode bears; its state is copied with its parameters. */
static void every_rule_pauses_with_its_state(void **state) {
    (void)state;
    for (uint32_t rule = 0; rule < SHMT_N_RULES; rule++)
        for (int write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++)
            for (uint32_t seats = 1; seats <= 3; seats += 2) {
                const struct kase k = {shmt_backend_at(0),
                                       {.write = (enum shmt_write)write, .staleness = 2},
                                       seats,
                                       write % 2 ? &SHMT_TEAM_THREADS : &SHMT_TEAM_PROCESSES};
                struct shmt_spec spec = spec_that_pauses(&k, 500, 3);
                struct shmt_need need;
                struct game game = {0};
                spec.rule =
                    (struct shmt_rule){.kind = rule, .momentum = 0.5f, .rho = 0.5f, .beta2 = 0.9f, .epsilon = 1e-3f, .beta = 1};
                if (k.backend->plan(&spec, &need, NULL) < 0) continue; /* the mode does not bear it */
                begin_game(&game, &k, spec);
                go_well(&game.run, work);
                check_all_done(&game.run);
                end(&game.run);
            }
}

/* ---- deaths ---- */

static void dies_and_goes_on(const struct kase *k) {
    struct game game = {.dies = true};
    struct shmt_spec spec = spec_that_pauses(k, 500, 2);
    if (!(k->backend->caps & SHMT_CAP_PAUSE) || k->kind != &SHMT_TEAM_PROCESSES) return;
    spec.may_die = true;
    begin_game(&game, k, spec);
    go_well(&game.run, work);
    check_all_done(&game.run);
    for (uint64_t at = 0; at < EPOCHS * 500; at++) assert_true(seen_of(&game.run)->times[at] >= 1);
    end(&game.run);
}

static void a_snapshot_is_right_however_many_have_died(void **state) {
    (void)state;
    each_case(dies_and_goes_on);
}

/* Who will never copy a part again must not be missed: the snapshots behind its death are whole. */
static void continues_without_who_leaves(const struct kase *k, bool at_ends) {
    struct game game = {.leaves = true, .at_ends = at_ends};
    struct shmt_snapshot last;
    struct shmt_spec spec = spec_that_pauses(k, 500, 2);
    if (at_ends) spec.pauses = (struct shmt_pauses){.epochs = 1, .allowed = 1};
    const bool can = shmt_policy_is_live(&k->policy) && !shmt_policy_merges_replicas(&k->policy);
    if (!(k->backend->caps & SHMT_CAP_PAUSE) || k->kind != &SHMT_TEAM_PROCESSES || k->n_seats < 2 || !can) return;
    spec.may_die = spec.may_lack = true;
    begin_game(&game, k, spec);
    go_well(&game.run, work);
    uint64_t lost = 0;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        lost += seen_of(&game.run)->tally[epoch].lost;
        assert_int_equal(seen_of(&game.run)->tally[epoch].examples + seen_of(&game.run)->tally[epoch].lost, 500);
    }
    assert_in_range(lost, 1, spec.item);
    assert_in_range(seen_of(&game.run)->snapshots + (uint64_t)k->backend->store->snapshot(game.run.store, &last), 1, 100);
    end(&game.run);
}

static void continues_without(const struct kase *k) { continues_without_who_leaves(k, false); }

static void snapshots_are_whole_without_who_does_not_come_again(void **state) {
    (void)state;
    each_case(continues_without);
}

static void ends_without(const struct kase *k) { continues_without_who_leaves(k, true); }

static void an_epoch_is_over_without_what_was_lost(void **state) {
    (void)state;
    each_case(ends_without);
}

/* ---- going on from a snapshot ---- */

/* The rest, and nothing else, is handed out; afterwards everybody's row has moved. */
static void does_the_rest(const struct kase *k, const struct shmt_spec *spec, const struct kept *from) {
    struct game game = {0};
    uint64_t handed_out = 0, before = from->at.epoch * spec->n_examples;
    begin_from(&game.run, k, *spec, from);
    game.run.epoch_end = note_tally;
    for (uint64_t i = 0; i < shmt_spec_pieces(spec); i++) before += from->done[i];
    go_well(&game.run, work);
    check_all_done(&game.run);
    for (uint64_t at = 0; at < EPOCHS * spec->n_examples; at++) {
        const bool drops = spec->policy.quorum != SHMT_QUORUM_ALL && spec->policy.late == SHMT_LATE_DROP;
        float row;
        assert_in_range(seen_of(&game.run)->times[at], 0, 1);
        handed_out += seen_of(&game.run)->times[at];
        assert_int_equal(k->backend->store->read(game.run.store, 0, at, 1, &row), 0);
        assert_true(row > 0 || drops);
        if (shmt_policy_is_live(&spec->policy) && !shmt_policy_merges_replicas(&spec->policy)) assert_true(row == 1);
    }
    assert_int_equal(handed_out + before, EPOCHS * spec->n_examples);
    end(&game.run);
}

static void can_be_gone_on_from(const struct kase *k) {
    static const uint32_t SEATS[] = {1, 3, 5};
    struct game game = {.keeps = true};
    if (!(k->backend->caps & SHMT_CAP_PAUSE) || k->kind != &SHMT_TEAM_THREADS) return;
    begin_game(&game, k, spec_that_pauses(k, 500, 7));
    go_well(&game.run, work);
    for (uint32_t i = 0; i < game.list.n; i += 1 + game.list.n / 4) {
        struct kase other = *k;
        other.n_seats = SEATS[i % 3];
        other.kind = i % 2 ? &SHMT_TEAM_THREADS : &SHMT_TEAM_PROCESSES;
        if (shmt_policy_has_rounds(&k->policy)) other.n_seats = k->n_seats; /* a quorum is of so many workers */
        does_the_rest(&other, &game.run.spec, &game.list.kept[i]);
    }
    end(&game.run);
    free_kept(&game.list);
}

static void another_run_does_the_rest_with_other_workers(void **state) {
    (void)state;
    each_case(can_be_gone_on_from);
}

/* ---- when ---- */

static const struct kase *case_of(enum shmt_write write, uint32_t n_seats) {
    static struct kase k;
    const uint64_t staleness = write == SHMT_WRITE_AGGREGATE ? 0 : SHMT_STALENESS_INF;
    k = (struct kase){shmt_backend_at(0), {.write = write, .staleness = staleness}, n_seats, &SHMT_TEAM_THREADS};
    return &k;
}

static void play(struct game *game, const struct kase *k, struct shmt_spec spec) {
    begin_game(game, k, spec);
    game->keeps = true;
    go_well(&game->run, work);
}

static void a_snapshot_is_taken_when_somebody_asks(void **state) {
    (void)state;
    for (int write = 0; write < 2; write++) {
        struct game game = {.ask_from = 5};
        const struct kase *k = case_of(write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, 1);
        play(&game, k, spec_that_pauses(k, 500, 0));
        check_all_done(&game.run);
        assert_in_range(game.list.n, 20, 80); /* it asks all the time: at each step, or end of an epoch */
        assert_true(game.list.kept[0].at.step > 0 || game.list.kept[0].at.epoch > 0);
        end(&game.run);
        free_kept(&game.list);
    }
}

static void nobody_waits_for_who_has_the_last_snapshot(void **state) {
    (void)state;
    for (int write = 0; write < 2; write++) {
        struct game game = {.ask_from = 1, .holds = true};
        struct shmt_snapshot snap;
        const struct kase *k = case_of(write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, 3);
        begin_game(&game, k, spec_that_pauses(k, 500, 1));
        go_well(&game.run, work);
        check_all_done(&game.run);
        assert_int_equal(k->backend->store->snapshot(game.run.store, &snap), 1);
        assert_in_range(snap.at.epoch * shmt_spec_steps(&game.run.spec) + snap.at.step, 1, 40); /* the first one */
        end(&game.run);
    }
}

static void snapshots_may_be_taken_at_the_ends_of_epochs(void **state) {
    (void)state;
    for (uint32_t every = 1; every <= 2; every++)
        for (int write = 0; write < 2; write++) {
            struct game game = {0};
            const struct kase *k = case_of(write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, 1);
            struct shmt_spec spec = spec_that_pauses(k, 500, 0);
            spec.pauses.epochs = every;
            play(&game, k, spec);
            assert_int_equal(game.list.n, every == 1 ? 2 : 1); /* not at the end of the run */
            for (uint32_t i = 0; i < game.list.n; i++) {
                assert_int_equal(game.list.kept[i].at.epoch, every * (i + 1));
                assert_int_equal(game.list.kept[i].at.step, 0);
            }
            end(&game.run);
            free_kept(&game.list);
        }
}

/* Where the run was stopped, or its steps were used up. */
static void what_a_run_that_was_stopped_has_left_can_be_done(void **state) {
    (void)state;
    for (int write = 0; write < 2; write++)
        for (int limit = 0; limit < 2; limit++) {
            struct game game = {.stop_in = limit ? 0 : 1};
            struct shmt_snapshot snap;
            const struct kase *k = case_of(write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, 2);
            struct shmt_spec spec = spec_that_pauses(k, 500, 2);
            if (limit) spec.max_steps = shmt_spec_steps(&spec) + 3;
            begin_game(&game, k, spec);
            go_well(&game.run, work);
            assert_int_equal(k->backend->store->final_snapshot(game.run.store, &snap), 1);
            assert_true(snap.at.epoch < EPOCHS);
            if (limit) assert_true(snap.at.epoch == 1 && snap.at.step == 3);
            keep(&game.list, &snap);
            spec.max_steps = SHMT_NO_LIMIT;
            does_the_rest(case_of(k->policy.write, 3), &spec, &game.list.kept[0]);
            end(&game.run);
            free_kept(&game.list);
        }
}

static void what_cannot_be_done_is_not_gone_on_from(void **state) {
    struct game game = {.keeps = true};
    const struct kase *k = case_of(SHMT_WRITE_RACY, 1);
    (void)state;
    play(&game, k, spec_that_pauses(k, 500, 5));
    struct kept *from = &game.list.kept[0];
    struct shmt_spec spec = game.run.spec;
    spec.first_step = from->at.step;
    for (int i = 0; i < 3; i++) {
        struct run run;
        struct shmt_error e = {0};
        begin(&run, k, spec);
        if (i == 0) from->done[0]++;
        if (i == 1) from->done[0] = 0; /* one too few */
        assert_int_equal(k->backend->store->resume(run.store, i == 2 ? NULL : from->done, from->loss, &e), SHMTRAIN_E_DATA);
        assert_non_null(strstr(e.text, "does not match"));
        end(&run);
    }
    end(&game.run);
    free_kept(&game.list);
}

static void a_run_begins_within_its_epochs(void **state) {
    const struct kase *k = case_of(SHMT_WRITE_RACY, 1);
    struct shmt_need need;
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct shmt_spec spec = spec_that_pauses(k, 500, 5);
        struct shmt_error e = {0};
        if (i == 0) spec.first_epoch = EPOCHS;
        if (i == 1) spec.first_step = shmt_spec_steps(&spec);
        if (i == 2) spec.pauses.allowed = 0;
        assert_int_equal(k->backend->plan(&spec, &need, &e), i == 3 ? 0 : SHMTRAIN_E_USAGE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_pauses_with_all_that_is_done_and_nothing_else),
        cmocka_unit_test(every_rule_pauses_with_its_state),
        cmocka_unit_test(a_snapshot_is_right_however_many_have_died),
        cmocka_unit_test(snapshots_are_whole_without_who_does_not_come_again),
        cmocka_unit_test(an_epoch_is_over_without_what_was_lost),
        cmocka_unit_test(another_run_does_the_rest_with_other_workers),
        cmocka_unit_test(a_snapshot_is_taken_when_somebody_asks),
        cmocka_unit_test(nobody_waits_for_who_has_the_last_snapshot),
        cmocka_unit_test(snapshots_may_be_taken_at_the_ends_of_epochs),
        cmocka_unit_test(what_a_run_that_was_stopped_has_left_can_be_done),
        cmocka_unit_test(what_cannot_be_done_is_not_gone_on_from),
        cmocka_unit_test(a_run_begins_within_its_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
