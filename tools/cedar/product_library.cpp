#include "tools/cedar/product_library.hpp"

#include <dlfcn.h>

#include "kernels/base/check.hpp"

namespace cedar::tools {

std::filesystem::path product_module_path() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cedar-onednn.so";
}

result<std::unique_ptr<product_library>> product_library::open(const std::filesystem::path& module,
                                                               bool narrow) {
  void* const opened = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return fail(errc::not_found, ::dlerror());
  const auto api_of =
      reinterpret_cast<cedar_product_api_of_function>(::dlsym(opened, CEDAR_PRODUCT_SYMBOL));
  if (api_of == nullptr) {
    ::dlclose(opened);
    return fail(errc::not_found, module.string() + " is not a module of this program");
  }
  if (narrow && api_of()->keep_to_avx2() != 0)
    return fail(errc::refused, std::string(api_of()->name()) + " does not keep to AVX2");
  return std::unique_ptr<product_library>(new product_library(*api_of()));
}

product_library::product::product(const product_library& library, std::size_t n, std::size_t o,
                                  std::size_t k, std::uint32_t threads)
    : api_(library.api_),
      made_(api_.make(n, o, k, static_cast<int>(threads)), library.api_.release) {
  CEDAR_REQUIRE(made_ != nullptr, library.name() + " refuses the product");
}

void product_library::product::run() {
  CEDAR_REQUIRE(api_.run(made_.get()) == 0, "the library computes");
}

}  // namespace cedar::tools
