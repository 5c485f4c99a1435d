// `cedar make-checkpoint`: random weights of released widths, small enough to try a pipeline.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stop_token>

#include "runtime/model/config.hpp"
#include "runtime/synthetic/random_checkpoint.hpp"
#include "runtime/synthetic/reduced_config.hpp"
#include "runtime/text/engram_token_map.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/embedded.hpp"
#include "tools/cedar/number_check.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/signal_watch.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::string like = "released";
  std::string layers;
  std::uint32_t experts = 0;
  std::filesystem::path tokenizer;
  std::uint32_t vocabulary = 0;  ///< 0: the tokenizer's
  /// The release has 16,000,000, which is 100 GB a module. Addresses are spread over all of them
  /// whatever their number, so these cost the same reads without a disk full of them.
  std::uint64_t engram_rows = 4096;
  std::uint64_t seed = 1;
  bool no_drafts = false;
  bool no_vision = false;
  std::filesystem::path out;
};

/// A text and where it came from.
struct document {
  std::string text;
  std::string name;
};

result<document> read_document(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(errc::not_found, "cannot read " + file.string());
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return fail(errc::io, "cannot read " + file.string());
  return document{std::move(text), file.string()};
}

/// `path` itself, or the file `name` in that folder.
std::filesystem::path file_of(const std::filesystem::path& path, const char* name) {
  return std::filesystem::is_directory(path) ? path / name : path;
}

result<document> original_config(const options& chosen) {
  if (chosen.like == "released")
    return document{std::string(released_config), "the released configuration"};
  return read_document(file_of(chosen.like, "config.json"));
}

/// As told, or the one beside the original, or that of cedar-tiny.
result<document> tokenizer_for(const options& chosen) {
  if (!chosen.tokenizer.empty()) return read_document(file_of(chosen.tokenizer, "tokenizer.json"));
  const auto beside = file_of(chosen.like, "config.json").parent_path() / "tokenizer.json";
  if (chosen.like != "released" && std::filesystem::exists(beside)) return read_document(beside);
  return document{std::string(small_tokenizer), "cedar-tiny's tokenizer"};
}

/// What a model reads and writes its tokens by.
struct vocabulary {
  document text;
  text::tokenizer tokens;
  std::uint32_t classes = 0;  ///< of Engram's compressed ids
};

result<vocabulary> read_vocabulary(const options& chosen) {
  auto text = tokenizer_for(chosen);
  if (!text) return fail(text.error().with("--tokenizer"));
  auto tokens = text::tokenizer::parse(text->text);
  if (!tokens) return fail(tokens.error().with(text->name));
  const auto classes = text::engram_classes(*tokens);
  if (!classes) return fail(classes.error().with(text->name));
  return vocabulary{*std::move(text), *std::move(tokens), *classes};
}

/// The token that stands for what a draft has yet to find: any that prompts can do without, which
/// in the release is the system role's.
token_id noise_token_of(const text::tokenizer& tokens, const model::model_config& original) {
  return tokens.control_token("<｜System｜>").value_or(original.pad_token);
}

/// Draft blocks and vision are kept where original, layers and tokenizer allow.
synthetic::reduction reduction_of(const options& chosen, const model::model_config& original,
                                  const vocabulary& words, std::vector<std::uint32_t> layers) {
  const model::dspark_config& drafts = original.dspark;
  const auto tokens = static_cast<std::uint32_t>(words.tokens.vocabulary_size());
  synthetic::reduction to{std::move(layers), chosen.experts,
                          chosen.vocabulary == 0 ? tokens : chosen.vocabulary, chosen.engram_rows,
                          words.classes};
  if (!chosen.no_drafts && drafts.blocks > 0 && to.layers.size() >= drafts.target_layers.size())
    to.noise_token = noise_token_of(words.tokens, original);
  if (!chosen.no_vision && original.vision.layers > 0)
    to.image_token = words.tokens.control_token("<｜deepseek_image｜>");
  return to;
}

result<void> run(const options& chosen) {
  std::stop_source stop;
  signal_watch watch;
  watch.react([&] { stop.request_stop(); });
  auto layers = synthetic::parse_layers(chosen.layers);
  if (!layers) return fail(layers.error().with("--layers"));
  const auto original = original_config(chosen);
  if (!original) return fail(original.error().with("--like"));
  model::config_reading reading = model::read_config_text({original->text, original->name});
  if (!reading.config)
    return fail(reading.code, fmt::format("{}", fmt::join(reading.errors, "\n")));
  auto words = read_vocabulary(chosen);
  if (!words) return fail(words.error());
  if (const auto tokens = words->tokens.vocabulary_size();
      chosen.vocabulary != 0 && chosen.vocabulary < tokens)
    return fail(errc::invalid_argument,
                fmt::format("--vocabulary {} is less than the {} tokens of {}; give a smaller "
                            "--tokenizer, or no --vocabulary",
                            chosen.vocabulary, tokens, words->text.name));

  const synthetic::reduction to = reduction_of(chosen, *reading.config, *words, *std::move(layers));
  auto config = synthetic::reduce_config({original->text, original->name}, to);
  if (!config) return fail(config.error());
  const auto written = synthetic::write_random_checkpoint(
      chosen.out, {std::move(*config), std::move(words->text.text), chosen.seed}, stop.get_token());
  if (!written) return fail(written.error());
  fmt::print(
      "{}: {} tensors in {} file{}, {} bytes written; text by {}; {} draft blocks, {} vision\n",
      chosen.out.string(), written->tensors, written->files, written->files == 1 ? "" : "s",
      written->bytes, words->text.name, to.noise_token ? "with" : "without",
      to.image_token ? "with" : "without");
  return {};
}

}  // namespace

void add_make_checkpoint(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "make-checkpoint", "Write random weights for some layers of a configuration, at its widths");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("--like", chosen->like,
                      "'released', or a folder or file with the configuration to take widths and "
                      "schedule from (default: released)");
  command
      ->add_option("--layers", chosen->layers,
                   "Its layers to keep, like 0-3,20-21; with each layer what it reads")
      ->required();
  command->add_option("--experts", chosen->experts, "Routed experts of a layer")
      ->required()
      ->check(CLI::Range(1U, 4096U));
  command
      ->add_option("--engram-rows", chosen->engram_rows,
                   "Rows of a hash table at least (default: 4096)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 34));
  command
      ->add_option("--vocabulary", chosen->vocabulary,
                   "Rows of embedding and head (default: the tokenizer's tokens)")
      ->check(CLI::Range(1U, 1U << 30));
  command->add_option("--tokenizer", chosen->tokenizer,
                      "Folder with tokenizer.json, or the file (default: that beside --like, else "
                      "a small one of 2048 tokens)");
  command->add_flag(
      "--no-drafts", chosen->no_drafts,
      "Leave the draft blocks out; so are they if they tap more layers than are kept");
  command->add_flag("--no-vision", chosen->no_vision,
                    "Leave the vision tower out; so is it if no token of the tokenizer stands for "
                    "images");
  command->add_option("--seed", chosen->seed, "The same seed gives the same bytes (default: 1)")
      ->check(whole_number());
  command->add_option("-o,--output", chosen->out, "Folder to make")->required();
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
