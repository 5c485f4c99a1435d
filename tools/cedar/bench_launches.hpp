// `cedar bench kernels --count`: kernels that a layer queues on a CUDA device.
//
// No device is needed: which operations a layer calls, the cpu backend shows, and how many kernels
// an operation is, kernels/plan/launches.hpp has, to which tests hold the device's backend.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"

namespace cedar::tools {

/// A kind of layer, between others, over so many rows of a step.
struct layer_launches {
  std::string kind;  ///< "reuse, ratio 2"
  std::uint32_t rows = 0;
  std::map<std::string, std::uint64_t> calls;  ///< by operation

  std::uint64_t kernels() const;
};

/// Every kind of layer of `config` without Engram, for every number of rows; kinds in the order of
/// their first layers. Errors: those of synthetic_layers.
result<std::vector<layer_launches>> count_launches(const model::model_config& config,
                                                   const kernels::backend& backend,
                                                   const std::vector<std::size_t>& rows);

/// A table of what count_launches() found, not nothing, with what is reported of a layer that
/// reuses elsewhere; and the operations of such a layer.
std::string launches_text(const std::vector<layer_launches>& all);

}  // namespace cedar::tools
