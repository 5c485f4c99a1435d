#include "tests/support/random_checkpoint.hpp"

#include <stdexcept>

#include "runtime/model/engram_hash.hpp"
#include "runtime/synthetic/random_checkpoint.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cedar::test {

void write_random_checkpoint(const std::filesystem::path& folder, std::uint64_t seed,
                             const std::function<void(nlohmann::json&)>& change) {
  const std::filesystem::path model = std::string(CEDAR_TEST_DATA) + "/golden/tiny-12";
  nlohmann::json config = nlohmann::json::parse(read_file(model / "config.json"));
  nlohmann::json& text = config["text_config"];
  change(text);
  const auto orders = text["engram_max_ngram_size"].get<std::uint32_t>() - 1;
  text["engram_num_embeddings"] = model::engram_row_counts(
      text["engram_layer_ids"].size(), orders * text["engram_n_heads"].get<std::uint32_t>(),
      text["engram_vocab_size"].get<std::uint64_t>());
  const auto written = synthetic::write_random_checkpoint(
      folder, {config.dump(1), read_file(model / "tokenizer.json"), seed});
  if (!written) throw std::runtime_error(written.error().message);
}

}  // namespace cedar::test
