/* Counts the bytes that a process copies, moves, compares and looks through by the functions of libc, which strings in C loops are made by.

   It is compiled by tests/attacks/sweep.py, and stands before libc (LD_PRELOAD). The functions themselves stay libc's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static unsigned long long counted;

unsigned long long counted_bytes(void) { return counted; }

#define FORWARD(result, name, parameters, arguments, size)                        \
    result name parameters {                                                      \
        static result(*next) parameters;                                          \
        if (!next)                                                                \
            next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                 \
        counted += size;                                                          \
        return next arguments;                                                    \
    }

FORWARD(void *, memcpy, (void *to, const void *from, size_t n), (to, from, n), n)
FORWARD(void *, memmove, (void *to, const void *from, size_t n), (to, from, n), n)
FORWARD(int, memcmp, (const void *a, const void *b, size_t n), (a, b, n), n)

static size_t looked_through(const void *in, const void *found, size_t n) {
    return found ? (size_t)((const char *)found - (const char *)in) : n;
}

void *memchr(const void *in, int what, size_t n) {
    static void *(*next)(const void *, int, size_t);
    if (!next)
        next = (void *(*)(const void *, int, size_t))dlsym(RTLD_NEXT, "memchr");
    void *found = next(in, what, n);
    counted += looked_through(in, found, n);
    return found;
}

void *memrchr(const void *in, int what, size_t n) {
    static void *(*next)(const void *, int, size_t);
    if (!next)
        next = (void *(*)(const void *, int, size_t))dlsym(RTLD_NEXT, "memrchr");
    void *found = next(in, what, n);
    counted += found ? (size_t)((const char *)in + n - (const char *)found) : n;
    return found;
}
