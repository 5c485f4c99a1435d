// Every unit has a band of its own, from top to bottom in the order of rows; every device has a
// column, and nodes frame columns that stand side by side. An edge leaves a unit at its bottom,
// runs in the gap below its band to a lane before the column of its consumer, and along the lane to
// the consumer, where its label stands: so lines cross lines, but never a box or a text.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topology/plan/internal/texts.hpp"
#include "topology/plan/link_costs.hpp"
#include "topology/plan/render.hpp"

namespace cedar::topology {

namespace {

// Pixels. Labels are monospaced: 6.7 px a letter of 11 px.
constexpr int box_width = 168;
constexpr int port_step = 18;
constexpr int box_height_min = 46;
constexpr int lane_step = 9;
constexpr int gap_step = 7;
constexpr int margin = 26;
constexpr int frame = 14;
constexpr int title_height = 64;
constexpr double letter_width = 6.7;

struct line_style {
  const char* colour;
  const char* dash;
};

line_style style_of(const edge_plan& edge) {
  const char* dash = is_request(edge.kind) ? "5 3" : "none";
  return {edge.crosses() ? "#c2410c" : "#475569", dash};
}

bool is_drawn(edge_kind kind) {
  return kind != edge_kind::step_table && kind != edge_kind::verdict && kind != edge_kind::tap;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// A column: a device, or the place of the scheduler, which has none.
struct column {
  node_id node;
  std::optional<device_id> device;
  std::vector<unit_id> units;
  int gutter = 0;  // lanes and labels before the boxes
  int lanes = 0;
  int left = 0;  // of the boxes
};

struct band {
  int top = 0;
  int height = 0;
  int gap = 0;  // below it
};

class drawing {
 public:
  drawing(const plan& planned, const cost_basis& basis) : plan_(planned), basis_(basis) {
    make_columns();
    place();
  }

  std::string text() {
    std::string body = frames() + edges() + boxes();
    const std::string title = fmt::format(
        "<text x='{}' y='28' font-size='17' font-weight='bold'>{}</text>\n"
        "<text x='{}' y='48' font-size='12' fill='#475569'>Bytes of one decode row at position "
        "{}{}. "
        "Orange lines cross between nodes, dashed ones are requests. Step tables to every unit and "
        "verdicts to every stage are left out.</text>\n",
        margin, escaped(plan_.file()), margin, std::max(basis_.load.positions, 1U) - 1,
        plan_.links().empty() ? "" : "; milliseconds of a decode step on the links declared");
    return fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
        "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'>\n"
        "<rect x='0' y='0' width='{0}' height='{1}' fill='#ffffff'/>\n{2}{3}</svg>\n",
        width_, height_, title, body);
  }

 private:
  std::vector<const edge_plan*> drawn_into(unit_id unit) const {
    std::vector<const edge_plan*> out;
    for (const edge_plan& edge : plan_.edges())
      if (edge.consumer == unit && is_drawn(edge.kind)) out.push_back(&edge);
    return out;
  }

  std::string label(const edge_plan& edge) const {
    const std::string ends = plan_[edge.producer].name + " -> " + plan_[edge.consumer].name + " ";
    const auto time = time_on_link(plan_, edge.id, step_kind::decode, basis_);
    return edge.name.substr(ends.size()) + " " +
           internal::grouped(cost_of(plan_, edge.id, basis_).decode_row) + " B" +
           (time ? ", " + internal::milliseconds(*time) + " ms" : "");
  }

  void make_columns() {
    for (const node_plan& node : plan_.nodes()) {
      for (const unit_id unit : node.units)
        if (!plan_[unit].device) columns_.push_back({node.id, std::nullopt, {unit}});
      for (const device_plan& device : plan_.devices()) {
        if (device.node != node.id) continue;
        column made{node.id, device.id, {}};
        for (const unit_id unit : node.units)
          if (plan_[unit].device == device.id) made.units.push_back(unit);
        if (!made.units.empty()) columns_.push_back(std::move(made));
      }
    }
    for (std::size_t i = 0; i < columns_.size(); ++i)
      for (const unit_id unit : columns_[i].units) column_of_[unit] = i;
  }

  void place() {
    int x = margin;
    std::optional<node_id> last;
    for (column& each : columns_) {
      std::size_t letters = 0;
      for (const unit_id unit : each.units)
        for (const edge_plan* edge : drawn_into(unit)) {
          ++each.lanes;
          letters = std::max(letters, label(*edge).size());
        }
      each.gutter = (each.lanes + 1) * lane_step +
                    static_cast<int>(static_cast<double>(letters) * letter_width) + 22;
      if (last && *last != each.node) x += 2 * frame;
      if (!last) x += frame;
      last = each.node;
      each.left = x + each.gutter + frame;
      x = each.left + box_width + frame;
    }
    width_ = std::max(x + frame + margin, 900);
    int y = title_height + 3 * frame + 26;
    for (const unit_plan& unit : plan_.units()) {
      band& place = bands_[unit.id];
      const auto inputs = static_cast<int>(drawn_into(unit.id).size());
      int outputs = 0;
      for (const edge_plan& edge : plan_.edges())
        if (edge.producer == unit.id && is_drawn(edge.kind)) ++outputs;
      place.top = y;
      place.height = std::max(box_height_min, inputs * port_step + 12);
      place.gap = 16 + outputs * gap_step;
      y += place.height + place.gap;
    }
    bottom_ = y;
    height_ = y + 2 * frame + margin;
  }

  std::string frames() const {
    std::string out;
    const int top = title_height + frame;
    for (const node_plan& node : plan_.nodes()) {
      int left = width_, right = 0;
      for (const column& each : columns_) {
        if (each.node != node.id) continue;
        left = std::min(left, each.left - each.gutter - frame);
        right = std::max(right, each.left + box_width + 2 * frame);
      }
      if (right == 0) continue;
      out += fmt::format(
          "<rect x='{}' y='{}' width='{}' height='{}' rx='10' fill='#f8fafc' stroke='#94a3b8'/>\n"
          "<text x='{}' y='{}' font-size='14' font-weight='bold' fill='#334155'>node {} "
          "({})</text>\n",
          left, top, right - left, bottom_ + frame - top, left + 12, top + 21, escaped(node.name),
          escaped(node.address));
    }
    for (const column& each : columns_) {
      if (!each.device) continue;
      const band& first = bands_.at(each.units.front());
      const band& last = bands_.at(each.units.back());
      const int device_top = first.top - 24;
      out += fmt::format(
          "<rect x='{}' y='{}' width='{}' height='{}' rx='8' fill='#e0f2fe' stroke='#7dd3fc'/>\n"
          "<text x='{}' y='{}' font-size='12' fill='#075985'>{} ({})</text>\n",
          each.left - frame + 4, device_top, box_width + 2 * frame - 8,
          last.top + last.height + 10 - device_top, each.left, device_top + 16,
          escaped(plan_[*each.device].name), to_string(plan_[*each.device].kind));
    }
    return out;
  }

  std::string edges() const {
    std::string out;
    std::map<unit_id, int> outputs;  // drawn so far, of a producer
    std::vector<int> lanes(columns_.size());
    for (const unit_plan& unit : plan_.units()) {
      const std::size_t into = column_of_.at(unit.id);
      const column& to = columns_[into];
      int port = 0;
      for (const edge_plan* edge : drawn_into(unit.id)) {
        const column& from = columns_[column_of_.at(edge->producer)];
        const band& start = bands_.at(edge->producer);
        const int output = outputs[edge->producer]++;
        const int x0 = from.left + 24 + (output * 13) % (box_width - 40);
        const int y0 = start.top + start.height;
        const int y1 = y0 + 12 + output * gap_step;
        const int x2 = to.left - to.gutter + (lanes[into]++ + 1) * lane_step;
        const int y2 = bands_.at(unit.id).top + 16 + port++ * port_step;
        const auto [colour, dash] = style_of(*edge);
        out += fmt::format(
            "<path d='M{0} {1} V{2} H{3} V{4} H{5}' fill='none' stroke='{6}' stroke-width='1.4' "
            "stroke-dasharray='{7}'/>\n"
            "<path d='M{8} {9} L{5} {4} L{8} {10} Z' fill='{6}'/>\n"
            "<text x='{11}' y='{12}' font-size='11' font-family='DejaVu Sans Mono, monospace' "
            "text-anchor='end' fill='{6}'>{13}</text>\n",
            x0, y0, y1, x2, y2, to.left, colour, dash, to.left - 7, y2 - 4, y2 + 4,
            to.left - frame - 4, y2 - 5, escaped(label(*edge)));
      }
    }
    return out;
  }

  std::string boxes() const {
    std::string out;
    for (const unit_plan& unit : plan_.units()) {
      const column& at = columns_[column_of_.at(unit.id)];
      const band& place = bands_.at(unit.id);
      const int middle = place.top + place.height / 2;
      const std::string holds = internal::holds(unit);
      out += fmt::format(
          "<rect x='{}' y='{}' width='{}' height='{}' rx='6' fill='{}' stroke='#0f172a'/>\n"
          "<text x='{}' y='{}' font-size='13' font-weight='bold' text-anchor='middle'>{}</text>\n",
          at.left, place.top, box_width, place.height,
          std::holds_alternative<stage_role>(unit.role) ? "#fef9c3" : "#ffffff",
          at.left + box_width / 2, holds.empty() ? middle + 5 : middle - 2, escaped(unit.name));
      if (!holds.empty())
        out += fmt::format(
            "<text x='{}' y='{}' font-size='12' text-anchor='middle' fill='#334155'>{}</text>\n",
            at.left + box_width / 2, middle + 15, holds);
    }
    return out;
  }

  const plan& plan_;
  const cost_basis& basis_;
  std::vector<column> columns_;
  std::map<unit_id, std::size_t> column_of_;
  std::map<unit_id, band> bands_;
  int width_ = 0;
  int height_ = 0;
  int bottom_ = 0;
};

}  // namespace

std::string render_svg(const plan& planned, const cost_basis& basis) {
  return drawing(planned, basis).text();
}

}  // namespace cedar::topology
