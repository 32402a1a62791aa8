// SPDX-License-Identifier: Apache-2.0
// Templates, lambdas, local classes and anonymous namespaces, to compare DWARF readers.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace app {
namespace {
struct Local {
        int x;
        int twice() const { return x * 2; }
};

template <class T> struct Box {
        T v;
        template <class F> auto map(F f) { return Box<decltype(f(v))>{ f(v) }; }
};
}

class Engine {
public:
        virtual ~Engine();
        virtual int run(const std::vector<std::string> &words);
        static int helper(int);
        std::map<std::string, std::vector<int>> sizes;
};

Engine::~Engine() {}

int Engine::helper(int x)
{
        return x * 3;
}

int Engine::run(const std::vector<std::string> &words)
{
        std::regex pattern("a(b|c)*d");
        int n = 0;

        for (auto &w : words) {
                sizes[w].push_back((int)w.size());
                std::sort(sizes[w].begin(), sizes[w].end(), [&](int x, int y) { return helper(x) < helper(y); });
        }
        for (auto &[k, v] : sizes)
                if (std::regex_match(k, pattern))
                        n += v.size();
        std::variant<int, std::string> either = n;
        std::visit([](auto &&x) { std::cout << x; }, either);
        struct Inner {
                int go(int y) { return y + 1; }
        } inner;
        return Box<int>{ n }.map([](int x) { return x + 0.5; }).map([](double d) { return (long)d; }).v + inner.go(n) +
               Local{ n }.twice();
}
}

int main(int argc, char **argv)
{
        app::Engine e;
        std::vector<std::string> words(argv, argv + argc);
        std::function<int(int)> f = [&](int x) { return e.run(words) + x; };
        std::unordered_map<int, std::unique_ptr<app::Engine>> engines;

        engines.emplace(1, new app::Engine);
        return f(argc);
}
