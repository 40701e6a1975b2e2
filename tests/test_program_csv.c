/* The real program from outside: tables as text, from training to predictions. */
#include "csv_help.h"
#include "seal_help.h"

static const char *parameters_of(const struct program *p) {
    const char *at = strstr(p->text[OUT], "parameters  xxh64");
    if (!at) at = strstr(p->text[ERR], "parameters  xxh64");
    assert_non_null(at);
    return at;
}

static void a_table_of_numbers_is_learned_as_libsvm_text(void **state) {
    (void)state;
    char from_table[40];
    snprintf(from_table, sizeof from_table, "%.35s", parameters_of(RUN(TRAIN, "n.csv")));
    assert_memory_equal(from_table, parameters_of(RUN(TRAIN, "n.svm")), 34);
    assert_memory_equal(from_table, parameters_of(RUN(TRAIN, "--label", "1", "n.csv")), 34);
}

static void how_a_table_is_read_is_said_in_a_line(void **state) {
    (void)state;
    assert_says(RUN(TRAIN, "t.csv", "--label", "bought"), 0,
                "t.csv: the label is column \"bought\", 2 columns of numbers, 1 of categories (column \"city\"), 1 left out "
                "(column 1); labels no, yes are numbered from 0\n");
    assert_says(RUN(TRAIN, "n.csv"), 0,
                "n.csv: the label is column \"y\" (use --label to choose another), 2 columns of numbers\n");
}

static void other_tables_are_read_by_the_names_of_their_columns(void **state) {
    (void)state;
    char *same = SAID("predict", "--scores", "model", "t.csv"), *other = SAID("predict", "--scores", "model", "other.tsv"),
         *fresh = SAID("predict", "--scores", "model", "new.csv");
    assert_string_equal(same, other);
    assert_string_equal(same, fresh);
    free(same);
    free(other);
    free(fresh);
    same = SAID("eval", "--json", "model", "t.csv");
    other = SAID("eval", "--json", "model", "other.tsv");
    assert_non_null(strstr(same, "\"accuracy\":"));
    assert_string_equal(strstr(same, "\"accuracy\":"), strstr(other, "\"accuracy\":"));
    free(same);
    free(other);
    assert_says(RUN(TRAIN, "--label", "bought", "--valid", "other.tsv", "t.csv"), 0, "t.csv: the label is");
}

static void lines_that_come_through_a_pipe_are_read_as_the_file(void **state) {
    (void)state;
    static const char *const SAME[] = {
        "cat t.csv | \"$TEST_BUILDDIR\"/shmtrain predict model -",
        "cat other.tsv | \"$TEST_BUILDDIR\"/shmtrain predict model -",
        "(echo; cat new.csv) | \"$TEST_BUILDDIR\"/shmtrain predict model -",
        "tail -n +2 t.csv | \"$TEST_BUILDDIR\"/shmtrain predict model -",
        "gzip -c t.csv > packed.csv.gz && \"$TEST_BUILDDIR\"/shmtrain predict model packed.csv.gz",
    };
    char *file = SAID("predict", "model", "t.csv");
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        char *other = said_by_shell(SAME[i]);
        assert_string_equal(file, other);
        free(other);
    }
    free(file);
    struct program *p = program_run(
        NULL,
        (const char *const[]){"sh", "-c", "printf 'height,age\\n1,2\\n' | \"$TEST_BUILDDIR\"/shmtrain predict model -", NULL});
    assert_says(p, 1, "standard input has no column \"city\", which is a feature of the model\n");
}

static void labels_that_are_words_are_predicted_as_words(void **state) {
    (void)state;
    char *words = SAID("predict", "model", "t.csv"), *at = words;
    uint32_t n[2] = {0};
    for (; *at; at = strchr(at, '\n') + 1) {
        const bool yes = strncmp(at, "yes\n", 4) == 0;
        assert_true(yes || strncmp(at, "no\n", 3) == 0);
        n[yes]++;
    }
    free(words);
    assert_int_equal(n[0] + n[1], ROWS);
    assert_true(n[0] > 0 && n[1] > 0);
    assert_says(RUN("eval", "model", "t.csv"), 0, "labels no, yes are numbered from 0\n");
    words = SAID("predict", "--input-format", "libsvm", "model", "n.svm");
    assert_true(strncmp(words, "no\n", 3) == 0 || strncmp(words, "yes\n", 4) == 0);
    free(words);
}

static void data_info_lists_the_columns(void **state) {
    (void)state;
    char *text = SAID("data", "info", "--label", "bought", "t.csv"), *json = SAID("data", "info", "--json", "n.csv");
    assert_non_null(strstr(text, "columns       1 ignored    (no name)\n              2 numbers    age, id 1\n"));
    assert_non_null(strstr(text, "\n              4 categories city\n              5 label      bought\n"));
    assert_non_null(
        strstr(json,
               "\"columns\":[{\"name\":\"y\",\"kind\":\"label\",\"id\":null,\"missing\":null,\"counted_from\":null},{\"name\":"
               "\"age\",\"kind\":\"numbers\",\"id\":1,\"missing\":0,\"counted_from\":0},{\"name\":\"height\",\"kind\":"
               "\"numbers\",\"id\":2,\"missing\":0,\"counted_from\":0}]"));
    free(text);
    free(json);
    text = SAID("data", "info", "n.svm");
    assert_null(strstr(text, "columns"));
    free(text);
}

static void a_model_as_csv_has_the_names_of_columns(void **state) {
    (void)state;
    write_text("named.csv", "y,\"a, b\",\"c \"\"d\"\"\",e\n1,0.5,0,0.1\n0,0,0.5,0.2\n");
    program_assert_status(RUN(TRAIN, "named.csv", "-o", "named", "--format", "csv"), 0);
    FILE *f = fopen("named", "r");
    char text[200] = "";
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_memory_equal(text, "feature,weight\n\"a, b\",", 22);
    assert_non_null(strstr(text, "\n\"c \"\"d\"\"\","));
    assert_non_null(strstr(text, "\ne,"));
}

static void what_does_not_fit_is_refused_in_a_line(void **state) {
    (void)state;
    write_text("short.csv", "age,height,bought\n1,2,yes\n");
    assert_says(RUN("eval", "model", "short.csv"), 1, "short.csv has no column \"city\", which is a feature of the model\n");
    assert_says(RUN("eval", "model", "new.csv"), 1,
                "new.csv has no column \"bought\", which is the label of the model; --label names another\n");
    write_text("word.csv", "y,a\n1,2\n1,3\n0,4\n0,many\n");
    assert_says(RUN(TRAIN, "word.csv"), 1,
                "word.csv:5:3: column \"a\": expected a number, found \"many\"; name it in --categorical if it has words\n");
    assert_says(RUN(TRAIN, "--label", "z", "n.csv"), 2,
                "--label z: n.csv has no such column; it has 3 columns, from column \"y\" to column \"height\"\n");
    assert_says(RUN(TRAIN, "--header", "maybe", "n.csv"), 2, "--header maybe: expected one of auto|yes|no\n");
}

/* Several files are one table, and each may have the header. */
static void files_of_one_table_may_all_have_its_header(void **state) {
    (void)state;
    char *first = said_by_shell(
        "head -n 1000 n.csv > part1.csv; (head -n 1 n.csv; tail -n +1001 n.csv) | gzip > part2.csv.gz; "
        "\"$TEST_BUILDDIR\"/shmtrain -w 2 --mode sync -e 3 -o parts \"$(printf 'part1.csv\\npart2.csv.gz')\" && "
        "\"$TEST_BUILDDIR\"/shmtrain -w 2 --mode sync -e 3 -o whole n.csv && cmp parts whole && echo same");
    assert_non_null(strstr(first, "same\n"));
    free(first);
}

/* Excel's or a person's: quotes, blanks, capital letters. */
static void a_header_is_known_again_however_it_is_written(void **state) {
    (void)state;
    write_text("c1.csv", "class,color\nA,red\nB,blue\n");
    write_text("c2.csv", "\xef\xbb\xbf\n\"Class\" , Color\r\nA,red\r\nB,blue\r\n");
    struct program *p = RUN(TRAIN, "--json", "c1.csv", "c2.csv");
    assert_says(p, 0, "labels A, B are numbered from 0\n");
    assert_non_null(strstr(p->text[OUT], "\"examples\":4,"));
}

static void a_header_with_other_columns_ends_the_run(void **state) {
    (void)state;
    write_text("a.csv", "label,age,income\n0,1,5\n1,2,6\n");
    write_text("b.csv", "label,income,age\n0,5,1\n1,6,2\n");
    write_text("d.csv", "label,wage,age\n0,5,1\n1,6,2\n");
    write_text("e.csv", "label,age\n0,5\n");
    assert_says(RUN(TRAIN, "--skip-bad-lines", "a.csv", "b.csv"), 1, "the header of b.csv differs from that of a.csv: ");
    assert_says(RUN(TRAIN, "--skip-bad-lines", "a.csv", "d.csv"), 1, "the header of d.csv differs from that of a.csv: ");
    assert_says(RUN(TRAIN, "--skip-bad-lines", "a.csv", "e.csv"), 1, "the header of e.csv differs from that of a.csv: ");
    write_text("c3.csv", "color,class\nred,A\n");
    assert_says(RUN(TRAIN, "c1.csv", "c3.csv"), 1, "the header of c3.csv differs from that of c1.csv: ");
}

static void one_word_among_numbers_makes_no_labels_of_words(void **state) {
    (void)state;
    write_text("prices.csv", "label,x\n0.5,1\n1.5,2\n0.5,3\n-,4\n");
    assert_says(RUN(TRAIN, "prices.csv"), 1,
                "prices.csv:5:1: column \"label\": expected a label that is a number, like those before");
    assert_says(RUN(TRAIN, "--skip-bad-lines", "prices.csv"), 0, "skipped 1 bad line of prices.csv;");
    write_text("euro.csv", "label;x\n0,5;3\n1,5;4\n");
    assert_says(RUN(TRAIN, "euro.csv"), 1, "euro.csv: column \"label\" has numbers with commas;");
    program_assert_status(RUN(TRAIN, "--categorical", "label", "euro.csv"), 0);
}

static void numbers_with_commas_are_told_from_fields(void **state) {
    (void)state;
    write_text("tie.csv", "0;0,5;1,25\n1;1,5;1,5\n");
    write_text("more.csv", "0,5;1,25\n1,5;2,5\n");
    assert_says(RUN(TRAIN, "tie.csv"), 1, "tie.csv: column 2 has numbers with commas;");
    assert_says(RUN(TRAIN, "more.csv"), 1, "has numbers with commas;");
}

static void the_first_row_of_a_table_without_a_header_is_a_row(void **state) {
    (void)state;
    write_text("first.csv", "0.5,many\n0.1,0.2\n");
    program_assert_status(RUN(TRAIN, "n.csv", "-o", "numbers"), 0);
    assert_says(RUN("predict", "numbers", "first.csv"), 1,
                "first.csv:1:5: column 2: expected a number, found \"many\", as in the table that the model was trained on\n");
    write_text("names.csv", "p,q\n0.1,0.2\n");
    assert_says(RUN("predict", "numbers", "names.csv"), 1, "names.csv has no column \"age\", which is a feature of the model;");
}

/* Other tables, evaluated where they are, have other names. */
static void the_label_of_another_table_is_named(void **state) {
    (void)state;
    free(said_by_shell("sed '1s/bought/outcome/' t.csv > outcome.csv; sed 's/^[^,]*,//' t.csv | tail -n +2 > places.csv"));
    program_assert_status(RUN(TRAIN, "-o", "headless", "--label", "4", "--header", "no", "places.csv"), 0);
    free(said_by_shell("sed -E 's/^(.*),([a-z]+)$/\\2,\\1/' places.csv > front.csv"));
    char *own = SAID("eval", "--json", "model", "t.csv"),
         *other = SAID("eval", "--json", "--label", "outcome", "model", "outcome.csv");
    assert_string_equal(strstr(own, "\"accuracy\":"), strstr(other, "\"accuracy\":"));
    free(own);
    free(other);
    own = SAID("eval", "--json", "headless", "places.csv");
    other = SAID("eval", "--json", "--label", "1", "headless", "front.csv");
    assert_string_equal(strstr(own, "\"accuracy\":"), strstr(other, "\"accuracy\":"));
    free(own);
    free(other);
    own = SAID("predict", "model", "t.csv");
    other = SAID("predict", "--label", "outcome", "model", "outcome.csv");
    assert_string_equal(own, other);
    free(other);
    other = SAID("predict", "--label", "bought", "model", "new.csv");
    assert_string_equal(own, other);
    free(own);
    free(other);
}

/* What was said of the table that is trained on is not said of the other one. */
static void a_labels_number_is_that_of_the_training_table(void **state) {
    (void)state;
    write_text("v1.csv", "a,b,z\n1,5,0\n2,6,1\n3,5,0\n");
    write_text("v2.csv", "z,b,a\n0,5,1\n1,6,2\n");
    program_assert_status(RUN(TRAIN, "--label", "3", "--valid", "v2.csv", "v1.csv"), 0);
}

static void a_header_that_only_one_of_both_has_is_noted(void **state) {
    (void)state;
    write_text("words.csv", "class,color\nA,red\nB,blue\nA,red\nB,green\n");
    program_assert_status(RUN(TRAIN, "words.csv", "-o", "words"), 0);
    write_text("big.csv", "CLASS,Color\nB,blue\n");
    struct program *p = RUN("predict", "words", "big.csv");
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "B\n");
    write_text("rows.csv", "B,blue\n");
    assert_says(RUN("predict", "words", "rows.csv"), 0,
                "rows.csv: its first line does not look like a header, so columns are matched by position (--header yes if it "
                "is one)\n");
    p = program_run(NULL, (const char *const[]){"sh", "-c", "\"$TEST_BUILDDIR\"/shmtrain predict words - < rows.csv", NULL});
    assert_says(p, 0, "standard input: its first line does not look like a header,");
    write_text("rows.csv", "B,blue\nA,red\nB,blue\n");
    program_assert_status(RUN(TRAIN, "--header", "no", "rows.csv", "-o", "none"), 0);
    assert_says(
        RUN("eval", "--header", "yes", "none", "words.csv"), 0,
        "words.csv: its first line is taken as a header; the model's table had none, so columns are matched by position\n");
}

/* A delimiter that is not known: all is one column. */
static void a_table_without_features_is_refused(void **state) {
    (void)state;
    write_text("blanks.csv", "y a b\n1 2 3\n0 4 5\n");
    assert_says(RUN(TRAIN, "blanks.csv"), 1, "blanks.csv has no column besides the label: name the character between");
    assert_says(RUN(TRAIN, "--label", "y", "blanks.csv"), 2, "--label y: blanks.csv has only one column, column \"y a b\";");
    write_text("mac.csv", "y,a\r1,2\r0,3\r");
    assert_says(RUN(TRAIN, "mac.csv"), 1, "mac.csv has lines that end with CR alone: convert the file first: tr '\\r' '\\n'\n");
}

/* A model of a table without a column is that of the table where nobody has it. */
static void a_column_may_be_left_out(void **state) {
    char with[17], without[17];
    (void)state;
    write_text("with.csv", "y,id,a\n1,7,2\n0,8,1\n1,9,4\n0,10,3\n");
    write_text("without.csv", "y,a\n1,2\n0,1\n1,4\n0,3\n");
    HASH(with, "-w", "1", "--mode", "sync", "--ignore", "id", "-o", "ignoring", "with.csv");
    HASH(without, "-w", "1", "--mode", "sync", "without.csv");
    assert_string_equal(with, without);
    program_assert_status(RUN("eval", "ignoring", "with.csv"), 0);
    program_assert_status(RUN("eval", "--ignore", "id", "ignoring", "with.csv"), 0);
    program_assert_status(RUN("eval", "ignoring", "without.csv"), 0);
    assert_says(RUN("eval", "--ignore", "a", "ignoring", "with.csv"), 2, "--ignore a: the model was not trained without this");
    assert_says(RUN(TRAIN, "--ignore", "y", "with.csv"), 2, "is the label: name another one with --label");
    assert_says(RUN(TRAIN, "--ignore", "nobody", "with.csv"), 2, "--ignore nobody: with.csv has no such column");
    assert_says(RUN(TRAIN, "--ignore", "id,a", "with.csv"), 2, "--ignore: with.csv has no other column besides the label");
    assert_says(RUN(TRAIN, "--ignore", "id", "--categorical", "id", "with.csv"), 2, "is in --categorical and in --ignore");
}

/* Dates, names, numbers with a unit: taken as categories they tell nothing. */
static void categories_that_never_come_again_are_noted(void **state) {
    (void)state;
    FILE *f = fopen("ids.csv", "w"), *few = fopen("few.csv", "w");
    fputs("id,y,city,share\n", f);
    fputs("id,y\n", few);
    for (int i = 0; i < 200; i++) fprintf(f, "A%d,%d,city %d,%d%%\n", i, i % 2, i % 120, i);
    for (int i = 0; i < 99; i++) fprintf(few, "A%d,%d\n", i, i % 2);
    fclose(f);
    fclose(few);
    assert_says(RUN(TRAIN, "ids.csv"), 0,
                "ids.csv: column \"id\" (and 1 more) is left out: it has a different word in each line, each a feature of one "
                "example only (--categorical keeps a column)\n");
    assert_null(strstr(RUN(TRAIN, "--categorical", "id,share", "ids.csv")->text[ERR], "a different word"));
    assert_null(strstr(RUN(TRAIN, "few.csv")->text[ERR], "a different word"));
    assert_null(strstr(RUN(TRAIN, "--label", "bought", "t.csv")->text[ERR], "a different word"));
}

/* Line 20000 has the third label, far behind the beginning. */
static void labels_far_behind_the_beginning_are_learned_or_refused(void **state) {
    (void)state;
    FILE *f = fopen("late.csv", "w");
    fputs("y,a\n", f);
    for (int i = 0; i < 20000; i++) fprintf(f, "%s,%d\n", i == 19998 ? "maybe" : i % 2 ? "no" : "yes", i % 7);
    fclose(f);
    const char *const learned[] = {
        "\"$TEST_BUILDDIR\"/shmtrain data info --input-format csv - < late.csv 2>&1",
        "gzip -k late.csv && \"$TEST_BUILDDIR\"/shmtrain data info late.csv.gz 2>&1",
        "\"$TEST_BUILDDIR\"/shmtrain data info --skip-bad-lines late.csv.gz 2>&1",
    };
    for (size_t i = 0; i < sizeof learned / sizeof *learned; i++) {
        char *text = said_by_shell(learned[i]);
        if (!strstr(text, "labels      0: 1 (0.0 %)\n")) print_error("%s", text);
        assert_non_null(strstr(text, "labels      0: 1 (0.0 %)\n"));
        free(text);
    }
    const char *const refused[] = {
        "cat late.csv | \"$TEST_BUILDDIR\"/shmtrain -w 1 --skip-bad-lines --input-format csv -",
        "mkfifo late.fifo; cat late.csv > late.fifo & \"$TEST_BUILDDIR\"/shmtrain -w 1 --skip-bad-lines --input-format csv "
        "late.fifo",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct program *p = program_run(NULL, (const char *const[]){"sh", "-c", refused[i], NULL});
        assert_says(p, 1, ":20000:1: column \"y\": expected a known label, found \"maybe\"; labels of a pipe are collected");
    }
}

/* A writer that loses its reader would be killed, and the run would wait for another one. */
static void a_pipe_keeps_its_writer_while_labels_are_looked_for(void **state) {
    (void)state;
    FILE *f = fopen("big.csv", "w");
    fputs("class,color\n", f);
    for (int i = 0; i < 1000000; i++) fputs(i % 2 ? "A,red\n" : "B,blue\n", f); /* read before the pipe is */
    fclose(f);
    char *text = said_by_shell(
        "mkfifo c.fifo; (printf 'A,red\\n' > c.fifo; echo written) & sleep 0.3; "
        "timeout 100 \"$TEST_BUILDDIR\"/shmtrain -w 1 -e 1 big.csv c.fifo; wait");
    assert_non_null(strstr(text, "written\n"));
    assert_non_null(strstr(text, "parameters  xxh64"));
    free(text);
}

static void rows_behind_a_long_header_are_looked_at(void **state) {
    (void)state;
    FILE *f = fopen("wide.csv", "w");
    fputs("label,color", f);
    for (int i = 0; i < 5500; i++) fprintf(f, ",column%04d", i); /* 60 KB: a first look sees no row */
    fputs("\n", f);
    for (int k = 0; k < 4; k++) {
        fprintf(f, "%s,%s", k % 2 ? "no" : "yes", k % 3 ? "red" : "blue");
        for (int i = 0; i < 5500; i++) fputs(",1", f);
        fputs("\n", f);
    }
    fclose(f);
    assert_says(RUN(TRAIN, "wide.csv"), 0, "5500 columns of numbers, 1 of categories (column \"color\"); labels no, yes");
}

static void labels_are_shown_and_kept_when_they_can_be_printed(void **state) {
    (void)state;
    write_text("esc.csv", "label,x\n\x1b[31mA,0\nB,1\nC,0\n");
    struct program *p = RUN(TRAIN, "esc.csv");
    assert_says(p, 1, "esc.csv:2:1: column \"label\": expected a printable label in UTF-8, found \"\\x1b[31mA\";");
    assert_null(strchr(p->text[ERR], '\x1b'));
    assert_says(RUN(TRAIN, "--skip-bad-lines", "esc.csv"), 0, "skipped 1 bad line of esc.csv;");
    write_text("none.csv", "label,x\nnone,0\nNA,1\nnone,2\nNA,3\ncat,4\n,1\n");
    assert_says(RUN("data", "info", "--categorical", "label", "--skip-bad-lines", "none.csv"), 0, "skipped 1 bad line");
    assert_says(RUN(TRAIN, "--categorical", "label", "--model", "softmax", "--skip-bad-lines", "none.csv"), 0,
                "labels NA, cat, none are numbered from 0");
}

/* "Unicode text" of a spreadsheet. */
static void text_in_utf16_is_named_so(void **state) {
    (void)state;
    FILE *f = fopen("u16.csv", "wb");
    fwrite("\xff\xfey\0,\0a\0\n\0", 1, 10, f);
    fclose(f);
    assert_says(RUN(TRAIN, "u16.csv"), 1, "u16.csv is UTF-16: convert the file first: iconv -f utf-16 -t utf-8\n");
}

static void other_files_are_tables_when_the_options_say_so(void **state) {
    (void)state;
    write_text("t.txt", "1:0:a\n0:1:b\n1:0:a\n");
    assert_says(
        RUN(TRAIN, "--input-format", "csv", "--delimiter", ":", "t.txt"), 0,
        "t.txt: the label is column 1 (use --label to choose another), 1 column of numbers, 1 of categories (column 3)\n");
}

static void without_labels_none_is_no_name_of_a_column(void **state) {
    (void)state;
    write_text("n.csv", "0,none\n1,some\n0,none\n1,some\n");
    program_assert_status(RUN(TRAIN, "--header", "no", "-o", "n", "n.csv"), 0);
    write_text("m.csv", "none\nsome\nnone\n");
    char *predicted = SAID("predict", "--label", "none", "n", "m.csv");
    uint32_t lines = 0;
    for (const char *at = predicted; *at; at++) lines += *at == '\n';
    assert_int_equal(lines, 3);
    free(predicted);
}

static void the_plan_in_a_model_is_not_trusted(void **state) {
    (void)state;
    FILE *f = fopen("model", "rb");
    char bytes[4096];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    char *at = memmem(bytes, n, "version\\\":2", 11);
    assert_non_null(at);
    at[10] = '7';
    make_seal((uint8_t *)bytes, n);
    f = fopen("bad", "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    assert_says(RUN("eval", "bad", "t.csv"), 1,
                "bad: key \"shmtrain.csv\": its table's description is invalid: it has another version\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_table_of_numbers_is_learned_as_libsvm_text),
        PROGRAM_TEST(how_a_table_is_read_is_said_in_a_line),
        PROGRAM_TEST(other_tables_are_read_by_the_names_of_their_columns),
        PROGRAM_TEST(lines_that_come_through_a_pipe_are_read_as_the_file),
        PROGRAM_TEST(labels_that_are_words_are_predicted_as_words),
        PROGRAM_TEST(data_info_lists_the_columns),
        PROGRAM_TEST(a_model_as_csv_has_the_names_of_columns),
        PROGRAM_TEST(what_does_not_fit_is_refused_in_a_line),
        PROGRAM_TEST(files_of_one_table_may_all_have_its_header),
        PROGRAM_TEST(a_header_is_known_again_however_it_is_written),
        PROGRAM_TEST(a_header_with_other_columns_ends_the_run),
        PROGRAM_TEST(one_word_among_numbers_makes_no_labels_of_words),
        PROGRAM_TEST(numbers_with_commas_are_told_from_fields),
        PROGRAM_TEST(the_first_row_of_a_table_without_a_header_is_a_row),
        PROGRAM_TEST(the_label_of_another_table_is_named),
        PROGRAM_TEST(a_labels_number_is_that_of_the_training_table),
        PROGRAM_TEST(a_header_that_only_one_of_both_has_is_noted),
        PROGRAM_TEST(a_table_without_features_is_refused),
        PROGRAM_TEST(a_column_may_be_left_out),
        PROGRAM_TEST(categories_that_never_come_again_are_noted),
        PROGRAM_TEST(labels_far_behind_the_beginning_are_learned_or_refused),
        PROGRAM_TEST(a_pipe_keeps_its_writer_while_labels_are_looked_for),
        PROGRAM_TEST(rows_behind_a_long_header_are_looked_at),
        PROGRAM_TEST(labels_are_shown_and_kept_when_they_can_be_printed),
        PROGRAM_TEST(text_in_utf16_is_named_so),
        PROGRAM_TEST(other_files_are_tables_when_the_options_say_so),
        PROGRAM_TEST(without_labels_none_is_no_name_of_a_column),
        PROGRAM_TEST(the_plan_in_a_model_is_not_trusted),
    };
    return cmocka_run_group_tests(tests, make_all, program_remove_folder);
}
