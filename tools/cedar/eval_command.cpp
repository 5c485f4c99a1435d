// `cedar eval replay`: what a prefill mode and a prefix hit do to a model's answers, against a run
// of every row through every layer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tools/cedar/commands.hpp"
#include "tools/cedar/eval_texts.hpp"
#include "tools/cedar/logit_distance.hpp"
#include "tools/cedar/pipeline.hpp"

namespace cedar::tools {

namespace {

using session::prefill_mode;

struct options {
  std::filesystem::path model;
  std::filesystem::path texts;
  std::vector<std::string> modes{"exact", "bounded", "halo"};
  std::vector<double> hits{0.25, 0.5, 0.75, 1};
  std::uint32_t following = 16;
  std::uint32_t rows_per_step = 128;
  std::uint32_t threads = 1;
  std::string format = "table";
};

/// Logits of the prompt's last row and of the rows that follow, and what it took.
struct measured {
  std::vector<std::vector<float>> rows;
  session::usage used;
};

/// One line of the report: a mode, and how much of each prompt a prefix has.
struct summary_line {
  prefill_mode mode = prefill_mode::exact;
  double hit = 0;
  logit_distance distance{};
  std::uint32_t texts = 0;
  std::uint32_t answers = 0;
  std::uint32_t recalled = 0;
  std::uint64_t cached = 0;
  std::uint64_t replayed = 0;
  std::uint64_t encoder_rows = 0;
  std::uint64_t decoder_rows = 0;

  double mean(std::uint64_t sum) const {
    return static_cast<double>(sum) / static_cast<double>(texts);
  }
};

class evaluation {
 public:
  evaluation(const options& chosen, const stage::model_source& source,
             const kernels::backend& backend)
      : chosen_(chosen), source_(source), backend_(backend) {}

  result<std::vector<summary_line>> run(const std::vector<eval_text>& texts) const {
    std::vector<summary_line> lines;
    for (const std::string& name : chosen_.modes) {
      lines.push_back({.mode = *session::prefill_mode_of(name)});
      for (const double hit : chosen_.hits)
        lines.push_back({.mode = lines.back().mode, .hit = hit});
    }
    for (const eval_text& text : texts) {
      const auto reference = measure(text, prefill_mode::exact, 0);
      if (!reference) return fail(reference.error());
      for (summary_line& line : lines) {
        const auto made = measure(text, line.mode, line.hit);
        if (!made) return fail(made.error());
        add(line, text, *reference, *made);
      }
    }
    return lines;
  }

 private:
  /// On an engine that has seen nothing but the first `hit` of the prompt.
  result<measured> measure(const eval_text& text, prefill_mode mode, double hit) const {
    const auto context = static_cast<std::uint32_t>(text.prompt.size() + text.following.size());
    const auto engine = local::local_engine::open(
        source_, backend_,
        {.rows_per_step = chosen_.rows_per_step,
         .requests_max = 1,
         .context_max = context,
         .prefix_positions =
             hit > 0 ? std::uint64_t{context} + source_.config().max_positions : 0});
    if (!engine) return fail(engine.error());
    const auto known = static_cast<std::ptrdiff_t>(hit * static_cast<double>(text.prompt.size()));
    if (known > 0) {
      session::generation_request before;
      before.prompt.assign(text.prompt.begin(), text.prompt.begin() + known);
      if (const auto ran = (*engine)->generate({before}, {}); !ran) return fail(ran.error());
    }
    session::generation_request request;
    request.prompt = text.prompt;
    request.mode = mode;
    request.forced = text.following;
    request.want_logits = true;
    measured out;
    const auto used = (*engine)->generate(
        {request}, {[&](std::size_t, const session::row_event& row) {
                      out.rows.emplace_back(row.logits.begin(), row.logits.end());
                    },
                    {}});
    if (!used) return fail(used.error());
    out.used = used->front();
    return out;
  }

  static void add(summary_line& to, const eval_text& text, const measured& reference,
                  const measured& made) {
    bool recalled = true;
    for (std::size_t i = 0; i < text.following.size(); ++i) {
      to.distance.add(reference.rows[i], made.rows[i]);
      recalled = recalled && top1(made.rows[i]) == text.following[i];
    }
    ++to.texts;
    to.answers += text.is_answer;
    to.recalled += text.is_answer && recalled;
    to.cached += made.used.cached_tokens;
    to.replayed += made.used.replayed_rows;
    to.encoder_rows += made.used.encoder_rows;
    to.decoder_rows += made.used.decoder_rows;
  }

  const options& chosen_;
  const stage::model_source& source_;
  const kernels::backend& backend_;
};

std::string recall_of(const summary_line& line) {
  return line.answers == 0 ? "-" : fmt::format("{}/{}", line.recalled, line.answers);
}

void print_table(const std::vector<summary_line>& lines) {
  fmt::print("{:<9}{:>5}{:>9}{:>10}{:>10}{:>10}{:>12}{:>12}{:>8}{:>9}\n", "mode", "hit", "cached",
             "replayed", "encoder", "decoder", "rel. RMS", "KL", "top-1", "recall");
  for (const summary_line& line : lines)
    fmt::print("{:<9}{:>5.2f}{:>9.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>12.3e}{:>12.3e}{:>8.4f}{:>9}\n",
               to_string(line.mode), line.hit, line.mean(line.cached), line.mean(line.replayed),
               line.mean(line.encoder_rows), line.mean(line.decoder_rows),
               line.distance.relative_rms(), line.distance.mean_kl(),
               line.distance.top1_agreement(), recall_of(line));
}

nlohmann::ordered_json json_of(const summary_line& line) {
  return {{"mode", std::string(to_string(line.mode))},
          {"hit", line.hit},
          {"texts", line.texts},
          {"rows", line.distance.rows()},
          {"cached_tokens", line.mean(line.cached)},
          {"replayed_rows", line.mean(line.replayed)},
          {"encoder_rows", line.mean(line.encoder_rows)},
          {"decoder_rows", line.mean(line.decoder_rows)},
          {"relative_rms", line.distance.relative_rms()},
          {"kl", line.distance.mean_kl()},
          {"top1_agreement", line.distance.top1_agreement()},
          {"answers", line.answers},
          {"recalled", line.recalled}};
}

void print(const std::vector<summary_line>& lines, const std::string& format) {
  if (format == "table") return print_table(lines);
  if (format == "json") {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const summary_line& line : lines) all.push_back(json_of(line));
    return fmt::print("{}\n", all.dump());
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const nlohmann::ordered_json line = json_of(lines[i]);
    std::string names, values;
    for (const auto& [name, value] : line.items()) {
      names += (names.empty() ? "" : ",") + name;
      values += (values.empty() ? "" : ",") +
                (value.is_string() ? value.get<std::string>() : value.dump());
    }
    if (i == 0) fmt::print("{}\n", names);
    fmt::print("{}\n", values);
  }
}

result<void> run(const options& chosen) {
  const auto backend = kernels::make_backend("cpu", {chosen.threads});
  if (!backend)
    return fail(errc::refused, "the cpu backend needs a processor with AVX2, FMA and F16C");
  const auto source = stage::model_source::open(chosen.model);
  if (!source) return fail(source.error());
  const auto tokenizer = text::tokenizer::load(chosen.model / "tokenizer.json");
  if (!tokenizer) return fail(tokenizer.error());
  const auto texts = read_eval_texts(chosen.texts, *tokenizer, chosen.following);
  if (!texts) return fail(texts.error());
  const auto lines = evaluation(chosen, **source, *backend).run(*texts);
  if (!lines) return fail(lines.error());
  print(*lines, chosen.format);
  return {};
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  CLI::App* eval = app.add_subcommand("eval", "Compare ways to run a model on given texts");
  eval->require_subcommand(1);
  CLI::App* command = eval->add_subcommand(
      "replay", "Distance from a run of all rows, by prefill mode and by how much a prefix has");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("-m,--model", chosen->model, "Checkpoint folder")->required();
  command
      ->add_option("--texts", chosen->texts,
                   "File with one {\"text\": TEXT} or {\"text\": TEXT, \"answer\": TEXT} a line")
      ->required();
  command
      ->add_option("--modes", chosen->modes,
                   "Modes, separated by commas (default: exact,bounded,halo)")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(session::prefill_mode_names),
                                                     std::end(session::prefill_mode_names))));
  command
      ->add_option("--hits", chosen->hits,
                   "Shares of a prompt that a prefix has, beside none, separated by commas "
                   "(default: 0.25,0.5,0.75,1)")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--following", chosen->following,
                   "Tokens of a text without answer that follow its prompt (default: 16)")
      ->check(CLI::Range(1U, 65536U));
  command->add_option("--rows-per-step", chosen->rows_per_step, "Rows of a step (default: 128)")
      ->check(CLI::Range(1U, 65536U));
  command->add_option("--threads", chosen->threads, "Threads that compute")
      ->check(CLI::Range(1U, 256U));
  command->add_option("--format", chosen->format, "table, csv or json (default: table)")
      ->check(CLI::IsMember({"table", "csv", "json"}));
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
