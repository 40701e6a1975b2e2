/* LIBSVM text in a memory file: see text_file.h. Its pages are of the page cache, as those of a file that was just read. */
#include "bench/runs/text_file.h"

#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/floors/helpers.h"
#include "bench/floors/stream.h"
#include "bench/runs/options.h"

static void write_example(FILE *out, const struct shmtrain_data *data, uint64_t i) {
    fprintf(out, "%g", (double)data->label[i]);
    for (uint64_t k = data->start[i]; k < data->start[i + 1]; k++)
        fprintf(out, " %u:%.6g", data->id[k] + 1, (double)data->value[k]);
    fputc('\n', out);
}

void shmt_text_file_make(const struct shmtrain_data *data, uint64_t bytes, struct shmt_text_file *out) {
    *out = (struct shmt_text_file){.fd = memfd_create("shmtrain-text", MFD_CLOEXEC)};
    FILE *file = out->fd < 0 ? NULL : fdopen(dup(out->fd), "w");
    if (!file) shmt_measure_fail("cannot create a memory file for text");
    for (uint64_t i = 0; i < data->n_examples; i++) {
        if (i % 256 == 0 && (uint64_t)ftell(file) >= bytes) break;
        write_example(file, data, i);
    }
    out->bytes = (uint64_t)ftell(file);
    if (fclose(file) != 0) shmt_measure_fail("not enough memory for %llu bytes of text", (unsigned long long)bytes);
    snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", out->fd);
    out->at = mmap(NULL, out->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, out->fd, 0);
    if (out->at == MAP_FAILED) shmt_measure_fail("cannot map %llu bytes of text", (unsigned long long)out->bytes);
}

void shmt_text_file_free(struct shmt_text_file *file) {
    munmap((void *)(uintptr_t)file->at, file->bytes);
    close(file->fd);
}

double shmt_text_file_load(const struct shmt_text_file *file, uint32_t workers) {
    struct shmtrain_store *store = shmt_handle_with("workers=%u epochs=1", workers);
    shmt_handle_must(store, shmtrain_store_train(store, file->path));
    const double seconds = shmtrain_store_report(store)->load_seconds;
    shmtrain_store_destroy(store);
    return seconds * 1e9;
}

double shmt_text_file_stream(const struct shmt_text_file *file) {
    const struct shmt_ranges b = {.at = {file->at}, .bytes = {file->bytes}};
    return shmt_stream_ns(&b);
}
