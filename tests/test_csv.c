/* Tables as text: what is accepted, which plan is made of a file's beginning, and every refusal with its sentence. */
#include "data_file.h"

#include <xxhash.h>

#include "files/csv_line.h"
#include "files/csv_wish.h"

static int make_table_folder(void **state) {
    const int rc = make_folder(state);
    strcpy(g_path, "t.csv");
    return rc;
}

static int load_as(struct loaded *l, const struct shmt_csv_wish *csv, unsigned how, uint32_t n_parts, char **note_out) {
    const struct shmt_source_wish wish = {.name = g_path, .how = how, .csv = csv};
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    int status = shmt_source_open_as(&wish, &source, &l->error);
    if (status != 0) return status;
    if (note_out) *note_out = strdup(shmt_source_note(source));
    status = load_source(l, source, n_parts, SHMT_ALL_COLUMNS);
    shmt_source_close(source);
    return status;
}

static void assert_loads_as(struct loaded *l, const struct shmt_csv_wish *csv) {
    const int status = load_as(l, csv, 0, 2, NULL);
    if (status != 0) print_error("%s\n", l->error.text);
    assert_int_equal(status, 0);
}

static void assert_refused_as(const char *text, const struct shmt_csv_wish *csv, const char *sentence, int status) {
    struct loaded l;
    write_text(text);
    const int found = load_as(&l, csv, 0, 3, NULL);
    load_free(&l);
    assert_string_equal(l.error.text, sentence);
    assert_int_equal(found, status);
}

/* The rows as LIBSVM text. */
static void show(const struct loaded *l, char *out, size_t bytes) {
    size_t n = 0;
    out[0] = '\0';
    for (uint64_t i = 0; i < l->totals.n_examples; i++) {
        n += (size_t)snprintf(out + n, bytes - n, "%g", (double)l->arrays.label[i]);
        for (uint64_t j = l->arrays.start[i]; j < l->arrays.start[i + 1]; j++)
            n += (size_t)snprintf(out + n, bytes - n, " %u:%g", l->arrays.id[j],
                                  (double)(l->arrays.value ? l->arrays.value[j] : 1));
        n += (size_t)snprintf(out + n, bytes - n, "\n");
    }
}

static void assert_rows(const char *text, const struct shmt_csv_wish *csv, const char *rows) {
    struct loaded l;
    char shown[2048];
    write_text(text);
    assert_loads_as(&l, csv);
    show(&l, shown, sizeof shown);
    load_free(&l);
    assert_string_equal(shown, rows);
}

static void assert_note(const char *text, const struct shmt_csv_wish *csv, const char *note) {
    struct loaded l;
    char *found = NULL;
    write_text(text);
    assert_int_equal(load_as(&l, csv, 0, 1, &found), 0);
    load_free(&l);
    assert_string_equal(found, note);
    free(found);
}

/* ---- what is accepted ---- */

static void numbers_are_features_counted_without_the_label(void **state) {
    (void)state;
    assert_rows("a,label,b\n0.5,1,3\n-2e-1,-1,0\n,0,1e3\n", NULL, "1 1:0.5 2:3\n-1 1:-0.2\n0 1:0.15 2:1000\n");
}

static void the_same_table_may_be_written_in_many_ways(void **state) {
    (void)state;
    static const char *const SAME[] = {
        "y,a,b\n1,2,3\n0,4,5\n",
        "y,a,b\r\n1,2,3\r\n0,4,5",
        "\xef\xbb\xbfy,a,b\n1,2,3\n0,4,5\n",
        "\n\ny,a,b\n\n1,2,3\n  \n0,4,5\n\n",
        "sep=,\ny,a,b\n1,2,3\n0,4,5\n",
        "y;a;b\n1;2;3\n0;4;5\n",
        "sep=;\r\ny;a;b\r\n1;2;3\r\n0;4;5\r\n",
        "\nsep=;\n\n \ny;a;b\n1;2;3\n0;4;5\n",
        "y\ta\tb\n1\t2\t3\n0\t4\t5\n",
        "y|a|b\n1|2|3\n0|4|5\n",
        "\"y\",\"a\",\"b\"\n\"1\",\"2\",\"3\"\n\"0\",\"4\",\"5\"\n",
        "y , a , b\n 1 ,\t2 , 3\t\n0, \"4\" ,5\n",
        "1,2,3\n0,4,5\n",
        "\357\273\2771,2,3\n0,4,5",                                        /* a byte order mark */
        ",y,a,b\n0,1,2,3\n1,0,4,5\n",                                      /* pandas' index */
        "\"\",\"y\",\"a\",\"b\"\n\"Mazda RX4\",1,2,3\n\"Datsun\",0,4,5\n", /* R's row names */
    };
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) assert_rows(SAME[i], NULL, "1 1:2 2:3\n0 1:4 2:5\n");
}

/* What becomes of it otherwise: test_csv_missing.c. */
static void what_is_missing_is_absent_where_nothing_marks_it(void **state) {
    (void)state;
    const struct shmt_csv_wish plain = {.unmarked = true};
    assert_rows("y,a,b,c\n1,,NA,7\n0,NaN,null,?\n1,None,n/a,\"\"\n1,#N/A,5, \n", &plain, "1 3:7\n0\n1\n1 2:5\n");
    assert_rows("y,a,b,c\n1,<NA>,\\N,7\n0,-nan,1.#IND,-1.#QNAN\n1,#NA,#N/A N/A,\"NULL\"\n1,3,-1,1\n", &plain,
                "1 3:7\n0\n1\n1 1:3 2:-1 3:1\n");
}

static void the_label_is_the_column_that_is_called_so_or_named_or_the_first(void **state) {
    (void)state;
    const struct shmt_csv_wish by_name = {.label = "b"}, by_number = {.label = "2"};
    assert_rows("a,b,Target\n1,2,3\n", NULL, "3 1:1 2:2\n");
    assert_rows("a,b,c\n1,2,3\n", NULL, "1 1:2 2:3\n");
    assert_rows("a,target,class\n1,2,3\n", NULL, "1 1:2 2:3\n");
    assert_rows("a,b,target\n1,2,3\n", &by_name, "2 1:1 2:3\n");
    assert_rows("a,b,target\n1,2,3\n", &by_number, "2 1:1 2:3\n");
}

static void a_header_is_found_where_numbers_begin_with_a_word_or_as_told(void **state) {
    (void)state;
    const struct shmt_csv_wish yes = {.header = "yes"}, no = {.header = "no"};
    assert_rows("2019,2020\n1,2\n", &yes, "1 1:2\n");
    assert_rows("2019,2020\n1,2\n", NULL, "2019 1:2020\n1 1:2\n");
    assert_note("1,x\n0,y\n", NULL,
                "{\"version\":1,\"delimiter\":\",\",\"header\":false,\"labels\":null,\"columns\":[[null,\"label\"],[null,"
                "\"category\"]]}");
    assert_note("p,x\ne,y\np,z\n", &no,
                "{\"version\":1,\"delimiter\":\",\",\"header\":false,\"labels\":[\"e\",\"p\"],\"columns\":[[null,\"label\"],"
                "[null,\"category\"]]}");
    assert_note("p,x\ne,y\np,z\n", NULL,
                "{\"version\":1,\"delimiter\":\",\",\"header\":false,\"labels\":[\"e\",\"p\"],\"columns\":[[null,\"label\"],"
                "[null,\"category\"]]}");
}

static void labels_that_are_words_are_numbered_in_their_order(void **state) {
    (void)state;
    assert_rows("a,class\n1,setosa\n2,virginica\n3,\"setosa\"\n4,a\n", NULL, "1 1:1\n2 1:2\n1 1:3\n0 1:4\n");
    assert_rows("class,a_long_name_of_a_column\nclass,?\nB,2\nB,3\n", NULL, "1 1:2.5\n0 1:2\n0 1:3\n"); /* cut in the header */
    const struct shmt_csv_wish named = {.label = "y", .categorical = "y"};
    assert_rows("y,a\n7,1\n10,2\n", &named, "1 1:1\n0 1:2\n");
    /* what a model cannot keep as text */
    assert_refused_as("y,a\nj\xe9,1\nno,2\n", NULL,
                      "t.csv:2:1: column \"y\": expected a printable label in UTF-8, found \"j\\xe9\"; convert the "
                      "file, as by iconv -f latin1 -t utf-8",
                      SHMTRAIN_E_DATA);
}

static void words_far_behind_the_beginning_are_known_too(void **state) {
    (void)state;
    FILE *f = fopen(g_path, "w");
    fputs("y,a\n", f);
    for (int i = 0; i < 40000; i++) fprintf(f, "%s,%d\n", i < 39999 ? "no" : "maybe", i);
    fclose(f);
    struct loaded l;
    assert_loads_as(&l, NULL);
    assert_true(l.arrays.label[39999] == 0 && l.arrays.label[0] == 1);
    assert_int_equal(l.totals.labels.n, 2);
    load_free(&l);
}

static void a_header_may_be_longer_than_the_first_look(void **state) {
    (void)state;
    FILE *f = fopen(g_path, "w");
    for (int i = 0; i < 30000; i++) fprintf(f, "column%d,", i);
    fputs("label\n", f);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 30000; i++) fprintf(f, "%d,", i % 7);
        fprintf(f, "%d\n", k);
    }
    fclose(f);
    struct loaded l;
    assert_loads_as(&l, NULL);
    assert_int_equal(l.totals.max_id, 30000);
    assert_int_equal(l.totals.n_examples, 2);
    assert_true(l.arrays.label[0] == 0 && l.arrays.label[1] == 1);
    load_free(&l);
}

/* ---- categories ---- */

#define PLAN                                                                                                              \
    "{\"version\":2,\"delimiter\":\",\",\"header\":true,\"labels\":[\"no\",\"yes\"],\"columns\":[[\"a\",\"number\",3.0]," \
    "[\"color\",\"category\"],[\"y\",\"label\"],[\"b\",\"number\",3.0],[\"shape\",\"category\"]]}"

/* One line by PLAN; 0 or the status of the fault. */
static int parse_line(const char *line, struct shmt_row *row, struct shmt_line_fault *fault) {
    struct shmt_csv_plan plan;
    char *exact = malloc(strlen(line)); /* without a final 0, so that AddressSanitizer sees one byte too much */
    assert_int_equal(shmt_csv_plan_parse(PLAN, &plan, NULL), 0);
    memcpy(exact, line, strlen(line));
    const int rc = shmt_csv_parse(&plan, exact, g_c_locale, row, fault);
    free(exact);
    shmt_csv_plan_fini(&plan);
    return rc;
}

static void categories_are_hashes_of_their_feature_and_value(void **state) {
    (void)state;
    uint64_t id[64], again[64];
    float value[64];
    struct shmt_line_fault fault;
    struct shmt_row row = {.id = id, .value = value}, other = {.id = again, .value = value};
    assert_int_equal(parse_line("0.5,red,yes,3,red\n", &row, &fault), 0);
    assert_int_equal(row.n, 4);
    assert_true(row.label == 1);
    assert_int_equal(id[0], 1);
    assert_int_equal(id[1], 3);
    assert_true(id[2] >> 63 == 1 && id[3] >> 63 == 1 && id[2] < id[3]);
    assert_true(value[0] == 0.5f && value[1] == 3 && value[2] == 1 && value[3] == 1);
    assert_true(row.min_id == 1 && row.max_id == id[3]);
    const uint64_t red2 = XXH3_64bits_withSeed("red", 3, 2) | UINT64_C(1) << 63,
                   red4 = XXH3_64bits_withSeed("red", 3, 4) | UINT64_C(1) << 63;
    assert_true(id[2] == (red2 < red4 ? red2 : red4) && id[3] == (red2 < red4 ? red4 : red2));
    assert_int_equal(parse_line(" 0.5 , \"red\", yes,\"3\",red \r\n", &other, &fault), 0);
    assert_int_equal(other.n, 4);
    assert_memory_equal(id, again, 4 * sizeof *id);
    assert_int_equal(parse_line("0.5,,no,3,NA\n", &other, &fault), 0);
    assert_int_equal(other.n, 2);
}

static void a_value_is_the_same_however_it_is_quoted(void **state) {
    (void)state;
    static const char *const SAME[][2] = {{"0,5\" disk,no,0,\n", "0,\"5\"\" disk\",no,0,\n"},
                                          {"0,a\"\"b\",no,0,\n", "0,\"a\"\"\"\"b\"\"\",no,0,\n"},
                                          {"0,a b,no,0,\n", "0,\"a b\",no,0,\n"}};
    uint64_t id[64], again[64];
    float value[64];
    struct shmt_line_fault fault;
    struct shmt_row row = {.id = id, .value = value}, other = {.id = again, .value = value};
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        assert_int_equal(parse_line(SAME[i][0], &row, &fault), 0);
        assert_int_equal(parse_line(SAME[i][1], &other, &fault), 0);
        assert_int_equal(row.n, 1);
        assert_int_equal(other.n, 1);
        assert_true(id[0] == again[0]);
    }
    assert_int_equal(parse_line("0,\"a,b\",no,0,\n", &row, &fault), 0);
    assert_int_equal(parse_line("0,\"a, b\",no,0,\n", &other, &fault), 0);
    assert_true(id[0] != again[0]);
}

/* ---- reading a table as another one was ---- */

static const struct shmt_columns HASHED = {.n_features = 1 << 20, .hash_bits = 20};

static void load_hashed(struct loaded *l, const char *text, const struct shmt_csv_wish *csv, unsigned how, char **note_out) {
    const struct shmt_source_wish wish = {.name = g_path, .how = how, .csv = csv};
    struct shmt_source *source;
    write_text(text);
    memset(l, 0, sizeof *l);
    if (shmt_source_open_as(&wish, &source, &l->error) != 0) print_error("%s\n", l->error.text);
    assert_int_equal(l->error.status, 0);
    if (note_out) *note_out = strdup(shmt_source_note(source));
    const int status = load_source(l, source, 2, HASHED);
    if (status != 0) print_error("%s\n", l->error.text);
    assert_int_equal(status, 0);
    shmt_source_close(source);
}

#define TABLE "a,color,y,b,shape\n1,red,yes,2,round\n3,blue,no,4,\n5,red,no,,\"flat, \"\"round\"\"\"\n"

static void other_tables_are_read_by_names_and_else_by_place(void **state) {
    (void)state;
    static const char *const SAME[] = {
        TABLE,
        "shape;b;extra;y;color;a\nround;2;x;yes;red;1\n;4;y;no;blue;3\n\"flat, \"\"round\"\"\";;z;no;red;5\n",
        "1,red,yes,2,round\n3,blue,no,4,\n5,red,no,,\"flat, \"\"round\"\"\"\n",
        "a\tcolor\ty\tb\tshape\n1\tred\tyes\t2\tround\n3\tblue\tno\t4\t\n5\tred\tno\t\tflat, \"round\"\n",
    };
    static const char *const UNLABELLED[] = {
        TABLE,
        "shape,b,a,color\nround,2,1,red\n,4,3,blue\n\"flat, \"\"round\"\"\",,5,red\n",
        "1,red,2,round\n3,blue,4,\n5,red,,\"flat, \"\"round\"\"\"\n",
        "a,color,y,b,shape\n1,red,?,2,round\n3,blue,who,4,\n5,red,,,\"flat, \"\"round\"\"\"\n",
    };
    struct loaded first, other;
    char *note, *again;
    load_hashed(&first, TABLE, NULL, 0, &note);
    assert_string_equal(note, PLAN);
    const struct shmt_csv_wish by_plan = {.plan = note};
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        load_hashed(&other, SAME[i], &by_plan, 0, &again);
        assert_memory_equal(first.arrays.start, other.arrays.start, 4 * sizeof(uint64_t));
        assert_memory_equal(first.arrays.id, other.arrays.id, first.totals.n_nonzeros * sizeof(uint32_t));
        assert_memory_equal(first.arrays.value, other.arrays.value, first.totals.n_nonzeros * sizeof(float));
        assert_memory_equal(first.arrays.label, other.arrays.label, 3 * sizeof(float));
        assert_string_equal(again, note);
        load_free(&other);
        free(again);
    }
    for (size_t i = 0; i < sizeof UNLABELLED / sizeof *UNLABELLED; i++) {
        load_hashed(&other, UNLABELLED[i], &by_plan, SHMT_SOURCE_UNLABELLED, NULL);
        assert_memory_equal(first.arrays.id, other.arrays.id, first.totals.n_nonzeros * sizeof(uint32_t));
        assert_true(other.arrays.label[0] == 0);
        load_free(&other);
    }
    load_free(&first);
    free(note);
}

static void a_table_that_lacks_something_is_refused_by_its_name(void **state) {
    (void)state;
    const struct shmt_csv_wish by_plan = {.plan = PLAN};
    assert_refused_as("a,color,y,shape\n1,red,yes,round\n", &by_plan,
                      "t.csv has no column \"b\", which is a feature of the model", SHMTRAIN_E_DATA);
    assert_refused_as("a,color,b,shape\n1,red,2,round\n", &by_plan,
                      "t.csv has no column \"y\", which is the label of the model; --label names another", SHMTRAIN_E_DATA);
    assert_refused_as("p,q,r,s,t\n1,red,yes,2,round\n", &by_plan,
                      "t.csv has no column \"a\", which is a feature of the model; without a header (--header no) columns are "
                      "matched by position",
                      SHMTRAIN_E_DATA);
    assert_refused_as("oops,red,yes,2,round\n1,red,yes,2,round\n", &by_plan,
                      "t.csv:1:1: column 1: expected a number, found \"oops\", as in the table that the model was trained on",
                      SHMTRAIN_E_DATA);
    assert_refused_as("1,red,2,round\n", &by_plan,
                      "t.csv has 4 columns, but the model's data had 5; add a header that names them", SHMTRAIN_E_DATA);
    assert_refused_as("a,color,y,b,shape\n1,red,yes,2,round\n1,red,perhaps,2,round\n", &by_plan,
                      "t.csv:3:7: column \"y\": expected one of the labels no, yes, found \"perhaps\"", SHMTRAIN_E_DATA);
}

static void names_of_another_case_are_the_same_where_none_is_closer(void **state) {
    (void)state;
    const struct shmt_csv_wish by_plan = {
        .plan =
            "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"a\",\"number\"],[\"A\","
            "\"number\"],[\"y\",\"label\"],[\"b\",\"number\"]]}"};
    assert_rows("Y,A,a,B\n1,2,3,4\n", &by_plan, "1 1:3 2:2 3:4\n");
    assert_rows("B,y,a,A\n1,2,3,4\n", &by_plan, "2 1:3 2:4 3:1\n");
    assert_refused_as("y,A,B\n1,2,3\n", &by_plan, "t.csv has no column \"a\", which is a feature of the model",
                      SHMTRAIN_E_DATA);
}

static void somebody_names_the_label_of_a_table_that_a_model_reads(void **state) {
    (void)state;
    static const char NUMBERS[] =
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"a\","
        "\"number\"],[\"y\",\"label\"],[\"b\",\"number\"]]}";
    struct shmt_csv_wish named = {.plan = NUMBERS, .label = "z"};
    assert_rows("z,b,y,a\n1,2,3,4\n", &named, "1 1:4 2:2\n");
    named.label = "4"; /* of this table */
    assert_rows("a,b,y,z\n1,2,3,4\n", &named, "4 1:1 2:2\n");
    assert_rows("1,2,3\n", &(struct shmt_csv_wish){.plan = NUMBERS, .label = "3"}, "3 1:1 2:2\n");
    assert_rows("1,2,3\n", &(struct shmt_csv_wish){.plan = NUMBERS}, "2 1:1 2:3\n");
    assert_refused_as("1,2,3\n", &named, "--label 4: t.csv has no such column; it has 3 columns, from column 1 to column 3",
                      SHMTRAIN_E_USAGE);
    named.label = "b";
    assert_refused_as("a,y,b\n1,2,3\n", &named, "--label names column \"b\" of t.csv, which is a feature of the model",
                      SHMTRAIN_E_USAGE);
}

static bool say_stop(void *asked) {
    ++*(int *)asked;
    return true;
}

static void looking_for_labels_is_given_up_when_it_is_to_stop(void **state) {
    (void)state;
    static const char *const NAMES[] = {"t.csv", "t.csv\nt.csv", "t.csv.gz"};
    FILE *f = fopen("t.csv", "w");
    fputs("y,a\n", f);
    for (int i = 0; i < 20000; i++) fprintf(f, "%s,%d\n", i % 2 ? "no" : "yes", i);
    fclose(f);
    assert_int_equal(system("gzip -kf t.csv"), 0);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        int asked = 0;
        struct shmt_error e = {0};
        struct shmt_source *source;
        const struct shmt_source_wish wish = {.name = NAMES[i], .stop = {say_stop, &asked}};
        assert_int_equal(shmt_source_open_as(&wish, &source, &e), SHMTRAIN_E_STOPPED);
        assert_string_equal(e.text, "stopped while looking for labels");
        assert_int_equal(asked, 1);
    }
    unlink("t.csv.gz");
}

/* ---- what is refused ---- */

static void lines_are_refused_with_their_place_and_a_remedy(void **state) {
    (void)state;
    assert_refused_as("y,a,b\n1,2,3\n0,4,x5\n", NULL,
                      "t.csv:3:5: column \"b\": expected a number, found \"x5\"; name it in --categorical if it has words",
                      SHMTRAIN_E_DATA);
    assert_refused_as("1,2,3\n0,4\n", NULL, "t.csv:2:4: expected 3 fields, found 2", SHMTRAIN_E_DATA);
    assert_refused_as("1,2,3\n0,4,5,6,7\n", NULL, "t.csv:2:7: expected 3 fields, found 5", SHMTRAIN_E_DATA);
    assert_refused_as(
        "1,2,3\n0,\"4,5\n", NULL,
        "t.csv:2:3: this quote is not closed on its line: write values without line breaks, as a table is read line by line",
        SHMTRAIN_E_DATA);
    assert_refused_as(
        "1,2,3\n0,\"4\"4,5\n", NULL,
        "t.csv:2:6: expected the end of the value after its closing quote; write quotes inside a value twice: \"\"",
        SHMTRAIN_E_DATA);
    assert_refused_as("1,2,3\n,4,5\n", NULL,
                      "t.csv:2:1: column 1: expected a label, found nothing; --skip-bad-lines leaves such lines out",
                      SHMTRAIN_E_DATA);
    assert_refused_as("1,2,3\n0,1e39,5\n", NULL,
                      "t.csv:2:3: column 2: expected a number between -3.4e38 and 3.4e38, found \"1e39\"", SHMTRAIN_E_DATA);
    assert_refused_as("1,2,3\n0,inf,5\n1,2,3\n", NULL,
                      "t.csv:2:3: column 2: expected a number, found \"inf\"; name it in --categorical if it has words",
                      SHMTRAIN_E_DATA);
}

static void tables_are_refused_before_they_are_read(void **state) {
    (void)state;
    const struct shmt_csv_wish label = {.label = "z"}, categorical = {.categorical = "a,q"}, delimiter = {.delimiter = "x"},
                               header = {.header = "perhaps"}, none = {.label = "none"}, plan = {.plan = "{}"};
    assert_refused_as("y,a\n1,2\n", &label,
                      "--label z: t.csv has no such column; it has 2 columns, from column \"y\" to column \"a\"",
                      SHMTRAIN_E_USAGE);
    assert_refused_as("y,a\n1,2\n", &categorical,
                      "--categorical q: t.csv has no such column; it has 2 columns, from column \"y\" to column \"a\"",
                      SHMTRAIN_E_USAGE);
    assert_refused_as("y,a\n1,2\n", &delimiter, "--delimiter x: expected tab, or one of , ; | : ^ ~ ! &", SHMTRAIN_E_USAGE);
    assert_refused_as("y,a\n1,2\n", &header, "--header perhaps: expected yes, no or auto", SHMTRAIN_E_USAGE);
    assert_refused_as("y,a\n1,2\n", &none, "--label none: labels are needed here, too, so name the label's column of t.csv",
                      SHMTRAIN_E_USAGE);
    assert_refused_as("y,a\n1,2\n", &plan, "its table's description is invalid: it has another version", SHMTRAIN_E_DATA);
    assert_refused_as("y;a\n1;2,5\n", NULL,
                      "t.csv: column \"a\" has numbers with commas; write them with a decimal point and without thousands "
                      "separators (or name it in --categorical)",
                      SHMTRAIN_E_DATA);
    assert_refused_as("\n\n", NULL, "t.csv has no examples, only blank lines", SHMTRAIN_E_DATA);
    assert_refused_as("y,a\n", NULL, "t.csv has no examples, only a header", SHMTRAIN_E_DATA);
    assert_refused_as(
        "\ny,\"a\nb\"\n", NULL,
        "t.csv:2:3: this quote is not closed on its line: write names without line breaks, as a table is read line by line",
        SHMTRAIN_E_DATA);
}

/* A model file is somebody's: nothing in it is trusted. */
static void plans_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const BAD[] = {
        "",
        "[]",
        "{",
        "{\"version\":2}",
        "{\"version\":3}",
        "{\"version\":1,\"delimiter\":\"\",\"header\":true,\"labels\":null,\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\"e\",\"header\":true,\"labels\":null,\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":1,\"labels\":null,\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":7}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"a\",\"word\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"a\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[null,\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":false,\"labels\":null,\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"a\",\"label\"],[\"b\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":[\"b\",\"a\"],\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":[\"a\",\"a\"],\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":[1],\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"columns\":[[\"a\",\"label\"]]}",
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":[\"0\\n1\"],\"columns\":[[\"a\",\"label\"]]}",
    };
    struct shmt_csv_plan plan;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_int_equal(shmt_csv_plan_parse(BAD[i], &plan, NULL), SHMTRAIN_E_DATA);
    assert_int_equal(shmt_csv_plan_parse(PLAN, &plan, NULL), 0);
    char *text = shmt_csv_plan_text(&plan);
    assert_string_equal(text, PLAN);
    free(text);
    shmt_csv_plan_fini(&plan);
}

/* ---- a property ---- */

static uint64_t g_random = 7;

static uint32_t below(uint32_t n) {
    g_random = g_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g_random >> 33) % n;
}

static void write_field(FILE *f, const char *text) {
    static const char *const WAYS[] = {"%s", "\"%s\"", " %s", "%s ", " \"%s\" "};
    fprintf(f, WAYS[below(8) < 4 ? 0 : below(5)], text);
}

/* The same random table as both; `word` is what a missing value is in the table. */
static void write_both(uint32_t n_rows, uint32_t n_columns, char delimiter, uint32_t label) {
    static const char *const MISSING[] = {"", "NA", "NaN", "null", "?"};
    FILE *table = fopen(g_path, "w"), *svm = fopen("t.svm", "w");
    for (uint32_t j = 0; j < n_columns; j++) fprintf(table, "%sname %u", j > 0 ? (char[]){delimiter, 0} : "", j);
    fputc('\n', table);
    for (uint32_t i = 0; i < n_rows; i++) {
        char text[48];
        const int y = (int)below(3);
        fprintf(svm, "%d", y);
        for (uint32_t j = 0, feature = 0; j < n_columns; j++) {
            if (j > 0) fputc(delimiter, table);
            if (j == label) {
                fprintf(table, "%d", y);
                continue;
            }
            feature++;
            if (i > 0 && below(4) == 0) {
                write_field(table, MISSING[below(5)]);
                continue;
            }
            snprintf(text, sizeof text, below(3) > 0 ? "%.*g" : "%.*e", (int)below(19) + 1,
                     below(6) == 0 ? 0 : ((double)below(2000001) - 1e6) * 0.37e-3);
            write_field(table, text);
            fprintf(svm, " %u:%s", feature, text);
        }
        fputs(below(2) ? "\n" : "\r\n", table);
        fputc('\n', svm);
    }
    fclose(table);
    fclose(svm);
}

static void a_table_gives_the_arrays_of_the_same_libsvm_text(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 60; round++) {
        const uint32_t n_columns = 2 + below(12), label = below(n_columns), n_parts = 1 + below(9);
        char number[16];
        snprintf(number, sizeof number, "%u", label + 1);
        const struct shmt_csv_wish csv = {.label = number, .unmarked = true};
        write_both(1 + below(60), n_columns, ",;\t|"[below(4)], label);
        struct loaded table, svm;
        const int status = load_as(&table, &csv, 0, n_parts, NULL);
        if (status != 0) print_error("round %u: %s\n", round, table.error.text);
        assert_int_equal(status, 0);
        assert_int_equal(load_name(&svm, "t.svm", 0, false, 1), 0);
        memset(svm.totals.labels.at, 0, sizeof svm.totals.labels.at); /* where a label stands is another place */
        memset(table.totals.labels.at, 0, sizeof table.totals.labels.at);
        assert_same_data(&table, &svm);
        load_free(&table);
        load_free(&svm);
    }
    unlink("t.svm");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_features_counted_without_the_label),
        cmocka_unit_test(the_same_table_may_be_written_in_many_ways),
        cmocka_unit_test(what_is_missing_is_absent_where_nothing_marks_it),
        cmocka_unit_test(the_label_is_the_column_that_is_called_so_or_named_or_the_first),
        cmocka_unit_test(a_header_is_found_where_numbers_begin_with_a_word_or_as_told),
        cmocka_unit_test(labels_that_are_words_are_numbered_in_their_order),
        cmocka_unit_test(words_far_behind_the_beginning_are_known_too),
        cmocka_unit_test(a_header_may_be_longer_than_the_first_look),
        cmocka_unit_test(categories_are_hashes_of_their_feature_and_value),
        cmocka_unit_test(a_value_is_the_same_however_it_is_quoted),
        cmocka_unit_test(other_tables_are_read_by_names_and_else_by_place),
        cmocka_unit_test(a_table_that_lacks_something_is_refused_by_its_name),
        cmocka_unit_test(names_of_another_case_are_the_same_where_none_is_closer),
        cmocka_unit_test(somebody_names_the_label_of_a_table_that_a_model_reads),
        cmocka_unit_test(looking_for_labels_is_given_up_when_it_is_to_stop),
        cmocka_unit_test(lines_are_refused_with_their_place_and_a_remedy),
        cmocka_unit_test(tables_are_refused_before_they_are_read),
        cmocka_unit_test(plans_that_are_none_are_refused),
        cmocka_unit_test(a_table_gives_the_arrays_of_the_same_libsvm_text),
    };
    return cmocka_run_group_tests(tests, make_table_folder, remove_folder);
}
