// The secret that all processes of a topology know: read from a file, or made for one run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/result.hpp"
#include "runtime/transport/options.hpp"

namespace cedar::topology {

/// A secret in a file that only its owner can read. The file of a secret that is made for a run
/// lies in this process's memory: whatever ends the process, nothing is left of it.
class secret_file {
 public:
  /// The bytes of an existing file (white space at the end is not part of them). Errors: not_found,
  /// io; refused if the file is shorter than transport::secret_bytes_min or others may read it.
  static result<secret_file> read(const std::filesystem::path& path);
  /// 32 random bytes, as text, in a new file of mode 0600 in memory. Other processes of the same
  /// user read it at path(), while the object lives and remove() has not been called. Errors: io.
  static result<secret_file> create();

  secret_file(secret_file&& other) noexcept;
  secret_file& operator=(secret_file&&) = delete;
  ~secret_file();

  /// Removes a file that was made for this run, once everybody has read it.
  void remove();
  /// Writes such a file again, at another path(), for those who come later. Errors: io.
  result<void> restore();

  const std::filesystem::path& path() const noexcept { return path_; }
  const transport::shared_secret& bytes() const noexcept { return bytes_; }

 private:
  secret_file(std::filesystem::path path, transport::shared_secret bytes, bool made)
      : path_(std::move(path)), bytes_(std::move(bytes)), made_(made) {}

  std::filesystem::path path_;
  transport::shared_secret bytes_;
  bool made_;  ///< for this run
  int memory_ = -1;  ///< descriptor of the file in memory, or -1
};

/// A fresh random text that is never used twice.
std::string make_nonce();

/// HMAC-SHA256 of `text` under the secret, in hexadecimal.
std::string proof_of(const transport::shared_secret& secret, const std::string& text);

/// Compares proofs without telling by time where they differ.
bool same_proof(const std::string& a, const std::string& b);

}  // namespace cedar::topology
