/* Numbers in text: every decimal becomes the float that is nearest to it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulated.h"

#include "base/random.h"
#include "files/number_in_line.h"

static locale_t g_c_locale;

static int make_locale(void **state) {
    (void)state;
    g_c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return g_c_locale ? 0 : -1;
}

static int free_locale(void **state) {
    (void)state;
    freelocale(g_c_locale);
    return 0;
}

typedef const char *reader(const char *text, locale_t c_locale, float *out);

static void assert_read_by(reader *read, const char *number) {
    char line[1000];
    float value, expected = strtof(number, NULL); /* the test runs in the "C" locale */
    snprintf(line, sizeof line, "%s\n98765432", number);
    const char *end = read(line, g_c_locale, &value);
    if (end != line + strlen(number) || memcmp(&value, &expected, sizeof value) != 0) {
        print_error("%s: read as %a, strtof says %a\n", number, (double)value, (double)expected);
        fail();
    }
}

static void assert_exact(const char *number) {
    const double expected = strtod(number, NULL), value = shmt_number_exact(number, number + strlen(number), g_c_locale);
    if (memcmp(&value, &expected, sizeof value) == 0) return;
    print_error("%s: read as %a, strtod says %a\n", number, value, expected);
    fail();
}

static void assert_reads_as_strtof(const char *number) {
    assert_read_by(shmt_number_read, number);
    assert_read_by(shmt_number_read_in_line, number);
    assert_exact(number);
}

static void every_float_survives_being_written_and_read(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 300000 / SPARSE; i++) {
        const uint32_t bits = (uint32_t)shmt_mix64(i);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        char text[64];
        snprintf(text, sizeof text, "%.9g", (double)value);
        assert_reads_as_strtof(text);
        snprintf(text, sizeof text, "%.17g", (double)value);
        assert_reads_as_strtof(text);
    }
}

static void decimals_of_all_shapes_are_rounded_correctly(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 300000 / SPARSE; i++) {
        char text[80];
        const uint64_t a = shmt_mix64(2 * i), b = shmt_mix64(2 * i + 1);
        const int whole_digits = (int)(b % 22), digits = (int)((b >> 8) % 25);
        int n = sprintf(text, "%s%.*s", b & 1 ? "-" : "", whole_digits, "9876543210987654321098");
        n += sprintf(text + n, "%llu.%0*llu", (unsigned long long)(a >> (b >> 16) % 64), digits, (unsigned long long)(a >> 30));
        if (b >> 32 & 1) sprintf(text + n, "e%d", (int)((b >> 33) % 120) - 70);
        assert_reads_as_strtof(text);
    }
}

/* A decimal exactly between two floats, and its neighbours: where rounding twice, first to double, goes wrong. */
static void the_middle_between_two_floats_is_rounded_once(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 100000 / SPARSE; i++) {
        uint32_t bits = (uint32_t)shmt_mix64(i) % 0x7f000000;
        float low, high;
        memcpy(&low, &bits, sizeof low);
        bits++;
        memcpy(&high, &bits, sizeof high);
        const double middle = ((double)low + (double)high) / 2; /* exact */
        char text[400], longer[420];
        snprintf(text, sizeof text, "%.150g", middle);
        assert_reads_as_strtof(text);
        if (strchr(text, 'e') || !strchr(text, '.')) continue;
        snprintf(longer, sizeof longer, "%s00000000000000000001", text);
        assert_reads_as_strtof(longer);
    }
    static const char *const known[] = {
        "16777217",
        "16777219",
        "33554434",
        "1.00000017881393421514957253748434595763683319091796875001",
        "0.5000000298023224",
        "9007199254740993",
        "340282346638528859811704183484516925440",
        "340282356779733661637539395458142568447",
        "340282356779733661637539395458142568448",
        "3.4028235e38",
        "1e-45",
        "7.006492321624085e-46",
        "7.0064923216240853546186479164495806564013097093825788587853e-46",
        "1e-46",
        "1.1754943508222875e-38",
        "00000000000000000000000001",
        "0.00000000000000000000000000000000000000000000001",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "123456789012345678901234567890e-20",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999",
        "5.",
        ".5",
        "+5",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) assert_reads_as_strtof(known[i]);
}

static void what_is_no_number_is_not_read(void **state) {
    (void)state;
    static const char *const none[] = {"\n",    "+\n",   "-\n",        ".\n",   "e5\n", "-.e1\n",
                                       "nan\n", "inf\n", "infinity\n", "--1\n", ",5\n"};
    float value;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_null(shmt_number_read(none[i], g_c_locale, &value));
    char digits[SHMT_NUMBER_MAX + 3];
    memset(digits, '0', sizeof digits);
    digits[SHMT_NUMBER_MAX] = '\n';
    assert_non_null(shmt_number_read(digits, g_c_locale, &value));
    digits[SHMT_NUMBER_MAX] = '0';
    digits[SHMT_NUMBER_MAX + 1] = '\n';
    assert_null(shmt_number_read(digits, g_c_locale, &value));
}

static void a_locale_with_a_decimal_comma_changes_nothing(void **state) {
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof commas / sizeof *commas && !found; i++) found = setlocale(LC_ALL, commas[i]);
    if (!found) {
        print_message("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    float value;
    const char text[] = "1.00000017881393421514957253748434595763683319091796875001\n"; /* one that strtof_l decides */
    const char *end = shmt_number_read(text, g_c_locale, &value);
    setlocale(LC_ALL, "C");
    assert_ptr_equal(end, text + sizeof text - 2);
    assert_true(value == 0x1.000004p0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_float_survives_being_written_and_read),
        cmocka_unit_test(decimals_of_all_shapes_are_rounded_correctly),
        cmocka_unit_test(the_middle_between_two_floats_is_rounded_once),
        cmocka_unit_test(what_is_no_number_is_not_read),
        cmocka_unit_test(a_locale_with_a_decimal_comma_changes_nothing),
    };
    return cmocka_run_group_tests_name("number", tests, make_locale, free_locale);
}
