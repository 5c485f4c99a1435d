// The input is a whole safetensors file. Whatever is accepted must be safe to read: tensors inside
// the file, disjoint, of the size that shape and dtype give.
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/store/safetensors_header.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace {

/// A file of `header` and `payload_bytes` zeros.
std::string file_of(const std::string& header, std::size_t payload_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(payload_bytes, '\0');
}

}  // namespace

namespace cedar::test {

fuzz_material fuzz_corpus() {
  return {{file_of(R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                   R"("b.c":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[16,19]}})",
                   19),
           file_of(R"({"__metadata__":{"format":"pt"},"x":{"dtype":"I8","shape":[],)"
                   R"("data_offsets":[0,1]},"y":{"dtype":"BF16","shape":[0,5],)"
                   R"("data_offsets":[1,1]}}    )",
                   1),
           file_of("{}", 0)},
          {"\"dtype\":", "\"shape\":", "\"data_offsets\":", "\"__metadata__\":", "[", "]", "{", "}",
           ",", "\"I64\"", "\"F8_E8M0\"", "null", "\"a\":", "\xff", " "}};
}

}  // namespace cedar::test

namespace {

using namespace cedar::store;

void check_header(std::string_view text, std::uint64_t file_bytes) {
  const auto header = parse_safetensors_header(text, file_bytes, "file");
  if (!header) {
    CEDAR_ASSERT(header.error().message.starts_with("file"), header.error().message);
    return;
  }
  std::uint64_t next = header_length_bytes + text.size();
  for (const tensor_info& tensor : header->tensors) {
    const auto count = element_count(tensor.shape);
    CEDAR_ASSERT(count && *count * element_bytes(tensor.dtype) == tensor.bytes, tensor.name);
    CEDAR_ASSERT(tensor.offset == next, tensor.name);
    next += tensor.bytes;
  }
  CEDAR_ASSERT(next == file_bytes, "bytes of no tensor");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < header_length_bytes && i < size; ++i)
    length |= std::uint64_t{data[i]} << (8 * i);
  if (check_header_length(length, size, "file"))
    check_header(file.substr(header_length_bytes, length), size);
  // Again with the length that a writer of this header would have put in front: most mutations
  // change it, and nothing behind it would be reached.
  const std::size_t end = file.rfind('}');
  if (end != std::string_view::npos && end >= header_length_bytes)
    check_header(file.substr(header_length_bytes, end + 1 - header_length_bytes), size);
  return 0;
}
