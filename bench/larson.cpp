/*
 * larson.cpp - a server: objects that are handed from thread to thread, threads that end and are
 * replaced.
 *
 * usage: larson THREADS [LOW HIGH [OBJECTS [GENERATIONS [OPERATIONS]]]]
 *        8 to 1,000 bytes, 1,000 objects, 10 generations, 1,000,000 operations unless given
 *
 * After P. Larson and M. Krishnan, Memory allocation for long-running server applications (ISMM
 * 1998). A thread has a table of OBJECTS objects, the first of which the main thread made, all
 * mixed. It replaces random ones by new ones of LOW to HIGH bytes; after its part of the work it
 * starts a thread that takes its table over, and ends. So most objects are deleted by another
 * thread than the one that made them. By new and delete, as a C++ program would. An operation is a
 * delete and a new; OPERATIONS are shared by all threads and generations.
 */
#include <cstdint>
#include <pthread.h>

#include "workload.h"

namespace
{

enum { MOST_THREADS = METER_THREADS };

struct object {
    char *bytes;
    uint32_t size;
};

struct worker {
    object *objects;
    uint64_t random;
    int64_t live;
    unsigned number;
    long generations_left;
};

uint32_t low = 8, high = 1000;
long object_count = 1000, generations = 10, operations = 1000000, operations_each;
worker workers[MOST_THREADS];
pthread_barrier_t all_done;

object make(uint64_t *random)
{
    uint32_t size = random_between(random, low, high);
    char *bytes = new char[size];
    bytes[0] = bytes[size - 1] = 'x';
    return {bytes, size};
}

void start(worker *next);

void replace_some(worker *self)
{
    for (long i = 0; i < operations_each; i++) {
        object *victim = &self->objects[random_next(&self->random) % object_count];
        self->live -= victim->size;
        delete[] victim->bytes;
        *victim = make(&self->random);
        self->live += victim->size;
        meter_set(self->number, self->live);
    }
}

void *serve(void *argument)
{
    auto *self = static_cast<worker *>(argument);
    replace_some(self);
    if (--self->generations_left > 0)
        start(self);
    else
        pthread_barrier_wait(&all_done);
    return nullptr;
}

void start(worker *next)
{
    pthread_t thread;
    if (pthread_create(&thread, nullptr, serve, next) != 0)
        die("pthread_create");
    pthread_detach(thread);
}

/* Objects of one thread, and then changed at random between the tables of all. */
void prepare(unsigned threads)
{
    uint64_t random = 0x9e3779b97f4a7c15u;
    long all = threads * object_count;
    auto *objects = static_cast<object *>(memory_of_our_own(all * sizeof(object)));
    for (long i = 0; i < all; i++)
        objects[i] = make(&random);
    for (long i = all - 1; i > 0; i--) {
        long other = random_next(&random) % (i + 1);
        object kept = objects[i];
        objects[i] = objects[other];
        objects[other] = kept;
    }
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = {objects + i * object_count, random_next(&random) | 1, 0, i, generations};
        for (long k = 0; k < object_count; k++)
            workers[i].live += workers[i].objects[k].size;
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2 || argc == 3 || argc > 7) {
        fprintf(stderr, "usage: %s THREADS [LOW HIGH [OBJECTS [GENERATIONS [OPERATIONS]]]]\n",
                argv[0]);
        return 2;
    }
    auto threads = static_cast<unsigned>(number_argument(argv[1], 1, MOST_THREADS));
    if (argc > 3) {
        low = static_cast<uint32_t>(number_argument(argv[2], 1, 1 << 30));
        high = static_cast<uint32_t>(number_argument(argv[3], low, 1 << 30));
    }
    object_count = argc > 4 ? number_argument(argv[4], 1, 100000000) : object_count;
    generations = argc > 5 ? number_argument(argv[5], 1, 100000000) : generations;
    operations = argc > 6 ? number_argument(argv[6], 1, 1000000000000) : operations;
    operations_each = operations / (threads * generations) + 1;
    prepare(threads);
    pthread_barrier_init(&all_done, nullptr, threads + 1);

    uint64_t begin = now_ns();
    for (unsigned i = 0; i < threads; i++)
        start(&workers[i]);
    pthread_barrier_wait(&all_done);
    uint64_t end = now_ns();
    uint64_t done = static_cast<uint64_t>(operations_each) * threads * generations;
    print_figures(done, static_cast<double>(end - begin) / static_cast<double>(done));
    return 0;
}
