/*
 * Reports of misuse that wait until their thread has done what it is at. See misuse.h.
 *
 * Apart from the reports themselves, which most programs never make: each refill and each flush of
 * a magazine comes by here.
 */
#include "meta/misuse.h"

__thread struct misuse_waits *misuse_waiting __attribute__((tls_model("initial-exec")));

void misuse_hold(struct misuse_waits *waits)
{
    if (LIKELY(misuse_waiting == NULL)) {
        waits->count = 0;
        misuse_waiting = waits;
    }
}

bool misuse_hold_ends(struct misuse_waits *waits)
{
    if (UNLIKELY(misuse_waiting != waits))
        return false;
    misuse_waiting = NULL;
    return waits->count != 0;
}

void misuse_let_go(struct misuse_waits *waits)
{
    if (UNLIKELY(misuse_hold_ends(waits)))
        misuse_report_waits(waits);
}
