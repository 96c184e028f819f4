// A view of memory with strides, as std::mdspan has it, read and written without a copy.
//
//     strided PLACE
//
// Build: c++ -std=c++17 $(python -m zcore.embed --cflags) strided.cpp $(python -m zcore.embed --libs) -o strided
#include <array>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "zcore.h"

template <class T, size_t N>
struct View {                            // std::mdspan with layout_stride
    T *data;
    std::array<int64_t, N> extents, strides;     // the strides in elements
};

class Array {
public:
    explicit Array(zcore_array *array) : array_(array) {}
    Array(const Array &) = delete;
    ~Array() { zcore_close(array_); }

    template <class T, size_t N>
    void read(std::array<int64_t, N> start, View<T, N> view) const
    {
        zcore_error error;
        auto bytes = in_bytes(view);
        if (zcore_read(array_, start.data(), view.extents.data(), nullptr, view.data, bytes.data(), 0, &error) != 0)
            throw std::runtime_error(error.message);
    }

    template <class T, size_t N>
    void write(std::array<int64_t, N> start, View<T, N> view)
    {
        zcore_error error;
        auto bytes = in_bytes(view);
        if (zcore_write(array_, start.data(), view.extents.data(), nullptr, view.data, bytes.data(), 0, &error) != 0)
            throw std::runtime_error(error.message);
    }

private:
    template <class T, size_t N>
    static std::array<int64_t, N> in_bytes(const View<T, N> &view)
    {
        auto bytes = view.strides;
        for (auto &stride : bytes) stride *= static_cast<int64_t>(sizeof(T));
        return bytes;
    }

    zcore_array *array_;
};

int main(int, char **arguments)
try {
    zcore_error error;
    const int64_t shape[2] = {6, 8}, chunks[2] = {2, 3};
    if (zcore_start(&error) != 0) throw std::runtime_error(error.message);
    auto *created = zcore_create(arguments[1], 2, shape, chunks, "float32", nullptr, &error);
    if (created == nullptr) throw std::runtime_error(error.message);
    Array array(created);

    std::vector<float> memory(48);
    for (size_t i = 0; i < memory.size(); i++) memory[i] = static_cast<float>(i);
    // The memory is column by column.
    array.write<float, 2>({0, 0}, {memory.data(), {6, 8}, {1, 6}});
    std::vector<float> part(6, -1);
    // Every second place of a row, backwards.
    array.read<float, 2>({1, 2}, {part.data() + 4, {1, 3}, {6, -2}});
    for (float element : part) std::printf("%g ", element);
    std::printf("\n");
    try {
        array.read<float, 2>({5, 5}, {part.data(), {2, 3}, {3, 1}});
    } catch (const std::runtime_error &e) {
        std::printf("%s\n", e.what());
    }
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
