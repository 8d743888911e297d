// Normalises two rows with the op rmsnorm_fwd and says which implementation did it, with what is open
// and what was returned in the care of objects.
//
//     c++ -o rmsnorm rmsnorm.cpp -Ibin/include -Lbin/lib -lprimus -Wl,-rpath,bin/lib
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "primus.h"

namespace {

void check(int32_t result) {
    if (result != PRIMUS_OK)
        throw std::runtime_error(primus_error());
}

class Manager {
public:
    Manager() { check(primus_open(nullptr, &number_)); }
    ~Manager() { primus_close(number_); }
    Manager(const Manager &) = delete;
    Manager &operator=(const Manager &) = delete;

    primus_bound bind(const char *op, uint64_t layout) const {
        primus_bound bound;
        check(primus_bind(number_, op, layout, &bound));
        return bound;
    }

    std::unique_ptr<char, void (*)(char *)> explain(const char *op) const {
        char *text = nullptr;
        check(primus_explain(number_, op, &text));
        return {text, primus_free};
    }

private:
    primus_manager number_ = 0;
};

// A contiguous tensor of f32 that owns its elements.
class Tensor {
public:
    Tensor(std::vector<int64_t> shape, std::vector<float> data) : shape_(std::move(shape)), data_(std::move(data)) {
        view_ = {data_.data(), {PRIMUS_DEVICE_CPU, 0}, static_cast<int32_t>(shape_.size()), {2, 32, 1}, shape_.data(), nullptr, 0};
    }
    primus_arg arg() { return primus_tensor_arg(&view_); }
    float operator[](size_t i) const { return data_[i]; }

private:
    std::vector<int64_t> shape_;
    std::vector<float> data_;
    primus_tensor view_;
};

} // namespace

int main() {
    Tensor x({2, 3}, {1, 2, 2, 4, 0, 3}), weight({3}, {1, 1, 2});
    Tensor y({2, 3}, std::vector<float>(6)), rsigma({2}, std::vector<float>(2));
    Manager manager;
    primus_bound rmsnorm = manager.bind("rmsnorm_fwd", PRIMUS_RMSNORM_FWD_LAYOUT);

    std::array<primus_arg, PRIMUS_RMSNORM_FWD_N_ARGS> args{};
    args[PRIMUS_RMSNORM_FWD_INPUT] = x.arg();
    args[PRIMUS_RMSNORM_FWD_WEIGHT] = weight.arg();
    args[PRIMUS_RMSNORM_FWD_OUTPUT] = y.arg();
    args[PRIMUS_RMSNORM_FWD_RSIGMA] = rsigma.arg();
    args[PRIMUS_RMSNORM_FWD_EPS] = primus_float_arg(1e-6);
    uint64_t saved = 0;
    check(primus_run(rmsnorm, args.data(), args.size(), &saved));
    for (size_t i = 0; i < 6; i += 3)
        std::printf("%.4f %.4f %.4f\n", y[i], y[i + 1], y[i + 2]);

    args[PRIMUS_RMSNORM_FWD_EPS] = primus_float_arg(0);
    try {
        check(primus_run(rmsnorm, args.data(), args.size(), &saved));
        return 1;
    } catch (const std::runtime_error &e) {
        std::printf("%s\n", e.what());
    }
    std::printf("%s\n", manager.explain("rmsnorm_fwd").get());
}
