#include "tests/golden/runtime/stage/ends_trace.hpp"

#include <algorithm>

#include "runtime/model/hyper_connection.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/row_layout.hpp"
#include "tests/support/golden_images.hpp"

namespace cedar::test {

using kernels::bf16;

namespace {

constexpr double image_rows_bound = 0.0625;

flow::step_table table_of_call(const traced_call& at, std::uint64_t step) {
  flow::step_table table;
  table.step = step_id{step};
  table.tokens = at.tokens;
  table.spans = {{request_id{1}, at.first, at.count, 0}};
  table.want_logits = true;
  return table;
}

}  // namespace

ends_trace::ends_trace(const std::string& checkpoint, const kernels::backend& backend)
    : backend_(backend),
      source_(unwrap(
          stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/" + checkpoint))),
      trace_(trace_path(checkpoint)),
      prompt_(traced_prompt_path(checkpoint)),
      calls_(traced_calls(trace_)) {}

std::set<std::string> ends_trace::check_embedding() const {
  const model::model_config& config = source_->config();
  const auto embedding = unwrap(source_->make_embedding());
  std::unique_ptr<stage::vision_stage> vision;
  if (config.vision.layers > 0) {
    vision = unwrap(source_->make_vision(backend_));
    for (flow::prompt_image& image : image_prompt_of(prompt_, config).images)
      if (const auto added = vision->add({request_id{1}, std::move(image)}); !added)
        throw std::runtime_error(added.error().message);
  }
  std::set<std::string> compared;
  for (const traced_call& at : calls_) {
    const flow::step_table table = table_of_call(at, 1);
    kernels::matrix_buffer<bf16> images;
    if (vision) images = unwrap(vision->run(table));
    const auto block = unwrap(embedding.run(table, std::as_const(images).view()));
    const auto rows = unwrap(stage::view_planes(block, config)).streams;
    const auto recorded = trace_.matrix<bf16>(at.prefix + "embed");
    const auto of_image = model::image_flags(config, at.tokens);
    for (std::size_t row = 0; row < at.count; ++row) {
      const std::string where = at.prefix + "embed, row " + std::to_string(row);
      if (of_image[row] == 0)
        check_equal(where, rows.row(row), recorded.row(row));
      else
        check_absolute(where, widened(rows.row(row)), widened(recorded.row(row)), image_rows_bound);
    }
    compared.insert(at.prefix + "embed");
  }
  return compared;
}

std::set<std::string> ends_trace::check_first_streams() const {
  std::set<std::string> compared;
  for (const traced_call& at : calls_) {
    const auto embedded = trace_.matrix<bf16>(at.prefix + "embed");
    check_streams(embedded, at.layer(0), compared);
    if (at.first == 0) continue;
    std::vector<token_id> tokens(source_->config().dspark.block_size,
                                 source_->config().dspark.noise_token);
    tokens.front() = static_cast<token_id>(trace_.integers(at.prefix + "dspark.tokens").front());
    const auto count = static_cast<std::uint32_t>(tokens.size());
    const auto block = unwrap(
        unwrap(source_->make_embedding()).run(table_of_call({at.prefix, 0, count, tokens}, 1)));
    check_streams(unwrap(stage::view_planes(block, source_->config())).streams, at.prefix + "D0.",
                  compared);
  }
  return compared;
}

void ends_trace::check_streams(kernels::matrix_view<const bf16> embedded, const std::string& prefix,
                               std::set<std::string>& compared) const {
  kernels::arena scratch;
  const model::residual begun = model::start_streams(scratch, source_->config(), embedded);
  check_equal(prefix + "in.stream",
              std::span(begun.streams.data, begun.streams.rows * begun.streams.cols),
              trace_.vector<bf16>(prefix + "in.stream"));
  check_equal(prefix + "in.pre_mix", std::span(begun.pre.data, begun.pre.rows * begun.pre.cols),
              trace_.vector<float>(prefix + "in.pre_mix"));
  compared.insert({prefix + "in.stream", prefix + "in.pre_mix"});
}

layer_deviation ends_trace::run_head() const {
  layer_deviation out;
  const model::taps nothing;
  const model::rotary_frequencies no_rotary;
  const auto head = unwrap(source_->make_head(backend_));
  for (const traced_call& at : calls_) {
    const std::string last = at.layer(source_->config().layers - 1);
    kernels::matrix_buffer<bf16> collapsed(at.count, source_->config().width);
    backend_.hc_collapse({collapsed.view(), trace_.matrix<bf16>(last + "out.stream"),
                          trace_.matrix<float>(last + "hc_ffn.pre")});
    keep_deviation(trace_, at.prefix + "final.collapsed", "final.collapsed", false,
                   as_tapped(std::as_const(collapsed).view()), out);
    run_logits(at, *head, out);
  }
  return out;
}

void ends_trace::run_logits(const traced_call& at, stage::head_stage& head,
                            layer_deviation& out) const {
  const model::model_config& config = source_->config();
  flow::step_table table = table_of_call(at, at.first + 1);
  table.taps = {"final.normed"};
  const auto recorded = trace_.vector<bf16>(at.prefix + "final.collapsed");
  kernels::buffer memory(recorded.size_bytes());
  std::ranges::copy(std::as_bytes(recorded), memory.data());
  const model::taps probes(table.taps, [&](const model::tapped_tensor& tensor) {
    keep_deviation(trace_, at.prefix + tensor.name, tensor.name, false, tensor, out);
  });
  const auto made = unwrap(head.run(
      table, stage::make_block(flow::row_kind::head_input, table, config, std::move(memory)),
      probes));
  const auto logits = flow::bytes_of(made.logits).last(config.vocabulary * sizeof(float));
  const kernels::matrix_view<const float> newest{reinterpret_cast<const float*>(logits.data()), 1,
                                                 config.vocabulary};
  const std::string name = at.prefix + (at.first == 0 ? "logits_last" : "logits");
  keep_deviation(trace_, name, "logits", false, as_tapped(newest), out);
}

}  // namespace cedar::test
