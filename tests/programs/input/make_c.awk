# make_c.awk - prints a large C program: awk -f make_c.awk -v functions=500
#
# Each function has loops, a switch, a table, a struct of its own and calls of earlier ones, in a
# mixture that a fixed pseudo-random sequence chooses, so that every pass of an optimiser gets
# work. main prints one checksum. The same arguments print the same program, with any awk.

function random(limit) { # a minimal standard generator; products stay below 2^53
    seed = (seed * 16807) % 2147483647
    return seed % limit
}

function table(n,   i, line) {
    line = ""
    for (i = 0; i < n; i++)
        line = line (i ? ", " : "") random(100000)
    return line
}

function expression(depth) {
    if (depth == 0)
        return random(2) ? "x" : (random(2) ? "s->a" : 1 + random(900) "U")
    return "(" expression(depth - 1) " " substr("+-*^&|", 1 + random(6), 1) " " \
        expression(depth - 1) ")"
}

function one_function(n,   i, cases) {
    printf "struct s%d { unsigned a, b; unsigned short c[%d]; struct s%d *next; };\n", \
        n, 2 + random(14), n
    printf "static const unsigned table%d[] = { %s };\n", n, table(16 + random(64))
    printf "static unsigned step%d(struct s%d *s, unsigned x) {\n", n, n
    printf "    for (unsigned i = 0; i < sizeof table%d / sizeof *table%d; i++) {\n", n, n
    printf "        s->a += table%d[i] ^ %s;\n", n, expression(3)
    printf "        s->b ^= s->a << (i %% %d);\n    }\n", 1 + random(30)
    printf "    switch (x %% %dU) {\n", 5 + random(20)
    cases = 3 + random(10)
    for (i = 0; i < cases; i++)
        printf "    case %d: x += %s; %s\n", i, expression(2 + random(3)), \
            random(4) ? "break;" : "/* fall through */"
    printf "    default: x ^= s->b;\n    }\n"
    for (i = 0; i < 3 && n > 0; i++) {
        k = random(n)
        printf "    { struct s%d t = { x, %d, { 1 }, 0 };", k, random(1000)
        printf " if (x & %dU) x += work%d(&t, x >> %d); }\n", 2 ^ random(16), k, 9 + random(8)
    }
    printf "    return x * %dU + s->b;\n}\n", 3 + 2 * random(5000)
    printf "unsigned work%d(void *p, unsigned x) {\n", n
    printf "    struct s%d *s = p, copy = *s;\n    copy.next = s;\n", n
    printf "    return x < 7 ? step%d(&copy, x) : step%d(copy.next, x / 7) %% 65536;\n}\n\n", n, n
}

BEGIN {
    seed = 20011
    if (!functions) functions = 500
    print "#include <stdio.h>\n"
    for (f = 0; f < functions; f++)
        one_function(f)
    print "int main(void) {\n    unsigned sum = 1;"
    for (f = 0; f < functions; f++)
        printf "    { struct s%d s = { %d, sum, { 2 }, 0 }; sum = sum * 31 + work%d(&s, %d); }\n", \
            f, random(5000), f, random(5000)
    print "    printf(\"%u\\n\", sum);\n}"
}
