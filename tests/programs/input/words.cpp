// words.cpp - a C++ program of many small objects: containers, strings, regular expressions,
// shared pointers over threads and exceptions. It prints checksums that depend on all of them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <random>
#ifndef WITHOUT_EXPRESSIONS
#include <regex>
#endif
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

using Words = std::vector<std::string>;

std::uint64_t checksum(const std::string &text)
{
    std::uint64_t sum = 14695981039346656037ULL;
    for (unsigned char byte : text)
        sum = (sum ^ byte) * 1099511628211ULL;
    return sum;
}

Words make_words(unsigned count, unsigned seed)
{
    std::minstd_rand random(seed);
    Words words(count);
    for (auto &word : words)
        for (unsigned length = 1 + random() % 40; length > 0; length--)
            word.push_back(static_cast<char>('a' + random() % 26));
    return words;
}

std::string in_order(const Words &words)
{
    std::map<std::string, std::set<unsigned>> places;
    for (unsigned i = 0; i < words.size(); i++)
        places[words[i].substr(0, 3)].insert(i);
    std::ostringstream out;
    for (const auto &[start, where] : places)
        out << start << ':' << where.size() << ',' << *where.rbegin() << '\n';
    return out.str();
}

std::string by_length(const Words &words)
{
    std::unordered_map<std::size_t, std::list<std::string>> lists;
    for (const auto &word : words)
        lists[word.size()].push_front(word);
    std::deque<std::string> joined;
    for (std::size_t length = 0; length <= 40; length++) {
        lists[length].sort();
        std::string all;
        for (const auto &word : lists[length])
            all += word;
        joined.push_back(std::to_string(checksum(all)));
    }
    std::string text;
    for (const auto &line : joined)
        text += line + "\n";
    return text;
}

std::string by_expression(const Words &words)
{
#ifdef WITHOUT_EXPRESSIONS
    return words.front();
#else
    const std::regex expression("([a-m]+)([n-z]{2,})(.*)");
    std::string text;
    for (std::size_t i = 0; i < words.size(); i += 10) {
        std::smatch found;
        if (std::regex_match(words[i], found, expression))
            text += found[2].str() + found[1].str();
    }
    return text;
#endif
}

struct alignas(64) Node {
    std::unique_ptr<Node> left, right;
    std::shared_ptr<const std::string> word;
};

void insert(std::unique_ptr<Node> &tree, const std::shared_ptr<const std::string> &word)
{
    if (!tree) {
        tree = std::make_unique<Node>();
        if (reinterpret_cast<std::uintptr_t>(tree.get()) % 64 != 0)
            throw std::logic_error("an aligned new is not aligned");
        tree->word = word;
    } else {
        insert(*word < *tree->word ? tree->left : tree->right, word);
    }
}

void walk(const std::unique_ptr<Node> &tree, std::string &text)
{
    if (tree) {
        walk(tree->left, text);
        text += tree->word->front();
        walk(tree->right, text);
    }
}

std::string by_tree(const Words &words)
{
    std::unique_ptr<Node> tree;
    for (const auto &word : words)
        insert(tree, std::make_shared<const std::string>(word));
    std::string text;
    walk(tree, text);
    return text;
}

unsigned count_thrown(const Words &words)
{
    unsigned thrown = 0;
    for (std::size_t i = 0; i < words.size(); i += 50) {
        try {
            if (words[i].size() % 2 == 0)
                throw std::runtime_error("even: " + words[i]);
        } catch (const std::runtime_error &error) {
            thrown += static_cast<unsigned>(std::string(error.what()).size());
        }
    }
    return thrown;
}

} // namespace

int main(int argc, char **argv)
{
    const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20000;
    std::vector<std::future<std::string>> results;
    const Words words = make_words(count, 7);
    const std::vector<std::function<std::string(const Words &)>> works = {in_order, by_length,
                                                                          by_expression, by_tree};
    for (const auto &work : works)
        results.push_back(std::async(std::launch::async, work, std::cref(words)));
    for (auto &result : results) {
        const std::string text = result.get();
        std::printf("%zu %016llx\n", text.size(), static_cast<unsigned long long>(checksum(text)));
    }
    std::printf("%u\n", count_thrown(words));
    std::pmr::unsynchronized_pool_resource pool;
    std::pmr::vector<std::pmr::string> pooled(&pool);
    for (const auto &word : words)
        pooled.emplace_back(word);
    std::sort(pooled.begin(), pooled.end());
    std::printf("%s\n", pooled[pooled.size() / 2].c_str());
    return 0;
}
