/* Text files as runs read them: whatever they are (LIBSVM text, or any other that data/source.h finds out), in parts, with and
 * without buffers, in both layouts. */
#include <sys/prctl.h>

#include "fuzz.h"
#include "sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct fuzz_file file;
    struct fuzz_input in = {bytes, n};
    struct shmt_source *source;
    struct shmt_error e = {0};
    const uint8_t how = fuzz_u8(&in);
    const enum fuzz_columns columns = how >> 3 & 3;
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* buffers would be whole huge pages, cleared for each input */
    fuzz_file_write(&file, in.at, in.left);
    const int status = shmt_source_open(file.path, 1, 0, &source, &e);
    if (status == 0)
        fuzz_read_source(source, 1 + how % 8, columns, 1 + (how >> 5), false);
    else
        fuzz_check_error(status, &e);
    return 0;
}
