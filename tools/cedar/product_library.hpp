// Another library's matrix product of binary32, to be measured beside ours: oneDNN, if it is there.
//
// The program that serves does not link it: a small module of its own does (onednn/), which lies
// beside the program and is opened when somebody asks for the comparison. Once opened it stays: its
// threads may be there until the process ends.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/base/result.hpp"
#include "tools/cedar/onednn/plugin.h"

namespace cedar::tools {

class product_library {
 public:
  /// With `narrow` nothing beyond AVX2. Errors: not_found: no such module, or none that can be
  /// loaded; refused: the library has begun with more than AVX2. The text says why.
  static result<std::unique_ptr<product_library>> open(const std::filesystem::path& module,
                                                       bool narrow);
  product_library(const product_library&) = delete;
  product_library& operator=(const product_library&) = delete;

  /// "oneDNN 2.6.3".
  std::string name() const { return api_.name(); }

  /// y [n, o] = x [n, k] * w^T, w [o, k], as the library likes the weights to lie; its memory is
  /// its own. Call it with nothing but run(). Throws if the library refuses.
  class product {
   public:
    product(const product_library& library, std::size_t n, std::size_t o, std::size_t k,
            std::uint32_t threads);
    void run();

   private:
    const cedar_product_api& api_;
    std::unique_ptr<cedar_product, void (*)(cedar_product*)> made_;
  };

 private:
  explicit product_library(const cedar_product_api& api) : api_(api) {}

  const cedar_product_api& api_;
};

/// Where the module lies: beside the program.
std::filesystem::path product_module_path();

}  // namespace cedar::tools
