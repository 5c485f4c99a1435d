#include "tests/unit/runtime/local/allocations/counted_backend.hpp"

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
  CEDAR_COUNTED(rms_norm)
  CEDAR_COUNTED(quantize_fp8)
  CEDAR_COUNTED(rms_norm_quantize)
  CEDAR_COUNTED(linear_fp8)
  CEDAR_COUNTED(linear_fp4)
  CEDAR_COUNTED(linear_fp8_weight_only)
  CEDAR_COUNTED(linear_bf16)
  CEDAR_COUNTED(linear_f32)
  CEDAR_COUNTED(hc_coefficients)
  CEDAR_COUNTED(hc_collapse)
  CEDAR_COUNTED(hc_expand)
  CEDAR_COUNTED(hc_transition)
  CEDAR_COUNTED(rope)
  CEDAR_COUNTED(pack_entries)
  CEDAR_COUNTED(unpack_entries)
  CEDAR_COUNTED(requantize_entries)
  CEDAR_COUNTED(compressor_pool)
  CEDAR_COUNTED(index_scores)
  CEDAR_COUNTED(attention)
  CEDAR_COUNTED(gate_scores)
  CEDAR_COUNTED(swiglu)
  CEDAR_COUNTED(swiglu_quantize)
  CEDAR_COUNTED(moe_combine)
  CEDAR_COUNTED(engram_gate)
  CEDAR_COUNTED(rope_2d)
  CEDAR_COUNTED(full_attention)
  CEDAR_COUNTED(gelu)
  CEDAR_COUNTED(add)
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
