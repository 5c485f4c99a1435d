// Goal: URLs of images are read as servers read them, and only named hosts are asked. Method: URLs
// by hand, good and bad.
#include "runtime/http/image_url.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;
using namespace cedar::http;

namespace {

std::string parts_of(const std::string& text) {
  const auto url = parse_image_url(text);
  if (!url) return "refused: " + url.error().message;
  return (url->secure ? "s " : "- ") + url->host + " " + url->port + " " + url->target;
}

bool allows(const std::string& text, const std::vector<std::string>& hosts) {
  return is_allowed(parse_image_url(text).value(), hosts);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(image_urls)

BOOST_AUTO_TEST_CASE(are_taken_apart) {
  BOOST_TEST(parts_of("http://example.com/a.png") == "- example.com 80 /a.png");
  BOOST_TEST(parts_of("HTTPS://Example.COM:8443/A?b=c/d#e") == "s example.com 8443 /A?b=c/d");
  BOOST_TEST(parts_of("https://example.com") == "s example.com 443 /");
  BOOST_TEST(parts_of("http://example.com?x") == "- example.com 80 /?x");
  BOOST_TEST(parts_of("http://[::1]:81/x") == "- [::1] 81 /x");
  BOOST_TEST(parts_of("http://[::1]/x") == "- [::1] 80 /x");
}

BOOST_AUTO_TEST_CASE(are_refused_if_they_are_none) {
  for (const char* text :
       {"", "ftp://a/b", "http:/a", "data:image/png;base64,AAAA", "http://", "http:///a",
        "http://a:0/", "http://a:65536/", "http://a:/", "http://a:b/", "http://user@a/",
        "http://user:word@a/", "http://[::1/", "http://[]/", "http://a b/", "http://a/\r\nHost: b",
        "http://a/\xc3\xa4", "http://a]b/"})
    BOOST_TEST(parts_of(text).starts_with("refused: "), text);
  BOOST_TEST(parts_of("http://a/" + std::string(5000, 'x')).starts_with("refused: "));
  BOOST_TEST(is_web_url("hTTp://"));
  BOOST_TEST(!is_web_url("data:http://"));
}

BOOST_AUTO_TEST_CASE(are_allowed_by_their_host) {
  BOOST_TEST(allows("http://a.b/x", {"c", "a.b"}));
  BOOST_TEST(allows("https://A.b/x", {"a.b"}));
  BOOST_TEST(allows("http://a.b:81/x", {"a.b:81"}));
  BOOST_TEST(allows("http://a.b/x", {"a.b:80"}));
  BOOST_TEST(!allows("http://a.b/x", {}));
  BOOST_TEST(!allows("http://a.b:81/x", {"a.b"}));
  BOOST_TEST(!allows("http://x.a.b/x", {"a.b"}));
  BOOST_TEST(!allows("http://a.b.c/x", {"a.b"}));
  BOOST_TEST(!allows("https://a.b/x", {"a.b:80"}));
}

BOOST_AUTO_TEST_SUITE_END()
