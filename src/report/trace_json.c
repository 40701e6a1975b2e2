/* Traces as JSON: see trace_json.h. Whole numbers only, so that no locale has a say. */
#include "report/trace_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/fields.h"

/* With its quotes; "" where there is no memory. */
static void put_text(FILE *out, const char *text) {
    json_t *value = shmt_json_text(text);
    char *quoted = json_dumps(value, JSON_ENCODE_ANY);
    json_decref(value);
    (void)fputs(quoted ? quoted : "\"\"", out);
    free(quoted);
}

static void put_args(FILE *out, const struct shmt_trace_arg *arg, uint32_t n) {
    (void)fputc('{', out);
    for (uint32_t i = 0; i < n; i++) {
        (void)fprintf(out, "%s\"%s\":", i > 0 ? "," : "", arg[i].key);
        if (arg[i].text)
            put_text(out, arg[i].text);
        else
            (void)fprintf(out, "%" PRIu64, arg[i].number);
    }
    (void)fputc('}', out);
}

/* The next one of the list begins on a line of its own. */
static void begin_item(struct shmt_trace_json *json) {
    (void)fputs(json->any ? ",\n" : "\n", json->out);
    json->any = true;
}

static void put_metadata(struct shmt_trace_json *json, const char *what, uint32_t pid, uint32_t tid,
                         const struct shmt_trace_arg *arg) {
    begin_item(json);
    (void)fprintf(json->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"args\":", what, pid, tid);
    put_args(json->out, arg, 1);
    (void)fputc('}', json->out);
}

void shmt_trace_json_begin(struct shmt_trace_json *json, FILE *out) {
    *json = (struct shmt_trace_json){.out = out};
    (void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
}

void shmt_trace_json_process(struct shmt_trace_json *json, uint32_t pid, const char *name, uint32_t place) {
    put_metadata(json, "process_name", pid, pid, &(struct shmt_trace_arg){.key = "name", .text = name});
    put_metadata(json, "process_sort_index", pid, pid, &(struct shmt_trace_arg){.key = "sort_index", .number = place});
}

void shmt_trace_json_thread(struct shmt_trace_json *json, uint32_t pid, uint32_t tid, const char *name, uint32_t place) {
    put_metadata(json, "thread_name", pid, tid, &(struct shmt_trace_arg){.key = "name", .text = name});
    put_metadata(json, "thread_sort_index", pid, tid, &(struct shmt_trace_arg){.key = "sort_index", .number = place});
}

static void put_time(FILE *out, const char *key, uint64_t ns) {
    (void)fprintf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

void shmt_trace_json_event(struct shmt_trace_json *json, const struct shmt_trace_line *line) {
    begin_item(json);
    (void)fprintf(json->out, "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, line->name,
                  line->category, line->pid, line->tid);
    put_time(json->out, "ts", line->begin_ns);
    put_time(json->out, "dur", line->ns);
    if (line->n_args > 0) {
        (void)fputs(",\"args\":", json->out);
        put_args(json->out, line->arg, line->n_args);
    }
    (void)fputc('}', json->out);
}

void shmt_trace_json_counter(struct shmt_trace_json *json, const char *name, uint32_t pid, uint64_t at_ns,
                             const struct shmt_trace_arg *arg, uint32_t n_args) {
    begin_item(json);
    (void)fprintf(json->out, "{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%" PRIu32, name, pid);
    put_time(json->out, "ts", at_ns);
    (void)fputs(",\"args\":", json->out);
    put_args(json->out, arg, n_args);
    (void)fputc('}', json->out);
}

void shmt_trace_json_end(struct shmt_trace_json *json, const struct shmt_trace_arg *other, uint32_t n_others) {
    (void)fputs("\n],\"otherData\":", json->out);
    put_args(json->out, other, n_others);
    (void)fputs("}\n", json->out);
}
