#include "tests/architecture/source_text.hpp"

#include <cctype>

namespace cedar::architecture {

namespace {

bool is_word_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Walks the text once and sorts every byte into code or comment; contents of literals are neither.
class splitter {
 public:
  explicit splitter(const std::string& text) : text_(text) {}

  source_text run() {
    while (at_ < text_.size()) step();
    end_line();
    return std::move(out_);
  }

 private:
  bool starts_with(const char* word) const {
    return text_.compare(at_, std::char_traits<char>::length(word), word) == 0;
  }

  void step() {
    if (starts_with("//")) {
      while (at_ < text_.size() && text_[at_] != '\n') take(comment_);
    } else if (starts_with("/*")) {
      const std::size_t close = text_.find("*/", at_ + 2);
      const std::size_t end = close == std::string::npos ? text_.size() : close + 2;
      while (at_ < end) take(comment_);
    } else if (starts_with("R\"") && (at_ == 0 || !is_word_letter(text_[at_ - 1]))) {
      skip_raw_string();
    } else if (text_[at_] == '"' && !in_include()) {
      skip_literal('"');
    } else if (text_[at_] == '\'' && (at_ == 0 || !is_word_letter(text_[at_ - 1]))) {
      skip_literal('\'');  // after a digit it would separate groups of digits
    } else {
      take(code_);
    }
  }

  /// Moves one byte into `where`; the other streams get a blank, so that columns stay.
  void take(std::string& where) {
    const char c = text_[at_++];
    if (c == '\n') {
      end_line();
      return;
    }
    code_ += &where == &code_ ? c : ' ';
    comment_ += &where == &comment_ ? c : ' ';
  }

  void skip_literal(char quote) {
    take(code_);
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) take(nothing_);
      take(nothing_);
    }
    if (at_ < text_.size()) take(code_);
  }

  void skip_raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string::npos) {
      at_ = text_.size();
      return;
    }
    const std::string close = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
    const std::size_t found = text_.find(close, open);
    const std::size_t end = found == std::string::npos ? text_.size() : found + close.size();
    while (at_ < end) take(nothing_);
  }

  bool in_include() const { return code_.find("#include") != std::string::npos; }

  void end_line() {
    read_include();
    out_.code.push_back(std::move(code_));
    out_.comments.push_back(std::move(comment_));
    code_.clear();
    comment_.clear();
  }

  void read_include() {
    const std::size_t hash = code_.find_first_not_of(" \t");
    if (hash == std::string::npos || code_.compare(hash, 8, "#include") != 0) return;
    const std::size_t open = code_.find_first_of("<\"", hash);
    if (open == std::string::npos) return;
    const std::size_t close = code_.find_first_of(">\"", open + 1);
    if (close == std::string::npos) return;
    out_.includes.push_back(
        {out_.code.size() + 1, code_.substr(open + 1, close - open - 1), code_[open] == '"'});
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::string code_;
  std::string comment_;
  std::string nothing_;
  source_text out_;
};

}  // namespace

source_text parse_source(const std::string& text) {
  return splitter(text).run();
}

bool contains_word(const std::string& line, const std::string& word) {
  for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word_letter(line[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == line.size() || !is_word_letter(line[end]))) return true;
  }
  return false;
}

}  // namespace cedar::architecture
