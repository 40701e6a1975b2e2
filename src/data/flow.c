/* Text as it comes, dealt to readers: see flow.h.
 *
 * Each file has a lock, and who holds it takes the next chunk: of a plain file a range of bytes, of any other one so many bytes
 * of text, up to a line break. A reader takes from the first file that nobody else is at, and waits for the first one that is
 * not at its end when others are at all of them. */
#include "data/flow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/text_priv.h"
#include "base/atomic.h"
#include "base/checked.h"
#include "files/lines.h"

#define CHUNK_BYTES      ((uint64_t)1 << 20) /* some milliseconds of parsing */
#define CHUNK_BYTES_MAX  ((uint64_t)16 << 20)
#define CHUNKS_OF_A_SIZE 256 /* chunks grow with the file, for what is found in one takes 15 KiB */

/* Memory for a chunk's text; while nobody uses it, in a list. */
struct buffer {
    struct buffer *next;
    uint64_t room;
    char *text; /* (room + 1 + SHMT_LINE_PAD): a line break may be added, and parsers may read more */
};

/* One of the files. All but `ended` belongs to who holds the lock. */
struct stream {
    pthread_mutex_t lock;
    _Atomic uint32_t ended;   /* relaxed: who sees it too late looks again under the lock */
    struct shmt_input *input; /* NULL: not begun; or a plain file */
    char *rest;               /* (n_rest): the beginning of the next chunk */
    uint64_t n_rest, rest_room;
    uint64_t bytes, lines; /* dealt */
    uint32_t n_chunks;
};

struct shmt_flow {
    const struct text *text;
    const _Atomic uint32_t *stop;
    struct stream *stream; /* (text->n_files) */
    pthread_mutex_t plan_lock;
    bool planned;         /* under its lock */
    _Atomic uint32_t end; /* files from this one on are not read; relaxed: what is read in vain is no harm */
    pthread_mutex_t lock; /* of what follows */
    struct buffer *unused;
    struct shmt_part **part; /* (n_parts) each by malloc */
    uint32_t n_parts, room;
    uint32_t n_filled;
};

/* A chunk in hand. */
struct chunk {
    struct shmt_text_piece piece;
    uint32_t number;       /* of those of its file */
    struct buffer *buffer; /* NULL: a range */
};

/* ---- the pass ---- */

int shmt_flow_open(const struct shmt_source *source, const _Atomic uint32_t *stop, struct shmt_flow **out,
                   struct shmt_error *e) {
    const struct text *text = shmt_text_of(source);
    struct shmt_flow *flow = calloc(1, sizeof *flow);
    struct stream *stream = calloc(text->n_files, sizeof *stream);
    if (!flow || !stream) {
        free(flow);
        free(stream);
        return shmt_no_memory(e, "to read %s", source->name);
    }
    flow->text = text;
    flow->stop = stop;
    flow->stream = stream;
    store_relaxed(&flow->end, text->n_files);
    flow->planned = !text->plans_later;
    pthread_mutex_init(&flow->plan_lock, NULL);
    pthread_mutex_init(&flow->lock, NULL);
    for (uint32_t i = 0; i < text->n_files; i++) pthread_mutex_init(&stream[i].lock, NULL);
    *out = flow;
    return 0;
}

static void free_parts(struct shmt_flow *flow) {
    for (uint32_t i = 0; i < flow->n_parts; i++) free(flow->part[i]);
    free(flow->part);
    flow->part = NULL;
    flow->n_parts = flow->room = 0;
}

void shmt_flow_close(struct shmt_flow *flow) {
    if (!flow) return;
    for (uint32_t i = 0; i < flow->text->n_files; i++) {
        shmt_input_close(flow->stream[i].input);
        free(flow->stream[i].rest);
        pthread_mutex_destroy(&flow->stream[i].lock);
    }
    while (flow->unused) {
        struct buffer *buffer = flow->unused;
        flow->unused = buffer->next;
        free(buffer->text);
        free(buffer);
    }
    free_parts(flow);
    pthread_mutex_destroy(&flow->plan_lock);
    pthread_mutex_destroy(&flow->lock);
    free(flow->stream);
    free(flow);
}

/* ---- buffers ---- */

static struct buffer *take_buffer(struct shmt_flow *flow) {
    pthread_mutex_lock(&flow->lock);
    struct buffer *buffer = flow->unused;
    if (buffer) flow->unused = buffer->next;
    pthread_mutex_unlock(&flow->lock);
    return buffer ? buffer : calloc(1, sizeof *buffer);
}

static void give_back(struct shmt_flow *flow, struct chunk *chunk) {
    if (!chunk->buffer) return;
    pthread_mutex_lock(&flow->lock);
    chunk->buffer->next = flow->unused;
    flow->unused = chunk->buffer;
    pthread_mutex_unlock(&flow->lock);
    chunk->buffer = NULL;
}

/* Room for so many bytes; what is there stays. */
static int grow(struct buffer *buffer, uint64_t room, const char *name, struct shmt_error *e) {
    if (room <= buffer->room) return 0;
    char *text = realloc(buffer->text, room + 1 + SHMT_LINE_PAD);
    if (!text) return shmt_no_memory(e, "to read %s", name);
    buffer->text = text;
    buffer->room = room;
    return 0;
}

/* ---- dealing ---- */

static int open_input(struct shmt_flow *flow, uint32_t i, struct shmt_error *e) {
    const struct shmt_input_until until = {.stop = flow->stop, .end = &flow->end, .number = i};
    return shmt_input_open(&flow->text->file[i], &until, &flow->stream[i].input, e);
}

static uint64_t next_size(const struct stream *stream) {
    const uint64_t bytes = stream->bytes / CHUNKS_OF_A_SIZE;
    return shmt_max_u64(CHUNK_BYTES, shmt_min_u64(bytes, CHUNK_BYTES_MAX));
}

static uint64_t count_breaks(const char *text, uint64_t n) {
    uint64_t breaks = 0;
    for (uint64_t i = 0; i < n; i++) breaks += text[i] == '\n';
    return breaks;
}

/* What stands behind the chunk begins the next one. */
static int keep_rest(struct stream *stream, const char *rest, uint64_t n, const char *name, struct shmt_error *e) {
    if (n > stream->rest_room) {
        free(stream->rest);
        stream->rest_room = 2 * n;
        stream->rest = malloc(stream->rest_room);
        if (!stream->rest) return shmt_no_memory(e, "to read %s", name);
    }
    if (n > 0) memcpy(stream->rest, rest, n);
    stream->n_rest = n;
    return 0;
}

/* Keeps so many bytes of the beginning for the first chunk. 1: these are all. */
static int keep_beginning(struct stream *stream, uint64_t bytes, const char *name, struct shmt_error *e) {
    char *larger = realloc(stream->rest, bytes + 1); /* 1: for a line break */
    if (!larger) return shmt_no_memory(e, "to read %s", name);
    stream->rest = larger;
    stream->rest_room = bytes;
    const int64_t n = shmt_input_read(stream->input, stream->rest + stream->n_rest, bytes - stream->n_rest, e);
    if (n < 0) return (int)n;
    stream->n_rest += (uint64_t)n;
    return stream->n_rest < bytes;
}

/* An empty file is no failure where there are others. */
static int refuse_empty(const struct shmt_flow *flow, const char *name, struct shmt_error *e) {
    return flow->text->n_files > 1 ? 0 : shmt_fail(e, SHMTRAIN_E_DATA, "%s is empty", name);
}

/* From the first bytes of one file. 1: it has none. */
static int plan_by(struct shmt_flow *flow, uint32_t i, struct shmt_error *e) {
    struct stream *stream = &flow->stream[i];
    const char *name = flow->text->file[i].file.name;
    int rc = open_input(flow, i, e);
    if (rc < 0) return rc;
    for (uint64_t bytes = SHMT_TEXT_SAMPLE; rc >= 0; bytes *= 4) {
        rc = keep_beginning(stream, bytes, name, e);
        if (rc < 0) break;
        if (stream->n_rest == 0) {
            rc = refuse_empty(flow, name, e);
            return rc < 0 ? rc : 1;
        }
        rc = shmt_text_plan(flow->text, name, stream->rest, stream->n_rest, rc > 0 || bytes > SHMT_LINE_BYTES_MAX, e);
        if (rc == 0) return 0;
    }
    return rc;
}

/* By the first file that is not empty, where none could be looked into before: they are pipes. */
static int plan_now(struct shmt_flow *flow, uint32_t *file_out, struct shmt_error *e) {
    int rc = 1;
    for (uint32_t i = 0; i < flow->text->n_files && rc > 0; i++) {
        *file_out = i;
        if (flow->text->file[i].kind != SHMT_TEXT_EMPTY) rc = plan_by(flow, i, e);
    }
    return rc;
}

/* The others wait for who does it. *file_out: which one cannot be read. */
static int make_plan(struct shmt_flow *flow, uint32_t *file_out, struct shmt_error *e) {
    int rc = 0;
    pthread_mutex_lock(&flow->plan_lock);
    if (!flow->planned) {
        rc = plan_now(flow, file_out, e);
        flow->planned = true;
        if (rc < 0) store_relaxed(&flow->end, 0);
    }
    pthread_mutex_unlock(&flow->plan_lock);
    return rc;
}

/* Reads whole lines into the buffer, at least one. The number of their bytes, 0 at the end, or a status. */
static int64_t read_lines(struct stream *stream, const char *name, struct buffer *buffer, struct shmt_error *e) {
    uint64_t have = stream->n_rest, want = have + next_size(stream);
    int rc = grow(buffer, want, name, e);
    if (rc < 0) return rc;
    if (have > 0) memcpy(buffer->text, stream->rest, have);
    for (;;) {
        const int64_t n = shmt_input_read(stream->input, buffer->text + have, want - have, e);
        if (n < 0) return n;
        const bool at_end = (uint64_t)n < want - have;
        const char *last = n > 0 ? memrchr(buffer->text + have, '\n', (uint64_t)n) : NULL;
        have += (uint64_t)n;
        if (at_end || last) {
            const uint64_t bytes = at_end ? have : (uint64_t)(last - buffer->text) + 1;
            memset(buffer->text + have, 0, 1 + SHMT_LINE_PAD);
            rc = keep_rest(stream, buffer->text + bytes, have - bytes, name, e);
            return rc < 0 ? rc : (int64_t)bytes;
        }
        if (have >= SHMT_LINE_BYTES_MAX)
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s:%llu: this line is longer than %llu MiB; is the file text?", name,
                             (unsigned long long)stream->lines + 1, (unsigned long long)(SHMT_LINE_BYTES_MAX >> 20));
        want = 2 * have;
        rc = grow(buffer, want, name, e);
        if (rc < 0) return rc;
    }
}

static int deal_text(struct shmt_flow *flow, struct stream *stream, const struct shmt_text_file *file, struct chunk *out,
                     struct shmt_error *e) {
    const char *name = file->file.name;
    const int rc = stream->input ? 0 : open_input(flow, out->piece.file, e);
    if (rc < 0) return rc;
    out->buffer = take_buffer(flow);
    if (!out->buffer) return shmt_no_memory(e, "to read %s", name);
    const int64_t n = read_lines(stream, name, out->buffer, e);
    if (n <= 0) {
        give_back(flow, out);
        return n == 0 && stream->n_chunks == 0 ? refuse_empty(flow, name, e) : (int)n;
    }
    out->piece.memory = out->buffer->text;
    out->piece.bytes = (uint64_t)n;
    out->piece.line = stream->lines + 1;
    stream->lines += count_breaks(out->buffer->text, (uint64_t)n);
    stream->bytes += (uint64_t)n;
    return 1;
}

static int deal_range(struct stream *stream, const struct shmt_text_file *file, struct chunk *out) {
    if (stream->bytes == file->file.bytes) return 0;
    out->piece.begin = stream->bytes;
    stream->bytes = shmt_min_u64(file->file.bytes, stream->bytes + next_size(stream));
    out->piece.end = stream->bytes;
    return 1;
}

static int end_stream(struct stream *stream) {
    store_relaxed(&stream->ended, 1);
    shmt_input_close(stream->input);
    stream->input = NULL;
    return 0;
}

/* The next chunk of file i, whose lock is held. 1: there is one; 0: no more; below 0: it cannot be read. */
static int deal_of(struct shmt_flow *flow, uint32_t i, struct chunk *out, struct shmt_error *e) {
    struct stream *stream = &flow->stream[i];
    const struct shmt_text_file *file = &flow->text->file[i];
    if (load_relaxed(&stream->ended)) return 0;
    if (file->kind == SHMT_TEXT_EMPTY) return end_stream(stream);
    *out = (struct chunk){.piece = {.file = i}, .number = stream->n_chunks};
    const int rc = file->kind == SHMT_TEXT_PLAIN ? deal_range(stream, file, out) : deal_text(flow, stream, file, out, e);
    if (rc > 0) {
        stream->n_chunks++;
        return rc;
    }
    (void)end_stream(stream);
    if (rc != SHMTRAIN_E_STOPPED || load_relaxed(flow->stop) != 0) return rc;
    shmt_error_clear(e); /* nobody asked for a stop: a file before this one is bad (end_with) */
    return 0;
}

/* From the first file that is free; 0: there is none. *first_out: the first one that is not at its end, or the number of them. */
static int deal_free(struct shmt_flow *flow, struct chunk *out, uint32_t *first_out, struct shmt_error *e) {
    const uint32_t end = load_relaxed(&flow->end);
    *first_out = end;
    for (uint32_t i = 0; i < end; i++) {
        if (load_relaxed(&flow->stream[i].ended)) continue;
        if (pthread_mutex_trylock(&flow->stream[i].lock) == 0) {
            const int rc = deal_of(flow, i, out, e);
            pthread_mutex_unlock(&flow->stream[i].lock);
            if (rc != 0) return rc;
            continue;
        }
        if (*first_out == end) *first_out = i;
    }
    return 0;
}

/* 1: a chunk; 0: that was all; below 0: out->piece.file cannot be read. */
static int deal(struct shmt_flow *flow, struct chunk *out, struct shmt_error *e) {
    *out = (struct chunk){.buffer = NULL};
    const int planned = flow->text->plans_later ? make_plan(flow, &out->piece.file, e) : 0;
    if (planned < 0) return planned;
    for (;;) {
        uint32_t first;
        if (load_relaxed(flow->stop) != 0) return shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while reading");
        int rc = deal_free(flow, out, &first, e);
        if (rc != 0 || first >= load_relaxed(&flow->end)) return rc; /* nobody is at any file: all are at their ends */
        pthread_mutex_lock(&flow->stream[first].lock);
        rc = deal_of(flow, first, out, e);
        pthread_mutex_unlock(&flow->stream[first].lock);
        if (rc != 0) return rc;
    }
}

/* ---- counting ---- */

static struct shmt_part *add_part(struct shmt_flow *flow) {
    struct shmt_part *part = malloc(sizeof *part);
    pthread_mutex_lock(&flow->lock);
    if (part && flow->n_parts == flow->room) {
        const uint32_t room = flow->room > 0 ? 2 * flow->room : 256;
        struct shmt_part **larger = realloc(flow->part, room * sizeof(struct shmt_part *));
        if (larger) {
            flow->part = larger;
            flow->room = room;
        }
    }
    const bool there = part && flow->n_parts < flow->room;
    if (there) flow->part[flow->n_parts++] = part;
    pthread_mutex_unlock(&flow->lock);
    if (there) return part;
    free(part);
    return NULL;
}

/* Nothing behind what is wrong needs to be read; what stands before it may be wrong, too. */
static void end_with(struct shmt_flow *flow, uint32_t file) {
    pthread_mutex_lock(&flow->lock);
    if (file + 1 < load_relaxed(&flow->end)) store_relaxed(&flow->end, file + 1);
    pthread_mutex_unlock(&flow->lock);
    store_relaxed(&flow->stream[file].ended, 1);
}

int shmt_flow_count(struct shmt_flow *flow, const struct shmt_columns *columns, struct shmt_row_buffer *rows,
                    struct shmt_error *e) {
    struct shmt_error failed = {0};
    struct chunk chunk;
    const int dealt = deal(flow, &chunk, &failed);
    if (dealt == 0) return 0;
    if (failed.status == SHMTRAIN_E_STOPPED) return shmt_fail(e, failed.status, "%s", failed.text);
    struct shmt_part *part = add_part(flow);
    if (!part) {
        give_back(flow, &chunk);
        return shmt_no_memory(e, "to read %s", flow->text->source.name);
    }
    shmt_part_begin_count(part, rows);
    part->file = chunk.piece.file;
    part->chunk = chunk.number;
    part->error = failed;
    if (dealt > 0) (void)shmt_text_count(flow->text, &chunk.piece, columns, rows, part);
    shmt_part_end_count(part, rows);
    give_back(flow, &chunk);
    if (part->error.status != 0) end_with(flow, part->file);
    return 1;
}

static int compare_places(const struct shmt_part *a, uint32_t file, uint32_t chunk) {
    if (a->file != file) return a->file < file ? -1 : 1;
    return (a->chunk > chunk) - (a->chunk < chunk);
}

static int compare_parts(const void *a, const void *b) {
    const struct shmt_part *y = *(struct shmt_part *const *)b;
    return compare_places(*(struct shmt_part *const *)a, y->file, y->chunk);
}

int shmt_flow_take_parts(struct shmt_flow *flow, struct shmt_part **parts_out, uint32_t *n_out, struct shmt_error *e) {
    const uint32_t n = flow->n_parts;
    struct shmt_part *parts = calloc(n > 0 ? n : 1, sizeof *parts);
    if (!parts) return shmt_no_memory(e, "to read %s", flow->text->source.name);
    if (n > 0) qsort(flow->part, n, sizeof *flow->part, compare_parts);
    for (uint32_t i = 0; i < n; i++) parts[i] = *flow->part[i];
    free_parts(flow);
    *parts_out = parts;
    *n_out = n;
    return 0;
}

/* ---- filling ---- */

/* The number of the chunk's part; n_parts: there was none. */
static uint32_t find_part(const struct shmt_part *parts, uint32_t n_parts, const struct chunk *chunk) {
    uint32_t low = 0, high = n_parts;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare_places(&parts[middle], chunk->piece.file, chunk->number) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < n_parts && compare_places(&parts[low], chunk->piece.file, chunk->number) == 0;
    return found ? low : n_parts;
}

static int changed(const struct shmt_flow *flow, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", flow->text->source.name);
}

int shmt_flow_fill(struct shmt_flow *flow, struct shmt_part *parts, uint32_t n_parts, const struct shmt_arrays *into,
                   struct shmt_error *e) {
    struct chunk chunk;
    uint64_t first, first_nonzero;
    int rc = deal(flow, &chunk, e);
    if (rc <= 0) return rc;
    const uint32_t i = find_part(parts, n_parts, &chunk);
    if (i == n_parts) {
        rc = changed(flow, e);
    } else {
        shmt_parts_before(parts, i, &first, &first_nonzero);
        rc = shmt_text_fill(flow->text, &chunk.piece, &parts[i], first, first_nonzero, into, e);
    }
    give_back(flow, &chunk);
    if (rc < 0) return rc;
    if (i + 1 == n_parts && into->start) into->start[first + parts[i].n_examples] = first_nonzero + parts[i].n_nonzeros;
    pthread_mutex_lock(&flow->lock);
    flow->n_filled++;
    pthread_mutex_unlock(&flow->lock);
    return 1;
}

int shmt_flow_check(const struct shmt_flow *flow, uint32_t n_parts, struct shmt_error *e) {
    return flow->n_filled == n_parts ? 0 : changed(flow, e);
}
