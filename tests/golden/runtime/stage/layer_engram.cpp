#include <algorithm>

#include "runtime/model/engram.hpp"
#include "runtime/model/engram_hash.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/weight_loader.hpp"
#include "runtime/text/engram_token_map.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/golden/runtime/stage/layer_trace.hpp"

namespace cedar::test {

using kernels::bf16;

layer_deviation layer_trace::run_engram(std::uint32_t layer) const {
  layer_deviation out;
  const auto weights = unwrap(
      stage::load_layer(source_->checkpoint(), source_->config(), source_->schedule(), layer));
  if (!weights.engram) return out;
  const model::model_config& config = source_->config();
  for (const traced_call& at : calls_) {
    const std::string prefix = at.layer(layer);
    const auto fetched = trace_.matrix<bf16>(prefix + "engram.rows");
    const std::size_t rows = at.count * config.engram_columns();
    kernels::matrix_buffer<std::byte> packed(rows, model::engram_row_bytes(config));
    backend_.pack_entries({{fetched.data, rows, config.engram.head_dim},
                           packed.view(),
                           kernels::entry_format::fp8_e8m0_32});
    const std::vector<std::string> wanted{"L*.engram.kv", "L*.engram.gate", "L*.engram.rows"};
    const model::taps probes(wanted, [&](const model::tapped_tensor& tensor) {
      compare(layer, at, tensor.name.substr(tensor.name.find('.') + 1), tensor, out);
    });
    const std::vector<std::int32_t> positions(at.count);
    const std::vector<std::uint8_t> image_rows = model::image_flags(config, at.tokens);
    const auto rotary = model::make_rotary(config);
    kernels::arena scratch;
    const model::context c{backend_, config, rotary, scratch, probes, positions, image_rows};
    const auto before = trace_.matrix<bf16>(at.layer(layer - 1) + "out.stream");
    kernels::matrix_buffer<bf16> after(at.count, before.cols);
    model::apply_engram(c, layer, *weights.engram,
                        {packed.data(), at.count, config.engram_columns() * packed.cols()}, before,
                        after.view());
    compare(layer, at, "in.stream", as_tapped(std::as_const(after).view()), out);
  }
  check_addresses(layer, out);
  return out;
}

void layer_trace::check_addresses(std::uint32_t layer, layer_deviation& out) const {
  const stage::engram_stage addresses = unwrap(source_->make_engram());
  const model::model_config& config = source_->config();
  std::vector<token_id> before;
  for (const traced_call& at : calls_) {
    flow::step_table table;
    table.spans = {{request_id{1}, at.first, at.count, 0}};
    table.tokens = at.tokens;
    const std::size_t lookback = std::min<std::size_t>(at.first, config.engram_lookback());
    table.lookback.assign(before.end() - static_cast<std::ptrdiff_t>(lookback), before.end());
    before.insert(before.end(), at.tokens.begin(), at.tokens.end());
    compare_addresses(layer, at, table, out);
    for (const flow::row_block& block : unwrap(addresses.run(table))) {
      if (block.layer != layer) continue;
      const auto expected = trace_.vector<bf16>(at.layer(layer) + "engram.rows");
      const std::size_t rows = at.count * config.engram_columns();
      const std::size_t bytes = model::engram_row_bytes(config);
      kernels::matrix_buffer<bf16> fetched(rows, config.engram.head_dim);
      backend_.unpack_entries({{flow::bytes_of(block.payload).data(), rows, bytes},
                               fetched.view(),
                               kernels::entry_format::fp8_e8m0_32});
      if (!std::ranges::equal(fetched.span(), expected)) ++out.wrong_choices;
      out.compared.insert(at.layer(layer) + "engram.rows");
    }
  }
}

/// The numbers of the rows, which the stage keeps to itself: by the functions that it calls.
void layer_trace::compare_addresses(std::uint32_t layer, const traced_call& at,
                                    const flow::step_table& table, layer_deviation& out) const {
  const model::model_config& config = source_->config();
  const auto tables = unwrap(model::make_engram_tables(config));
  const auto tokenizer = unwrap(text::tokenizer::load(source_->folder() / "tokenizer.json"));
  const auto token_map = unwrap(text::engram_token_map(
      tokenizer,
      {config.vocabulary, config.engram.compressed_vocabulary, config.engram.pad_token}));
  const auto lookback_image = model::image_flags(config, table.lookback);
  const auto rows_image = model::image_flags(config, table.tokens);
  std::vector<std::int32_t> windows(std::size_t{at.count} * tables.max_ngram);
  model::engram_windows(tables, token_map,
                        {table.lookback, table.tokens, lookback_image, rows_image}, windows);
  const auto& module =
      *std::ranges::find(tables.modules, layer, &model::engram_module_tables::layer);
  std::vector<std::uint64_t> rows(std::size_t{at.count} * config.engram_columns());
  for (std::size_t row = 0; row < at.count; ++row)
    model::engram_addresses(
        module, std::span(windows).subspan(row * tables.max_ngram, tables.max_ngram),
        std::span(rows).subspan(row * config.engram_columns(), config.engram_columns()));
  const std::string recorded = at.layer(layer) + "engram.hash_ids";
  if (!std::ranges::equal(rows, trace_.integers(recorded), {},
                          [](std::uint64_t id) { return static_cast<std::int64_t>(id); }))
    ++out.wrong_choices;
  out.compared.insert(recorded);
}

}  // namespace cedar::test
