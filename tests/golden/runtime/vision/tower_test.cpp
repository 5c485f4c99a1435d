// Goal: pixels to embeddings as the released reference code computes them. Method: the images of
// tiny-vision (tests/data/golden/README.md, sections 4 and 5): every step from its recorded input,
// by the bounds of section 3 B and at most 2 % of the elements changed; whole, within the
// recommended 0.0625. Deliberate mistakes must break them.
#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <ostream>
#include <set>
#include <utility>

#include "runtime/image/patches.hpp"
#include "runtime/vision/tower.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/golden.hpp"

namespace data = boost::unit_test::data;
using namespace cedar;
using namespace cedar::test;
using kernels::bf16;
using kernels::matrix_buffer;

namespace {

constexpr double relative_rms_bound = 2e-3;
constexpr double ulps_bound = 2;
constexpr double changed_bound = 0.02;
constexpr double whole_bound = 0.0625;

struct recorded_image {
  std::string file;
  int number = 0;

  friend std::ostream& operator<<(std::ostream& out, const recorded_image& image) {
    return out << image.file << " image " << image.number;
  }
};
const std::vector<recorded_image> images{
    {"vl-one-image", 0}, {"vl-two-images", 0}, {"vl-two-images", 1}};

struct opened {
  model::model_config config;
  store::checkpoint checkpoint;
  vision::tower_weights weights;

  opened()
      : config(model::parse_config(folder() + "/config.json").value()),
        checkpoint(store::checkpoint::open(folder()).value()),
        weights(vision::load_tower(checkpoint, config).value()) {}

  static std::string folder() { return std::string(CEDAR_TEST_DATA) + "/golden/tiny-vision"; }
};

image::rgb_image pixels(const golden_file& file, const std::string& prefix) {
  const auto shape = file.shape(prefix + "rgb");
  image::rgb_image out(static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[0]));
  const auto values = file.vector<std::uint8_t>(prefix + "rgb");
  out.pixels.assign(values.begin(), values.end());
  return out;
}

/// The larger of: relative RMS, largest error, share of changed elements, in units of their bounds.
double deviation(kernels::matrix_view<const bf16> actual,
                 kernels::matrix_view<const bf16> expected) {
  BOOST_REQUIRE_EQUAL(actual.rows * actual.cols, expected.rows * expected.cols);
  std::vector<float> mine, theirs;
  for (std::size_t row = 0; row < actual.rows; ++row)
    for (const bf16 value : actual.row(row)) mine.push_back(kernels::to_float(value));
  for (std::size_t row = 0; row < expected.rows; ++row)
    for (const bf16 value : expected.row(row)) theirs.push_back(kernels::to_float(value));
  double largest = 0;
  double worst = 0;
  std::size_t changed = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(theirs[i])));
    worst =
        std::max(worst, std::abs(static_cast<double>(mine[i]) - static_cast<double>(theirs[i])));
    changed += mine[i] != theirs[i] ? 1U : 0U;
  }
  return std::max(
      {relative_rms(mine, theirs) / relative_rms_bound, worst / bf16_ulp(largest) / ulps_bound,
       static_cast<double>(changed) / (changed_bound * static_cast<double>(mine.size()))});
}

void check(const std::string& what, double value) {
  BOOST_TEST(value <= 1.0, what << " is " << value << " times beyond its bounds");
  BOOST_TEST_MESSAGE(what << ": " << value << " of its bounds");
}

/// Every step of the traced image from its recorded input.
std::vector<std::pair<std::string, double>> steps(const kernels::backend& backend,
                                                  const vision::tower_weights& weights,
                                                  const model::vision_config& config,
                                                  vision::patch_grid grid) {
  const golden_file image("tiny-vision/golden/vl-one-image.safetensors");
  const golden_file trace("tiny-vision/golden/trace-vl-one-image.safetensors");
  const auto recorded = [&](const std::string& name) {
    return trace.matrix<bf16>("prefill.vision." + name);
  };
  std::vector<std::pair<std::string, double>> out;
  kernels::arena scratch;
  const std::vector<std::string> wanted{"vision.patch_embed"};
  const model::taps probes(wanted, [&](const model::tapped_tensor& tensor) {
    const auto* values = reinterpret_cast<const bf16*>(tensor.bytes.data());
    const auto expected = recorded("patch_embed");
    out.emplace_back("patch_embed", deviation({values, expected.rows, expected.cols}, expected));
  });
  const vision::context c{backend, config, scratch, probes};
  matrix_buffer<bf16> features(grid.count(), config.width);
  vision::encode(c, weights.encoder, grid, image.matrix<bf16>("image0.patches"), features.view());
  for (const std::size_t block : {0U, 1U}) {
    const auto before = block == 0 ? recorded("patch_embed") : recorded("block0");
    matrix_buffer<bf16> x(before.rows, before.cols);
    std::copy_n(before.data, x.span().size(), x.data());
    vision::apply_block(c, weights.encoder.blocks[block], grid, x.view());
    const std::string name = "block" + std::to_string(block);
    out.emplace_back(name, deviation(x.view(), recorded(name)));
  }
  const auto expected = recorded("aligned");
  matrix_buffer<bf16> aligned(expected.rows, expected.cols);
  vision::align(c, weights.aligner, grid, recorded("encoder"), aligned.view());
  out.emplace_back("aligned", deviation(aligned.view(), expected));
  return out;
}

struct mistake {
  std::string name;
  std::function<void(vision::tower_weights&, model::vision_config&, vision::patch_grid&)> make;
};

/// Those that weights, configuration and grid can express.
std::vector<mistake> mistakes() {
  static const std::vector<bf16> zeros(1024);
  using model::vision_config;
  using vision::patch_grid;
  using vision::tower_weights;
  return {
      {"rows and columns exchanged",
       [](tower_weights&, vision_config&, patch_grid& g) { std::swap(g.rows, g.columns); }},
      {"another base of the rotation",
       [](tower_weights&, vision_config& c, patch_grid&) { c.rope_theta = 1000; }},
      {"fewer heads", [](tower_weights&, vision_config& c, patch_grid&) { c.heads = 2; }},
      {"no bias of qkv",
       [](tower_weights& w, vision_config&, patch_grid&) {
         for (auto& block : w.encoder.blocks)
           block.wqkv.bias = std::span(zeros).first(block.wqkv.bias.size());
       }},
      {"no bias of the last projection",
       [](tower_weights& w, vision_config&, patch_grid&) { w.aligner.w2.bias = {}; }},
      {"gate and up exchanged",
       [](tower_weights& w, vision_config& c, patch_grid&) {
         static std::vector<bf16> exchanged;
         auto& w1 = w.encoder.blocks[0].w1.weight;
         const std::size_t half = std::size_t{c.inner} * w1.cols;
         exchanged.assign(w1.data + half, w1.data + 2 * half);
         exchanged.insert(exchanged.end(), w1.data, w1.data + half);
         w1.data = exchanged.data();
       }},
      {"norms of a block exchanged",
       [](tower_weights& w, vision_config&, patch_grid&) {
         std::swap(w.encoder.blocks[1].norm1, w.encoder.blocks[1].norm2);
       }},
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_vision)

BOOST_DATA_TEST_CASE(pixels_become_the_recorded_patches, data::make(images), of) {
  const golden_file file("tiny-vision/golden/" + of.file + ".safetensors");
  const std::string prefix = "image" + std::to_string(of.number) + ".";
  const image::rgb_image picture = pixels(file, prefix);
  const auto expected = file.matrix<bf16>(prefix + "patches");
  matrix_buffer<bf16> patches(expected.rows, expected.cols);
  image::write_patches(picture, 14, patches.view());
  check_equal("patches", patches.span(), file.vector<bf16>(prefix + "patches"));
  const opened model;
  const image::image_plan plan =
      image::plan_image(picture.width, picture.height, vision::rules_of(model.config.vision));
  const std::vector<std::int64_t> grid{plan.patch_rows, plan.patch_columns, plan.token_rows,
                                       plan.token_columns};
  check_equal("grid", grid, file.integers(prefix + "grid"));
  const auto types = file.integers("token_types");
  const auto start = static_cast<std::size_t>(file.integers(prefix + "start").front());
  std::vector<std::int64_t> span;
  for (const image::span_token token : image::span_layout(plan))
    span.push_back(static_cast<std::int64_t>(token));
  check_equal("token types", span, std::span(types).subspan(start, span.size()));
}

BOOST_DATA_TEST_CASE(cells_are_gathered_channel_by_channel,
                     data::make({"3x3.r3", "4x5.r3", "5x3.r2"}), name) {
  const golden_file golden("ops/vision_ops.safetensors");
  const std::string text = name;
  const vision::patch_grid grid{static_cast<std::uint32_t>(text[0] - '0'),
                                static_cast<std::uint32_t>(text[2] - '0')};
  const auto downsample = static_cast<std::uint32_t>(text[5] - '0');
  const auto in = golden.floats("unfold." + text + ".in");
  const auto out = golden.floats("unfold." + text + ".out");
  matrix_buffer<bf16> features(grid.count(), in.size() / grid.count());
  for (std::size_t i = 0; i < in.size(); ++i) {
    features.data()[i] = kernels::to_bf16(in[i]);
    BOOST_REQUIRE_EQUAL(kernels::to_float(features.data()[i]), in[i]);
  }
  const std::size_t width = features.cols() * downsample * downsample;
  matrix_buffer<bf16> cells(out.size() / width, width);
  vision::gather_cells(grid, downsample, features.view(), cells.view());
  check_equal("cells", widened(cells.span()), out);
}

BOOST_DATA_TEST_CASE(every_step_matches, backends(), name) {
  const auto backend = backend_of(name);
  const opened model;
  for (const auto& [step, value] :
       steps(*backend, model.weights, model.config.vision, vision::patch_grid{7, 8}))
    check(step, value);
}

// The encoder's output is that of the prompt's file, which whole_images_match compares.
BOOST_AUTO_TEST_CASE(every_recorded_step_is_compared) {
  const golden_file image("tiny-vision/golden/vl-one-image.safetensors");
  const golden_file trace("tiny-vision/golden/trace-vl-one-image.safetensors");
  const std::string prefix = "prefill.vision.";
  BOOST_TEST((std::ranges::equal(trace.bytes(prefix + "encoder"), image.bytes("image0.encoder"))),
             "the trace has another encoder output than the prompt");
  const opened model;
  const auto backend = kernels::make_backend(kernels::backend_names().front());
  std::set<std::string> compared{prefix + "encoder"};
  for (const auto& [step, value] :
       steps(*backend, model.weights, model.config.vision, vision::patch_grid{7, 8}))
    compared.insert(prefix + step);
  for (const std::string& name : trace.names())
    if (name.starts_with(prefix)) BOOST_TEST(compared.contains(name), "nothing compares " << name);
}

BOOST_DATA_TEST_CASE(whole_images_match, backends() * data::make(images), name, of) {
  const auto backend = backend_of(name);
  const opened model;
  const golden_file file("tiny-vision/golden/" + of.file + ".safetensors");
  const std::string prefix = "image" + std::to_string(of.number) + ".";
  const image::rgb_image picture = pixels(file, prefix);
  const image::image_plan plan =
      image::plan_image(picture.width, picture.height, vision::rules_of(model.config.vision));
  std::vector<float> encoder, aligned;
  const std::vector<std::string> wanted{"vision.encoder", "vision.aligned"};
  const model::taps probes(wanted, [&](const model::tapped_tensor& tensor) {
    const auto* values = reinterpret_cast<const bf16*>(tensor.bytes.data());
    (tensor.name == "vision.encoder" ? encoder : aligned) =
        widened(std::span(values, tensor.bytes.size() / sizeof(bf16)));
  });
  auto tower = vision::tower::open(model.checkpoint, model.config, *backend).value();
  const auto span = tower.embed(plan, file.matrix<bf16>(prefix + "patches"), probes);
  BOOST_REQUIRE_MESSAGE(span, (span ? "" : span.error().message));
  check_absolute("encoder", encoder, file.floats(prefix + "encoder"), whole_bound);
  check_absolute("aligned", aligned, file.floats(prefix + "aligned"), whole_bound);
  BOOST_TEST_MESSAGE(of << " on " << name << ": encoder "
                        << relative_rms(encoder, file.floats(prefix + "encoder")) << ", aligned "
                        << relative_rms(aligned, file.floats(prefix + "aligned"))
                        << " relative RMS");
  check_relative_rms("aligned", aligned, file.floats(prefix + "aligned"), 5 * relative_rms_bound);
  std::size_t row = 0;
  std::size_t cell = 0;
  for (const image::span_token token : image::span_layout(plan)) {
    if (token == image::span_token::image) {
      const auto expected = std::span(aligned).subspan(cell++ * span->cols(), span->cols());
      check_equal("embedding", widened(span->view().row(row)), expected);
    }
    ++row;
  }
}

BOOST_AUTO_TEST_CASE(each_mistake_breaks_the_bounds) {
  const opened model;
  for (const auto& backend_name : kernels::backend_names()) {
    const auto backend = kernels::make_backend(backend_name);
    for (const mistake& one : mistakes()) {
      vision::tower_weights weights = model.weights;
      model::vision_config config = model.config.vision;
      vision::patch_grid grid{7, 8};
      one.make(weights, config, grid);
      double worst = 0;
      for (const auto& [step, value] : steps(*backend, weights, config, grid))
        worst = std::max(worst, value);
      BOOST_TEST(worst > 1.0, one.name << " goes unnoticed on " << backend_name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
