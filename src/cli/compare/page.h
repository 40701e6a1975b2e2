/* What the page of a comparison is made of: page.html, which is a file of its own here and a string in the program (room.am), and two
 * objects of JSON that it draws from. See html.c. */
#pragma once

#include <jansson.h>

#include "cli/compare/compare.h"

extern const char COMPARE_PAGE[]; /* with @NAME@, @TEXT@, @COMPARISON@ and @PAGE@, in this order, where html.c puts something */

/* A number, or null where it is not finite; text whose bytes, where it is no UTF-8, are '?' beyond ASCII's. */
json_t *compare_number(double x);
json_t *compare_text(const char *text);

/* json.c: the object of --json. page_json.c: what the terminal shows, too, and --json does not have. NULL: no memory. */
json_t *compare_json(const struct comparison *c);
json_t *compare_page_json(const struct comparison *c);

/* "a9a" of "/data/a9a". */
const char *compare_base_name(const char *data);

/* Text as HTML that shows it, which is UTF-8, and in which control characters are '?'. */
void compare_put_escaped(FILE *out, const char *text);
