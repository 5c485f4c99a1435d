// Goal: options that the formulas are defined for are taken, others are refused with a text that
// says what is allowed. Method: the defaults with one option changed, at and beyond its bounds.
#include "runtime/flow/sampling_rules.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <limits>

using namespace cedar;
using flow::sampling_options;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float smallest = std::numeric_limits<float>::denorm_min();

/// The text of the refusal, empty if there is none.
std::string refusal(const std::function<void(sampling_options&)>& change) {
  sampling_options options;
  change(options);
  const result<void> checked = flow::check(options, 50);
  if (checked) return "";
  BOOST_TEST((checked.error().code == errc::invalid_argument));
  return checked.error().message;
}

std::string refusal(float sampling_options::*option, float value) {
  return refusal([&](sampling_options& options) { options.*option = value; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampling_rules)

BOOST_AUTO_TEST_CASE(the_bounds_themselves_are_taken) {
  using o = sampling_options;
  BOOST_TEST(refusal([](o&) {}) == "");
  for (const float value : {0.0F, smallest, 1.0F, 1e30F})
    BOOST_TEST(refusal(&o::temperature, value) == "");
  for (const float value : {smallest, 0.5F, 1.0F}) BOOST_TEST(refusal(&o::top_p, value) == "");
  for (const float value : {0.0F, 0.5F, 1.0F}) BOOST_TEST(refusal(&o::min_p, value) == "");
  for (const float value : {smallest, 1.0F, 1e30F})
    BOOST_TEST(refusal(&o::repetition_penalty, value) == "");
  for (const float value : {-1e30F, 0.0F, 2.0F}) {
    BOOST_TEST(refusal(&o::presence_penalty, value) == "");
    BOOST_TEST(refusal(&o::frequency_penalty, value) == "");
  }
  BOOST_TEST(refusal([](o& options) { options.bias = {{0, -1e30F}, {49, 7}}; }) == "");
}

BOOST_AUTO_TEST_CASE(values_beyond_them_are_refused_with_what_is_allowed) {
  using o = sampling_options;
  BOOST_TEST(refusal(&o::temperature, -0.5F) ==
             "temperature is -0.5; it must be 0 (no sampling) or more");
  BOOST_TEST(refusal(&o::top_p, 0) == "top_p is 0; it must be above 0 and at most 1");
  BOOST_TEST(refusal(&o::top_p, 1.5F) == "top_p is 1.5; it must be above 0 and at most 1");
  BOOST_TEST(refusal(&o::min_p, -0.25F) == "min_p is -0.25; it must be between 0 and 1");
  BOOST_TEST(refusal(&o::min_p, 2) == "min_p is 2; it must be between 0 and 1");
  BOOST_TEST(refusal(&o::repetition_penalty, 0) ==
             "repetition_penalty is 0; it must be above 0 (1: none)");
  for (const float value : {not_a_number, infinity, -infinity})
    for (const auto option : {&o::temperature, &o::top_p, &o::min_p, &o::repetition_penalty,
                              &o::presence_penalty, &o::frequency_penalty})
      BOOST_TEST(refusal(option, value) != "");
}

BOOST_AUTO_TEST_CASE(biases_name_tokens_that_exist_once_each) {
  using o = sampling_options;
  BOOST_TEST(refusal([](o& options) {
               options.bias = {{50, 1}};
             }) == "the logit bias of token 50 is outside the vocabulary of 50");
  BOOST_TEST(refusal([](o& options) {
               options.bias = {{-1, 1}};
             }) == "the logit bias of token -1 is outside the vocabulary of 50");
  BOOST_TEST(refusal([](o& options) {
               options.bias = {{3, 1}, {4, 1}, {3, 1}};
             }) == "the logit bias of token 3 is given twice; give it once");
  BOOST_TEST(refusal([](o& options) {
               options.bias = {{3, not_a_number}};
             }) == "the logit bias of token 3 is nan; it must be a finite number");
  BOOST_TEST(refusal([](o& options) { options.bias.resize(flow::token_biases_max + 1); }) ==
             "1025 tokens have a logit bias; at most 1024 may");
}

BOOST_AUTO_TEST_SUITE_END()
