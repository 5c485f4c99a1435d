#include "tools/cedar/watched_model.hpp"

#include "kernels/registry/registry.hpp"

namespace cedar::tools {

result<watched_model> watched_model::open(const std::filesystem::path& model, std::uint32_t threads,
                                          const local::engine_options& options) {
  watched_model out;
  out.backend = kernels::make_backend("cpu", {threads});
  if (!out.backend)
    return fail(errc::refused, "the cpu backend needs a processor with AVX2, FMA and F16C");
  out.watched = std::make_unique<timed_backend>(*out.backend);
  auto source = stage::model_source::open(model);
  if (!source) return fail(source.error());
  out.source = std::move(*source);
  auto plain = local::local_engine::open(*out.source, *out.backend, options);
  if (!plain) return fail(plain.error());
  out.plain = std::move(*plain);
  auto counted = local::local_engine::open(*out.source, *out.watched, options);
  if (!counted) return fail(counted.error());
  out.counted = std::move(*counted);
  return out;
}

}  // namespace cedar::tools
