/*
 * Tests of retention/retention.h by itself: what is learned from pages that are missed, what is
 * forgotten when nobody takes them, and for how long. Time is a number here.
 */
#include "support.h"

#include "options/options.h"
#include "retention/retention.h"

#define MS ((uint64_t)1000000)
#define SECOND (1000 * MS)

/* A gigabyte, which is worth keeping for 16 seconds, and so for as long as the option says. */
#define PEAK ((size_t)262144)

static struct retention retention;

static int begin(void **state)
{
    retention = (struct retention){.wanted = 0};
    retention_init(&retention, RETENTION_PAGE_PRICE);
    return options_reset(state);
}

/* A peak comes, and all of it is given back at `now`. */
static void peak_goes(uint64_t now)
{
    retention_see(&retention, 0, PEAK);
    retention_released(&retention, PEAK, now);
}

static size_t last_idle;

static bool tick(size_t kept, size_t base, size_t in_use, uint64_t now)
{
    return retention_tick(&retention, kept, base, in_use, now, &last_idle);
}

TEST(at_first_only_the_base_is_kept)
{
    assert_int_equal(retention_bound(&retention, 1024, 0), 1024);
    retention_see(&retention, 0, PEAK);
    assert_int_equal(retention_bound(&retention, 1024, 0), 1024);
}

TEST(what_is_missed_soon_is_wanted)
{
    peak_goes(SECOND);
    retention_missed(&retention, 1000, 2 * SECOND);
    assert_int_equal(retention.wanted, 1125);
    assert_int_equal(retention.ghosts, PEAK - 1000);
    retention_missed(&retention, 2 * PEAK, 2 * SECOND); /* no more than went */
    assert_int_equal(retention.wanted, PEAK);
    assert_int_equal(retention.ghosts, 0);
    assert_int_equal(retention_bound(&retention, 1024, 0), 1024 + PEAK);
}

TEST(what_is_missed_late_is_not)
{
    peak_goes(SECOND);
    retention_missed(&retention, 1000, 11 * SECOND + 1);
    assert_int_equal(retention.wanted, 0);
    assert_int_equal(retention.ghosts, 0);
    /* A little is not worth keeping for long: 4 MiB for a sixteenth of a second. */
    retention_released(&retention, 1024, 20 * SECOND);
    retention_missed(&retention, 1024, 20 * SECOND + 62 * MS);
    assert_int_equal(retention.wanted, 1152);
    retention_released(&retention, 1024, 30 * SECOND);
    retention_missed(&retention, 1024, 30 * SECOND + 63 * MS);
    assert_int_equal(retention.wanted, 1152);
}

TEST(the_option_limits_for_how_long)
{
    options.purge_delay = 500;
    peak_goes(SECOND);
    retention_missed(&retention, 1000, SECOND + 501 * MS);
    assert_int_equal(retention.wanted, 0);
    options.purge_delay = DELAY_NEVER;
    assert_true(retention_bound(&retention, 0, 0) == SIZE_MAX);
    options.purge_delay = 0;
    assert_int_equal(retention_bound(&retention, 1024, 0), 0);
}

TEST(ghosts_of_long_ago_are_not_added_to)
{
    retention_released(&retention, 1024, SECOND);
    retention_released(&retention, 100, 2 * SECOND);
    assert_int_equal(retention.ghosts, 100);
    retention_released(&retention, 100, 2 * SECOND);
    assert_int_equal(retention.ghosts, 200);
    retention_released(&retention, 100, SECOND); /* another processor's clock */
    assert_int_equal(retention.ghosts, 300);
}

TEST(in_use_and_kept_are_together_hardly_more_than_a_recent_peak)
{
    peak_goes(SECOND);
    retention_missed(&retention, PEAK, SECOND);
    const size_t most = PEAK + PEAK / 8, base = 10;
    for (size_t in_use = 0; in_use <= 2 * PEAK; in_use += PEAK / 4) {
        size_t kept = size_min(base + retention.wanted, in_use < most ? most - in_use : 0);
        assert_int_equal(retention_bound(&retention, base, in_use), size_max(kept, base));
    }
}

/* Misses as many units as were released just before, in pieces. */
static void miss(size_t units, size_t pieces)
{
    retention_released(&retention, units, SECOND);
    for (size_t i = 0; i < pieces; i++)
        retention_missed(&retention, units / pieces, SECOND);
    assert_int_equal(retention.ghosts, 0);
}

/* All is in use, and the base is an eighth of it: more than that there is no room for. */
static void be_cramped(size_t base)
{
    retention_see(&retention, 0, PEAK);
    assert_int_equal(retention_bound(&retention, base, PEAK), base);
    miss(PEAK / 2, 1); /* that might be because it is not wanted */
    assert_int_equal(retention.wanted, PEAK / 2 + PEAK / 16);
    assert_int_equal(retention.room, 0);
    assert_int_equal(retention_bound(&retention, base, PEAK), base);
}

TEST(who_misses_for_want_of_room_gets_more)
{
    const size_t base = PEAK / 8, wanted = PEAK / 2 + PEAK / 16;
    be_cramped(base);
    miss(PEAK, 2048); /* an eighth of it, and a unit each time */
    assert_int_equal(retention.room, PEAK / 8 + 2048);
    assert_int_equal(retention.wanted, wanted);
    assert_int_equal(retention_bound(&retention, base, PEAK), PEAK / 4 + 2048);
    for (unsigned i = 0; i < 10; i++)
        miss(PEAK, 4);
    assert_int_equal(retention.room, PEAK / 4 + PEAK / 8);
    options.dirty = PEAK / 2 * PAGE_BYTES; /* of a peak that is small for the base the base is more */
    for (unsigned i = 0; i < 10; i++)
        miss(PEAK, 4);
    assert_int_equal(retention.room, PEAK / 4 + PEAK / 2);
    assert_int_equal(retention.wanted, wanted);
    assert_int_equal(retention_bound(&retention, base, PEAK), PEAK / 8 + PEAK / 4 + PEAK / 2);
    assert_int_equal(retention_bound(&retention, base, PEAK / 2), PEAK + PEAK / 4 + PEAK / 8);
    assert_int_equal(retention_bound(&retention, base, 0), base + wanted + retention.room);
}

/* Below a peak there is room for all that is wanted: what is missed there was not wanted enough. */
TEST(who_misses_with_room_left_wants_more)
{
    be_cramped(PEAK / 8);
    retention.wanted = PEAK / 4;
    assert_int_equal(retention_bound(&retention, PEAK / 8, PEAK / 2), PEAK / 4 + PEAK / 8);
    miss(PEAK / 8, 1);
    assert_int_equal(retention.room, 0);
    assert_int_equal(retention.wanted, PEAK / 4 + PEAK / 8 + PEAK / 64);
}

TEST(more_room_goes_when_it_is_idle)
{
    const size_t base = PEAK / 8;
    be_cramped(base);
    miss(PEAK, 2048);
    assert_true(tick(PEAK / 4, base, PEAK, 20 * SECOND));
    assert_int_equal(retention.room, 2048);
    assert_true(tick(PEAK / 8, base, PEAK, 40 * SECOND));
    assert_int_equal(retention.room, 2048);
    assert_true(tick(PEAK, base, PEAK, 60 * SECOND));
    assert_true(tick(PEAK, base, PEAK, 80 * SECOND));
    assert_int_equal(retention.room, 0);
    retention_forget(&retention);
    be_cramped(base);
    miss(PEAK, 1);
    retention_forget(&retention);
    assert_int_equal(retention.room, 0);
}

/* Room is for what is in use, not for a peak of long ago. */
TEST(more_room_outlives_a_peak_but_the_peak_gives_none)
{
    const size_t room = PEAK / 32 + 1;
    options.dirty = 0;
    be_cramped(PEAK / 8);
    miss(PEAK / 4, 1);
    assert_int_equal(retention.room, room);
    assert_true(tick(0, 0, PEAK / 2, 20 * SECOND)); /* the epoch of the peak */
    assert_int_equal(retention.room, room);
    assert_true(tick(0, 0, PEAK / 2, 40 * SECOND));
    assert_int_equal(retention.room, room);
    assert_int_equal(retention.wanted, PEAK / 2);
    assert_int_equal(retention_bound(&retention, 0, PEAK / 2), PEAK / 16 + room);
    assert_true(tick(0, 0, 100, 60 * SECOND));
    assert_true(tick(0, 0, 100, 80 * SECOND));
    assert_int_equal(retention.room, 100 / 4 + 100 / 8); /* of what is in use */
    assert_int_equal(retention.wanted, 100);
}

TEST(what_stays_idle_for_an_epoch_is_forgotten)
{
    const size_t base = 1024;
    peak_goes(SECOND);
    retention_missed(&retention, PEAK, SECOND);
    /* Up and down every second: all is taken each time, so all stays wanted. */
    uint64_t now = SECOND;
    for (unsigned round = 0; round < 50; round++) {
        retention_see(&retention, 0, PEAK);
        now += 100 * MS;
        tick(0, base, PEAK, now);
        retention_see(&retention, PEAK, 0);
        now += 900 * MS;
        tick(PEAK, base, 0, now);
        assert_int_equal(retention.wanted, PEAK);
    }
    /* Then a part stays idle, above the base, for one epoch. */
    for (unsigned i = 0; i < 15; i++) {
        now += SECOND;
        retention_see(&retention, base + PEAK / 4, PEAK - PEAK / 4);
        tick(PEAK, base, 0, now);
    }
    assert_int_equal(retention.wanted, PEAK - PEAK / 4);
    /* Then all of it. */
    for (unsigned i = 0; i < 25; i++) {
        now += SECOND;
        tick(PEAK + base, base, 0, now);
    }
    assert_int_equal(retention.wanted, 0);
    assert_int_equal(retention_bound(&retention, base, 0), base);
}

TEST(an_epoch_is_as_long_as_what_is_kept_is_worth)
{
    retention.epoch = SECOND;
    assert_true(retention_due(&retention, 1024 + PEAK, 1024) == 11 * SECOND);
    assert_in_range(retention_due(&retention, 1024 + 16384, 1024), 2 * SECOND - MS,
                    2 * SECOND); /* 64 MiB */
    assert_true(retention_due(&retention, 1024, 1024) == SECOND + 20 * MS);
    assert_true(retention_due(&retention, 0, 1024) == SECOND + 20 * MS);
    assert_false(tick(0, 1024, 0, SECOND + 19 * MS));
    assert_false(tick(0, 1024, 0, 0));
    assert_true(tick(0, 1024, 0, SECOND + 20 * MS));
    assert_false(tick(0, 1024, 0, SECOND + 21 * MS));
    /* Half way up to a peak that is wanted it is as long as at its foot. */
    retention.epoch = SECOND;
    retention.wanted = PEAK;
    assert_true(retention_due(&retention, 1024 + PEAK / 16, 1024) == 11 * SECOND);
    /* A unit of room is learned from eight. */
    retention.wanted = 0;
    retention.room = 2048;
    assert_in_range(retention_due(&retention, 1024, 1024), 2 * SECOND - MS, 2 * SECOND);
}

/* What costs a tenth is worth keeping for a tenth of the time. */
TEST(the_price_decides_for_how_long)
{
    retention_init(&retention, RETENTION_PAGE_PRICE / 10);
    retention_see(&retention, 0, PEAK);
    retention_released(&retention, 10240, SECOND);
    retention_missed(&retention, 1000, SECOND + 62 * MS);
    assert_int_equal(retention.wanted, 1125);
    retention_missed(&retention, 1000, SECOND + 63 * MS);
    assert_int_equal(retention.wanted, 1125);
}

/* The least that was kept may be what is kept now. */
TEST(an_epoch_sees_its_own_end)
{
    peak_goes(SECOND);
    retention_missed(&retention, PEAK, SECOND);
    retention_see(&retention, PEAK, 0);
    assert_true(tick(PEAK / 2, 0, 0, 11 * SECOND));
    assert_int_equal(last_idle, PEAK / 2);
    assert_int_equal(retention.wanted, PEAK / 2);
}

/* A depot keeps what comes, and asks for no bound. */
TEST(what_nobody_took_through_an_epoch_is_told)
{
    assert_true(tick(1000, 0, 0, SECOND));
    assert_int_equal(last_idle, 0); /* it was less before */
    retention_see(&retention, 300, 0);
    retention_see(&retention, 800, 0);
    assert_true(tick(800, 0, 0, 2 * SECOND));
    assert_int_equal(last_idle, 300);
    retention_see(&retention, 500, 0);
    assert_true(tick(900, 200, 0, 3 * SECOND));
    assert_int_equal(last_idle, 300); /* the base is none of it */
}

TEST(a_peak_of_long_ago_gives_no_room)
{
    retention_see(&retention, 0, PEAK);
    retention.wanted = PEAK;
    assert_int_equal(retention_bound(&retention, 0, 100), PEAK);
    retention_see(&retention, 0, 100);
    assert_true(tick(0, 0, 100, 10 * SECOND)); /* the epoch of the peak */
    assert_int_equal(retention_bound(&retention, 0, 100), PEAK);
    assert_true(tick(0, 0, 100, 20 * SECOND));
    assert_int_equal(retention_bound(&retention, 0, 100), 100 / 8);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(at_first_only_the_base_is_kept, begin, options_reset),
        ROW_WITH(what_is_missed_soon_is_wanted, begin, options_reset),
        ROW_WITH(what_is_missed_late_is_not, begin, options_reset),
        ROW_WITH(the_option_limits_for_how_long, begin, options_reset),
        ROW_WITH(ghosts_of_long_ago_are_not_added_to, begin, options_reset),
        ROW_WITH(in_use_and_kept_are_together_hardly_more_than_a_recent_peak, begin, options_reset),
        ROW_WITH(who_misses_for_want_of_room_gets_more, begin, options_reset),
        ROW_WITH(who_misses_with_room_left_wants_more, begin, options_reset),
        ROW_WITH(more_room_goes_when_it_is_idle, begin, options_reset),
        ROW_WITH(more_room_outlives_a_peak_but_the_peak_gives_none, begin, options_reset),
        ROW_WITH(what_stays_idle_for_an_epoch_is_forgotten, begin, options_reset),
        ROW_WITH(what_nobody_took_through_an_epoch_is_told, begin, options_reset),
        ROW_WITH(an_epoch_is_as_long_as_what_is_kept_is_worth, begin, options_reset),
        ROW_WITH(the_price_decides_for_how_long, begin, options_reset),
        ROW_WITH(an_epoch_sees_its_own_end, begin, options_reset),
        ROW_WITH(a_peak_of_long_ago_gives_no_room, begin, options_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
