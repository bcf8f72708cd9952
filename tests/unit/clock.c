/*
 * Tests of platform/clock.h: time goes forward, as libc has it, by a system call and without.
 */
#include "support.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/clock.h"

enum { REFUSED = 33, UNTOLD = 34 };

static uint64_t libc_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void assert_clocks_are_right(void)
{
    uint64_t start = os_clock();
    for (unsigned i = 0; i < 20; i++) {
        usleep(2000);
        uint64_t coarse = libc_clock(CLOCK_MONOTONIC_COARSE), exact = libc_clock(CLOCK_MONOTONIC);
        uint64_t now = os_clock(), now_exact = os_clock_exact();
        assert_in_range(now, coarse, libc_clock(CLOCK_MONOTONIC_COARSE));
        assert_in_range(now_exact, exact, libc_clock(CLOCK_MONOTONIC));
    }
    assert_true(os_clock() - start >= 20000000u); /* 40 ms passed; a tick is at most 10 */
}

TEST(before_it_begins_the_system_is_called)
{
    assert_clocks_are_right();
}

TEST(clocks_are_libcs)
{
    os_clock_begin();
    assert_clocks_are_right();
}

/* From now on a call that reads a clock is refused. */
static bool refuse_clock_calls(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | REFUSED),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static int read_without_calls(void)
{
    os_clock_begin();
    if (!refuse_clock_calls())
        return UNTOLD;
    struct timespec now;
    if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0)
        return UNTOLD;
    return os_clock() != 0 && os_clock_exact() != 0 ? 0 : REFUSED;
}

TEST(no_system_call_is_needed)
{
    if (getauxval(AT_SYSINFO_EHDR) == 0)
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(read_without_calls());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == UNTOLD)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(before_it_begins_the_system_is_called),
        ROW(clocks_are_libcs),
        ROW(no_system_call_is_needed),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
