#include "tests/golden/runtime/stage/traced_calls.hpp"

namespace cedar::test {

namespace {

std::vector<token_id> ids_of(const golden_file& trace, const char* name) {
  std::vector<token_id> ids;
  for (const std::int64_t token : trace.integers(name)) ids.push_back(static_cast<token_id>(token));
  return ids;
}

std::string prompt_of(const std::string& checkpoint) {
  return checkpoint == "tiny-vision" ? "vl-one-image" : "0100";
}

}  // namespace

std::string trace_path(const std::string& checkpoint) {
  return checkpoint + "/golden/trace-" + prompt_of(checkpoint) + ".safetensors";
}

std::string traced_prompt_path(const std::string& checkpoint) {
  const std::string prompt = prompt_of(checkpoint);
  return checkpoint + "/golden/" + (prompt == "0100" ? "prompt-0100" : prompt) + ".safetensors";
}

std::vector<traced_call> traced_calls(const golden_file& trace) {
  traced_call prefill{"prefill.", 0, 0, ids_of(trace, "tokens")};
  prefill.count = static_cast<std::uint32_t>(prefill.tokens.size());
  std::vector<traced_call> out{prefill};
  for (const token_id token : ids_of(trace, "decode_tokens")) {
    const std::string prefix = "decode" + std::to_string(out.size() - 1) + ".";
    out.push_back({prefix, out.back().first + out.back().count, 1, {token}});
  }
  return out;
}

}  // namespace cedar::test
