// A plot of lines over two logarithmic axes, as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cedar::tools {

struct plot_line {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x and y above 0, x ascending
};

struct plot {
  std::string title;
  std::string x_name;
  std::string y_name;
  std::vector<plot_line> lines;
};

/// A document of 900 x 560 user units; text in any language is escaped. Ticks: powers of two on x,
/// of ten on y. Requires a point.
std::string to_svg(const plot& what);

}  // namespace cedar::tools
