// Goal: an answer counts as whole only if it is; whatever else happens to it has a name. Method:
// streams as the server sends them, whole, cut and wrong, at times made by hand.
#include "tools/cedar/load_answer.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;
using namespace cedar::tools;
using namespace std::chrono_literals;

namespace {

const answer_reader::time sent{};

std::string chunk(const std::string& text, const std::string& finish = "null") {
  return R"(data: {"choices":[{"index":0,"text":")" + text + R"(","finish_reason":)" + finish +
         "}]}\n\n";
}

const std::string usage =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\n";
const std::string done = "data: [DONE]\n\n";

load_answer read(unsigned status, const std::string& bytes, const result<void>& how = {}) {
  answer_reader reader(sent);
  if (status != 0) reader.take_status(status);
  reader.take_bytes(bytes, sent + 1ms);
  return reader.finish(how, sent + 2ms);
}

bool says(const load_answer& answer, const std::string& part) {
  return !answer.is_whole() && answer.failure.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_of_a_load)

BOOST_AUTO_TEST_CASE(has_text_counts_and_times) {
  answer_reader reader(sent);
  reader.take_status(200);
  reader.take_bytes(chunk("Once").substr(0, 9), sent + 10ms);
  reader.take_bytes(chunk("Once").substr(9), sent + 20ms);
  reader.take_bytes(chunk(" upon") + chunk("!"), sent + 23ms);
  reader.take_bytes(chunk("", "\"length\"") + usage + done, sent + 24ms);
  const load_answer answer = reader.finish({}, sent + 25ms);
  BOOST_TEST(answer.is_whole(), answer.failure);
  BOOST_TEST(answer.text == "Once upon!");
  BOOST_TEST(answer.finish_reason == "length");
  BOOST_TEST(answer.prompt_tokens == 5U);
  BOOST_TEST(answer.tokens == 3U);
  BOOST_TEST(answer.first_ms == 20);
  BOOST_TEST(answer.between_ms == (std::vector<double>{3, 0}), boost::test_tools::per_element());
  BOOST_TEST(answer.total_ms == 25);
}

BOOST_AUTO_TEST_CASE(without_text_has_the_time_of_its_end) {
  const load_answer answer = read(200, chunk("", "\"stop\"") + usage + done);
  BOOST_TEST(answer.is_whole());
  BOOST_TEST(answer.first_ms == 2);
}

BOOST_AUTO_TEST_CASE(is_refused_in_good_order) {
  for (const unsigned status : {429U, 503U}) {
    const load_answer answer = read(status, R"({"error":{"message":"later"}})");
    BOOST_TEST(answer.failure.empty());
    BOOST_TEST(!answer.is_whole());
    BOOST_TEST(answer.status == status);
  }
}

BOOST_AUTO_TEST_CASE(expires_when_the_server_says_so) {
  const std::string event =
      "data: {\"error\":{\"message\":\"late\",\"code\":\"deadline_exceeded\"}}\n\n";
  const load_answer answer = read(200, chunk("a") + event);
  BOOST_TEST(answer.is_expired);
  BOOST_TEST(answer.failure.empty(), answer.failure);
  BOOST_TEST(!answer.is_whole());
  // The event is the stream's last: its end must come, too.
  const load_answer cut = read(200, chunk("a") + event, fail(errc::peer_lost, "closed"));
  BOOST_TEST(says(cut, "closed"));
  const load_answer lost = read(
      200, chunk("a") + "data: {\"error\":{\"message\":\"lost\",\"code\":\"unavailable\"}}\n\n");
  BOOST_TEST(!lost.is_expired);
  BOOST_TEST(says(lost, "lost"));
}

BOOST_AUTO_TEST_CASE(fails_for_a_reason) {
  BOOST_TEST(says(read(200, chunk("a") + usage), "[DONE]"));
  BOOST_TEST(says(read(200, chunk("a") + "data: {\"error\":{\"message\":\"lost\"}}\n\n"), "lost"));
  BOOST_TEST(says(read(200, "data: {\"choices\":[{}]}\n\n" + done), "no chunk"));
  BOOST_TEST(says(read(200, "data: nonsense\n\n" + done), "nonsense"));
  BOOST_TEST(says(read(400, R"({"error":{"message":"no such model"}})"), "400: no such model"));
  BOOST_TEST(says(read(500, "<html>"), "status 500"));
  BOOST_TEST(says(read(400, std::string(1U << 20U, 'x')), "status 400"));
  const load_answer cut = read(200, chunk("a"), fail(errc::peer_lost, "closed"));
  BOOST_TEST(says(cut, "closed"));
  BOOST_TEST(!cut.is_late);
  // Also a refusal must have come to its end.
  BOOST_TEST(says(read(429, "", fail(errc::peer_lost, "closed")), "closed"));
  const load_answer late = read(0, "", fail(errc::timeout, "60 s"));
  BOOST_TEST(late.is_late);
  BOOST_TEST(says(late, "60 s"));
}

BOOST_AUTO_TEST_SUITE_END()
