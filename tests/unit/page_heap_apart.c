/*
 * Tests of pageheap/page_heap_purge.h: while much goes back to the system, others use the heap.
 */
#include "page_heap_support.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "options/options.h"
#include "pageheap/page_heap_purge.h"

/* Pages: more than are given back under the lock. */
enum { MUCH = 512, LITTLE = 64 };

static bool was_free;        /* the page heap's lock was */
static unsigned times;       /* `look` was called */
static struct span *other;   /* what another thread took meanwhile */
static struct span *to_free; /* what it is to free */
static size_t kept, busy;    /* pages, at that moment */

/* Another thread comes while pages go back. */
static void look(void)
{
    times++;
    was_free = lock_try(&page_heap.lock);
    if (!was_free)
        return;
    kept = page_heap_kept_pages(&page_heap);
    busy = page_heap.busy_pages;
    lock_release(&page_heap.lock);
    if (other == NULL)
        other = span_get(LITTLE);
    if (to_free != NULL)
        span_put(to_free);
    to_free = NULL;
    assert_page_heap_sound();
}

static int begin(void **state)
{
    times = 0;
    other = to_free = NULL;
    int result = page_heap_begin(state);
    return result;
}

/* A dirty run of so many pages between two spans in use, all in one segment. */
static void run_make(struct span *walls[2], size_t pages)
{
    struct span *long_ago = span_get(2 * FIRST_SEGMENT_PAGES); /* segments are longer from now on */
    do {
        walls[0] = span_get(16);
    } while (walls[0]->segment == long_ago->segment || walls[0]->segment->pages < 2 * MUCH);
    struct span *span = span_get(pages);
    walls[1] = span_get(16);
    assert_ptr_equal(walls[0]->segment, span->segment);
    assert_ptr_equal(walls[1]->segment, span->segment);
    span_put(long_ago);
    page_heap_purge(&page_heap, 0);
    memset(span->start, 1, span_bytes_of(span));
    span_put(span);
    assert_true(page_heap.dirty.pages >= pages);
}

/* Purges all, while the other thread comes. Returns the bytes. */
static size_t purge_watched(void)
{
    fake.meanwhile = look;
    size_t bytes = page_heap_purge(&page_heap, 0);
    fake.meanwhile = NULL;
    return bytes;
}

/* Gives back all that is still in use of a run_make. */
static void run_end(struct span *walls[2])
{
    span_put(walls[0]);
    span_put(walls[1]);
    assert_page_heap_empty();
}

TEST(others_take_pages_while_a_long_run_is_purged)
{
    NEED_SMALL_PAGES;
    struct span *walls[2];
    run_make(walls, MUCH);
    assert_int_equal(purge_watched(), MUCH * PAGE_BYTES);
    assert_true(was_free);
    assert_int_equal(busy, MUCH);
    assert_int_equal(kept, 0);
    assert_int_equal(page_heap.busy_pages, 0);
    assert_int_equal(page_heap.dirty.pages, 0);
    assert_non_null(other);
    /* It was given none of those. */
    assert_true(span_end(other) <= span_end(walls[0]) || other->start >= walls[1]->start);
    assert_page_heap_sound();
    span_put(other);
    run_end(walls);
}

TEST(a_short_run_is_purged_under_the_lock)
{
    NEED_SMALL_PAGES;
    struct span *walls[2];
    run_make(walls, LITTLE);
    assert_int_equal(purge_watched(), LITTLE * PAGE_BYTES);
    assert_false(was_free);
    run_end(walls);
}

TEST(a_refused_purge_leaves_the_run_as_it_was)
{
    NEED_SMALL_PAGES;
    struct span *walls[2];
    run_make(walls, MUCH);
    fake.refuse_purge = true;
    assert_int_equal(purge_watched(), 0);
    assert_true(was_free);
    assert_int_equal(page_heap.busy_pages, 0);
    assert_true(page_heap.dirty.pages >= MUCH);
    assert_page_heap_sound();
    fake.refuse_purge = false;
    span_put(other);
    run_end(walls);
}

/* One thread does it at a time: another keeps the lock, and so does who holds both. */
TEST(only_one_thread_lets_go_of_the_lock)
{
    NEED_SMALL_PAGES;
    struct span *walls[2];
    run_make(walls, MUCH);
    fake.meanwhile = look;
    options.dirty = 0;
    lock_acquire(&page_heap.purge_lock);
    lock_acquire(&page_heap.lock);
    page_heap_keep_bound(&page_heap);
    lock_release(&page_heap.lock);
    lock_release(&page_heap.purge_lock);
    fake.meanwhile = NULL;
    assert_int_equal(times, 1);
    assert_false(was_free);
    assert_true(page_heap.dirty.pages < MUCH);
    run_end(walls);
}

/* All else in its segment is freed while a part of it is purged. */
TEST(a_segment_that_becomes_empty_meanwhile_goes_to_the_cache)
{
    NEED_SMALL_PAGES;
    struct span *first = span_get(1);
    struct span *rest = span_get(2 * FIRST_SEGMENT_PAGES); /* a segment of its own */
    struct span *part = span_get(FIRST_SEGMENT_PAGES - 10);
    struct span *wall = span_get(5);
    assert_true(part->segment == wall->segment && part->segment != first->segment);
    span_put(rest); /* the one empty segment that may stay in the list */
    memset(part->start, 1, span_bytes_of(part));
    options.dirty = 1024 * MIB;
    span_put(part);
    size_t cached = page_heap.cache.count;
    to_free = wall;
    other = first; /* takes none */
    fake.meanwhile = look;
    options.dirty = 0;
    bound_keep();
    fake.meanwhile = NULL;
    assert_null(to_free);
    assert_true(page_heap.cache.count > cached || page_heap.empty_segments <= 1);
    assert_true(page_heap.empty_segments <= 1);
    assert_page_heap_sound();
    options.dirty = 4 * MIB;
    span_put(first);
    assert_page_heap_empty();
}

TEST(a_segment_goes_back_without_the_lock)
{
    NEED_SMALL_PAGES;
    struct span *stays = span_get(1);
    struct span *span = span_get(4 * FIRST_SEGMENT_PAGES);
    struct span *next = span_get(4 * FIRST_SEGMENT_PAGES);
    options.cache_segments = 0;
    span_put(span); /* the one that stays in the list */
    other = stays;
    fake.meanwhile = look;
    span_put(next);
    fake.meanwhile = NULL;
    assert_true(times > 0);
    assert_true(was_free);
    assert_page_heap_sound();
    span_put(stays);
    assert_page_heap_empty();
}

/* ---- Who needs memory ---- */

static bool going; /* a thread gives something back */
static bool gone;  /* and has done so */

static void take_long(void)
{
    __atomic_store_n(&going, true, __ATOMIC_SEQ_CST);
    usleep(100000);
    __atomic_store_n(&gone, true, __ATOMIC_SEQ_CST);
}

static void *purge(void *argument)
{
    options.dirty = 0;
    bound_keep();
    return argument;
}

/* Another thread purges, and is in the middle of it. */
static pthread_t purge_begin(void)
{
    pthread_t thread;
    going = gone = false;
    fake.meanwhile = take_long;
    assert_int_equal(pthread_create(&thread, NULL, purge, NULL), 0);
    while (!__atomic_load_n(&going, __ATOMIC_SEQ_CST))
        usleep(100);
    return thread;
}

/* It must be done with that by now. */
static void purge_end(pthread_t thread)
{
    assert_true(__atomic_load_n(&gone, __ATOMIC_SEQ_CST));
    pthread_join(thread, NULL);
    fake.meanwhile = NULL;
}

TEST(who_purges_all_waits_for_what_is_on_its_way)
{
    NEED_SMALL_PAGES;
    struct span *walls[2];
    run_make(walls, MUCH);
    pthread_t thread = purge_begin();
    page_heap_purge(&page_heap, 0);
    purge_end(thread);
    run_end(walls);
}

/* No others can be had than those that go back at this moment. */
TEST(who_finds_no_pages_waits_for_those_on_their_way)
{
    NEED_SMALL_PAGES;
    struct span *walls[2];
    run_make(walls, MUCH);
    struct span *rest[64];
    size_t count = 0;
    fake.refuse_take = true;
    /* All other runs that are as long are taken first. */
    struct span *kept_run = span_get(MUCH);
    while (count < 64 && (rest[count] = span_new(SPAN_LARGE, MUCH, PAGE_BYTES)) != NULL)
        count++;
    span_put(kept_run);
    pthread_t thread = purge_begin();
    struct span *span = span_new(SPAN_LARGE, MUCH, PAGE_BYTES);
    assert_non_null(span);
    purge_end(thread);
    fake.refuse_take = false;
    options.dirty = 4 * MIB;
    span_put(span);
    while (count > 0)
        span_put(rest[--count]);
    run_end(walls);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(others_take_pages_while_a_long_run_is_purged, begin, page_heap_end),
        ROW_WITH(a_short_run_is_purged_under_the_lock, begin, page_heap_end),
        ROW_WITH(a_refused_purge_leaves_the_run_as_it_was, begin, page_heap_end),
        ROW_WITH(only_one_thread_lets_go_of_the_lock, begin, page_heap_end),
        ROW_WITH(a_segment_that_becomes_empty_meanwhile_goes_to_the_cache, begin, page_heap_end),
        ROW_WITH(a_segment_goes_back_without_the_lock, begin, page_heap_end),
        ROW_WITH(who_finds_no_pages_waits_for_those_on_their_way, begin, page_heap_end),
        ROW_WITH(who_purges_all_waits_for_what_is_on_its_way, begin, page_heap_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
