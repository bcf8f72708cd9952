/*
 * The name by which libc knows the shared library: what is registered with it, handlers of fork and
 * of the end, is registered in that name. The compiler's code for the start of a library would
 * define it; this one does without (CMakeLists.txt). Weak, for who builds all of src/ with that
 * code.
 */
extern void *__dso_handle __attribute__((visibility("hidden"), weak));
void *__dso_handle = &__dso_handle;
