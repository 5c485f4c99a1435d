#include "tests/integration/support/golden_prompt.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <map>

#include "runtime/store/safetensors_reader.hpp"
#include "tests/support/golden.hpp"

namespace cedar::test {

namespace {

std::filesystem::path prompts_folder(const std::string& model) {
  return std::filesystem::path(model) / (model == "cedar-tiny" ? "" : "golden");
}

}  // namespace

golden_prompt golden_prompt_of(const std::string& model, const std::string& prompt) {
  const golden_file file((prompts_folder(model) / (prompt + ".safetensors")).string());
  golden_prompt out{model + "/" + prompt, file.integers("tokens"), file.integers("decode.tokens")};
  // The last token is the choice after the last row of logits: nothing is computed from it.
  out.forced.pop_back();
  return out;
}

std::vector<golden_prompt> golden_prompts(const std::string& model) {
  std::vector<std::string> names;
  const std::filesystem::path folder =
      std::filesystem::path(CEDAR_TEST_DATA) / "golden" / prompts_folder(model);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".safetensors" && !name.starts_with("trace"))
      names.push_back(name);
  }
  std::ranges::sort(names);
  std::vector<golden_prompt> out;
  for (const std::string& name : names) out.push_back(golden_prompt_of(model, name));
  return out;
}

std::filesystem::path checkpoint_of(const std::string& model) {
  if (model == "cedar-tiny")
    return std::filesystem::path(CEDAR_SOURCE_DIR) / "configs" / "models" / model;
  return std::filesystem::path(CEDAR_TEST_DATA) / "golden" / model;
}

std::string ids_text(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (const std::int64_t id : ids) text += std::to_string(id) + " ";
  return text;
}

std::vector<std::string> logits_arguments(const temporary_folder& folder,
                                          const golden_prompt& prompt,
                                          const std::filesystem::path& model,
                                          const std::filesystem::path& out) {
  std::vector<std::string> arguments{"logits",
                                     "-m",
                                     model.string(),
                                     "--tokens",
                                     folder.write("tokens.txt", ids_text(prompt.tokens)).string(),
                                     "-o",
                                     out.string()};
  if (!prompt.forced.empty()) {
    arguments.emplace_back("--force");
    arguments.push_back(folder.write("forced.txt", ids_text(prompt.forced)).string());
  }
  return arguments;
}

std::size_t check_same_tensors(const std::filesystem::path& actual,
                               const std::filesystem::path& expected) {
  const auto a = store::safetensors_reader::open(actual);
  const auto b = store::safetensors_reader::open(expected);
  BOOST_REQUIRE_MESSAGE(a.has_value(), (a ? "" : a.error().message));
  BOOST_REQUIRE_MESSAGE(b.has_value(), (b ? "" : b.error().message));
  BOOST_TEST(a->tensors().size() == b->tensors().size());
  for (const store::tensor_info& info : b->tensors()) {
    const store::tensor_info* other = a->find(info.name);
    BOOST_TEST_REQUIRE((other != nullptr), info.name << " is missing");
    BOOST_TEST_REQUIRE((other->dtype == info.dtype && other->shape == info.shape),
                       info.name << " has another dtype or shape");
    const auto bytes = a->bytes(*other);
    const auto wanted = b->bytes(info);
    BOOST_REQUIRE(bytes.has_value() && wanted.has_value());
    const auto differing = std::ranges::mismatch(*bytes, *wanted).in1 - bytes->begin();
    BOOST_TEST(static_cast<std::size_t>(differing) == wanted->size(),
               info.name << " differs from byte " << differing << " of " << wanted->size());
  }
  return b->tensors().size();
}

}  // namespace cedar::test
