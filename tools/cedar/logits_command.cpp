// `cedar logits`: token ids in, logits and intermediates out, named as in the golden files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "kernels/base/buffer.hpp"
#include "runtime/store/safetensors_writer.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/pipeline.hpp"

namespace cedar::tools {

namespace {

struct options {
  pipeline_options pipeline;
  std::filesystem::path tokens;
  std::uint32_t decode = 0;
  std::filesystem::path force;
  std::vector<std::string> taps;
  std::uint32_t last = 0;
  std::filesystem::path out;
};

result<std::vector<token_id>> read_ids(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return fail(errc::not_found, "cannot read " + path.string());
  std::vector<token_id> ids;
  std::string word;
  while (file >> word) {
    token_id id = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (failed != std::errc{} || end != word.data() + word.size())
      return fail(errc::malformed, path.string() + ": '" + word +
                                       "' is not a token id (the file "
                                       "holds whole numbers separated by blanks)");
    ids.push_back(id);
  }
  return ids;
}

/// Tensors collected while the request runs.
struct collected {
  std::vector<std::int32_t> positions;
  std::vector<float> prefill;
  std::vector<std::int32_t> decode_tokens;
  std::vector<float> decode;
  std::map<std::string, flow::tap> taps;  ///< by step and name
  std::set<std::string> tap_names;
};

/// Says which names brought nothing: misspelt, or not computed for these tokens.
void warn_of_missing(const std::vector<std::string>& names, const std::set<std::string>& arrived) {
  for (const std::string& name : names) {
    const bool any_layer = name.starts_with("L*.");
    const bool found = std::ranges::any_of(arrived, [&](const std::string& one) {
      return any_layer ? one.starts_with('L') && one.ends_with(name.substr(2)) : one == name;
    });
    if (!found)
      fmt::print(stderr, "cedar: warning: --taps: no intermediate '{}' was computed\n", name);
  }
}

/// "prefill.", "prefill.chunk1." or "decode3." for a step of the only request.
std::string prefix_of(step_id step, std::size_t prompt, std::uint32_t rows_per_step) {
  const std::uint64_t chunks = (prompt + rows_per_step - 1) / rows_per_step;
  if (step.value > chunks) return "decode" + std::to_string(step.value - chunks - 1) + ".";
  if (chunks == 1) return "prefill.";
  return "prefill.chunk" + std::to_string(step.value - 1) + ".";
}

template <class T>
store::tensor_source source_of(const std::string& name, kernels::dtype type,
                               const std::vector<T>& values, std::vector<std::uint64_t> shape) {
  return {name, type, std::move(shape), std::as_bytes(std::span(values))};
}

result<void> write(const std::filesystem::path& path, const std::vector<token_id>& tokens,
                   const collected& all, std::size_t vocabulary) {
  using kernels::dtype;
  std::vector<store::tensor_source> tensors{
      source_of("tokens", dtype::i32, tokens, {tokens.size()}),
      source_of("prefill.position", dtype::i32, all.positions, {all.positions.size()}),
      source_of("prefill.logits", dtype::f32, all.prefill, {all.positions.size(), vocabulary}),
      source_of("decode.tokens", dtype::i32, all.decode_tokens, {all.decode_tokens.size()})};
  if (!all.decode.empty())
    tensors.push_back(source_of("decode.logits", dtype::f32, all.decode,
                                {all.decode.size() / vocabulary, vocabulary}));
  for (const auto& [name, tap] : all.taps) {
    const std::vector<std::uint64_t> shape(tap.shape.begin(), tap.shape.end());
    std::uint64_t bytes = element_bytes(tap.type);
    for (const std::uint64_t size : shape) bytes *= size;
    tensors.push_back({name, tap.type, shape, flow::bytes_of(tap.payload).first(bytes)});
  }
  return store::write_safetensors(path, tensors);
}

result<void> run(options chosen) {
  const auto tokens = read_ids(chosen.tokens);
  if (!tokens) return fail(tokens.error());
  session::generation_request request;
  request.prompt = *tokens;
  request.new_tokens_max = chosen.decode == 0 ? 0 : chosen.decode + 1;
  request.ignore_eos = true;
  request.prompt_logits =
      chosen.last == 0 ? static_cast<std::uint32_t>(tokens->size()) : chosen.last;
  request.want_logits = true;
  request.taps = chosen.taps;
  if (!chosen.force.empty()) {
    auto forced = read_ids(chosen.force);
    if (!forced) return fail(forced.error());
    if (forced->empty())
      return fail(errc::invalid_argument, chosen.force.string() + " holds no token id");
    request.forced = std::move(*forced);
  }
  // Unless told otherwise one process computes the whole prompt in one step, so that an
  // intermediate is one tensor.
  if (chosen.pipeline.topology.empty() && !chosen.pipeline.rows_per_step)
    chosen.pipeline.rows_per_step =
        static_cast<std::uint32_t>(std::max<std::size_t>(tokens->size(), 1));
  const auto pipeline = pipeline::open(chosen.pipeline);
  if (!pipeline) return fail(pipeline.error());
  const std::uint32_t rows_per_step = (*pipeline)->rows_per_step();
  request.mode = (*pipeline)->mode();

  collected all;
  session::generation_sink sink;
  sink.on_row = [&](std::size_t, const session::row_event& row) {
    const bool prompt = row.position < tokens->size();
    std::vector<float>& to = prompt ? all.prefill : all.decode;
    to.insert(to.end(), row.logits.begin(), row.logits.end());
    if (prompt) all.positions.push_back(static_cast<std::int32_t>(row.position));
    if (row.position + 1 >= tokens->size()) all.decode_tokens.push_back(row.token);
  };
  sink.on_tap = [&](flow::tap tap) {
    const std::string name = prefix_of(tap.step, tokens->size(), rows_per_step) + tap.name;
    all.tap_names.insert(tap.name);
    all.taps.insert_or_assign(name, std::move(tap));
  };
  const auto used = (*pipeline)->generator().generate({request}, sink);
  if (!used) return fail(used.error());
  warn_of_missing(chosen.taps, all.tap_names);
  const std::size_t vocabulary = (*pipeline)->model().config().vocabulary;
  if (const result<void> written = write(chosen.out, *tokens, all, vocabulary); !written)
    return written;
  return (*pipeline)->finish(*used);
}

}  // namespace

void add_logits(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("logits", "Write the logits of given token ids to a safetensors file");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  add_pipeline_options(*command, chosen->pipeline);
  command->add_option("--tokens", chosen->tokens, "File with the prompt's ids, separated by blanks")
      ->required();
  CLI::Option* decode = command->add_option(
      "--decode", chosen->decode, "Greedy steps after the prompt (past the end of sequence)");
  decode->check(CLI::Range(0U, 1'000'000'000U));
  command
      ->add_option("--force", chosen->force,
                   "File with ids to feed after the prompt, one step each")
      ->excludes(decode);
  command
      ->add_option("--taps", chosen->taps,
                   "Intermediates to write too, separated by commas: L3.attn.out, L*.ffn.out, "
                   "final.normed")
      ->delimiter(',');
  command->add_option("--last", chosen->last,
                      "Write the logits of this many last prompt rows (default: all)");
  command->add_option("-o,--output", chosen->out, "File to write")->required();
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
