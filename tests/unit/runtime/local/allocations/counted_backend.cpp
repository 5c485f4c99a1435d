#include "tests/unit/runtime/local/allocations/counted_backend.hpp"

#include "kernels/ops/operations.hpp"
#include "tests/unit/runtime/local/allocations/counting_allocator.hpp"

namespace cedar::test {

namespace {

class counted_backend final : public kernels::backend {
 public:
  counted_backend(const kernels::backend& inner, call_log& log) : inner_(inner), log_(log) {}

  std::string_view name() const noexcept override { return inner_.name(); }

 private:
#define CEDAR_COUNTED(operation)                                                        \
  void do_##operation(const kernels::operation##_arguments& arguments) const override { \
    const std::uint64_t before = allocations();                                         \
    inner_.operation(arguments);                                                        \
    log_.calls.push_back({#operation, before, allocations()});                          \
  }
  CEDAR_OPERATIONS(CEDAR_COUNTED)
#undef CEDAR_COUNTED

  const kernels::backend& inner_;
  call_log& log_;
};

}  // namespace

std::unique_ptr<kernels::backend> make_counted_backend(const kernels::backend& inner,
                                                       call_log& log) {
  return std::make_unique<counted_backend>(inner, log);
}

}  // namespace cedar::test
