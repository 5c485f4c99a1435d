#include "tools/cedar/timed_backend.hpp"

#include <algorithm>

#include "tools/cedar/operation_bytes.hpp"

namespace cedar::tools {

timed_backend::timed_backend(const kernels::backend& other, clock now)
    : other_(other), now_(std::move(now)) {}

double timed_backend::wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void timed_backend::reset() {
  operations_.clear();
  between_.clear();
  pause();
}

double timed_backend::seconds_in_operations() const {
  double out = 0;
  for (const auto& [name, time] : operations_) out += time.seconds;
  return out;
}

template <class Arguments, class Call>
void timed_backend::timed(const char* operation, const Arguments& arguments,
                          const Call& call) const {
  const double begin = now_();
  if (last_ != nullptr) {
    operation_time& gap = between_[{last_, operation}];
    ++gap.calls;
    gap.seconds += begin - last_end_;
  }
  call();
  const double end = now_();
  operation_time& own = operations_[operation];
  ++own.calls;
  own.seconds += end - begin;
  own.bytes += static_cast<double>(bytes_of(arguments));
  last_ = operation;
  last_end_ = end;
}

#define CEDAR_TIMED(operation)                                                                \
  void timed_backend::do_##operation(const kernels::operation##_arguments& arguments) const { \
    timed(#operation, arguments, [&] { other_.operation(arguments); });                       \
  }

CEDAR_TIMED(rms_norm)
CEDAR_TIMED(quantize_fp8)
CEDAR_TIMED(rms_norm_quantize)
CEDAR_TIMED(linear_fp8)
CEDAR_TIMED(linear_fp4)
CEDAR_TIMED(linear_fp8_weight_only)
CEDAR_TIMED(linear_bf16)
CEDAR_TIMED(linear_f32)
CEDAR_TIMED(hc_coefficients)
CEDAR_TIMED(hc_collapse)
CEDAR_TIMED(hc_expand)
CEDAR_TIMED(hc_transition)
CEDAR_TIMED(rope)
CEDAR_TIMED(pack_entries)
CEDAR_TIMED(unpack_entries)
CEDAR_TIMED(compressor_pool)
CEDAR_TIMED(index_scores)
CEDAR_TIMED(attention)
CEDAR_TIMED(gate_scores)
CEDAR_TIMED(swiglu)
CEDAR_TIMED(swiglu_quantize)
CEDAR_TIMED(moe_combine)
CEDAR_TIMED(engram_gate)
CEDAR_TIMED(rope_2d)
CEDAR_TIMED(full_attention)
CEDAR_TIMED(gelu)
CEDAR_TIMED(add)

#undef CEDAR_TIMED

namespace {

using named_time = std::pair<std::string, operation_time>;

std::vector<named_time> sorted(std::vector<named_time> all) {
  std::ranges::stable_sort(all, [](const named_time& a, const named_time& b) {
    return a.second.seconds > b.second.seconds;
  });
  return all;
}

}  // namespace

std::vector<named_time> by_time(const std::map<std::string, operation_time>& operations) {
  return sorted({operations.begin(), operations.end()});
}

std::vector<named_time> by_time(
    const std::map<std::pair<std::string, std::string>, operation_time>& between) {
  std::vector<named_time> all;
  for (const auto& [names, time] : between)
    all.emplace_back(names.first + " -> " + names.second, time);
  return sorted(std::move(all));
}

}  // namespace cedar::tools
