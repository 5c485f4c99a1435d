#include "runtime/text/stream_decoder.hpp"

namespace cedar::text {

result<std::string> stream_decoder::push(token_id token) {
  const result<std::string_view> bytes = vocabulary_->token_bytes(token);
  if (!bytes) return fail(bytes.error());
  if (options_.skip_special && vocabulary_->hidden(token)) return std::string();
  return assembler_.push(*bytes);
}

}  // namespace cedar::text
