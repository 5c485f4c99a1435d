// The registry of this program (kernels/registry/registry.hpp): the device's backend alone,
// emulated. So the cases of tests/numeric/kernels run on it as they are. Every call of theirs is
// held to the number of kernels that plans count with (kernels/plan/launches.hpp).
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/ops/operations.hpp"
#include "kernels/plan/launches.hpp"
#include "kernels/registry/registry.hpp"

namespace cedar::kernels {

namespace {

class counted_device final : public backend {
 public:
  std::string_view name() const noexcept override { return device_.name(); }

 private:
#define CEDAR_COUNTED(operation)                                               \
  void do_##operation(const operation##_arguments& arguments) const override { \
    const std::uint64_t before = cuda::emulation::grids_run();                 \
    device_.operation(arguments);                                              \
    check_launches(#operation, cuda::emulation::grids_run() - before);         \
  }
  CEDAR_OPERATIONS(CEDAR_COUNTED)
#undef CEDAR_COUNTED

  /// None at all where there is nothing to do (no frequencies).
  static void check_launches(const char* operation, std::uint64_t queued) {
    CEDAR_ASSERT(queued == 0 || queued == plan::launches_of(operation),
                 std::string(operation) + " queued " + std::to_string(queued) + " kernels");
  }

  cuda::cuda_backend device_{cuda::stream_handle{}, plan::h200};
};

}  // namespace

std::vector<std::string_view> backend_names() {
  return {"cuda"};
}

std::unique_ptr<backend> make_backend(std::string_view name, const backend_options&) {
  if (name != "cuda") return nullptr;
  return std::make_unique<counted_device>();
}

}  // namespace cedar::kernels
