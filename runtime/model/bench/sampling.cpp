// Milliseconds a token over the released vocabulary, for the options that people use.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "kernels/ops/selection.hpp"
#include "runtime/model/sampling.hpp"

using namespace cedar;

namespace {

constexpr std::size_t vocabulary = 129280;
constexpr int runs = 50;

template <class F>
void measure(const char* name, const F& choose) {
  double best = 1e9;
  long sum = 0;
  for (std::uint32_t i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    sum += choose(i);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  std::printf("%-28s %.2f ms (checksum %ld)\n", name, best, sum);
}

}  // namespace

int main() {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) logit = normal(random);
  for (std::size_t i = 0; i < 20; ++i) logits[i * 1000] += 12;
  const std::vector<float> flat(vocabulary, 0.0F);
  model::sampling_scratch scratch;
  model::token_uses uses;
  for (token_id token = 0; token < 4000; ++token) uses[token * 7] = {2, 1};

  const auto run = [&](const char* name, const std::vector<float>& of, auto change) {
    flow::sampling_options options;
    options.temperature = 1;
    change(options);
    measure(name, [&](std::uint32_t position) {
      return model::choose_token(of, options, uses, position, scratch);
    });
  };
  using o = flow::sampling_options;
  measure("arg max", [&](std::uint32_t) { return kernels::arg_max(logits); });
  run("temperature", logits, [](o&) {});
  run("temperature, flat logits", flat, [](o&) {});
  run("top-k 50", logits, [](o& options) { options.top_k = 50; });
  run("top-p 0.95", logits, [](o& options) { options.top_p = 0.95F; });
  run("top-p 0.95, flat logits", flat, [](o& options) { options.top_p = 0.95F; });
  run("min-p 0.05", logits, [](o& options) { options.min_p = 0.05F; });
  run("top-k 50, top-p 0.95", logits, [](o& options) {
    options.top_k = 50;
    options.top_p = 0.95F;
  });
  run("all penalties", logits, [](o& options) {
    options.repetition_penalty = 1.1F;
    options.presence_penalty = 0.5F;
    options.frequency_penalty = 0.5F;
  });
}
