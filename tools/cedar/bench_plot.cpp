#include "tools/cedar/bench_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/base/check.hpp"

namespace cedar::tools {

namespace {

constexpr double left = 80;
constexpr double right = 660;  ///< of the plot; names of lines stand beside it
constexpr double top = 50;
constexpr double bottom = 490;

/// Colours that people who confuse red and green can tell apart (Okabe and Ito).
constexpr std::array colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                "#e69f00", "#56b4e9", "#000000"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '&')
      out += "&amp;";
    else if (letter == '<')
      out += "&lt;";
    else if (letter == '>')
      out += "&gt;";
    else
      out += letter;
  }
  return out;
}

/// From the logarithm of a value to a place.
struct axis {
  double low = 0;
  double high = 1;
  double begin = 0;
  double end = 1;

  double place(double logarithm) const {
    return begin + (logarithm - low) / (high - low) * (end - begin);
  }
};

/// 4096 as "4 k", 1048576 as "1 M".
std::string power_of_two(int exponent) {
  const std::string number = std::to_string(1 << exponent % 10);
  constexpr std::array units = {"", " k", " M", " G"};
  return number + units[static_cast<std::size_t>(std::min(exponent / 10, 3))];
}

class drawing {
 public:
  explicit drawing(const plot& what) : what_(what) {
    double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
    for (const plot_line& line : what.lines)
      for (const auto& [x, y] : line.points) {
        CEDAR_REQUIRE(x > 0 && y > 0, line.name + ": logarithms need numbers above 0");
        x_low = std::min(x_low, std::floor(std::log2(x)));
        x_high = std::max(x_high, std::ceil(std::log2(x)));
        y_low = std::min(y_low, std::floor(std::log10(y)));
        y_high = std::max(y_high, std::ceil(std::log10(y)));
      }
    CEDAR_REQUIRE(x_low <= x_high, "a plot has a point");
    x_ = {x_low, std::max(x_high, x_low + 1), left, right};
    y_ = {y_low, std::max(y_high, y_low + 1), bottom, top};
  }

  std::string svg() {
    out_ =
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 560" font-family="sans-serif" font-size="13">)"
        "\n<rect width=\"900\" height=\"560\" fill=\"white\"/>\n";
    text((left + right) / 2, 28, "middle", what_.title);
    text((left + right) / 2, bottom + 48, "middle", what_.x_name);
    out_ += fmt::format(
        "<text transform=\"translate(24 {:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>\n",
        (top + bottom) / 2, escaped(what_.y_name));
    grid();
    for (std::size_t i = 0; i < what_.lines.size(); ++i) line(i);
    return out_ + "</svg>\n";
  }

 private:
  void text(double x, double y, const char* anchor, const std::string& what) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                        anchor, escaped(what));
  }
  void stroke(double x1, double y1, double x2, double y2) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ccc\"/>\n", x1, y1,
        x2, y2);
  }

  void grid() {
    for (int power = static_cast<int>(x_.low); power <= static_cast<int>(x_.high); ++power) {
      stroke(x_.place(power), top, x_.place(power), bottom);
      text(x_.place(power), bottom + 20, "middle", power_of_two(power));
    }
    for (int power = static_cast<int>(y_.low); power <= static_cast<int>(y_.high); ++power) {
      stroke(left, y_.place(power), right, y_.place(power));
      text(left - 8, y_.place(power) + 4, "end", fmt::format("{:g}", std::pow(10.0, power)));
    }
  }

  void line(std::size_t index) {
    const plot_line& one = what_.lines[index];
    if (one.points.empty()) return;
    const char* const colour = colours[index % colours.size()];
    std::string places;
    for (const auto& [x, y] : one.points)
      places += fmt::format(" {:.1f},{:.1f}", x_.place(std::log2(x)), y_.place(std::log10(y)));
    out_ +=
        fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n",
                    colour, places.substr(1));
    for (const auto& [x, y] : one.points)
      out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                          x_.place(std::log2(x)), y_.place(std::log10(y)), colour);
    const double y = top + 10 + 24 * static_cast<double>(index);
    out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"4\" fill=\"{}\"/>\n",
                        right + 20, y, colour);
    text(right + 42, y + 6, "start", one.name);
  }

  const plot& what_;
  axis x_;
  axis y_;
  std::string out_;
};

}  // namespace

std::string to_svg(const plot& what) {
  return drawing(what).svg();
}

}  // namespace cedar::tools
