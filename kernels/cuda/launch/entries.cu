#include "kernels/cuda/device/entries.cuh"

#include "kernels/cuda/launch/cuda_backend.hpp"
#include "kernels/cuda/launch/internal/norms.hpp"
#include "kernels/cuda/launch/internal/parts.hpp"

namespace cedar::kernels::cuda {

namespace {

/// For a kernel with a thread for each group of entries.
launch_shape entry_shape(const char* kernel, std::size_t rows, const packed_format& of) {
  return parts_shape(kernel, rows, (of.width + of.group - 1) / of.group);
}

global_rows<std::uint8_t> writable_bytes(const matrix_view<std::byte>& view) {
  return {reinterpret_cast<std::uint8_t*>(view.data), view.rows, view.cols, view.stride};
}

}  // namespace

void cuda_backend::do_pack_entries(const pack_entries_arguments& arguments) const {
  const packed_format of = packed_format_of(arguments.format, arguments.x.cols);
  launch(entry_shape("pack", arguments.x.rows, of), stream_, pack, of, rows_of(arguments.x),
         writable_bytes(arguments.entries));
}

void cuda_backend::do_rms_norm_entries(const rms_norm_entries_arguments& arguments) const {
  const rms_norm_arguments& norm = arguments.norm;
  launch({"pack_normalised", {static_cast<unsigned>(norm.x.rows)}, sum_threads, sum_shared_bytes},
         stream_, pack_normalised, norm_problem_of(norm, {}),
         global_array<const std::int32_t>{arguments.positions.data(), arguments.positions.size()},
         global_array<const float>{arguments.frequencies.data(), arguments.frequencies.size()},
         packed_format_of(arguments.format, norm.x.cols), writable_bytes(arguments.entries));
}

void cuda_backend::do_unpack_entries(const unpack_entries_arguments& arguments) const {
  const packed_format of = packed_format_of(arguments.format, arguments.x.cols);
  launch(entry_shape("unpack", arguments.x.rows, of), stream_, unpack, of,
         bytes_of(arguments.entries), rows_of(arguments.x));
}

void cuda_backend::do_requantize_entries(const requantize_entries_arguments& arguments) const {
  const packed_format of = packed_format_of(entry_format::fp8_e8m0_32, arguments.codes.cols);
  launch(entry_shape("requantise", arguments.codes.rows, of), stream_, requantise, of,
         bytes_of(arguments.entries), rows_of(arguments.codes), rows_of(arguments.scales));
}

}  // namespace cedar::kernels::cuda
