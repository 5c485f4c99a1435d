// Goal: secrets are private files, and proofs depend on secret and text alone. Method: files of all
// kinds; HMAC-SHA256 against a published vector.
#include "topology/launch/secret.hpp"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "tests/integration/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace cedar::topology;
using namespace cedar::test;

namespace {

cedar::transport::shared_secret secret_of(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(secret)

BOOST_AUTO_TEST_CASE(made_for_a_run_is_private_fresh_and_gone_with_it) {
  std::filesystem::path path;
  {
    const auto made = secret_file::create();
    const auto other = secret_file::create();
    BOOST_REQUIRE(made.has_value() && other.has_value());
    path = made->path();
    struct stat status {};
    BOOST_REQUIRE(::stat(path.c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 0777U) == 0600U);
    BOOST_TEST((made->bytes() != other->bytes()));
    const auto read = secret_file::read(path);
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST((read->bytes() == made->bytes()));
  }
  BOOST_TEST(!std::filesystem::exists(path));
}

BOOST_AUTO_TEST_CASE(made_for_a_run_can_be_written_again) {
  auto made = secret_file::create();
  BOOST_REQUIRE(made.has_value());
  made->remove();
  BOOST_REQUIRE(made->restore().has_value());
  const auto read = secret_file::read(made->path());
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((read->bytes() == made->bytes()));
}

BOOST_AUTO_TEST_CASE(of_a_person_stays_and_loses_the_line_end) {
  const temporary_folder folder;
  const auto path = folder.write("secret", "correct horse battery staple\n");
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  {
    auto read = secret_file::read(path);
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST((read->bytes() == secret_of("correct horse battery staple")));
    read->remove();
  }
  BOOST_TEST(std::filesystem::exists(path));
}

BOOST_AUTO_TEST_CASE(is_proven_by_hmac_sha256) {
  // RFC 4231, test case 2.
  BOOST_TEST(proof_of(secret_of("Jefe"), "what do ya want for nothing?") ==
             "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  BOOST_TEST(same_proof("abc", "abc"));
  BOOST_TEST(!same_proof("abc", "abd"));
  BOOST_TEST(!same_proof("abc", "ab"));
}

BOOST_AUTO_TEST_SUITE_END()
