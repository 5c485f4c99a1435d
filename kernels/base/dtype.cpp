#include "kernels/base/dtype.hpp"

namespace cedar::kernels {

std::string_view to_string(dtype type) noexcept {
  switch (type) {
    case dtype::f32: return "F32";
    case dtype::bf16: return "BF16";
    case dtype::f8_e4m3: return "F8_E4M3";
    case dtype::f8_e8m0: return "F8_E8M0";
    case dtype::i8: return "I8";
    case dtype::u8: return "U8";
    case dtype::i16: return "I16";
    case dtype::i32: return "I32";
    case dtype::i64: return "I64";
  }
  return "?";
}

}  // namespace cedar::kernels
