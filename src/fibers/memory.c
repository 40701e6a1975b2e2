/* What memory takes in virtual time: see memory.h. */
#include "fibers/memory.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"

#define LINE_BYTES  64
#define FIRST_LINES 1024 /* room at first; a power of two */
#define NOBODY      UINT32_MAX
#define NO_LINE     UINT32_MAX

struct line {
    uint32_t owner;           /* the worker that has it alone, or NOBODY */
    uint32_t writer;          /* who wrote it last, or NOBODY */
    uint32_t node;            /* where it is */
    uint32_t version;         /* how often it was taken from others; copies of an older one are none */
    double from_ns, until_ns; /* on its way to one after the other */
};

/* A worker's copy of a line; `number` is that of the line and 1, so that zeros are no copy. */
struct copy {
    uint32_t number, version;
};

/* Where the lines' numbers stand, by address: open addressing, at most half full. */
struct place {
    uint64_t address; /* of the line, by LINE_BYTES */
    uint32_t number;  /* and 1; 0: free */
};

struct shmt_memory {
    struct shmt_memory_costs costs;
    double pass_ns; /* of a line through the queue of a node */
    uint32_t n_workers, n_copies;
    uint32_t n_lines, n_places;             /* n_places: a power of two, with room for half as many lines */
    struct place *place;                    /* (n_places) */
    struct line *line;                      /* (n_places / 2) */
    struct copy *copy;                      /* (n_workers, n_copies) */
    double free_ns[SHMT_MEMORY_MOST_NODES]; /* when a node's queue is empty */
};

int shmt_memory_make(const struct shmt_memory_costs *costs, uint32_t n_workers, struct shmt_memory **out,
                     struct shmt_error *e) {
    struct shmt_memory *m = calloc(1, sizeof *m);
    if (!m) return shmt_no_memory(e, "for the caches of %u simulated workers", n_workers);
    m->costs = *costs;
    m->pass_ns = costs->bandwidth > 0 ? LINE_BYTES / costs->bandwidth : 0;
    if (costs->next_ns == SHMT_MEMORY_AS_FIRST) m->costs.next_ns = costs->line_ns;
    m->n_workers = n_workers;
    m->n_copies = (uint32_t)(costs->cache_bytes / LINE_BYTES);
    m->n_places = 2 * FIRST_LINES;
    m->place = calloc(m->n_places, sizeof *m->place);
    m->line = calloc(m->n_places / 2, sizeof *m->line);
    m->copy = calloc((size_t)n_workers * m->n_copies, sizeof *m->copy); /* what is not touched takes no memory */
    if (m->place && m->line && m->copy) {
        *out = m;
        return 0;
    }
    shmt_memory_free(m);
    return shmt_no_memory(e, "for the caches of %u simulated workers", n_workers);
}

void shmt_memory_free(struct shmt_memory *m) {
    if (!m) return;
    free(m->place);
    free(m->line);
    free(m->copy);
    free(m);
}

/* ---- lines by address ---- */

static struct place *find_place(struct place *place, uint32_t n_places, uint64_t address) {
    uint64_t i = shmt_mix64(address) & (n_places - 1);
    while (place[i].number != 0 && place[i].address != address) i = (i + 1) & (n_places - 1);
    return &place[i];
}

/* Twice the room. False: there is no memory, and all is as before. */
static bool grow(struct shmt_memory *m) {
    const uint32_t n = m->n_places;
    if (n > UINT32_MAX / 4) return false;
    struct place *place = calloc((size_t)n * 2, sizeof *place);
    struct line *line = place ? realloc(m->line, (size_t)n * sizeof *line) : NULL;
    if (!line) {
        free(place);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (m->place[i].number != 0) *find_place(place, n * 2, m->place[i].address) = m->place[i];
    free(m->place);
    m->place = place;
    m->line = line;
    m->n_places = n * 2;
    return true;
}

static uint32_t node_of(const struct shmt_memory *m, uint32_t worker) {
    return (uint32_t)((uint64_t)worker * m->costs.n_nodes / m->n_workers);
}

/* The number of the line; of one that nobody has touched, a new one: `worker` has it alone. NO_LINE: there is no memory. */
static uint32_t line_at(struct shmt_memory *m, uint64_t address, uint32_t worker) {
    struct place *place = find_place(m->place, m->n_places, address);
    if (place->number != 0) return place->number - 1;
    if (m->n_lines == m->n_places / 2) {
        if (!grow(m)) return NO_LINE;
        place = find_place(m->place, m->n_places, address);
    }
    *place = (struct place){.address = address, .number = m->n_lines + 1};
    m->line[m->n_lines] = (struct line){.owner = worker, .writer = NOBODY, .node = node_of(m, worker)};
    return m->n_lines++;
}

/* ---- what they cost ---- */

/* After the lines that the call has fetched before. A line comes to one worker at a time; a call may fetch it much later than it begins,
 * and keeps nobody waiting until then. */
static void fetch(struct line *l, double line_ns, double at_ns, struct shmt_memory_bill *bill) {
    double begin_ns = at_ns + bill->lines_ns;
    if (begin_ns + line_ns > l->from_ns) {
        if (begin_ns < l->until_ns)
            begin_ns = l->until_ns;
        else
            l->from_ns = begin_ns;
        l->until_ns = begin_ns + line_ns;
    }
    bill->lines_ns = begin_ns - at_ns + line_ns;
}

static void touch_line(struct shmt_memory *m, uint32_t worker, double at_ns, uint32_t number, bool writes,
                       struct shmt_memory_bill *bill) {
    struct line *l = &m->line[number];
    struct copy *copy = &m->copy[(uint64_t)worker * m->n_copies + number % m->n_copies];
    const bool has_copy = copy->number == number + 1 && copy->version == l->version, alone = l->owner == worker;
    const bool pays = writes ? !alone : !has_copy && l->writer != worker && l->writer != NOBODY;
    const double distance = l->node == node_of(m, worker) ? 1 : m->costs.far;
    if (pays) fetch(l, (bill->lines_ns > 0 ? m->costs.next_ns : m->costs.line_ns) * distance, at_ns, bill);
    if (!has_copy && m->pass_ns > 0) {
        double *free_ns = &m->free_ns[l->node];
        *free_ns = fmax(*free_ns, at_ns) + m->pass_ns * distance;
        bill->until_ns = fmax(bill->until_ns, *free_ns);
    }
    if (!alone) l->owner = writes ? worker : NOBODY;
    if (writes) {
        l->version += !alone;
        l->writer = worker;
        l->node = node_of(m, worker);
    }
    *copy = (struct copy){.number = number + 1, .version = l->version};
}

void shmt_memory_touch(struct shmt_memory *m, uint32_t worker, double at_ns, const void *at, uint64_t bytes, bool writes,
                       struct shmt_memory_bill *bill) {
    const uint64_t first = (uint64_t)(uintptr_t)at / LINE_BYTES, last = ((uint64_t)(uintptr_t)at + bytes - 1) / LINE_BYTES;
    for (uint64_t address = first; address <= last; address++) {
        const uint32_t number = line_at(m, address, worker);
        if (number != NO_LINE) touch_line(m, worker, at_ns, number, writes, bill);
    }
}

double shmt_memory_pay(struct shmt_memory_bill *bill, double at_ns) {
    const double ns = fmax(bill->lines_ns, bill->until_ns - at_ns);
    *bill = (struct shmt_memory_bill){0};
    return ns;
}
