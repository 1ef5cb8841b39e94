// Pointers to checked memory for kernels compiled for the host, under the names of cuda/kernel.h.
// Each access through them is checked (state.h).
#ifndef REE_EMULATOR_POINTER_H
#define REE_EMULATOR_POINTER_H

#include "state.h"
#include "vectors.h"

#include <type_traits>

namespace ree_emulator {

template <class T> struct pointer;

// The element `x[i]` of checked memory: converting it to T reads it, assigning to it writes it. A
// variable that holds an element (`auto a = x[i];`) cannot be converted, because the read would
// come too late; write `float a = x[i];`.
template <class T> struct element {
    uintptr_t at;
    const struct range *of;

    operator T() const && { return load<T>(at, of); }
    T operator=(T value) const {
        store<T>(at, of, value);
        return value;
    }
    T operator=(const element &other) const { return *this = load<T>(other.at, other.of); }
    element(uintptr_t at, const struct range *of) : at(at), of(of) {}
    element(const element &) = default;
    struct pointer<T> operator&() const;

#define REE_EMULATOR_ASSIGN(op)                                                                    \
    template <class U> T operator op##=(const U &value) const {                                    \
        return *this = (T)(load<T>(at, of) op value);                                              \
    }                                                                                              \
    template <class U> T operator op##=(const element<U> &value) const {                           \
        return *this = (T)(load<T>(at, of) op load<U>(value.at, value.of));                        \
    }
    REE_EMULATOR_ASSIGN(+)
    REE_EMULATOR_ASSIGN(-)
    REE_EMULATOR_ASSIGN(*)
    REE_EMULATOR_ASSIGN(/)
    REE_EMULATOR_ASSIGN(%)
    REE_EMULATOR_ASSIGN(&)
    REE_EMULATOR_ASSIGN(|)
    REE_EMULATOR_ASSIGN(^)
    REE_EMULATOR_ASSIGN(<<)
    REE_EMULATOR_ASSIGN(>>)
#undef REE_EMULATOR_ASSIGN
    T operator++() const {
        return *this = (T)(load<T>(at, of) + 1);
    }
    T operator--() const {
        return *this = (T)(load<T>(at, of) - 1);
    }
    T operator++(int) const {
        T old = load<T>(at, of);
        *this = (T)(old + 1);
        return old;
    }
    T operator--(int) const {
        T old = load<T>(at, of);
        *this = (T)(old - 1);
        return old;
    }
};

// The element of a vector type V, for example float4. Its members x, y, ... are the elements of the
// vector's components.
#define REE_EMULATOR_VECTOR_ELEMENT(V, ...)                                                        \
    template <> struct element<V> {                                                                \
        uintptr_t at;                                                                              \
        const struct range *of;                                                                    \
        typedef decltype(V::x) T;                                                                  \
        struct element<T> __VA_ARGS__;                                                             \
        operator V() const && { return load<V>(at, of); }                                          \
        V operator=(V value) const {                                                               \
            store<V>(at, of, value);                                                               \
            return value;                                                                          \
        }                                                                                          \
        V operator=(const element &other) const { return *this = load<V>(other.at, other.of); }    \
        element(const element &) = default;                                                        \
        element(uintptr_t at, const struct range *of);                                             \
        inline struct pointer<V> operator&() const;                                                \
    };
#define REE_EMULATOR_VECTOR_2(V)                                                                   \
    REE_EMULATOR_VECTOR_ELEMENT(V, x, y)                                                           \
    inline element<V>::element(uintptr_t at, const struct range *of)                               \
        : at(at), of(of), x(at, of), y(at + sizeof(T), of) {}
#define REE_EMULATOR_VECTOR_4(V)                                                                   \
    REE_EMULATOR_VECTOR_ELEMENT(V, x, y, z, w)                                                     \
    inline element<V>::element(uintptr_t at, const struct range *of)                               \
        : at(at), of(of), x(at, of), y(at + sizeof(T), of), z(at + 2 * sizeof(T), of),             \
          w(at + 3 * sizeof(T), of) {}
REE_EMULATOR_VECTORS_2(REE_EMULATOR_VECTOR_2)
REE_EMULATOR_VECTORS_4(REE_EMULATOR_VECTOR_4)
#undef REE_EMULATOR_VECTOR_2
#undef REE_EMULATOR_VECTOR_4
#undef REE_EMULATOR_VECTOR_ELEMENT

// T *, with T const or not. Index arithmetic is that of pointers: a u32 index is never negative.
template <class T> struct pointer {
    uintptr_t at;
    const struct range *of;
    typedef std::remove_const_t<T> V;

    pointer() : at(0), of(&nothing) {}
    pointer(std::nullptr_t) : at(0), of(&nothing) {}
    pointer(uintptr_t at, const struct range *of) : at(at), of(of) {}
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    pointer(const pointer<U> &other) : at(other.at), of(other.of) {}
    // Converts to a pointer to elements of another type, like a cast.
    template <class U, class = std::enable_if_t<!std::is_same_v<std::remove_const_t<U>, V>>,
              class = void>
    explicit pointer(const pointer<U> &other) : at(other.at), of(other.of) {}

    template <class I> std::conditional_t<std::is_const_v<T>, V, element<V>> operator[](I i) const {
        pointer p = *this + i;
        if constexpr (std::is_const_v<T>)
            return load<V>(p.at, p.of);
        else
            return element<V>(p.at, p.of);
    }
    auto operator*() const { return (*this)[0]; }
    template <class I> pointer operator+(I i) const {
        return pointer(at + (uintptr_t)(intptr_t)i * sizeof(T), of);
    }
    template <class I, class = std::enable_if_t<std::is_convertible_v<I, long>>>
    pointer operator-(I i) const {
        return pointer(at - (uintptr_t)(intptr_t)i * sizeof(T), of);
    }
    ptrdiff_t operator-(pointer other) const {
        return (intptr_t)(at - other.at) / (intptr_t)sizeof(T);
    }
    template <class I> pointer &operator+=(I i) { return *this = *this + i; }
    template <class I> pointer &operator-=(I i) { return *this = *this - i; }
    pointer &operator++() { return *this += 1; }
    pointer operator++(int) {
        pointer old = *this;
        *this += 1;
        return old;
    }
    bool operator==(pointer other) const { return at == other.at; }
    bool operator!=(pointer other) const { return at != other.at; }
    bool operator<(pointer other) const { return at < other.at; }
    explicit operator bool() const { return at != 0; }
    explicit operator uintptr_t() const { return at; }
};

template <class T> inline pointer<T> element<T>::operator&() const {
    return pointer<T>(at, of);
}
#define REE_EMULATOR_ADDRESS(V)                                                                    \
    inline pointer<V> element<V>::operator&() const {                                              \
        return pointer<V>(at, of);                                                                 \
    }
REE_EMULATOR_VECTORS_2(REE_EMULATOR_ADDRESS)
REE_EMULATOR_VECTORS_4(REE_EMULATOR_ADDRESS)
#undef REE_EMULATOR_ADDRESS

// An array in shared memory that a kernel declares with REE_SHARED. Its memory is assigned at its
// first use in a launch.
struct shared_array {
    const char *name;
    uint64_t size;   // bytes
    uint64_t launch; // the launch_number for which `range` is valid
    struct range range;
    constexpr shared_array(const char *name, uint64_t size)
        : name(name), size(size), launch(0), range{} {}
};
const struct range *place_shared(struct shared_array *array);
const struct range *dynamic_shared(const char *name);
extern uint64_t launch_number;

inline const struct range *shared_range(struct shared_array *array) {
    if (array->launch == launch_number && array->range.start == now.block) return &array->range;
    return place_shared(array);
}

const struct range *operand_range(const void *header, uint32_t operand);
const struct range *scratch_range(const void *header);

void async_copy(uintptr_t to, const struct range *to_range, uintptr_t from,
                const struct range *from_range, uint32_t bytes, bool valid);
void async_commit();
void async_wait(uint32_t n);

} // namespace ree_emulator

template <class T> using ree_in_t = ree_emulator::pointer<const T>;
template <class T> using ree_out_t = ree_emulator::pointer<T>;
template <class T> using ree_shared_t = ree_emulator::pointer<T>;

template <class T> inline ree_in_t<T> ree_in(const struct ree_cuda_header &h, uint32_t operand) {
    const ree_emulator::range *range = ree_emulator::operand_range(&h, operand);
    return ree_in_t<T>(range->base, range);
}
template <class T> inline ree_out_t<T> ree_out(const struct ree_cuda_header &h, uint32_t operand) {
    const ree_emulator::range *range = ree_emulator::operand_range(&h, operand);
    return ree_out_t<T>(range->base, range);
}
template <class T> inline ree_out_t<T> ree_scratch(const struct ree_cuda_header &h) {
    const ree_emulator::range *range = ree_emulator::scratch_range(&h);
    return ree_out_t<T>(range->base, range);
}

namespace ree_emulator {
template <class V> inline V load_vector(uintptr_t at, const struct range *of) {
    check(at, sizeof(V), sizeof(V), of, READ);
    V value;
    memcpy(&value, (const void *)at, sizeof value);
    return value;
}
} // namespace ree_emulator

template <class V, class T> inline V ree_load(ree_emulator::pointer<T> memory, uint32_t i) {
    static_assert((sizeof(V) & (sizeof(V) - 1)) == 0 && sizeof(V) <= 16);
    return ree_emulator::load_vector<V>((memory + i).at, memory.of);
}
template <class V, class T>
inline void ree_store(ree_emulator::pointer<T> memory, uint32_t i, V value) {
    static_assert((sizeof(V) & (sizeof(V) - 1)) == 0 && sizeof(V) <= 16);
    uintptr_t at = (memory + i).at;
    ree_emulator::check(at, sizeof(V), sizeof(V), memory.of, ree_emulator::WRITE);
    memcpy((void *)at, &value, sizeof value);
}
template <class T>
inline bool ree_aligned(ree_emulator::pointer<T> memory, uint32_t i, uint32_t bytes) {
    return ((memory + i).at & (bytes - 1)) == 0;
}
template <class T> inline T __ldg(ree_emulator::pointer<const T> memory) {
    return *memory;
}

#define REE_SHARED(T, name, n)                                                                     \
    static ree_emulator::shared_array name##_in_block{#name, sizeof(T) * (n)};                     \
    const ree_shared_t<T> name(ree_emulator::shared_range(&name##_in_block)->base,                 \
                               &name##_in_block.range)
#define REE_SHARED_DYNAMIC(T, name)                                                                \
    const ree_shared_t<T> name(ree_emulator::dynamic_shared(#name)->base,                          \
                               ree_emulator::dynamic_shared(#name))

template <int BYTES, class S, class T>
inline void ree_async_copy(ree_emulator::pointer<S> shared, uint32_t i,
                           ree_emulator::pointer<T> memory, uint32_t j, bool valid) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16);
    ree_emulator::async_copy((shared + i).at, shared.of, (memory + j).at, memory.of, BYTES, valid);
}
inline void ree_async_commit() {
    ree_emulator::async_commit();
}
template <int N> inline void ree_async_wait() {
    ree_emulator::async_wait(N);
}

#endif
