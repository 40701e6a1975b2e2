/* Memory as targets see it that load models: the machine's files are not read for each input. Linked by --wrap; files with
 * limits are the business of fuzz_machine. */
#include "segment/budget.h"

#include <stdio.h>

void __wrap_shmt_budget_read(const char *root, struct shmt_budget *out);
void __wrap_shmt_budget_read(const char *root, struct shmt_budget *out) {
    (void)root;
    *out = (struct shmt_budget){.available_bytes = (uint64_t)1 << 30, .limit_bytes = (uint64_t)1 << 30};
    snprintf(out->limit, sizeof out->limit, "memory of the machine");
}
