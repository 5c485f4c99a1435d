#include "tests/unit/kernels/cuda/handles/round_trips.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "kernels/cuda/handles/graph.hpp"

namespace cedar::test {

using namespace kernels::cuda;

namespace {

constexpr std::size_t bytes = 4096;

/// Two pinned buffers and one of the device, on a stream.
struct bench {
  explicit bench(runtime& api)
      : on{&api, 0},
        in(*pinned_buffer::make(on, bytes)),
        out(*pinned_buffer::make(on, bytes)),
        there(*device_buffer::make(on, bytes)),
        work(*stream::make(on)) {
    for (std::size_t i = 0; i < bytes; ++i) in.span()[i] = static_cast<std::byte>(i * 7);
    std::ranges::fill(out.span(), std::byte{0x11});
  }

  bool arrived() const { return std::ranges::equal(in.span(), out.span()); }

  device_ref on;
  pinned_buffer in;
  pinned_buffer out;
  device_buffer there;
  stream work;
};

}  // namespace

void check_copies(runtime& api) {
  const bench b(api);
  BOOST_REQUIRE(b.work.upload(b.in, b.there, bytes));
  BOOST_REQUIRE(b.work.download(b.there, b.out, bytes));
  BOOST_REQUIRE(b.work.finish());
  BOOST_TEST(b.arrived());

  BOOST_REQUIRE(b.work.clear(b.there));
  BOOST_REQUIRE(b.work.upload(b.in, b.there, 100, 50));
  BOOST_REQUIRE(b.work.download(b.there, b.out, bytes - 10, 10));
  BOOST_REQUIRE(b.work.finish());
  for (std::size_t i = 0; i < bytes - 10; ++i) {
    const std::byte wanted = i >= 40 && i < 140 ? b.in.span()[i - 40] : std::byte{0};
    BOOST_REQUIRE_MESSAGE(b.out.span()[i] == wanted, "byte " << i);
  }
}

void check_events(runtime& api) {
  const bench b(api);
  const stream other = *stream::make(b.on);
  const event written = *event::make(b.on);
  BOOST_TEST(*written.reached());
  BOOST_REQUIRE(b.work.upload(b.in, b.there, bytes));
  BOOST_REQUIRE(written.record(b.work));
  BOOST_REQUIRE(other.wait(written));
  BOOST_REQUIRE(other.download(b.there, b.out, bytes));
  BOOST_REQUIRE(other.finish());
  BOOST_TEST(b.arrived());
  BOOST_TEST(*written.reached());
  BOOST_REQUIRE(written.finish());
}

void check_graphs(runtime& api) {
  const bench b(api);
  const stream side = *stream::make(b.on);
  const event begun = *event::make(b.on);
  const event ended = *event::make(b.on);
  const auto noted = graph::capture(b.work, [&]() -> result<void> {
    if (const auto done = b.work.upload(b.in, b.there, bytes); !done) return done;
    if (const auto done = begun.record(b.work); !done) return done;
    if (const auto done = side.wait(begun); !done) return done;
    if (const auto done = side.download(b.there, b.out, bytes); !done) return done;
    if (const auto done = ended.record(side); !done) return done;
    return b.work.wait(ended);
  });
  BOOST_REQUIRE(noted);
  const graph_exec run = *graph_exec::make(*noted);
  BOOST_REQUIRE(b.work.finish());
  BOOST_TEST(!b.arrived());
  for (const int fill : {3, 4}) {
    std::ranges::fill(b.in.span(), static_cast<std::byte>(fill));
    BOOST_REQUIRE(run.launch(b.work));
    BOOST_REQUIRE(b.work.finish());
    BOOST_TEST(b.arrived());
  }
}

void check_failed_captures(runtime& api) {
  const bench b(api);
  const auto waiting = graph::capture(b.work, [&] { return b.work.finish(); });
  BOOST_REQUIRE(!waiting);
  BOOST_TEST(waiting.error().message.starts_with("a graph: "));
  const auto refused =
      graph::capture(b.work, [&]() -> result<void> { return fail(errc::capacity, "no"); });
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().message == "a graph: no");
  BOOST_REQUIRE(b.work.upload(b.in, b.there, bytes));
  BOOST_REQUIRE(b.work.download(b.there, b.out, bytes));
  BOOST_REQUIRE(b.work.finish());
  BOOST_TEST(b.arrived());
}

}  // namespace cedar::test
