/* What somebody may have meant who has mistyped a word. */
#pragma once

struct near {
    const char *word, *best; /* best NULL: nothing came near enough */
    unsigned distance;       /* of the best */
};

struct near near_to(const char *word);
void near_offer(struct near *near, const char *candidate); /* remembered, not copied */
