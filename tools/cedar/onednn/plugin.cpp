// A module that the program opens to measure oneDNN's matrix product beside its own.
#include "tools/cedar/onednn/plugin.h"

#include <omp.h>
#include <dnnl.hpp>

#include <string>
#include <vector>

namespace {

using dnnl::memory;

/// A vector as memory of a layout.
memory plain(const dnnl::engine& engine, std::vector<float>& values, memory::dims dims,
             memory::format_tag layout) {
  return {{std::move(dims), memory::data_type::f32, layout}, engine, values.data()};
}

}  // namespace

struct cedar_product {
  cedar_product(memory::dim n, memory::dim o, memory::dim k, int threads_count)
      : threads(threads_count),
        engine(dnnl::engine::kind::cpu, 0),
        stream(engine),
        x(static_cast<std::size_t>(n * k), 0.5F),
        w(static_cast<std::size_t>(o * k), 0.25F),
        y(static_cast<std::size_t>(n * o)) {
    omp_set_num_threads(threads);
    const auto f32 = memory::data_type::f32;
    // The library chooses how weights lie; they are brought there once, which is not measured.
    const dnnl::matmul::desc desc({{n, k}, f32, memory::format_tag::ab},
                                  {{k, o}, f32, memory::format_tag::any},
                                  {{n, o}, f32, memory::format_tag::ab});
    const dnnl::matmul::primitive_desc chosen(desc, engine);
    memory from = plain(engine, w, {k, o}, memory::format_tag::ba);
    weights = memory(chosen.weights_desc(), engine);
    dnnl::reorder(from, weights).execute(stream, from, weights);
    stream.wait();
    matmul = dnnl::matmul(chosen);
    arguments = {{DNNL_ARG_SRC, plain(engine, x, {n, k}, memory::format_tag::ab)},
                 {DNNL_ARG_WEIGHTS, weights},
                 {DNNL_ARG_DST, plain(engine, y, {n, o}, memory::format_tag::ab)}};
  }

  void run() {
    omp_set_num_threads(threads);
    matmul.execute(stream, arguments);
    stream.wait();
  }

  int threads;
  dnnl::engine engine;
  dnnl::stream stream;
  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> y;
  memory weights;
  dnnl::matmul matmul;
  std::unordered_map<int, memory> arguments;
};

namespace {

const char* name() {
  static const std::string text = [] {
    const dnnl_version_t* const version = dnnl_version();
    return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
           std::to_string(version->patch);
  }();
  return text.c_str();
}

int keep_to_avx2() {
  return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2) == dnnl::status::success ? 0 : 1;
}

cedar_product* make(size_t n, size_t o, size_t k, int threads) {
  try {
    return new cedar_product(static_cast<memory::dim>(n), static_cast<memory::dim>(o),
                             static_cast<memory::dim>(k), threads);
  } catch (const std::exception&) {
    return nullptr;
  }
}

int run(cedar_product* made) {
  try {
    made->run();
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

void release(cedar_product* made) {
  delete made;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const cedar_product_api* cedar_product_api_of() {
  static const cedar_product_api api{name, keep_to_avx2, make, run, release};
  return &api;
}
