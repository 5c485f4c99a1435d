#include "tests/support/random_checkpoint.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "kernels/base/dtype.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/manifest.hpp"
#include "runtime/store/safetensors_writer.hpp"

namespace cedar::test {

namespace {

using kernels::dtype;

bool is_prime(std::uint64_t value) {
  for (std::uint64_t factor = 2; factor * factor <= value; ++factor)
    if (value % factor == 0) return false;
  return value > 1;
}

/// Rows of every module: the next unused primes from the start on, module by module and order by
/// order.
void set_engram_rows(nlohmann::json& text) {
  const auto columns_of_order = text["engram_n_heads"].get<std::uint64_t>();
  const auto orders = text["engram_max_ngram_size"].get<std::uint64_t>() - 1;
  const auto start = text["engram_vocab_size"].get<std::uint64_t>();
  std::set<std::uint64_t> used;
  auto rows = nlohmann::json::array();
  for (std::size_t module = 0; module < text["engram_layer_ids"].size(); ++module) {
    std::uint64_t sum = 0;
    for (std::uint64_t order = 0; order < orders; ++order) {
      std::uint64_t prime = start;
      for (std::uint64_t head = 0; head < columns_of_order; ++head) {
        while (!is_prime(prime) || used.contains(prime)) ++prime;
        used.insert(prime);
        sum += prime;
      }
    }
    rows.push_back(sum);
  }
  text["engram_num_embeddings"] = rows;
}

/// Bytes of one tensor: codes of moderate size, scales that keep outputs of order one.
std::vector<std::byte> random_bytes(const model::expected_tensor& tensor, std::mt19937_64& random) {
  std::vector<std::byte> out(tensor.bytes());
  std::normal_distribution<float> normal(0.0F, 1.0F);
  const bool norm = tensor.name.find("norm") != std::string::npos;
  const float fan_in = tensor.shape.size() > 1 ? static_cast<float>(tensor.shape.back()) : 64.0F;
  const float size = 1.0F / std::sqrt(fan_in);
  // What writes to the streams writes little: random sublayers of full size would turn one rounding
  // into another answer.
  const bool writes = tensor.name.find("wo_b") != std::string::npos ||
                      tensor.name.find(".w2") != std::string::npos ||
                      tensor.name.find("engram.wkv") != std::string::npos;
  for (std::size_t i = 0; i * element_bytes(tensor.dtype) < out.size(); ++i) {
    const float value = norm ? 1.0F + 0.1F * normal(random) : size * normal(random);
    std::byte* at = out.data() + i * element_bytes(tensor.dtype);
    if (tensor.dtype == dtype::f32) {
      std::memcpy(at, &value, sizeof value);
    } else if (tensor.dtype == dtype::bf16) {
      const kernels::bf16 narrow = kernels::to_bf16(value);
      std::memcpy(at, &narrow, sizeof narrow);
    } else if (tensor.dtype == dtype::f8_e8m0) {
      *at = static_cast<std::byte>((writes ? 116 : 119) +
                                   random() % 3);  // 2^-11 or 2^-8, times up to 4
    } else if (tensor.dtype == dtype::f8_e4m3) {
      *at = static_cast<std::byte>((random() & 0x80U) | (0x30U + random() % 0x20U));
    } else {
      *at = static_cast<std::byte>(random() & 0xffU);  // two E2M1 codes
    }
  }
  return out;
}

}  // namespace

void write_random_checkpoint(const std::filesystem::path& folder, std::uint64_t seed,
                             const std::function<void(nlohmann::json&)>& change) {
  const std::string model = std::string(CEDAR_TEST_DATA) + "/golden/tiny-12/";
  std::ifstream file(model + "config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  nlohmann::json& text = config["text_config"];
  change(text);
  set_engram_rows(text);
  std::ofstream(folder / "config.json") << config.dump(1);
  std::filesystem::copy_file(model + "tokenizer.json", folder / "tokenizer.json");

  const auto parsed = model::parse_config(folder);
  if (!parsed) throw std::runtime_error(parsed.error().message);
  std::mt19937_64 random(seed);
  const auto tensors = model::manifest(*parsed);
  std::vector<std::vector<std::byte>> contents;
  std::vector<store::tensor_source> sources;
  for (const model::expected_tensor& tensor : tensors)
    contents.push_back(random_bytes(tensor, random));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    sources.push_back({tensors[i].name, tensors[i].dtype, tensors[i].shape, contents[i]});
  const auto written = store::write_safetensors(folder / "model.safetensors", sources);
  if (!written) throw std::runtime_error(written.error().message);
}

}  // namespace cedar::test
