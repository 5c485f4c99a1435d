// Goal: tiles in shared memory are the source's bytes, with zeros beyond it. Method: every format,
// aligned and not, at the edges of a matrix.
#include "kernels/cuda/device/linear_tiles.cuh"

#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

namespace {

using namespace cedar::kernels;
using namespace cedar::kernels::cuda;

constexpr unsigned tile_rows = 16;

template <auto Format>
CEDAR_KERNEL(32)
void copy_tile(global_rows<const std::uint8_t> from, unsigned row, unsigned column, unsigned end,
               std::uint8_t* to) {
  dynamic_shared shared;
  const auto tile = shared.take<std::uint8_t>(tile_rows * chunk_pitch<Format>, "tile");
  bring_tile<Format, tile_rows>(tile, {from, row, column, end}, lane_index(), warp_threads);
  commit_copies();
  wait_copies<0>();
  sync_warp();
  for (unsigned i = lane_index(); i < tile_rows * chunk_bytes<Format>; i += warp_threads)
    to[i] = tile.load(i / chunk_bytes<Format> * chunk_pitch<Format> + i % chunk_bytes<Format>);
}

/// A matrix of 20 rows; the tile begins at `row`, `column` and ends at column `end`.
template <auto Format>
void check_tile(unsigned columns, std::size_t offset, unsigned row, unsigned column, unsigned end) {
  const std::size_t bytes = bytes_of_columns(Format, columns), stride = bytes + offset;
  std::mt19937 random(columns);
  std::vector<std::uint8_t> memory(20 * stride + offset);
  for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(1 + random() % 255);
  const global_rows<const std::uint8_t> from{memory.data() + offset, 20, bytes, stride};
  std::vector<std::uint8_t> to(tile_rows * chunk_bytes<Format>);
  launch({"copy_tile", {}, 32, shared_bytes_of<std::uint8_t>(tile_rows * chunk_pitch<Format>)}, {},
         copy_tile<Format>, from, row, column, end, to.data());
  for (unsigned i = 0; i < to.size(); ++i) {
    const std::size_t y = row + i / chunk_bytes<Format>;
    const std::size_t x = bytes_of_columns(Format, column) + i % chunk_bytes<Format>;
    const bool inside = y < 20 && x < bytes_of_columns(Format, end);
    BOOST_REQUIRE_EQUAL(to[i], inside ? from.data[y * stride + x] : 0);
  }
}

template <auto Format>
void check_tiles() {
  for (const std::size_t offset : {0U, 16U, 2U, 5U}) {
    check_tile<Format>(160, offset, 0, 64, 128);
    check_tile<Format>(160, offset, 10, 128, 160);
    check_tile<Format>(96, offset, 16, 0, 32);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_linear_tiles)

BOOST_AUTO_TEST_CASE(tiles_are_the_source_and_zeros_beyond) {
  check_tiles<weight_format::e4m3>();
  check_tiles<weight_format::e2m1>();
  check_tiles<weight_format::bf16>();
  check_tiles<row_format::e4m3>();
  check_tiles<row_format::bf16>();
  check_tile<row_format::bf16>(37, 0, 0, 0, 37);  // an odd width ends within a copy
  check_tile<row_format::bf16>(37, 2, 0, 0, 37);
}

BOOST_AUTO_TEST_SUITE_END()
