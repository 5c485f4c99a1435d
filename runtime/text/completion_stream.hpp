// An answer of the model taken apart while it is made: reasoning, content and tool calls as they
// become certain.
//
// 1. What push() and finish() return does not depend on where the text was cut: deltas of one kind
//    concatenate to the same texts.
// 2. No delta begins or ends inside a control string or inside a character; markup of calls is in
//    no delta.
// 3. For an answer that parse_completion() accepts, the result is the same. Others are made the
//    best of: missing or other blanks between the tags, calls that begin inside the reasoning,
//    repeated parameters (the first counts), values that are not the JSON they claim to be
//    (strings), an end anywhere. Control strings that have no business where they are stay text.
// 4. Arguments of a call concatenate to a JSON object, however the answer ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/chat.hpp"
#include "runtime/text/utf8.hpp"

namespace cedar::text {

enum class delta_kind : std::uint8_t {
  reasoning,
  content,
  call_begin,  ///< name is set
  call_arguments,  ///< more of the JSON object
  call_end,
};

struct completion_delta {
  delta_kind kind = delta_kind::content;
  std::string text;  ///< reasoning, content, arguments: never empty
  std::uint32_t call = 0;  ///< call_*: counts the calls of the answer
  tool_name name;  ///< call_begin
};

/// One answer each.
class completion_stream {
 public:
  /// In mode thinking the prompt ended with <think>: the answer begins with reasoning.
  explicit completion_stream(chat_mode mode);

  /// More of the answer, with its control strings. Text after an end of sequence is ignored.
  std::vector<completion_delta> push(std::string_view text);
  /// What was held back, and the ends of what is open.
  std::vector<completion_delta> finish();
  /// After the end: true if it came inside the reasoning or inside a call.
  bool cut_off() const noexcept { return cut_off_; }

 private:
  enum class state : std::uint8_t {
    reasoning,
    content,
    calls,  ///< between the calls of a block
    call_head,  ///< in the name of a call
    call,  ///< between the parameters of a call
    parameter_head,
    string_value,
    json_value,
    ignored_value,
    ended,
  };

  /// One step; false if more text is needed.
  bool step();
  bool read_text();
  bool read_between();
  bool read_head();
  bool read_string_value();
  bool read_buffered_value();
  void emit_buffered_value(std::string_view value);

  void begin_call(std::string_view qualified);
  void begin_parameter(std::string_view head);
  void end_call();
  void end();
  void enter(state next);
  /// What is pending when the answer stops, without markup that has only begun.
  std::string take_rest();

  /// The earliest of `strings` in what is pending.
  struct match {
    std::size_t at;
    std::string_view string;  ///< empty: none
  };
  match find(std::initializer_list<std::string_view> strings);
  std::string take(std::size_t bytes);
  /// How much of what is pending cannot become part of a control string or of markup any more.
  std::size_t certain() const;

  void emit(delta_kind kind, std::string_view text);
  void emit_escaped(std::string_view text);

  state state_;
  utf8_assembler characters_;
  std::string pending_;
  std::size_t searched_ = 0;  ///< bytes of pending_ in which no complete string begins
  std::vector<completion_delta> deltas_;
  std::vector<std::string> keys_;  ///< of the open call
  std::uint32_t calls_ = 0;  ///< begun so far
  bool call_open_ = false;
  bool after_calls_ = false;  ///< blanks there are not content
  bool cut_off_ = false;
};

}  // namespace cedar::text
