#include "tests/golden/listing/recordings.hpp"

namespace cedar::test {

namespace {

constexpr const char* prompts = "tests/golden/runtime/local/prompts_test.cpp";
constexpr const char* replay = "tests/golden/runtime/local/golden_run.cpp";
constexpr const char* drafts = "tests/golden/runtime/local/drafts_test.cpp";
constexpr const char* handover = "tests/golden/runtime/stage/layer_handover.cpp";
constexpr const char* coverage = "tests/golden/runtime/stage/coverage_test.cpp";
constexpr const char* tower = "tests/golden/runtime/vision/tower_test.cpp";
constexpr const char* attention = "tests/golden/ops/attention_test.cpp";
constexpr const char* formats = "tests/golden/ops/formats_test.cpp";
constexpr const char* linear = "tests/golden/ops/linear_test.cpp";
constexpr const char* moe = "tests/golden/ops/moe_test.cpp";
constexpr const char* selection = "tests/golden/ops/selection_test.cpp";
constexpr const char* streams = "tests/golden/ops/streams_test.cpp";
constexpr const char* activations = "tests/golden/ops/vision_test.cpp";
constexpr const char* hash = "tests/unit/runtime/model/engram/engram_hash.cpp";
constexpr const char* token_map = "tests/unit/runtime/text/engram_token_map.cpp";

constexpr const char* nobody = "";
constexpr const char* given = "what the run is given";
constexpr const char* noise = "how far other summation orders are: bounds are derived from it";
constexpr const char* derived = "follows from recorded logits, which are compared";

}  // namespace

const std::vector<recording>& recordings() {
  static const std::vector<recording> all{
      // Traces: at run time, tensor by tensor.
      {"tiny-*/golden/trace-*", "*", coverage, "every_tensor_of_a_trace_is_compared"},

      // Prompts of the random checkpoints.
      {"tiny-*/golden/[pv]*", "tokens", nobody, given},
      {"tiny-*/golden/[pv]*", "prefill.logits", prompts, "prefill.logits"},
      {"tiny-*/golden/[pv]*", "prefill.argmax", prompts, "prefill.argmax"},
      {"tiny-*/golden/[pv]*", "prefill.position", prompts, "prefill.position"},
      {"tiny-*/golden/[pv]*", "decode.logits", prompts, "decode.logits"},
      {"tiny-*/golden/[pv]*", "decode.tokens", nobody, given},
      {"tiny-*/golden/[pv]*", "decode.top2_gap", nobody, derived},
      {"tiny-*/golden/prompt-*", "decode_shared_slot.logits", nobody,
       "index keys of another layer, which cedar does not use (README there, section 2.2)"},
      {"tiny-*/golden/[pv]*", "dspark.tokens", drafts, "dspark.tokens"},
      {"tiny-*/golden/[pv]*", "dspark.confidence", drafts, "dspark.confidence"},
      {"tiny-*/golden/prompt-*", "dspark.logits", drafts, "dspark.logits"},
      {"tiny-*/golden/[pv]*", "sel.topk.L*", replay, "sel.topk.L"},
      {"tiny-*/golden/[pv]*", "sel.experts.L*", replay, "sel.experts.L"},
      {"tiny-*/golden/[pv]*", "sel.*_margin.L*", nobody, noise},
      {"tiny-*/golden/[pv]*", "sel.topk_score_std.L*", nobody, noise},
      {"tiny-*/golden/[pv]*", "spread.*", nobody, noise},
      {"tiny-*/golden/prompt-*", "bounded.prefill.logits", prompts, "prefill.logits"},
      {"tiny-*/golden/prompt-*", "bounded.decode.logits", prompts, "decode.logits"},
      {"tiny-*/golden/prompt-*", "bounded.decode.tokens", nobody, given},
      {"tiny-*/golden/prompt-*", "bounded.sel.topk.L*", replay, "sel.topk.L"},
      {"tiny-*/golden/prompt-*", "bounded.sel.experts.L*", replay, "sel.experts.L"},
      {"tiny-*/golden/prompt-*", "bounded.sel.*_margin.L*", nobody, noise},
      {"tiny-*/golden/prompt-*", "bounded.sel.topk_score_std.L*", nobody, noise},
      {"tiny-*/golden/prompt-*", "bounded.spread.*", nobody, noise},
      {"tiny-*/golden/prompt-0100", "h20.stream", handover, "h20.stream"},
      {"tiny-*/golden/prompt-0100", "h20.pre_mix", handover, "h20.pre_mix"},
      {"tiny-*/golden/prompt-0100", "h20.attn_in", handover, "h20.attn_in"},
      {"tiny-*/golden/prompt-0100", "h20.global_kv", handover, "h20.global_kv"},
      {"tiny-*/golden/prompt-0100", "h20.index_k", handover, "h20.index_k"},

      // Images.
      {"tiny-vision/golden/vl-*", "token_types", tower, "token_types"},
      {"tiny-vision/golden/vl-*", "image?.rgb", tower, "rgb"},
      {"tiny-vision/golden/vl-*", "image?.patches", tower, "patches"},
      {"tiny-vision/golden/vl-*", "image?.grid", tower, "grid"},
      {"tiny-vision/golden/vl-*", "image?.start", tower, "start"},
      {"tiny-vision/golden/vl-*", "image?.encoder", tower, "encoder"},
      {"tiny-vision/golden/vl-*", "image?.aligned", tower, "aligned"},

      // The trained checkpoint.
      {"cedar-tiny/*", "tokens", nobody, given},
      {"cedar-tiny/*", "prefill.logits", prompts, "prefill.logits"},
      {"cedar-tiny/*", "prefill.position", prompts, "prefill.position"},
      {"cedar-tiny/*", "prefill.argmax", prompts, "prefill.argmax"},
      {"cedar-tiny/*", "prefill.nll", prompts, "prefill.nll"},
      {"cedar-tiny/*", "decode.logits", prompts, "decode.logits"},
      {"cedar-tiny/*", "decode.tokens", nobody, given},
      {"cedar-tiny/*", "decode.top2_gap", nobody, derived},
      {"cedar-tiny/*", "dspark.tokens", drafts, "dspark.tokens"},
      {"cedar-tiny/*", "dspark.confidence", drafts, "dspark.confidence"},
      {"cedar-tiny/*", "spread.*", nobody, noise},

      // Operations: by file.
      {"ops/formats", "*", formats, "ops/formats"},
      {"ops/act_quant_fp8", "*", formats, "act_quant_fp8"},
      {"ops/act_quant_fp4_e8m0_block32", "*", formats, "act_quant_fp4_e8m0_block32"},
      {"ops/act_quant_fp4_e4m3_block16", "*", formats, "act_quant_fp4_e4m3_block16"},
      {"ops/gemm", "*", linear, "ops/gemm"},
      {"ops/rms_norm", "*", linear, "ops/rms_norm"},
      {"ops/rope", "*", linear, "ops/rope"},
      {"ops/hyper_connection", "*", streams, "ops/hyper_connection"},
      {"ops/engram_gate", "*", streams, "ops/engram_gate"},
      {"ops/sparse_attention", "*", attention, "ops/sparse_attention"},
      {"ops/compressor", "*", attention, "ops/compressor"},
      {"ops/indexer", "score.*", attention, "ops/indexer"},
      {"ops/indexer", "select.*", selection, "ops/indexer"},
      {"ops/gate", "*", moe, "ops/gate"},
      {"ops/swiglu", "*", moe, "ops/swiglu"},
      {"ops/engram_hash", "token_map", token_map, "token_map"},
      {"ops/engram_hash", "*-*.*", hash, "ops/engram_hash"},
      {"ops/engram_hash", "generator.*", hash, "generator."},
      {"ops/vision_ops", "unfold.*", tower, "unfold."},
      {"ops/vision_ops", "rope2d.*", activations, "rope2d."},
      {"ops/vision_ops", "gelu.*", activations, "gelu."},
      {"ops/vision_ops", "silu.*", activations, "silu."},
  };
  return all;
}

}  // namespace cedar::test
