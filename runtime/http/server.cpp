#include "runtime/http/server.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <sstream>
#include <thread>
#include <vector>

#include "runtime/http/internal/connection.hpp"

namespace cedar::http {

namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds accept_retry{100};

}  // namespace

struct server::parts {
  parts(session::generation_service& service, const text::tokenizer& vocabulary,
        const server_options& options)
      : shared(service, vocabulary, options),
        io(static_cast<int>(options.threads)),
        work(io.get_executor()),
        acceptor(asio::make_strand(io)),
        retry(acceptor.get_executor()) {}

  result<void> listen();
  void accept();
  void accepted(error_code failed, tcp::socket socket);
  void gone();
  void stop_listening();

  gateway shared;
  std::mutex mutex;
  std::list<std::weak_ptr<connection>> connections;  ///< guarded by mutex
  std::uint32_t connections_count = 0;  ///< guarded by mutex
  bool accepting = false;  ///< guarded by mutex: an accept is pending
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work;  ///< the pipeline may post
  tcp::acceptor acceptor;
  asio::steady_timer retry;
  std::string address;
  std::vector<std::thread> threads;
};

result<void> server::parts::listen() {
  error_code failed;
  const auto host = asio::ip::make_address(shared.options.address, failed);
  if (failed)
    return fail(errc::invalid_argument,
                "'" + shared.options.address + "' is no IP address to listen on, e.g. 127.0.0.1");
  const tcp::endpoint where(host, shared.options.port);
  acceptor.open(where.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(where, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed)
    return fail(errc::io, "cannot listen on " + shared.options.address + ":" +
                              std::to_string(shared.options.port) + ": " + failed.message() +
                              "; choose another address or port (--listen)");
  std::ostringstream text;
  text << acceptor.local_endpoint();
  address = text.str();
  return {};
}

void server::parts::accept() {
  {
    const std::scoped_lock lock(mutex);
    if (accepting || connections_count >= shared.options.connections_max) return;
    accepting = true;
  }
  acceptor.async_accept(asio::make_strand(io), [this](error_code failed, tcp::socket socket) {
    accepted(failed, std::move(socket));
  });
}

void server::parts::accepted(error_code failed, tcp::socket socket) {
  if (failed == asio::error::operation_aborted || !acceptor.is_open()) return;
  std::shared_ptr<connection> made;
  {
    const std::scoped_lock lock(mutex);
    accepting = false;
    std::erase_if(connections, [](const auto& weak) { return weak.expired(); });
  }
  if (!failed) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    // SHARED: by the connection's pending operations, until the last one has ended.
    made = std::make_shared<connection>(std::move(socket), shared, [this] { gone(); });
    const std::scoped_lock lock(mutex);
    ++connections_count;
    connections.push_back(made);
  }
  if (made) {
    made->start();
    return accept();
  }
  // Out of descriptors, most likely: some come back when connections end.
  retry.expires_after(accept_retry);
  retry.async_wait([this](error_code cancelled) {
    if (!cancelled && acceptor.is_open()) accept();
  });
}

void server::parts::gone() {
  {
    const std::scoped_lock lock(mutex);
    --connections_count;
    if (accepting || shared.draining) return;
  }
  asio::post(acceptor.get_executor(), [this] {
    if (acceptor.is_open()) accept();
  });
}

void server::parts::stop_listening() {
  asio::post(acceptor.get_executor(), [this] {
    error_code ignored;
    acceptor.close(ignored);
    retry.cancel();
  });
}

server::server(std::unique_ptr<parts> everything) : parts_(std::move(everything)) {}

result<std::unique_ptr<server>> server::open(session::generation_service& service,
                                             const text::tokenizer& vocabulary,
                                             const server_options& options) {
  auto made = std::make_unique<parts>(service, vocabulary, options);
  if (const result<void> listening = made->listen(); !listening) return fail(listening.error());
  made->accept();
  for (std::uint32_t i = 0; i < options.threads; ++i)
    made->threads.emplace_back([io = &made->io] { io->run(); });
  return std::unique_ptr<server>(new server(std::move(made)));
}

server::~server() {
  parts_->shared.draining = true;
  parts_->stop_listening();
  std::list<std::weak_ptr<connection>> left;
  {
    const std::scoped_lock lock(parts_->mutex);
    left = parts_->connections;
  }
  for (const auto& weak : left)
    if (const auto open = weak.lock()) open->drop();
  // The pipeline's events use the executors: it must have let go of them before they end.
  parts_->shared.door.wait_empty();
  parts_->shared.decoding.join();
  parts_->io.stop();
  for (std::thread& thread : parts_->threads) thread.join();
}

std::string server::address() const {
  return parts_->address;
}

bool server::drain(std::chrono::milliseconds limit) {
  gateway& shared = parts_->shared;
  shared.draining = true;
  parts_->stop_listening();
  std::unique_lock lock(shared.mutex);
  return shared.idle.wait_for(lock, limit, [&] { return shared.answers == 0; });
}

}  // namespace cedar::http
