#include "topology/launch/secret.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::topology {

namespace {

std::string to_hex(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

transport::shared_secret as_secret(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

}  // namespace

result<secret_file> secret_file::read(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return fail(errc::not_found, "secret file " + path.string() + ": " + std::strerror(errno));
  if ((status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    return fail(errc::refused, "secret file " + path.string() +
                                   " can be read by others; make it private (chmod 600)");
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return fail(errc::io, "secret file " + path.string() + " cannot be read");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  if (text.size() < transport::secret_bytes_min)
    return fail(errc::refused, "secret file " + path.string() + " holds " +
                                   std::to_string(text.size()) + " bytes; at least " +
                                   std::to_string(transport::secret_bytes_min) + " are needed");
  return secret_file(path, as_secret(text), false);
}

result<secret_file> secret_file::create() {
  secret_file made({}, as_secret(make_nonce()), true);
  if (const result<void> written = made.restore(); !written) return fail(written.error());
  return made;
}

result<void> secret_file::restore() {
  if (!made_ || memory_ >= 0) return {};
  memory_ = ::memfd_create("cedar-secret", MFD_CLOEXEC);
  if (memory_ < 0) return fail(errc::io, std::string("a file in memory: ") + std::strerror(errno));
  path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory_);
  const bool written =
      ::fchmod(memory_, S_IRUSR | S_IWUSR) == 0 &&
      ::write(memory_, bytes_.data(), bytes_.size()) == static_cast<ssize_t>(bytes_.size());
  if (!written) return fail(errc::io, std::string("a secret in memory: ") + std::strerror(errno));
  return {};
}

secret_file::secret_file(secret_file&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::move(other.bytes_)),
      made_(other.made_),
      memory_(std::exchange(other.memory_, -1)) {}

secret_file::~secret_file() {
  remove();
}

void secret_file::remove() {
  if (memory_ >= 0) ::close(std::exchange(memory_, -1));
}

std::string make_nonce() {
  std::array<unsigned char, 32> bytes{};
  CEDAR_ASSERT(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
               "the system has no random bytes");
  return to_hex(bytes);
}

std::string proof_of(const transport::shared_secret& secret, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  return to_hex({mac.data(), size});
}

bool same_proof(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace cedar::topology
