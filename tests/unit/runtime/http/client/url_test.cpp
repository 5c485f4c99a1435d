// Goal: a server's address is read, or refused with what is wrong. Method: examples of either.
#include "runtime/http/client/url.hpp"

#include <boost/test/unit_test.hpp>

using cedar::http::parse_server_url;

BOOST_AUTO_TEST_SUITE(server_url)

BOOST_AUTO_TEST_CASE(reads_addresses) {
  const auto read = [](const char* text) {
    const auto url = parse_server_url(text);
    BOOST_REQUIRE_MESSAGE(url.has_value(), text);
    return url->text();
  };
  BOOST_TEST(read("http://127.0.0.1:8080") == "http://127.0.0.1:8080");
  BOOST_TEST(read("http://127.0.0.1:8080/") == "http://127.0.0.1:8080");
  BOOST_TEST(read("localhost:1") == "http://localhost:1");
  BOOST_TEST(read("http://host") == "http://host:80");
  BOOST_TEST(read("http://[::1]:65535") == "http://[::1]:65535");
  BOOST_TEST(read("[::1]") == "http://[::1]:80");
  BOOST_TEST(parse_server_url("http://[::1]:9")->host == "::1");
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong) {
  const auto why = [](const char* text) {
    const auto url = parse_server_url(text);
    BOOST_REQUIRE_MESSAGE(!url.has_value(), text);
    return url.error().message;
  };
  BOOST_TEST(why("https://a:1").find("https://") != std::string::npos);
  BOOST_TEST(why("http://a:1/v1").find("path") != std::string::npos);
  BOOST_TEST(why("http://me@a:1").find("user") != std::string::npos);
  BOOST_TEST(why("").find("host") != std::string::npos);
  BOOST_TEST(why("http://:80").find("host") != std::string::npos);
  for (const char* text : {"a:", "a:0", "a:65536", "a:-1", "a:8o", "[::1]:"})
    BOOST_TEST(why(text).find("port") != std::string::npos, text);
  BOOST_TEST(why("[::1").find("']'") != std::string::npos);
  BOOST_TEST(why("[::1]x:1").find("']'") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
