/*
 * filter.c - see filter.h.
 */
#include "filter.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

void filter_add(struct filter *filter, struct sock_filter statement)
{
    CHECK(filter->length < FILTER_MOST);
    filter->code[filter->length++] = statement;
}

void filter_load(struct filter *filter, size_t offset)
{
    filter_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

void filter_answer(struct filter *filter, unsigned answer)
{
    filter_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

void filter_calls(struct filter *filter, const int *calls, unsigned answer)
{
    if (filter->length == 0)
        filter_load(filter, offsetof(struct seccomp_data, nr));
    for (; *calls != CALLS_END; calls++) {
        filter_add(filter,
                   (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)*calls, 0, 1));
        filter_answer(filter, answer);
    }
}

void filter_install(const struct filter *filter, unsigned flags)
{
    struct sock_fprog program = {filter->length, (struct sock_filter *)filter->code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        test_skip("no_new_privs is not to be had");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0)
        test_skip("seccomp filters are not to be had");
}
