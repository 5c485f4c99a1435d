#include "tools/cedar/timed_backend.hpp"

#include <algorithm>

#include "kernels/ops/operations.hpp"
#include "tools/cedar/operation_bytes.hpp"

namespace cedar::tools {

namespace {

#define CEDAR_NUMBER(operation) operation,
enum number : std::size_t { CEDAR_OPERATIONS(CEDAR_NUMBER) numbers_count };
#undef CEDAR_NUMBER

#define CEDAR_NAME(operation) #operation,
constexpr const char* names[] = {CEDAR_OPERATIONS(CEDAR_NAME)};
#undef CEDAR_NAME

}  // namespace

timed_backend::timed_backend(const kernels::backend& other, clock now)
    : other_(other),
      now_(std::move(now)),
      operations_(numbers_count),
      between_(numbers_count * numbers_count) {}

double timed_backend::wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void timed_backend::reset() {
  std::ranges::fill(operations_, operation_time{});
  std::ranges::fill(between_, operation_time{});
  pause();
}

std::map<std::string, operation_time> timed_backend::operations() const {
  std::map<std::string, operation_time> out;
  for (std::size_t i = 0; i < numbers_count; ++i)
    if (operations_[i].calls > 0) out.emplace(names[i], operations_[i]);
  return out;
}

std::map<std::pair<std::string, std::string>, operation_time> timed_backend::between() const {
  std::map<std::pair<std::string, std::string>, operation_time> out;
  for (std::size_t i = 0; i < between_.size(); ++i)
    if (between_[i].calls > 0)
      out.emplace(std::pair(names[i / numbers_count], names[i % numbers_count]), between_[i]);
  return out;
}

double timed_backend::seconds_in_operations() const {
  double out = 0;
  for (const operation_time& time : operations_) out += time.seconds;
  return out;
}

template <class Arguments, class Call>
void timed_backend::timed(std::size_t operation, const Arguments& arguments,
                          const Call& call) const {
  const double begin = now_();
  if (last_) {
    operation_time& gap = between_[*last_ * numbers_count + operation];
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
    timed(number::operation, arguments, [&] { other_.operation(arguments); });                \
  }
CEDAR_OPERATIONS(CEDAR_TIMED)
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
