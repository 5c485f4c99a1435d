// Goal: nodes that read another model are told apart. Method: copies of tiny-12 with one
// difference.
#include "runtime/stage/model_source.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;

BOOST_AUTO_TEST_SUITE(fingerprint_of_a_model)

BOOST_AUTO_TEST_CASE(holds_the_tokenizer) {
  const auto print_of = [](const std::string& more) {
    const temporary_folder folder;
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
      std::filesystem::copy(tiny_model().folder() / name, folder.path() / name);
    std::ofstream(folder.path() / "tokenizer.json", std::ios::app) << more;
    const auto source = stage::model_source::open(folder.path());
    BOOST_REQUIRE_MESSAGE(source, (source ? "" : source.error().message));
    return (*source)->fingerprint().value();
  };
  BOOST_TEST(print_of("") == tiny_model().fingerprint().value());
  BOOST_TEST(print_of(" ") != print_of(""));
}

BOOST_AUTO_TEST_SUITE_END()
