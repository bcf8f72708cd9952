/*
 * tls_filler.c - a shared object with BYTES of thread-local variables that must lie in the static
 * block: thirty of them are opened by static_tls.c. It is the access that tells the loader so.
 */
#define EXPORT __attribute__((visibility("default")))

EXPORT __attribute__((tls_model("initial-exec"))) __thread char filler[BYTES];

EXPORT char *filler_here(void)
{
    return filler;
}
