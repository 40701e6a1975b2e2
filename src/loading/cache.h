/* Caches (data/cache.h) beside text, and in runs: when data is converted, when a cache is stale, and when a run takes its
 * arrays as they lie in the file. Called by load.c, running and scoring. */
#pragma once

#include "loading/load.h"

/* As shmt_load_open, with option `cache`: of a text, opens the cache that is kept beside it, which is made if it is not
 * there or the text has changed. A line of the log says so, and that it goes on without one where none can be written. A
 * table that is read as another one was (`table`) is not kept. */
int shmt_cache_load_open(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_crew *crew, const char *name,
                         unsigned how, const char *table, uint32_t n_readers, enum shmt_row_layout rows);

/* As shmt_load_count, of what shmt_cache_load_open has opened. A cache beside a text that is damaged inside, which
 * counting finds, is made again, and counted; or the text, where it cannot be. */
int shmt_cache_load_count(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_crew *crew,
                          const struct shmt_columns *columns);

/* Whether its columns lie by frequency already. */
bool shmt_cache_is_ordered(const struct shmt_load *load);

/* After plan, when the spec is complete but for memory: whether the run takes the arrays as they are (load->in_place). Not for
 * guests, who map segments; nor on several nodes, where a copy lies with those who read it; nor for columns other than the run
 * wants. `leads`: the columns of all data will be numbered as those of this one. */
void shmt_cache_decide(struct shmt_load *load, const struct shmt_config *config, const struct shmt_spec *spec,
                       const struct shmtrain_model *model, bool leads);

/* Instead of shmt_load_fill's memory. Errors: _MEMORY (weights). */
int shmt_cache_take(struct shmt_load *load, struct shmt_error *e);

/* As shmt_places_make, of a load that is in place and ordered. Errors: _DATA (not each column has a place), _MEMORY. */
int shmt_cache_places(const struct shmt_load *load, uint64_t rows, uint32_t **out, struct shmt_error *e);
