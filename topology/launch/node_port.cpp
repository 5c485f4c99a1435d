#include "topology/launch/node_port.hpp"

namespace cedar::topology {

namespace {

using opened_port = result<std::unique_ptr<transport::port>>;

/// On the links that are there.
opened_port open_bare(const plan& topology, const node_settings& settings,
                      transport::port_handler& handler) {
  const node_plan& self = topology[settings.self];
  if (settings.hub != nullptr) return settings.hub->open(self.id, self.name, handler);
  transport::port_options common;
  common.self = self.id;
  common.name = self.name;
  common.secret = settings.secret;
  common.heartbeat_interval = topology.deadlines().heartbeat_interval;
  common.silence_limit = topology.deadlines().heartbeat_lost;
  const auto options = ucx_options_of(topology, self.id);
  if (!options) return fail(options.error());
  auto port = transport::ucx::open_port(common, *options, handler);
  if (!port) return fail(port.error().with("data plane of node '" + self.name + "'"));
  return port;
}

opened_port open_links(const plan& topology, const node_settings& settings,
                       transport::port_handler& handler) {
  if (!settings.emulate_links) return open_bare(topology, settings, handler);
  auto port = transport::shaped_port::open(
      shapes_of(topology, settings.self), handler,
      [&](transport::port_handler& inner) { return open_bare(topology, settings, inner); });
  if (!port) return fail(port.error());
  (*port)->run();
  return std::move(*port);
}

}  // namespace

transport::shape_options shapes_of(const plan& topology, node_id self) {
  transport::shape_options out;
  out.self = self;
  for (const link_plan& link : topology.links())
    if (link.from == self) out.links.emplace(link.to, link.shape);
  return out;
}

result<std::unique_ptr<transport::probed_port>> open_node_port(const plan& topology,
                                                               const node_settings& settings,
                                                               transport::port_handler& handler) {
  return transport::probed_port::open(handler, [&](transport::port_handler& inner) {
    return open_links(topology, settings, inner);
  });
}

}  // namespace cedar::topology
