// A model in one process twice over: as it is, and with every operation watched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "runtime/local/local_engine.hpp"
#include "tools/cedar/timed_backend.hpp"

namespace cedar::tools {

struct watched_model {
  /// Errors: refused (the processor lacks what the cpu backend needs); those of opening the model.
  static result<watched_model> open(const std::filesystem::path& model, std::uint32_t threads,
                                    const local::engine_options& options);

  std::unique_ptr<kernels::backend> backend;
  std::unique_ptr<timed_backend> watched;  ///< over `backend`
  std::unique_ptr<stage::model_source> source;
  std::unique_ptr<local::local_engine> plain;  ///< on `backend`
  std::unique_ptr<local::local_engine> counted;  ///< on `watched`
};

}  // namespace cedar::tools
