// The registry of this program (kernels/registry/registry.hpp): CUDA device 0 by the module of this
// build, or nothing, and then no case of tests/numeric/kernels runs. One case says which.
#include "kernels/registry/registry.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/registry/cuda_devices.hpp"

namespace cedar::kernels {

std::vector<std::string_view> backend_names() {
  if (!usable_cuda_device(0, CEDAR_CUDA_MODULE)) return {};
  return {"cuda"};
}

std::unique_ptr<backend> make_backend(std::string_view, const backend_options&) {
  auto made = make_cuda_backend(0, CEDAR_CUDA_MODULE);
  return made ? *std::move(made) : nullptr;
}

}  // namespace cedar::kernels

BOOST_AUTO_TEST_SUITE(cuda_device)

BOOST_AUTO_TEST_CASE(is_there_or_the_reason_is_known) {
  const auto device = cedar::kernels::usable_cuda_device(0, CEDAR_CUDA_MODULE);
  const std::string where =
      device ? "on " + device->name : "nothing more runs: " + device.error().message;
  BOOST_TEST_MESSAGE(where);
  BOOST_TEST((device.has_value() || !device.error().message.empty()));
}

BOOST_AUTO_TEST_SUITE_END()
