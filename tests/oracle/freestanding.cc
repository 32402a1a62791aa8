// SPDX-License-Identifier: Apache-2.0
// A program without headers and libraries, for architectures whose libraries are not installed: nested inlining through
// templates and lambdas, namespaces, a split loop, and functions with lines of several units.
namespace app {

template <typename T> struct Span {
        const T *data;
        unsigned size;
        inline const T &at(unsigned i) const { return data[i < size ? i : size - 1]; }
};

namespace {
inline unsigned mix(unsigned h, unsigned v)
{
        h ^= v + 0x9e3779b9u + (h << 6) + (h >> 2);
        return h;
}

struct Hash {
        unsigned state = 17;
        inline Hash &add(unsigned v)
        {
                state = mix(state, v);
                return *this;
        }
};
} // namespace

template <typename T, typename F> inline unsigned fold(Span<T> in, F each)
{
        Hash h;

        for (unsigned i = 0; i < in.size; i++)
                h.add(each(in.at(i)));
        return h.state;
}

__attribute__((noinline)) unsigned bytes(Span<unsigned char> in)
{
        return fold(in, [](unsigned char c) { return c == 'a' ? 1u : unsigned(c) * 3u; });
}

__attribute__((noinline)) unsigned words(Span<unsigned> in, unsigned salt)
{
        unsigned sum = fold(in, [salt](unsigned w) { return w & 1 ? w ^ salt : w + salt; });

        switch (sum % 7) {
        case 0: return sum + 11;
        case 1: return mix(sum, salt);
        case 2: return sum - salt;
        case 3: return fold(in, [](unsigned w) { return w >> 3; });
        default: return sum;
        }
}

struct Node {
        Node *left, *right;
        unsigned key;

        unsigned depth() const
        {
                unsigned l = left ? left->depth() : 0, r = right ? right->depth() : 0;

                return 1 + (l > r ? l : r);
        }
        virtual unsigned weight(unsigned scale) const { return mix(key, scale) + depth(); }
};

struct Leaf : Node {
        unsigned weight(unsigned scale) const override { return key * scale + bytes({ reinterpret_cast<const unsigned char *>(&key), 4 }); }
};

Leaf leaf;

} // namespace app

extern "C" unsigned cairn_entry(const unsigned *data, unsigned count, app::Node *tree)
{
        app::Span<unsigned> span = { data, count };
        unsigned total = app::words(span, count);

        for (app::Node *n = tree; n; n = n->key & 1 ? n->left : n->right)
                total += n->weight(total);
        return total + app::leaf.weight(total);
}
