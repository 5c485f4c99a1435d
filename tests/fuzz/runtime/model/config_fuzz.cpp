// The input is a config.json, and behind a byte 0x1e a flat configuration. Whatever is accepted
// must give a schedule and a manifest without breaking a promise.
#include <fstream>
#include <iterator>
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/model/manifest.hpp"
#include "runtime/model/schedule.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace {

constexpr char separator = 0x1e;

std::string read(const std::string& name) {
  std::ifstream file(std::string(CEDAR_SOURCE_DIR) + "/configs/models/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

namespace cedar::test {

fuzz_material fuzz_corpus() {
  const std::string released = read("released/config.json");
  const std::string tiny = read("cedar-tiny/config.json");
  return {{released, tiny, tiny + separator + read("cedar-tiny/inference/config.json")},
          {"null", "[]", "{}", "-1", "\"", ",", "]", "}",
           "\"text_config\":", "\"rope_scaling\":null,", "[0]", "true"}};
}

}  // namespace cedar::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cedar::model;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find(separator);
  std::optional<config_text> flat;
  if (cut != std::string_view::npos) flat = config_text{input.substr(cut + 1), "flat"};
  const config_reading reading = read_config_text({input.substr(0, cut), "nested"}, flat);
  CEDAR_ASSERT(reading.config.has_value() == reading.errors.empty(), "errors and a configuration");
  if (!reading.config) return 0;

  const model_config& config = *reading.config;
  CEDAR_ASSERT(!canonical_text(config).empty(), "no text");
  const schedule plan(config);
  for (std::uint32_t layer = 0; layer < plan.layers(); ++layer) {
    const layer_schedule& l = plan[layer];
    CEDAR_ASSERT((l.ratio == 0) == !l.owner && (l.ratio == 0) == !l.index_source, "a source");
    if (l.owner) CEDAR_ASSERT(plan[*l.owner].ratio == l.ratio, "another ratio than the owner's");
    static_cast<void>(plan.cut_is_free(layer));
  }
  // A manifest of the largest accepted sizes has millions of entries; those of mutated files do
  // not.
  if (std::uint64_t{config.layers} * config.routed_experts > 20000) return 0;
  std::uint64_t bytes = 0;
  for (const expected_tensor& tensor : manifest(config)) {
    CEDAR_ASSERT(cedar::store::element_count(tensor.shape).has_value(), tensor.name);
    CEDAR_ASSERT(!__builtin_add_overflow(bytes, tensor.bytes(), &bytes), "total bytes overflow");
  }
  return 0;
}
