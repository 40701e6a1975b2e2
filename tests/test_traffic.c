/* Measuring what it takes to move memory. That figures are right shows bench; here, that there are some, whatever the machine is. */
#include "topo/topo.h"
#include "topo/traffic.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void every_machine_has_a_bandwidth_and_several_cores_have_a_way_for_lines(void **state) {
    struct shmt_topo *topo;
    struct shmt_traffic traffic;
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_topo_open(&topo, &e), 0);
    for (int tries = 0; tries < 20; tries++) { /* others may have all processors for as long as one takes */
        if (shmt_traffic_measure(topo, &traffic, &e) < 0) fail_msg("%s", e.text);
        if (traffic.line_ns > 0 || shmt_topo_cores(topo) == 1) break;
    }
    assert_true(isfinite(traffic.bandwidth) && traffic.bandwidth > 0);
    assert_true(isfinite(traffic.line_ns) && (shmt_topo_cores(topo) > 1 ? traffic.line_ns > 0 : traffic.line_ns == 0));
    assert_true(traffic.next_ns >= 0 && traffic.next_ns <= traffic.line_ns);
    shmt_topo_close(topo);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_has_a_bandwidth_and_several_cores_have_a_way_for_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
