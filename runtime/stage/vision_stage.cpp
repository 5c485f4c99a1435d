#include "runtime/stage/vision_stage.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "runtime/image/patches.hpp"
#include "runtime/model/image_tokens.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using kernels::bf16;
using kernels::matrix_buffer;

namespace {

std::string place_of(request_id request, std::uint32_t position) {
  return "request " + std::to_string(request.value) + ", position " + std::to_string(position);
}

}  // namespace

result<void> vision_stage::add(const flow::request_image& added) {
  const flow::prompt_image& image = added.image;
  const auto refused = [&](const std::string& why) {
    return fail(errc::invalid_argument,
                "image of " + place_of(added.request, image.position) + ": " + why);
  };
  const image::image_rules rules = vision::rules_of(config_.vision);
  const auto plan = image::plan_of_patches(image.patch_rows, image.patch_columns, rules);
  if (!plan || plan->span_tokens() != image.rows_count)
    return refused(std::to_string(image.patch_rows) + " x " + std::to_string(image.patch_columns) +
                   " patches in " + std::to_string(image.rows_count) +
                   " positions are none of the configuration's");
  image::rgb_image picture(plan->width, plan->height);
  const auto pixels = flow::bytes_of(image.pixels);
  if (pixels.size() != picture.pixels.size())
    return refused(std::to_string(pixels.size()) + " bytes of pixels instead of " +
                   std::to_string(picture.pixels.size()));
  std::ranges::transform(pixels, picture.pixels.begin(),
                         [](std::byte value) { return std::to_integer<std::uint8_t>(value); });
  matrix_buffer<bf16> patches(plan->patches(), std::size_t{3} * rules.patch * rules.patch);
  image::write_patches(picture, rules.patch, patches.view());
  auto rows = tower_.embed(*plan, patches.view());
  if (!rows) return fail(rows.error());
  if (!images_[added.request].emplace(image.position, std::move(*rows)).second)
    return refused("there is one already");
  return {};
}

template <class Visit>
void vision_stage::each_row(const flow::step_table& table, const Visit& visit) const {
  const std::vector<std::uint8_t> flags = model::image_flags(config_, table.tokens);
  auto flag = flags.begin();
  for (const flow::row_span& span : table.spans) {
    const auto known = images_.find(span.request);
    for (std::uint32_t i = 0; i < span.rows_count; ++i) {
      if (*flag++ == 0) continue;
      const std::uint32_t position = span.first_position + i;
      std::span<const bf16> row;
      if (known != images_.end())
        if (auto image = known->second.upper_bound(position); image != known->second.begin()) {
          const auto& [first, rows] = *std::prev(image);
          if (position - first < rows.rows()) row = rows.view().row(position - first);
        }
      if (!visit(span.request, position, row)) return;
    }
  }
}

bool vision_stage::covers(const flow::step_table& table) const {
  bool all = true;
  each_row(table, [&](request_id, std::uint32_t, std::span<const bf16> row) {
    return all = !row.empty();
  });
  return all;
}

result<matrix_buffer<bf16>> vision_stage::run(const flow::step_table& table) const {
  std::vector<std::span<const bf16>> rows;
  result<void> known;
  each_row(table, [&](request_id request, std::uint32_t position, std::span<const bf16> row) {
    rows.push_back(row);
    if (row.empty())
      known =
          fail(errc::mismatch, "step " + std::to_string(table.step.value) +
                                   ": no embedding of an image for " + place_of(request, position));
    return known.has_value();
  });
  if (!known) return fail(known.error());
  matrix_buffer<bf16> out(rows.size(), config_.width);
  for (std::size_t i = 0; i < rows.size(); ++i) std::ranges::copy(rows[i], out.view().row_data(i));
  return out;
}

result<std::optional<flow::row_block>> vision_stage::run_block(
    const flow::step_table& table) const {
  const auto rows = run(table);
  if (!rows) return fail(rows.error());
  if (rows->rows() == 0) return std::nullopt;
  const auto bytes = std::as_bytes(rows->span());
  kernels::buffer memory = kernels::buffer::uninitialized(bytes.size());
  std::ranges::copy(bytes, memory.data());
  return make_block(flow::row_kind::image_rows, table, config_, std::move(memory));
}

void vision_stage::apply(const flow::verdict& verdict) {
  for (const flow::commitment& one : verdict.commitments) {
    const auto known = images_.find(one.request);
    if (known == images_.end()) continue;
    std::erase_if(known->second, [&](const auto& image) {
      return one.finished || image.first + image.second.rows() <= one.committed;
    });
    if (known->second.empty()) images_.erase(known);
  }
}

std::size_t vision_stage::rows_held() const noexcept {
  std::size_t rows = 0;
  for (const auto& [request, images] : images_)
    for (const auto& [position, image] : images) rows += image.rows();
  return rows;
}

}  // namespace cedar::stage
