// Goal: a data URL gives exactly its bytes, or a reason. Method: RFC 4648's examples; every way to
// be wrong.
#include "runtime/http/data_url.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace cedar;
using namespace cedar::http;

namespace {

std::string bytes_of(const std::string& base64) {
  const auto read = read_data_url("data:image/png;base64," + base64);
  BOOST_REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  return {reinterpret_cast<const char*>(read->data()), read->size()};
}

void check_refused(const std::string& url, const std::string& text) {
  const auto read = read_data_url(url);
  BOOST_REQUIRE_MESSAGE(!read, url);
  BOOST_TEST((read.error().code == errc::invalid_argument));
  BOOST_TEST(read.error().message.find(text) != std::string::npos, read.error().message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_url)

BOOST_AUTO_TEST_CASE(gives_its_bytes) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"Zg==", "f"},
                                                       {"Zm8=", "fo"},
                                                       {"Zm9v", "foo"},
                                                       {"Zm9vYg==", "foob"},
                                                       {"Zm9vYmE=", "fooba"},
                                                       {"Zm9vYmFy", "foobar"},
                                                       {"+/8=", "\xfb\xff"}};
  for (const auto& [text, bytes] : cases) BOOST_TEST(bytes_of(text) == bytes);
  BOOST_TEST(bytes_of("AAAA") == std::string(3, '\0'));
}

BOOST_AUTO_TEST_CASE(may_name_any_type_of_image_that_is_read) {
  for (const char* head :
       {"image/png", "image/jpeg", "image/jpg", "image/webp", "image/png;charset=utf-8"})
    BOOST_TEST(read_data_url(std::string("data:") + head + ";base64,Zg==").has_value(), head);
}

BOOST_AUTO_TEST_CASE(is_refused_with_the_reason) {
  check_refused("http://example.com/a.png", "fetches nothing");
  check_refused("https://example.com/a.png", "fetches nothing");
  check_refused("file:///etc/passwd", "'file:///etc/passwd' is no data URL");
  check_refused("", "is no data URL");
  check_refused("data:image/png;base64", "must have base64 data");
  check_refused("data:,x", "must have base64 data");
  check_refused("data:image/png,x", "must have base64 data");
  check_refused("data:image/gif;base64,Zg==", "data of type 'image/gif'");
  check_refused("data:text/plain;base64,Zg==", "data of type 'text/plain'");
  check_refused("data:;base64,Zg==", "data of type ''");
  const std::string png = "data:image/png;base64,";
  check_refused(png + "Zm9v Zg==", "not base64 at byte 4");
  check_refused(png + "Zm9v\n", "not base64 at byte 4");
  check_refused(png + "Zg-_", "not base64 at byte 2");
  check_refused(png + "Zg==Zg==", "not base64 at byte 2");
  check_refused(png + "Z===", "not base64 at byte 1");
  check_refused(png + "Zm9vZ", "no multiple of 4");
  check_refused(png + "Zg=", "no multiple of 4");
  check_refused(png + "=", "no multiple of 4");
}

BOOST_AUTO_TEST_SUITE_END()
