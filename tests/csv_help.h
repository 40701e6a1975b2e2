/* For tests of the program with tables as text: the same rows in tables of several shapes, and a model of them. */
#pragma once

#include "run_program.h"

enum { ROWS = 3000 };

static const char *const CITIES[] = {"Berlin", "\"Paris, FR\"", "Rome", "\"New \"\"York\"\"\"", ""};
static const char *const CITIES_TSV[] = {"Berlin", "Paris, FR", "Rome", "\"New \"\"York\"\"\"", "NA"};

/* The same rows as tables of different shapes, and their numbers alone as LIBSVM text. */
static inline void write_rows(void) {
    FILE *table = fopen("t.csv", "w"), *other = fopen("other.tsv", "w"), *fresh = fopen("new.csv", "w");
    FILE *numbers = fopen("n.csv", "w"), *svm = fopen("n.svm", "w");
    uint64_t seed = 5;
    fputs(",age,height,city,bought\n", table);
    fputs("city\tbought\tmore\theight\tage\n", other);
    fputs("height,city,age\n", fresh);
    fputs("y,age,height\n", numbers);
    for (int i = 0; i < ROWS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint32_t random = (uint32_t)(seed >> 33);
        const int age = (int)(random % 60), city = (int)(random / 64 % 5);
        const double height = (double)(random / 512 % 100) / 100;
        const int yes = age + 20 * (city == 1) - 10 * (city == 3) > 35;
        fprintf(table, "%d,%.2f,%.2f,%s,%s\n", i, age / 60.0, height, CITIES[city], yes ? "yes" : "no");
        fprintf(other, "%s\t%s\tx\t%.2f\t%.2f\r\n", CITIES_TSV[city], yes ? "yes" : "no", height, age / 60.0);
        fprintf(fresh, "%.2f,%s,%.2f\n", height, CITIES[city], age / 60.0);
        fprintf(numbers, "%d,%.2f,%.2f\n", yes, age / 60.0, height);
        fprintf(svm, "%d 1:%.2f 2:%.2f\n", yes, age / 60.0, height);
    }
    fclose(table);
    fclose(other);
    fclose(fresh);
    fclose(numbers);
    fclose(svm);
}

static inline void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

#define TRAIN "-w", "2", "--mode", "sync", "-e", "3"

static inline int make_all(void **state) {
    if (program_make_folder(state) < 0) return -1;
    write_rows();
    struct program *p = RUN(TRAIN, "-o", "model", "--label", "bought", "t.csv");
    return p->status;
}

/* What a command says on stdout, to be freed. */
static inline char *said(const char *const *argv) {
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    return strdup(p->text[OUT]);
}
#define SAID(...) said((const char *const[]){"shmtrain", __VA_ARGS__, NULL})

static inline void assert_says(struct program *p, int status, const char *sentence) {
    program_assert_status(p, status);
    if (!strstr(p->text[ERR], sentence)) print_error("expected \"%s\" in:\n%s\n", sentence, p->text[ERR]);
    assert_non_null(strstr(p->text[ERR], sentence));
}

static inline char *said_by_shell(const char *line) {
    struct program *p = program_run(NULL, (const char *const[]){"sh", "-c", line, NULL});
    program_assert_status(p, 0);
    return strdup(p->text[OUT]);
}
