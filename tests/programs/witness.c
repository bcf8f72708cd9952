/*
 * witness.c - says which library serves malloc in this process.
 *
 * Preloaded before the library under test. When a process starts it appends one line to the file
 * named by WITNESS_LOG: its executable and the file in which the dynamic linker finds `malloc`.
 * A program that brings its own malloc (rustc does) finds that one first, and the line says so.
 * Children inherit both variables, so the log lists every dynamically linked program that ran.
 *
 * It allocates nothing and leaves no descriptor open.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Appends `text` to line[*used], as far as it fits with room for a newline. */
static void append(char *line, size_t size, size_t *used, const char *text)
{
    size_t length = strlen(text);
    if (length > size - 1 - *used)
        length = size - 1 - *used;
    memcpy(line + *used, text, length);
    *used += length;
}

/*
 * The file whose malloc calls are bound to. An executable at a fixed address that takes malloc's
 * address has an undefined symbol with an address of its own (a PLT entry that stands for it
 * everywhere); calls through it go to the next definition, which follows this library.
 */
static const char *malloc_server(void)
{
    Dl_info server;
    const ElfW(Sym) *symbol = NULL;
    void *entry = dlsym(RTLD_DEFAULT, "malloc");
    if (entry == NULL || dladdr1(entry, &server, (void **)&symbol, RTLD_DL_SYMENT) == 0)
        return "nothing";
    if (symbol != NULL && symbol->st_shndx == SHN_UNDEF) {
        entry = dlsym(RTLD_NEXT, "malloc");
        if (entry == NULL || dladdr(entry, &server) == 0)
            return "nothing";
    }
    return server.dli_fname;
}

__attribute__((constructor)) static void testify(void)
{
    const char *log = getenv("WITNESS_LOG");
    if (log == NULL)
        return;

    char program[2048];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';

    char line[4096]; /* one write, so that lines of several processes do not mix */
    size_t used = 0;
    append(line, sizeof line, &used, program);
    append(line, sizeof line, &used, "\t");
    append(line, sizeof line, &used, malloc_server());
    line[used++] = '\n';

    int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (write(fd, line, used) < 0)
        _exit(99); /* a witness that cannot speak must not look like a quiet one */
    close(fd);
}
