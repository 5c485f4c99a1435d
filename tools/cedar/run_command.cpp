// `cedar run`: prompts in, text out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/text/prompt_encoding.hpp"
#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/draft_option.hpp"
#include "tools/cedar/image_arguments.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/prompts_file.hpp"
#include "tools/cedar/sampling_arguments.hpp"

namespace cedar::tools {

namespace {

using nlohmann::json;

struct options {
  pipeline_options pipeline;
  std::string prompt;
  bool prompt_given = false;
  std::filesystem::path prompts;
  std::uint32_t new_tokens_max = 128;
  bool chat = false;
  std::string system;
  bool thinking = false;
  std::string effort;
  std::vector<std::filesystem::path> images;
  bool ignore_eos = false;
  sampling_arguments sampling;
};

result<std::vector<prompt_line>> read_prompts(const options& chosen) {
  prompt_line given;
  given.new_tokens_max = chosen.new_tokens_max;
  given.chat = chosen.chat;
  given.images = chosen.images;
  given.sampling = chosen.sampling;
  if (!chosen.prompt_given) return read_prompts_file(chosen.prompts, given);
  given.text = chosen.prompt;
  return std::vector{given};
}

/// How the chats among the prompts are framed.
struct chat_frame {
  text::prompt_options how;
  std::string system;  ///< empty: none
};

result<chat_frame> chat_frame_of(const options& chosen) {
  chat_frame out;
  out.system = chosen.system;
  out.how.mode = chosen.thinking ? text::chat_mode::thinking : text::chat_mode::chat;
  if (chosen.effort.empty()) return out;
  const result<std::uint32_t> effort = text::parse_effort(chosen.effort);
  if (!effort) return fail(effort.error().with("--effort"));
  out.how.effort = *effort;
  return out;
}

struct encoded_prompt {
  std::vector<token_id> tokens;
  std::vector<flow::prompt_image> images;
};

/// The text to be continued; for a chat, the turns that ask for an answer to it. Control strings
/// inside the texts stay text.
result<std::vector<text::prompt_piece>> pieces_of(const prompt_line& line,
                                                  const chat_frame& frame) {
  if (line.text.empty()) return fail(errc::invalid_argument, "the prompt is empty");
  if (!line.chat && line.images.empty()) return text::continuation_prompt(line.text);
  std::vector<text::chat_message> messages;
  if (!frame.system.empty()) {
    messages.emplace_back().role = text::chat_role::system;
    messages.back().content = frame.system;
  }
  messages.push_back(turn_with_images(line.images, line.text));
  return text::encode_prompt(messages, frame.how);
}

result<encoded_prompt> encode(const text::tokenizer& tokenizer, const prompt_line& line,
                              const chat_frame& frame, const session::service_limits& limits) {
  encoded_prompt out;
  auto images = read_image_files(line.images, limits);
  if (!images) return fail(images.error());
  out.images = std::move(*images);
  const auto pieces = pieces_of(line, frame);
  if (!pieces) return fail(pieces.error());
  auto tokens = text::tokenize(tokenizer, *pieces);
  if (!tokens) return fail(tokens.error().with("the prompt"));
  out.tokens = std::move(*tokens);
  if (const auto placed = place(out.tokens, out.images, limits.image_token); !placed)
    return fail(placed.error());
  return out;
}

/// Text of one request as it comes.
struct answer {
  text::stream_decoder decoder;
  std::string text;
  std::vector<token_id> tokens;
  session::finish_reason finish = session::finish_reason::none;
};

/// Whether an answer ended before it was asked to: prompt and answer fill the context.
bool cut_by_context(const session::generation_request& request, const answer& answer) {
  return answer.finish == session::finish_reason::length &&
         answer.tokens.size() < request.new_tokens_max;
}

/// Whether an answer depends on its seed.
bool has_noise(const session::generation_request& request) {
  return request.sampling.temperature > 0;
}

void print_json(std::size_t index, const session::generation_request& request, const answer& answer,
                const session::usage& used) {
  json line{{"index", index},
            {"text", answer.text},
            {"tokens", answer.tokens},
            {"finish_reason", std::string(to_string(answer.finish))},
            {"usage",
             {{"prompt_tokens", used.prompt_tokens},
              {"image_tokens", used.image_tokens},
              {"completion_tokens", used.completion_tokens},
              {"mode", std::string(to_string(used.mode))},
              {"matched_tokens", used.matched_tokens},
              {"cached_tokens", used.cached_tokens},
              {"replayed_rows", used.replayed_rows},
              {"encoder_rows", used.encoder_rows},
              {"decoder_rows", used.decoder_rows},
              {"preemptions", used.preemptions},
              {"drafted_tokens", used.drafted_tokens},
              {"accepted_tokens", used.accepted_tokens}}}};
  if (has_noise(request)) line["seed"] = request.sampling.seed;
  fmt::print("{}\n", line.dump());
}

/// What drafting was worth. A step makes one token itself, and those that it accepts.
void print_drafts(const session::usage& used) {
  const std::uint32_t after_prompt = used.completion_tokens - 1;
  fmt::print(
      stderr, "cedar: {} tokens drafted, {} accepted: {:.2f} tokens a step\n", used.drafted_tokens,
      used.accepted_tokens,
      static_cast<double>(after_prompt) / static_cast<double>(after_prompt - used.accepted_tokens));
}

/// Of all lines, or what is wrong with all that are wrong.
result<std::vector<session::generation_request>> requests_of(const options& chosen,
                                                             const std::vector<prompt_line>& lines,
                                                             const chat_frame& frame,
                                                             const pipeline& engine,
                                                             const text::tokenizer& tokenizer) {
  std::vector<session::generation_request> out;
  const session::service_limits limits = engine.limits();
  line_mistakes mistakes;
  for (const prompt_line& line : lines) {
    auto prompt = encode(tokenizer, line, frame, limits);
    if (!prompt) {
      mistakes.add(line.where, prompt.error());
      continue;
    }
    session::generation_request& request = out.emplace_back();
    request.prompt = std::move(prompt->tokens);
    request.images = std::move(prompt->images);
    request.mode = line.mode.value_or(engine.mode());
    request.new_tokens_max = line.new_tokens_max;
    request.ignore_eos = chosen.ignore_eos;
    request.sampling = with_seed(line.sampling);
    if (const auto fits = engine.check(request); !fits) mistakes.add(line.where, fits.error());
  }
  if (const auto all_right = mistakes.outcome(); !all_right) return fail(all_right.error());
  return out;
}

result<void> run(const options& chosen) {
  const result<chat_frame> frame = chat_frame_of(chosen);
  if (!frame) return fail(frame.error());
  const auto lines = read_prompts(chosen);
  if (!lines) return fail(lines.error());
  const auto pipeline = pipeline::open(chosen.pipeline);
  if (!pipeline) return fail(pipeline.error());
  const stage::model_source& model = (*pipeline)->model();
  const auto tokenizer = text::tokenizer::load(model.folder() / "tokenizer.json");
  if (!tokenizer) return fail(tokenizer.error());

  const auto requests = requests_of(chosen, *lines, *frame, **pipeline, *tokenizer);
  if (!requests) return fail(requests.error());
  std::vector<answer> answers;
  for (std::size_t i = 0; i < requests->size(); ++i)
    answers.push_back({text::stream_decoder(*tokenizer, {.skip_special = true}), {}, {}, {}});
  const std::vector<token_id>& ends = model.config().eos_tokens;
  session::generation_sink sink;
  sink.on_row = [&](std::size_t index, const session::row_event& row) {
    answer& to = answers[index];
    to.finish = row.finish;
    if (row.in_prompt || (*requests)[index].new_tokens_max == 0) return;
    if (row.finish == session::finish_reason::stop && std::ranges::count(ends, row.token) > 0)
      return;
    to.tokens.push_back(row.token);
    // An id beyond the tokenizer has no text; models may have more rows than tokens.
    const auto piece = to.decoder.push(row.token);
    if (!piece) return;
    to.text += *piece;
    if (!chosen.prompt_given) return;
    std::fwrite(piece->data(), 1, piece->size(), stdout);
    std::fflush(stdout);
  };
  const auto used = (*pipeline)->generator().generate(*requests, sink);
  if (!used) {
    if (chosen.prompt_given && !answers.front().text.empty()) fmt::print("\n");
    return fail(used.error());
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string rest = answers[i].decoder.finish();
    answers[i].text += rest;
    if (!chosen.prompt_given)
      print_json(i, (*requests)[i], answers[i], (*used)[i]);
    else if ((*requests)[i].new_tokens_max > 0)  // else there is no answer to end
      fmt::print("{}\n", rest);
  }
  std::fflush(stdout);
  if (chosen.prompt_given && cut_by_context(requests->front(), answers.front()))
    fmt::print(stderr,
               "cedar: the context is full after {} tokens of the prompt and {} of the answer; a "
               "topology's limits.context may allow more\n",
               requests->front().prompt.size(), answers.front().tokens.size());
  if (chosen.prompt_given && has_noise(requests->front()))
    fmt::print(stderr, "cedar: seed {}\n", requests->front().sampling.seed);
  if (chosen.prompt_given && used->front().drafted_tokens > 0) print_drafts(used->front());
  return (*pipeline)->finish(*used);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Continue prompts with text");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  add_pipeline_options(*command, chosen->pipeline);
  CLI::Option* prompt = command->add_option("-p,--prompt", chosen->prompt, "Text to continue");
  CLI::Option* prompts = command->add_option(
      "--prompts", chosen->prompts,
      "File with one {\"prompt\": TEXT, \"max_tokens\": N, \"chat\": BOOL, \"mode\": \"exact\", "
      "\"bounded\" or \"halo\", \"images\": [FILE, ...]} a line, and sampling options (\"top_k\": "
      "N, "
      "\"logit_bias\": {\"TOKEN\": BIAS}, ...); answers are printed as JSON lines");
  prompt->excludes(prompts);
  command->add_option("--max-tokens", chosen->new_tokens_max, "Tokens to generate at most");
  CLI::Option* chat =
      command->add_flag("--chat", chosen->chat, "The prompt is a user's turn in a chat");
  CLI::Option* system =
      command->add_option("--system", chosen->system, "Instructions in front of a chat");
  CLI::Option* thinking =
      command->add_flag("--thinking", chosen->thinking, "Let a chat reason before it answers");
  command
      ->add_option("--effort", chosen->effort,
                   "How thoroughly to reason: low, high, max or 1 to 100 (75 unless told)")
      ->needs(thinking);
  add_image_option(*command, chosen->images);
  command->get_option("--image")->excludes(prompts);
  command->add_flag("--ignore-eos", chosen->ignore_eos, "Go on past the end of sequence");
  add_draft_option(*command, chosen->pipeline.draft);
  add_sampling_options(*command, chosen->sampling);
  command->callback([chosen, prompt, prompts, chat, system, thinking, &exit_code] {
    chosen->prompt_given = prompt->count() > 0;
    if (!chosen->prompt_given && prompts->count() == 0)
      throw CLI::RequiredError("-p TEXT or --prompts FILE");
    // Lines of a file say for themselves which are chats.
    if (chosen->prompt_given && chat->count() == 0 && chosen->images.empty())
      for (const CLI::Option* option : {system, thinking})
        if (option->count() > 0) throw CLI::RequiresError(option->get_name(), "--chat");
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
