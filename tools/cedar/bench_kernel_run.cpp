#include "tools/cedar/bench_kernel_run.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace cedar::tools {

binding binding_of(const kernel_call& call, double read_rate, double fma_rate) {
  const double reading = call.streams ? call.bytes / read_rate : 0;
  const double multiplying = call.operations > 0 ? call.operations / fma_rate : 0;
  if (reading == 0 && multiplying == 0) return {};
  return reading > multiplying ? binding{"memory", reading} : binding{"multiply-add", multiplying};
}

namespace {

constexpr double batch_seconds = 1e-3;
constexpr std::size_t sample_bytes = std::size_t{32} << 20;
constexpr std::uint32_t rounds_max = 300;

struct limits_sample {
  double read = 0;
  double fma = 0;
};

class rounds {
 public:
  rounds(const kernel_case& what, const kernel_bench& with)
      : with_(with), call_(what.prepare(with.memory, with.backend)) {
    if (what.product && with.other != nullptr)
      other_.emplace(*with.other, what.product->n, what.product->o, what.product->k, with.threads);
    const double once = seconds_of(with.threads, [&] { call_.call(with_.backend); });
    calls_ = static_cast<std::size_t>(std::clamp(std::ceil(batch_seconds / once), 1.0, 10000.0));
    if (other_) other_->run();
  }

  void run() {
    double spent = 0;
    limits_.push_back(sample());
    while (seconds_.size() < with_.rounds_min ||
           (spent < with_.seconds && seconds_.size() < rounds_max)) {
      spent += seconds_of(0, [&] { round(); });
    }
  }

  bench_row row(std::string name) const {
    bench_row out{std::move(name), spread_of(scaled(seconds_, 1e6)), {}, {}};
    const double seconds = out.time_us.median * 1e-6;
    out.numbers = {{"bytes", call_.bytes}, {"GBps", call_.bytes * 1e-9 / seconds}};
    if (call_.operations > 0) {
      out.numbers["operations"] = call_.operations;
      out.numbers["GFLOPs"] = call_.operations * 1e-9 / seconds;
    }
    add_share(out);
    if (!other_seconds_.empty()) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < seconds_.size(); ++i)
        ratios.push_back(other_seconds_[i] / seconds_[i]);
      out.numbers["other_us"] = spread_of(other_seconds_).median * 1e6;
      out.numbers["other_ratio"] = spread_of(ratios).median;
      out.words["other"] = with_.other->name();
    }
    return out;
  }

 private:
  limits_sample sample() {
    limits_sample out;
    if (call_.streams)
      out.read = with_.limits.read_sample(std::min(sample_bytes, with_.memory.stream().bytes()));
    if (call_.operations > 0) out.fma = with_.limits.fma_sample();
    return out;
  }

  void round() {
    const double batch = seconds_of(with_.threads, [&] {
      for (std::size_t i = 0; i < calls_; ++i) call_.call(with_.backend);
    });
    seconds_.push_back(batch / static_cast<double>(calls_));
    if (other_) other_seconds_.push_back(seconds_of(with_.threads, [&] { other_->run(); }));
    limits_.push_back(sample());
  }

  static std::vector<double> scaled(std::vector<double> values, double factor) {
    for (double& value : values) value *= factor;
    return values;
  }

  void add_share(bench_row& out) const {
    std::vector<double> shares;
    std::vector<double> reads;
    std::vector<double> fmas;
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      reads.push_back((limits_[i].read + limits_[i + 1].read) / 2);
      fmas.push_back((limits_[i].fma + limits_[i + 1].fma) / 2);
      shares.push_back(binding_of(call_, reads.back(), fmas.back()).seconds / seconds_[i]);
    }
    const double read = spread_of(reads).median;
    const double fma = spread_of(fmas).median;
    const binding bound = binding_of(call_, read, fma);
    out.words["bound"] = bound.name;
    if (bound.seconds == 0) return;
    out.numbers["share"] = spread_of(shares).median;
    if (read > 0) out.numbers["read_GBps"] = read * 1e-9;
    if (fma > 0) out.numbers["fma_GFLOPs"] = fma * 1e-9;
  }

  const kernel_bench& with_;
  kernel_call call_;
  std::optional<product_library::product> other_;
  std::size_t calls_ = 1;
  std::vector<double> seconds_;  ///< of a call, a round each
  std::vector<double> other_seconds_;
  std::vector<limits_sample> limits_;  ///< one more than rounds
};

}  // namespace

bench_row measure(const kernel_case& what, const kernel_bench& with) {
  with.memory.reset();
  rounds all(what, with);
  all.run();
  return all.row(what.name());
}

}  // namespace cedar::tools
