/*
 * cxx_plugin.cpp - the C++ plugin that cxx_in_c.c opens: the program has no C++ library of its own.
 */
#include <new>
#include <string>
#include <vector>

static int handler_calls;

extern "C" __attribute__((visibility("default"))) int plugin_run(std::size_t too_much)
{
    std::vector<std::string> words;
    for (int i = 0; i < 1000; i++)
        words.push_back("word number " + std::to_string(i));
    if (words[999] != "word number 999")
        return 1;
    try {
        ::operator delete(::operator new(too_much));
        return 2;
    } catch (const std::bad_alloc &) {
    }
    if (::operator new(too_much, std::nothrow) != nullptr)
        return 3;
    std::set_new_handler([] {
        if (++handler_calls == 2)
            std::set_new_handler(nullptr);
    });
    try {
        ::operator delete(::operator new(too_much));
        return 4;
    } catch (const std::bad_alloc &) {
    }
    return handler_calls == 2 ? 0 : 5;
}
